"""What the figure scripts share: their options, and results that are made or loaded."""

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import jax
import xarray as xr
from matplotlib.figure import Figure

from statmech_attn import storage
from statmech_attn.cli import reporter, Terminal
from statmech_attn.plotting import save
from statmech_attn.reporting import visible
from statmech_attn.studies import produce, usable as answering


SIZES = ("smoke", "laptop", "paper")


class Script:
    """A script of a figure: its options, and the folders it reads and writes.

    The script lies in a folder beside `analysis` and `simulations`, with a file
    `sizes.toml` that names, for every study and size, the keys that differ from the
    study file, or the arguments of an analysis program, and with the folder `results`,
    where the laptop-size results of some scripts are kept.

    Args:
        kept: whether those of this script are.
    """

    def __init__(
        self,
        file: str,
        words: str,
        arguments: Sequence[str] | None = None,
        *,
        kept: bool = False,
    ):
        options = _parser(words.strip().splitlines()[0], kept).parse_args(arguments)
        folder = Path(file).resolve().parent
        self.root = folder.parent
        self.sizes = tomllib.loads((folder / "sizes.toml").read_text())
        self.size: str = "smoke" if options.smoke else options.size
        self.out: Path = options.out
        beside = folder / "results" if kept and self.size == "laptop" else self.out
        self.data: Path = options.data or beside
        self.overwrite: bool = options.overwrite

    def file(self, name: str) -> Path:
        """The result of this name at this size.

        Args:
            name: of the result, without an ending.
        """
        return self.data / f"{name}-{self.size}.h5"

    def study(self, path: str) -> xr.Dataset:
        """Load the result of a study file at this size; compute it where missing.

        A study that cannot be computed ends the program with one line.

        Args:
            path: study file, relative to the repository.
        """
        return self._produced(path, self.file(Path(path).stem), [])

    def kept(self, path: str) -> xr.Dataset:
        """Load the result of a study as it is kept, whatever the study says today.

        For a result that would take hours again; its file says by which text of the
        study and which commit it was computed.  Without a file it is computed.

        Args:
            path: study file, relative to the repository.
        """
        file = self.file(Path(path).stem)
        if file.exists() and not self.overwrite:
            return storage.read(file)
        return self.study(path)

    def of_trained(
        self, path: str, trained: str, restart: int | None = None
    ) -> xr.Dataset:
        """As `study`, for a study of networks that the study `trained` has trained.

        Args:
            path: study file, relative to the repository.
            trained: study file of the trainings.
            restart: the training whose network is studied; a study of all has none.
        """
        study, networks = self.root / path, self.file(Path(trained).stem)
        # Relative to the study, so that it is the same in every checkout.
        named = os.path.relpath(networks.resolve(), study.parent)
        settings = [f"task.trained={json.dumps(Path(named).as_posix())}"]
        name = study.stem
        if restart is not None:
            settings.append(f"task.restart={restart}")
            name = f"{name}-{restart}"
        return self._produced(path, self.file(name), settings)

    def _produced(self, path: str, file: Path, settings: list[str]) -> xr.Dataset:
        study = self.root / path
        settings = [*self.sizes[study.stem][self.size], *settings]
        jax.config.update("jax_enable_x64", True)
        try:
            with reporter(Terminal(stderr=True)) as report:
                return produce(study, file, settings, report, overwrite=self.overwrite)
        except (OSError, ValueError) as error:
            raise SystemExit(visible(f"{path}: {error}")) from error

    def analysis(
        self, path: str, of: str | None = None, study: str | None = None
    ) -> xr.Dataset:
        """Load what an analysis program finds, in the result `of` if it takes one.

        Args:
            path: analysis program, relative to the repository.
            of: name of the result that it reads; None where it reads none.
            study: what it takes in its place; its settings are those of the study.
        """
        name = Path(study or path).stem
        output = self.file(name)
        settings = self.sizes[name][self.size]
        inputs = [self.file(of)] if of else []
        if study:
            inputs = [self.root / study]
            settings = [word for key in settings for word in ("--set", key)]
        command = [sys.executable, self.root / path, *inputs, "--output", output]
        command += settings + ["--overwrite"] * self.overwrite
        subprocess.run(command, check=True)
        return storage.read(output)

    def save(self, figure: Figure, name: str) -> None:
        """Write a figure as PNG and PDF and say so.

        Args:
            figure: the figure.
            name: of its files, without an ending.
        """
        for path in save(figure, self.out, name):
            print(f"wrote {path}", file=sys.stderr)  # noqa: T201


def usable(trained: xr.Dataset) -> list[int]:
    """Trainings of a file that ended with a network that answers.

    Args:
        trained: result file of a training.

    Raises:
        SystemExit: there is none.

    Example:
        `first, *others = usable(storage.read("training.h5"))`
    """
    answered = trained.restart.values[
        answering(trained.training_result.values.tolist())
    ]
    if not answered.size:
        raise SystemExit(
            "no training ended with a network that answers; train longer, or from "
            "larger weights (run.gain)."
        )
    return answered.tolist()


def _parser(description: str, kept: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    add = parser.add_argument
    add(
        "--size",
        choices=SIZES,
        default="laptop",
        help="smoke takes seconds, laptop takes minutes on two cores, and paper has "
        "the published resolution",
    )
    add("--smoke", action="store_true", help="the same as --size smoke")
    where = "paper_figs/results at laptop size, else " if kept else ""
    add(
        "--data",
        type=Path,
        help=f"the folder of the HDF5 results (default: {where}that of --out)",
    )
    add("--out", type=Path, default=Path("results"), help="the folder of the figures")
    add("--overwrite", action="store_true", help="replace results of other studies")
    return parser
