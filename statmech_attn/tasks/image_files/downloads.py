"""Published image files, fetched with pooch when asked for (extra "images").

A file appears under its name only once its SHA-256 is the published one.
"""

from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from statmech_attn import extras, inputs


class Source(NamedTuple):
    """A data set: folder here, address there, and SHA-256 of each file."""

    folder: str
    address: str
    digests: dict[str, str]


_OMNIGLOT = "https://github.com/brendenlake/omniglot/raw/master/python/"
SOURCES = {
    "omniglot": Source(
        "omniglot",
        _OMNIGLOT,
        {
            "images_background.zip": (
                "ad41ab679c8b5d90b271ef46be6987cc81211774a695c29dcc5367b2b26ee640"
            ),
            "images_evaluation.zip": (
                "1f61a8f3366785b057fc117d9228e78a16e3d976c8953b2a10fcc74cf0609cee"
            ),
        },
    ),
    "omniglot-small": Source(
        "omniglot",
        _OMNIGLOT,
        {
            "images_background_small1.zip": (
                "f38eb80f801274ac2b4dff5b24289016bfaba4a7d5bb50deebf27104ad6cb8a4"
            ),
            "images_background_small2.zip": (
                "3ccaa407515a8778e5d0861875af38b17e418f301ad5bb3b5a6b65d901a41c7f"
            ),
        },
    ),
    "mnist": Source(
        "mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        {
            "train-images-idx3-ubyte.gz": (
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
            ),
            "train-labels-idx1-ubyte.gz": (
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
            ),
            "t10k-images-idx3-ubyte.gz": (
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
            ),
            "t10k-labels-idx1-ubyte.gz": (
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
            ),
        },
    ),
    "fashion-mnist": Source(
        "fashion_mnist",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        {
            "train-images-idx3-ubyte.gz": (
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"
            ),
            "train-labels-idx1-ubyte.gz": (
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"
            ),
            "t10k-images-idx3-ubyte.gz": (
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"
            ),
            "t10k-labels-idx1-ubyte.gz": (
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"
            ),
        },
    ),
}


class Fetched(NamedTuple):
    """A published file at hand; `new` where it was downloaded just now."""

    path: Path
    new: bool


def check(names: Iterable[str]) -> None:
    """Refuse names that are no data set's."""
    for name in names:
        if name not in SOURCES:
            allowed = ", ".join(f'"{known}"' for known in SOURCES)
            raise ValueError(f"download: choose from {allowed}; got {name!r}.")


def fetch(name: str, folder: str | Path) -> list[Fetched]:
    """Download the files of a data set that are not in the data folder yet.

    A file that is there is kept; one that is not the published file is an error, and
    then nothing is downloaded.
    """
    check([name])
    source = SOURCES[name]
    place = Path(folder) / source.folder
    digests = source.digests
    there = {file: _is_there(place / file, digests[file]) for file in digests}
    for file, present in there.items():
        if not present:
            _download(source.address + file, digests[file], place / file)
    return [Fetched(place / file, not present) for file, present in there.items()]


def _is_there(path: Path, digest: str) -> bool:
    """Whether the published file is there; another one is an error."""
    if not path.exists():
        return False
    if inputs.sha256(path) != digest:
        raise ValueError(
            f"{path} is there but is not the published file; move it away, or use it "
            "as it is."
        )
    return True


def _download(address: str, digest: str, path: Path) -> None:
    pooch = _pooch()
    with _one_line(address), _quiet(pooch.get_logger()):
        pooch.retrieve(address, f"sha256:{digest}", path.name, path.parent)


@contextmanager
def _one_line(address: str):
    """Say in one line why a download failed."""
    from requests.exceptions import HTTPError, RequestException

    try:
        yield
    except HTTPError as error:
        if error.response is not None:
            error.response.close()  # its connection, which pooch leaves open
        raise OSError(f"{address}: the server refuses ({error.args[0]}).") from error
    except RequestException as error:
        raise OSError(
            f"{address}: no connection, or one that broke ({type(error).__name__}); "
            "try again."
        ) from error
    except ValueError as error:
        raise ValueError(
            f"{address}: what came is not the published file (SHA-256); it was not "
            "kept."
        ) from error


@contextmanager
def _quiet(logger):
    """Download without pooch's own messages; those of this package say the same."""
    level = logger.level
    logger.setLevel("WARNING")
    try:
        yield
    finally:
        logger.setLevel(level)


def _pooch():
    try:
        import pooch
    except ModuleNotFoundError as error:
        if error.name != "pooch":
            raise
        raise ValueError(extras.needed("downloading", "pooch", "images")) from None
    return pooch
