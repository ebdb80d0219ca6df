"""Files that are seen as figures: those of the package, with numbers for the page.

A picture is the one of its name in `plotting`; what can be chosen of it are its page (a
temperature, values of beta, ...) and the keywords that `plotting.registry.picture`
names.  Files that are open beside it are drawn in it where it takes them, and compared
with it where they are a theory and its simulation.
"""

import copy
import inspect
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, ExitStack
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from statmech_attn import comparison
from statmech_attn.explore.result_files.files import File
from statmech_attn.explore.views.pictures import DRAWING, LARGEST
from statmech_attn.plotting import Beside, Choice, choices, offered, Picture, readable


KEPT = 32  # pictures that are remembered
COMPARED = "comparison"  # begins the names of pictures of a comparison
PAIRS = {  # kinds of files that are compared: of a theory, and of its simulations
    "trajectory": "monte-carlo",
    "extensive": "extensive-simulation",
    "order-parameter": "posterior",
}


class Offer(NamedTuple):
    """A picture of a data set, with what can be chosen."""

    dataset: xr.Dataset
    picture: Picture
    choices: list[Choice]


class PictureView:
    """A file as its pictures.

    Attributes:
        others: files that are open beside it.
    """

    def __init__(self, file: File):
        self.file = file
        self.others: list[File] = []
        self._shown: OrderedDict[Any, Any] = OrderedDict()

    def beside(self, others: Sequence[File]) -> "PictureView":
        """The same sheet with other files open beside it."""
        sheet = copy.copy(self)
        sheet.others = list(others)
        return sheet

    def described(self, keywords: bool = True) -> dict[str, Any]:
        """What the page needs to know beside what it knows of any file."""
        return {
            "drawings": [
                {
                    "name": name,
                    "words": name.replace("_", " ").replace("/", ": "),
                    "told": inspect.getdoc(offer.picture.draw).partition("\n")[0],  # type: ignore[union-attr]
                    "choices": [
                        choice.described()
                        for choice in offer.choices
                        if keywords or choice.name not in offer.picture.choices
                    ],
                }
                for name, offer in self.offers().items()
            ]
        }

    def offers(self) -> dict[str, Offer]:
        """Pictures of the file by name, and those of its comparison with others."""
        return self._once("offers", self._offers)

    def _offers(self) -> dict[str, Offer]:
        with self._locked():
            offers = _offers(self.file.dataset)
            compared = self._comparison()
            if compared is not None:
                of = _offers(compared)
                offers |= {f"{COMPARED}/{name}": offer for name, offer in of.items()}
        return offers

    def readable(
        self,
        name: str,
        chosen: Mapping[str, int] = {},
        point: xr.Dataset | None = None,
    ) -> dict[str, Any]:
        """A picture as `plotting.readable` gives it.

        `chosen` are numbers of values by name; `point` has been computed at other
        values.
        """

        def draw() -> dict[str, Any]:
            with DRAWING:
                return readable(self.figure(name, chosen, point), solved)

        solved = None if point is None else float(point.width)
        return draw() if solved else self._once((name, *sorted(chosen.items())), draw)

    def figure(
        self,
        name: str,
        chosen: Mapping[str, int] = {},
        point: xr.Dataset | None = None,
    ) -> Figure:
        """A picture, drawn."""
        dataset, picture, possible = self._offer(name)
        values = _chosen(possible, chosen)
        with DRAWING, self._locked():  # in the order of `pictures.written`
            if point is None:
                number = chosen.get("page", chosen.get("temperature", 0))
                _, page = list(picture.pages(dataset))[number]
            else:
                page = joined(dataset, point)
                values["width"] = float(point.width)
            if page.nbytes > LARGEST:
                raise ValueError("This file holds more than fits into a picture.")
            beside = {
                keyword: [x.dataset for x in companions]
                if several
                else companions[0].dataset
                for keyword, companions, several in self._taken(picture, page)
            }
            return picture.draw(page, **_keywords(picture, values), **beside)

    def script(self, name: str, chosen: Mapping[str, int], form: str) -> str:
        """The program that draws a picture as it is shown."""
        dataset, picture, possible = self._offer(name)
        values = _chosen(possible, chosen)
        read = lambda file: f"storage.read({str(file.path.absolute())!r})"
        files = self._pair() if name.startswith(COMPARED) else [self.file]
        stored = ", ".join(map(read, files))
        whole = f"comparison.compare({stored})" if len(files) > 1 else stored
        options = [f"{n}={x!r}" for n, x in _keywords(picture, values).items()]
        for keyword, companions, several in self._taken(picture, dataset):
            every = ", ".join(map(read, companions if several else companions[:1]))
            options.append(f"{keyword}=[{every}]" if several else f"{keyword}={every}")
        number = chosen.get("page", chosen.get("temperature", 0))
        return "\n".join(
            (
                "from statmech_attn import comparison, plotting, storage",
                "",
                f"dataset = {whole}",
                "pictures = {x.name: x for x in plotting.offered(dataset)}",
                f"picture = pictures[{picture.name!r}]",
                f"_, page = list(picture.pages(dataset))[{number}]",
                f"figure = picture.draw({', '.join(['page', *options])})",
                f'plotting.save(figure, ".", {picture.name!r}, [{form!r}])',
                "",
            )
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold all files that may be read, always in the same order."""
        with ExitStack() as stack:
            for file in sorted([self.file, *self.others], key=id):
                stack.enter_context(file.lock)
            yield

    def _offer(self, name: str) -> Offer:
        offers = self.offers()
        if name not in offers:
            raise ValueError(f"picture should be one of {', '.join(offers)}.")
        return offers[name]

    def _taken(
        self, picture: Picture, page: xr.Dataset
    ) -> Iterator[tuple[str, list[File], bool]]:
        """Keywords with the files that are open beside and that a picture draws."""
        for keyword, wanted in picture.beside.items():
            companions = [x for x in self.others if _fits(x, wanted, page)]
            if companions:
                yield keyword, companions, wanted.several

    def _pair(self) -> list[File]:
        """A theory and its simulations, where this file is one of them."""
        files = [self.file, *self.others]
        for theory, simulation in PAIRS.items():
            theories, simulations = (
                [x for x in files if x.kind == kind] for kind in (theory, simulation)
            )
            if theories and simulations and self.file.kind in (theory, simulation):
                several = simulation == "posterior"
                return [theories[0], *(simulations if several else simulations[:1])]
        return []

    def _comparison(self) -> xr.Dataset | None:
        """The theory against its simulations; none where they do not fit together."""
        both = [file.dataset for file in self._pair()]
        if not both or sum(dataset.nbytes for dataset in both) > LARGEST:
            return None
        try:
            return comparison.compare(*both)
        except ValueError:
            return None

    def _once(self, what: Any, make: Any) -> Any:
        """What is made of this version of the files, remembered for a while."""
        sources = [(x.source, x.version) for x in (self.file, *self.others)]
        key = what, *sources
        if key not in self._shown:
            self._shown[key] = make()
        self._shown.move_to_end(key)
        while len(self._shown) > KEPT:
            self._shown.popitem(last=False)
        return self._shown[key]


def sheet_of(file: File) -> PictureView | None:
    """The sheet of a file; none of a kind that has no pictures."""
    return PictureView(file) if file.pictures else None


def joined(stored: xr.Dataset, point: xr.Dataset) -> xr.Dataset:
    """Order parameters of a file with those of a point, at its temperature.

    At a temperature that the file does not have, the point is alone, and what was not
    computed with it is not known.  `stored` is over width and temperature, `point` of
    one of each.
    """
    width, temperature = float(point.width), float(point.temperature)
    known = np.isclose(np.atleast_1d(stored.temperature.values), temperature).any()
    widths = np.union1d(stored.width.values, [width]) if known else np.array([width])
    at = {"width": widths, "temperature": [temperature]}
    alone = stored.temperature.ndim == 0
    stored = stored.expand_dims("temperature") if alone else stored
    together = stored.reindex(at, method=None).isel(temperature=0).copy(deep=True)
    for name in point.data_vars:
        if name in together and "width" in together[name].dims:
            together[name].loc[{"width": width}] = point[name]
    return together


def _offers(dataset: xr.Dataset) -> dict[str, Offer]:
    pictures = offered(dataset)
    return {x.name: Offer(dataset, x, choices(dataset, x)) for x in pictures}


def _chosen(possible: Sequence[Choice], chosen: Mapping[str, int]) -> dict[str, Any]:
    """Values of all choices; the first ones where nothing is chosen."""
    known = {choice.name: choice for choice in possible}
    for name, number in chosen.items():
        if name not in known:
            raise ValueError(f"chosen: there is no {name!r}.")
        if number >= len(known[name].values):
            raise ValueError(
                f"chosen.{name} should be below {len(known[name].values)}."
            )
    return {n: c.values[chosen.get(n, c.first)] for n, c in known.items()}


def _keywords(picture: Picture, values: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of the function of a picture, with what is chosen."""
    of_width = {"widths": values["width"]} if "width" in values else {}
    known = {**values, **of_width}
    return {name: known[name] for name in picture.choices if name in known}


def _fits(file: File, wanted: Beside, page: xr.Dataset) -> bool:
    """Whether a file is of the kind and the problem that a picture takes."""
    of = file.dataset.attrs
    return file.kind == wanted.kind and all(
        np.array_equal(of.get(name, ""), page.attrs.get(name, ""))
        for name in wanted.same
    )
