r"""Theory and simulation on the page: in time, in standard errors, against N.

A trajectory file is the theory, with its linear-noise spread $\sigma_1/\sqrt N$ where
it was asked for; a Monte Carlo file is the simulation.  Whichever of them are open, and
their comparison, are shown together; where the comparison is not among the files, it is
made of the other two.  Of patterns that grow with N the theory has errors
of its own instead.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn import comparison
from statmech_attn.comparison import VERDICTS
from statmech_attn.explore.files import File
from statmech_attn.explore.sheets import (
    at,
    capital,
    chart,
    Choice,
    Panel,
    series,
    Sheet,
)
from statmech_attn.statistics import threshold


OBSERVABLES = {
    "A": "attention A",
    "m_o_se": "semantic output overlap m^o,SE",
    "m_v": "value overlap m^v",
    "m_q": "query overlap m^q",
    "m_k": "key overlap m^k",
}
COMPARED = ("m_o_se", "A")
PARAMETERS = {
    "alpha": "patterns per spin α",
    "beta": "inverse temperature β",
    "gamma": "inverse temperature of attention γ",
    "epsilon": "weight of the positional part ε",
    "redrawn": "probability that a spin is redrawn Δ",
}
LENGTHS = (100, 300, 1000, 3000)  # steps that are shown
RANGE = 1.0  # a linear-noise band wider than this says nothing about an overlap
LARGEST = 2**28  # bytes of files that are compared here
THEORY, SIMULATION = "trajectory", "monte-carlo"


class InTime(Sheet):
    """Overlaps in time, of the theory and of finite networks."""

    same = ("network", "start")

    def __init__(self, file: File):
        super().__init__(file)
        self.data = _numbered(self.data)
        self._compared: dict[str, xr.Dataset | None] = {}

    def choices(self) -> list[Choice]:
        names = [n for n in OBSERVABLES if _variable(self.data, n) in self.data]
        choices = [
            Choice("beta", "inverse temperature β", self.data.beta.values.tolist()),
            Choice("observable", "observable", names, _words(names)),
            Choice("pattern", "pattern", self.data.pattern.values.tolist()),
        ]
        sizes = self.of_kind(SIMULATION, "comparison")
        if sizes is not None:
            values = sizes.data.n_spins.values.tolist()
            choices.append(Choice("n_spins", "number of spins N", values))
        steps = self.data.sizes["time"]
        lengths = [float(n) for n in LENGTHS if n < steps] + [float(steps)]
        return [*choices, Choice("steps", "steps shown", lengths)]

    def contents(self, chosen: dict[str, Any], point: xr.Dataset | None) -> list[Panel]:
        name, steps = chosen["observable"], int(chosen["steps"])
        place = {n: chosen[n] for n in ("beta", "pattern", "n_spins") if n in chosen}
        panels = [
            panel
            for make in (self._means, self._spreads)
            if (panel := make(name, place, steps))
        ]
        judged = self._judged()
        if judged is None or f"{name}_z" not in judged or "n_spins" not in place:
            return panels
        part = at(judged, place)
        if part is None:
            return panels
        return [
            *panels[:1],
            self._differences(part, name, steps),
            *panels[1:],
            self._against_n(judged, place),
        ]

    def _judged(self) -> xr.Dataset | None:
        """The comparison: a file, or made of theory and simulation."""
        stored = self.of_kind("comparison")
        if stored is not None:
            return stored.data
        theory, simulation = self.of_kind(THEORY), self.of_kind(SIMULATION)
        if theory is None or simulation is None:
            return None
        files = theory.file, simulation.file
        key = " ".join(file.source for file in files)
        if key not in self._compared:
            self._compared[key] = None
            with files[0].lock, files[1].lock:
                if sum(file.dataset.nbytes for file in files) <= LARGEST:
                    self._compared[key] = _comparison(*(f.dataset for f in files))
        return self._compared[key]

    def _means(self, name: str, place: dict[str, Any], steps: int) -> Panel | None:
        """The observable in time: theory with its band, mean of the runs, one run."""
        rows: list[Panel] = []
        theory, simulation = self.of_kind(THEORY), self.of_kind(SIMULATION)
        size = place.get("n_spins")
        if theory is not None:
            part = theory.taken([name, f"{name}_noise_std"], place)
            if part is not None and name in part:
                part = part.isel(time=slice(steps))
                time, y = part.time.values, part[name].values
                spread = f"{name}_noise_std"
                if spread in part and size:
                    band = _known(part[spread].values / np.sqrt(size))
                    words = f"linear noise at N = {size:,.0f}"
                    rows.append(series(words, time, y, band, look="band", colour=1))
                rows.append(series("theory, N → ∞", time, y))
        if simulation is not None:
            names = [f"{name}_mean", f"{name}_stderr", name]
            part = simulation.taken(names, place)
            if part is not None and names[0] in part:
                part = part.isel(time=slice(steps))
                if name in part and part.sizes.get("run", 0):
                    y = part[name].isel(run=0).values
                    rows.append(
                        series("one run", part.time.values, y, look="crosses", colour=4)
                    )
                mean, error = (part[n].values for n in names[:2])
                words = f"mean of {simulation.data.attrs['runs']} runs ± standard error"
                row = series(words, part.time, mean, error, look="dots", colour=2)
                rows.append(row)
        if not rows:
            return None
        words = OBSERVABLES[name]
        caption = f"{capital(words)} in time"
        return chart(caption, "token t", words, rows, aspect="wide")

    def _spreads(self, name: str, place: dict[str, Any], steps: int) -> Panel | None:
        """Spread over the runs, and that of linear noise."""
        simulation, theory = self.of_kind(SIMULATION), self.of_kind(THEORY)
        if simulation is None:
            return None
        part = simulation.taken([f"{name}_spread"], place)
        if part is None or f"{name}_spread" not in part:
            return None
        spread = part[f"{name}_spread"].values[:steps]
        time = part.time.values[:steps]
        rows = [series("spread over runs", time, spread, look="dots", colour=2)]
        noise = theory and theory.taken([f"{name}_noise_std"], place)
        if noise is not None and f"{name}_noise_std" in noise:
            predicted = noise[f"{name}_noise_std"].values[:steps]
            predicted = _known(predicted / np.sqrt(place["n_spins"]))
            words = "linear noise"
            rows.append(series(words, np.arange(len(predicted)), predicted))
        return chart("Spread over the runs", "token t", "standard deviation", rows)

    def _differences(self, part: xr.Dataset, name: str, steps: int) -> Panel:
        """Simulation minus theory in standard errors, and what chance allows."""
        z = part[f"{name}_z"].values[:steps]
        linear = part.linear.values[:steps]
        allowed = float(part.threshold)
        end = len(linear) if linear.all() else int(np.argmin(linear))
        shaded = [["not linear", end, len(linear)]] if end < len(linear) else []
        verdict = VERDICTS[int(part.verdict)].replace("_", " ")
        count = int(linear.sum())
        row = series("simulation minus theory", np.arange(len(z)), z, look="dots")
        return chart(
            "Difference in standard errors",
            "token t",
            "difference (standard errors)",
            [row],
            levels=[["chance allows", allowed], ["", -allowed], ["", 0.0]],
            shaded=shaded,
            note=f"Verdict at β = {float(part.beta):g}, all N together: {verdict}. "
            f"This N is compared at {count} steps, in the linear regime.",
        )

    def _against_n(self, judged: xr.Dataset, place: dict[str, Any]) -> Panel:
        """The largest difference at every N, and in the limit."""
        part = at(judged, {"beta": place["beta"]})
        assert part is not None
        sizes = part.n_spins.values
        rows = [series("largest difference", sizes, part.largest_z.values, look="dots")]
        levels = [["chance allows", float(part.threshold)]]
        if np.isfinite(part.largest_limit_z):
            levels.append(["extrapolated to N → ∞", float(part.largest_limit_z)])
        return chart(
            "Largest difference against N",
            "number of spins N",
            "largest |z| (standard errors)",
            rows,
            logarithmic=["x"],
            levels=levels,
            places=[["", float(place["n_spins"])]],
        )


class Growing(Sheet):
    """Patterns that grow with N: overlaps in time, of theory and finite networks."""

    same = ("network", "ensemble", "start", "context")

    def __init__(self, file: File):
        super().__init__(file)
        self.data = _numbered(self.data)

    def choices(self) -> list[Choice]:
        data = self.data
        ending = "_mean" if "n_spins" in data.dims else ""
        names = [n for n in COMPARED if f"{n}{ending}" in data]
        choices = [
            Choice(name, words, data[name].values.tolist())
            for name, words in PARAMETERS.items()
            if name in data.dims
        ]
        choices.append(Choice("observable", "observable", names, _words(names)))
        choices.append(Choice("pattern", "pattern", data.pattern.values.tolist()))
        simulation = self.of_kind("extensive-simulation")
        if simulation is not None:
            sizes = simulation.data.n_spins.values.tolist()
            choices.append(Choice("n_spins", "number of spins N", sizes))
        return choices

    def contents(self, chosen: dict[str, Any], point: xr.Dataset | None) -> list[Panel]:
        name = chosen["observable"]
        place = {n: x for n, x in chosen.items() if n != "observable"}
        words = OBSERVABLES[name]
        theory = self.of_kind("extensive")
        simulation = self.of_kind("extensive-simulation")
        predicted = theory and theory.taken([name, f"{name}_error"], place)
        names = [f"{name}_{ending}" for ending in ("mean", "stderr", "spread")]
        measured = simulation and simulation.taken(names, place)
        rows, panels = [], []
        if predicted is not None:
            y, error = predicted[name], predicted[f"{name}_error"]
            rows.append(series("theory ± error", predicted.time, y, error))
        if measured is not None:
            time, (mean, stderr, spread) = measured.time, (measured[n] for n in names)
            note = "mean over samples ± standard error"
            rows.append(series(note, time, mean, stderr, look="dots", colour=2))
            row = series("spread over samples", time, spread, look="dots", colour=2)
            panels.append(chart("Spread", "token t", "standard deviation", [row]))
        if predicted is not None and measured is not None:
            panels.append(_in_errors(name, predicted, measured))
        caption = f"{capital(words)} in time"
        return [chart(caption, "token t", words, rows, aspect="wide"), *panels]


def _in_errors(name: str, theory: xr.Dataset, simulation: xr.Dataset) -> Panel:
    """Simulation minus theory over both their errors, and what chance allows."""
    steps = min(theory.sizes["time"], simulation.sizes["time"])
    first = lambda values: values.values[:steps]
    error = np.hypot(
        first(simulation[f"{name}_stderr"]), first(theory[f"{name}_error"])
    )
    difference = first(simulation[f"{name}_mean"]) - first(theory[name])
    with np.errstate(divide="ignore", invalid="ignore"):
        z = difference / error
    count = max(int(np.isfinite(z).sum()), 1)
    allowed = threshold(count, int(simulation.attrs["samples"]))
    row = series("simulation minus theory", np.arange(steps), z, look="dots")
    levels = [["chance allows", allowed], ["", -allowed], ["", 0.0]]
    words = "difference (standard errors)"
    return chart(
        "Difference in standard errors", "token t", words, [row], levels=levels
    )


def _words(names: Sequence[str]) -> list[str]:
    """Names of observables in words."""
    return [OBSERVABLES[name] for name in names]


def _variable(data: xr.Dataset, name: str) -> str:
    """What a file of its kind has of an observable."""
    if "n_spins" not in data.dims:
        return name
    return f"{name}_z" if "verdict" in data else f"{name}_mean"


def _known(spread: np.ndarray) -> np.ndarray:
    """A spread as far as it says something about an overlap, NaN after that."""
    return np.where(np.maximum.accumulate(spread) <= RANGE, spread, np.nan)


def _numbered(data: xr.Dataset) -> xr.Dataset:
    """A data set whose patterns have numbers, from 1."""
    if "pattern" in data.coords:
        return data
    return data.assign_coords(pattern=np.arange(1, data.sizes["pattern"] + 1))


def _comparison(theory: xr.Dataset, simulation: xr.Dataset) -> xr.Dataset | None:
    """The comparison of two files; None where they do not belong together."""
    try:
        return _numbered(comparison.compare(theory.load(), simulation.load()))
    except ValueError:
        return None
