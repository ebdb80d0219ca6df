"""Blocks of a long computation on disk: it goes on after a kill as if nothing were.

A run is a sequence of pieces, numbered from one.  After each there are, in one folder,

    draws-00007.h5     what the piece has drawn; a piece of warm-up has none
    state-00007.h5     all that the next piece depends on, random keys included

each written by `storage.write`, so whole or not at all.  The draws come first: a state
says that everything up to it is there.  The last two states are kept, in case the last
one is damaged; the piece after a state is computed again, with the same numbers, and
all of them where damage came before the last two.  Two processes in one folder write
the same files.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from statmech_attn import storage
from statmech_attn.reporting import Reporter


STATES_KEPT = 2
FILES = re.compile(r"(?:draws|state)-\d{5}\.h5")


class BlockFolder:
    """The pieces of one run in a folder; those of any other run are refused."""

    def __init__(
        self,
        folder: Path,
        *,
        warmup: int,
        study: str,
        run: str,
        report: Reporter,
    ):
        """Find what is there; blocks of another run are a `StorageError`.

        `warmup` pieces draw nothing; `study` is the study as TOML, `run` a digest of
        everything else that the numbers depend on.
        """
        self.folder, self.warmup = Path(folder), warmup
        self._study, self._run, self._report = study, run, report
        self.done = self._last_whole()

    def append(self, state: Any, draws: Mapping[str, np.ndarray]) -> None:
        """Store the next piece."""
        number = self.done + 1
        if number > self.warmup:
            self._write("draws", number, _dataset(draws))
        self._write("state", number, _dataset(_flat(state)))
        self.done = number
        for old in self._numbers("state"):
            if old <= number - STATES_KEPT:
                self._path("state", old).unlink(missing_ok=True)

    def state(self, like: Any) -> Any:
        """The state after the last piece; `like`, the first one, if none is done.

        States whose leaves have other names are of another version: all is computed
        again.
        """
        if not self.done:
            return like
        dataset = storage.read(self._path("state", self.done))
        names = _names(like)
        if set(names) != set(dataset.data_vars):
            self._begin_again("are of another version")
            return like
        leaves, structure = jax.tree.flatten(like)
        stored = [dataset[name].values for name in names]
        return jax.tree.unflatten(
            structure, [_restored(*pair) for pair in zip(stored, leaves, strict=True)]
        )

    def _begin_again(self, why: str) -> None:
        self.done = 0
        self._note_from_first(why)
        for kind, number in self._files():
            self._path(kind, number).unlink(missing_ok=True)

    def _note_from_first(self, why: str) -> None:
        self._report.note(
            f"{self.folder}: its blocks {why} and are computed again from the first one"
        )

    def draws(self) -> Iterator[dict[str, np.ndarray]]:
        """What the pieces have drawn, in order."""
        for number in range(self.warmup + 1, self.done + 1):
            dataset = storage.read(self._path("draws", number))
            yield {str(name): v.values for name, v in dataset.data_vars.items()}

    def _last_whole(self) -> int:
        """Number of the last piece up to which nothing is missing or damaged."""
        files = self._files()
        whole = {file for file in files if self._whole(*file)}
        latest = max((n for kind, n in files if kind == "state"), default=0)
        drawn = range(self.warmup + 1, latest + 1)
        until = next((n for n in drawn if ("draws", n) not in whole), latest + 1)
        states = [n for kind, n in whole if kind == "state" and n < until]
        last = max(states, default=0)
        if not last and latest > self.warmup:
            if self._files() != files:  # another process goes on here
                return self._last_whole()
            self._note_from_first("are damaged")
        elif last < latest:
            self._report.note(
                f"{self.folder}: block {last + 1} is damaged and is computed again"
            )
        for kind, number in set(files) - whole:
            self._path(kind, number).unlink(missing_ok=True)
        return last

    def _whole(self, what: str, number: int) -> bool:
        path = self._path(what, number)
        try:
            attributes = storage.read(path).attrs
        except storage.StorageError:
            return False
        same = storage.same_study(attributes["study"], self._study)
        if not same or attributes.get("run") != self._run:
            raise storage.StorageError(
                f"{self.folder}: holds blocks of another study; remove it or choose "
                "another output."
            )
        return True

    def _write(self, what: str, number: int, dataset: xr.Dataset) -> None:
        dataset.attrs["run"] = self._run
        storage.write(
            self._path(what, number), dataset, study=self._study, kind=f"block-{what}"
        )

    def _path(self, what: str, number: int) -> Path:
        return self.folder / f"{what}-{number:05d}.h5"

    def _numbers(self, what: str) -> list[int]:
        paths = self.folder.glob(f"{what}-*.h5")
        return sorted(int(p.stem[-5:]) for p in paths if FILES.fullmatch(p.name))

    def _files(self) -> list[tuple[str, int]]:
        return [(kind, n) for kind in ("draws", "state") for n in self._numbers(kind)]


class BlockMemory:
    """The pieces of one run in memory, in place of a folder."""

    def __init__(self, *, warmup: int) -> None:
        self.done, self.warmup = 0, warmup
        self._draws: list[dict[str, np.ndarray]] = []

    def append(self, state: Any, draws: Mapping[str, np.ndarray]) -> None:
        """Keep the next piece."""
        self.done += 1
        if self.done > self.warmup:
            self._draws.append(dict(draws))

    def state(self, like: Any) -> Any:
        """Nothing is done yet: the state that the run starts with."""
        return like

    def draws(self) -> Iterator[dict[str, np.ndarray]]:
        """What the pieces have drawn, in order."""
        return iter(self._draws)


def _names(state: Any) -> list[str]:
    """A name per leaf, from where it stands in the state: V_0 and V[0] are two."""
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(state)[0]]
    return [
        "state" + re.sub(r"\W+", "__", jax.tree_util.keystr(path)).rstrip("_")
        for path in paths
    ]


def _flat(state: Any) -> dict[str, np.ndarray]:
    leaves = [
        np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
        for leaf in jax.tree.leaves(state)
    ]
    return dict(zip(_names(state), leaves, strict=True))


def _restored(values: np.ndarray, like: jax.Array) -> jax.Array:
    if _is_key(like):
        return jax.random.wrap_key_data(
            jnp.asarray(values), impl=jax.random.key_impl(like)
        )
    return jnp.asarray(values, like.dtype)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _dataset(arrays: Mapping[str, np.ndarray]) -> xr.Dataset:
    """Arrays as they are; the names say what they hold."""
    return xr.Dataset(
        {
            name: (
                [f"{name}_{axis}" for axis in range(np.ndim(values))],
                np.asarray(values),
                {
                    "long_name": name.replace("_", " "),
                    "units": "1",
                    "symbol": name,
                },
            )
            for name, values in arrays.items()
        }
    )
