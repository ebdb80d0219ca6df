"""Bayesian learning on the page: order parameters, accuracy, evidence, scores.

A file of saddle points and files of posteriors of the same task and prior are shown
together, each an estimate with a name (`comparison.posteriors`); a comparison of them
holds all estimates itself.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn import bpkr
from statmech_attn.comparison import sampled_by
from statmech_attn.explore.files import File
from statmech_attn.explore.sheets import (
    at,
    capital,
    chart,
    Choice,
    layer,
    matrix,
    Panel,
    series,
    Sheet,
)


RANKS = 30  # eigenvectors of a kernel
KERNEL = 60  # examples of a kernel that is drawn
TITLES = {
    "accuracy": "test accuracy",
    "log_evidence": "log evidence ln p(Y)",
    "U_1_rms": "rms difference of U₁ from the reference",
}
LOGARITHMIC = {"accuracy": ["x"], "log_evidence": ["x"], "U_1_rms": ["x", "y"]}
SOLVED = "computed here"
SAME = ("task", "prior")  # attributes of files of one problem
LARGE = ("path_kernel", "kernel", "kernel_gp")  # read when they are drawn


class Learned(Sheet):
    """Order parameters and what follows from them, by width and temperature."""

    def __init__(self, file: File):
        super().__init__(file)
        self.large = [name for name in LARGE if name in self.data]
        draws = [n for n in self.data if str(n).endswith("_draws")]
        self.data = self.data.drop_vars([*self.large, *draws]).load()
        self.matrices = [
            str(n) for n in self.data if str(n)[:2] == "U_" and str(n)[2:].isdigit()
        ]

    def choices(self) -> list[Choice]:
        between = self.file.kind != "comparison"
        values = lambda name: np.atleast_1d(self.data[name].values).tolist()
        choices = [
            Choice("width", "hidden width N", values("width"), between=between),
            Choice(
                "temperature", "temperature T", values("temperature"), between=between
            ),
        ]
        if len(self.matrices) > 1:
            choices.append(Choice("matrix", "order parameter", self.matrices))
        return choices

    def contents(self, chosen: dict[str, Any], point: xr.Dataset | None) -> list[Panel]:
        place = {name: chosen[name] for name in ("width", "temperature")}
        if point is not None:
            place = {name: float(point[name]) for name in place}
        name = chosen.get("matrix", self.matrices[0])
        sources = list(self.sources())
        parts = [part for part in (at(x, place) for x in sources) if part is not None]
        if point is not None:
            parts.insert(0, point)
        panels = [order_parameters(name, parts)]
        panels += [
            panel
            for axis in place
            for quantity in ("accuracy", "log_evidence", "U_1_rms")
            if (panel := self._against(quantity, axis, sources, place, point))
        ]
        panels += [*of_heads(parts), *alignments(parts, self._limit())]
        panels += [*self._kernels(place, point), *self._sets(parts)]
        return panels + self._verdicts(place)

    def sources(self) -> Iterator[xr.Dataset]:
        """This file and those of the same problem, one for every estimate."""
        same = lambda x: all(x.data.attrs[k] == self.data.attrs[k] for k in SAME)
        sheets = [x for x in self.others if isinstance(x, Learned) and same(x)]
        for sheet in [self, *sheets]:
            if "estimate" not in sheet.data.dims:
                yield sheet.data
                continue
            for name in sheet.data.estimate.values:
                part = sheet.data.sel(estimate=name, drop=True)
                if name == "saddle":
                    errors = [n for n in part if str(n).endswith("_stderr")]
                    yield part.drop_vars(errors)
                else:
                    method = "order-parameter" if name == "exact" else str(name)
                    yield part.assign_attrs(method=method)

    def _against(
        self,
        name: str,
        axis: str,
        sources: Sequence[xr.Dataset],
        place: dict[str, float],
        point: xr.Dataset | None,
    ) -> Panel | None:
        """A quantity over widths or temperatures; None where nothing varies.

        Beside a point that the file does not have, it is over the nearest ones.
        """
        fixed = {n: self._nearest(n, x) for n, x in place.items() if n != axis}
        rows = []
        for source in sources:
            part = at(source, fixed)
            if part is None or name not in part:
                continue
            for key, values, errors in estimates(part, name):
                look, colour = drawn_as(key)
                x, y = np.atleast_1d(part[axis].values), np.atleast_1d(values)
                look = "crosses" if len(x) == 1 and look != "dots" else look
                errors = None if errors is None else np.atleast_1d(errors)
                rows.append(series(named(key), x, y, errors, look=look, colour=colour))
        if max((len(row["x"]) for row in rows), default=1) < 2:
            return None
        if point is not None and name in point:
            x, y = [float(point[axis])], [float(point[name])]
            rows.append(series(SOLVED, x, y, look="ring", colour=0))
        positive = all(min(row["x"]) > 0 for row in rows)
        of = self.data[name].attrs if name in self.data else {}
        symbol = {"width": "hidden width N", "temperature": "temperature T"}[axis]
        nearest = {
            n: "" if x == place[n] else "nearest stored " for n, x in fixed.items()
        }
        fixed_words = ", ".join(f"{nearest[n]}{n} {x:.6g}" for n, x in fixed.items())
        levels = self._levels(fixed) if name == "accuracy" else []
        return chart(
            capital(f"{TITLES[name]} against {axis}, {fixed_words}"),
            symbol,
            TITLES[name] if not of.get("unit_name") else f"{TITLES[name]} (nat)",
            rows,
            logarithmic=LOGARITHMIC[name] if positive else [],
            levels=levels,
            places=[["", place[axis]]],
        )

    def _nearest(self, name: str, value: float) -> float:
        """The stored width or temperature that is nearest to another."""
        stored = np.atleast_1d(self.data[name].values)
        return float(stored[np.abs(stored - value).argmin()])

    def _levels(self, fixed: dict[str, float]) -> list[list[Any]]:
        """The accuracy in the limit of large widths."""
        if "accuracy_gp" not in self.data or "temperature" not in fixed:
            return []
        limit = at(self.data[["accuracy_gp"]], fixed)
        return [] if limit is None else [[named("gp"), float(limit.accuracy_gp)]]

    def _limit(self) -> np.ndarray | None:
        if "kernel_overlap_gp" not in self.data:
            return None
        return self.data.kernel_overlap_gp.values

    def _kernels(self, place: dict[str, float], point: xr.Dataset | None):
        """Kernels of some examples, at the point and in the limit."""
        panels = []
        for name in ("kernel", "kernel_gp"):
            if name not in self.large:
                continue
            source = self.file.dataset[[name]]
            if point is not None and name in point:
                source = point[[name]]
            with self.file.lock:
                part = at(source, place)
                if part is None:
                    continue
                count = part.sizes["example"]
                chosen = np.unique(np.linspace(0, count - 1, KERNEL).astype(int))
                values = part[name].values[np.ix_(chosen, chosen)]
            caption = "Kernel in the GP limit" if name == "kernel_gp" else "Kernel"
            caption += f" of {len(chosen)} of {count} examples"
            layers = [layer("K", values)]
            panels.append(matrix(caption, chosen, chosen, layers, what="examples"))
        return panels

    def _sets(self, parts: Sequence[xr.Dataset]) -> list[Panel]:
        """Accuracies on several test sets."""
        with_sets = [part for part in parts if "accuracy_sets" in part]
        if not with_sets:
            return []
        names = [str(x) for x in with_sets[0].test_set.values]
        rows = by_name(with_sets, "accuracy_sets", "dots")
        return [
            chart(
                "Accuracy on the test sets", "test set", "accuracy", rows, names=names
            )
        ]

    def _verdicts(self, place: dict[str, float]) -> list[Panel]:
        """Largest differences from the reference, of a comparison."""
        if "verdict" not in self.data:
            return []
        part = at(self.data, place)
        assert part is not None
        names = [named(str(x)) for x in part.estimate.values]
        row = series(
            "largest of all", np.arange(len(names)), part.largest_z, look="dots"
        )
        verdicts = part.verdict.attrs["flag_meanings"].split()
        words = [verdicts[int(code)].replace("_", " ") for code in part.verdict]
        return [
            chart(
                "Difference from the reference in standard errors",
                "estimate",
                "|z|",
                [row],
                names=names,
                levels=[["chance allows", float(part.threshold)]],
                note=", ".join(f"{n}: {x}" for n, x in zip(names, words, strict=True)),
            )
        ]


def named(key: str) -> str:
    """Words for an estimate."""
    return bpkr.estimates.estimate(key).plain


def drawn_as(key: str) -> tuple[str, int]:
    """Look and colour of an estimate."""
    estimate = bpkr.estimates.estimate(key)
    line = "dashes" if estimate.dashed else "line"
    return "dots" if estimate.marker else line, estimate.colour


def estimates(part: xr.Dataset, name: str) -> Iterator[tuple[str, Any, Any]]:
    """Every estimate of a variable in a file: its name, values and errors."""
    error = part[f"{name}_stderr"].values if f"{name}_stderr" in part else None
    key = sampled_by(part) if "method" in part.attrs else "saddle"
    yield key, part[name].values, error
    if f"{name}_corrected" in part:
        yield "corrected", part[f"{name}_corrected"].values, None


def order_parameters(name: str, parts: Sequence[xr.Dataset]) -> Panel:
    """The matrix of an order parameter, with every estimate of its entries."""
    layers, paths = [], []
    for part in parts:
        if name not in part:
            continue
        paths = part[f"path_{name[2:]}"].values
        solved = f", {SOLVED}" if SOLVED in part.attrs else ""
        layers += [
            layer(named(key) + solved, values, errors)
            for key, values, errors in estimates(part, name)
            if np.isfinite(values).any()
        ]
    return matrix(
        f"Order parameter {name} between paths",
        paths,
        paths,
        layers,
        what="paths",
        signed=True,
    )


def by_name(parts: Sequence[xr.Dataset], name: str, look: str = "bars") -> list[Panel]:
    """Rows of a chart over names: every estimate of a variable of one dimension.

    Args:
        look: of the saddle point.
    """
    rows = []
    for part in parts:
        if name not in part:
            continue
        for key, values, errors in estimates(part, name):
            of = look if key == "saddle" else "dots"
            colour = drawn_as(key)[1]
            x = np.arange(len(values))
            rows.append(series(named(key), x, values, errors, look=of, colour=colour))
    return rows


def of_heads(parts: Sequence[xr.Dataset]) -> list[Panel]:
    """Scores of the heads, and the accuracy without each of them."""
    panels = []
    for name, caption, words, look in (
        ("head_score", "Head scores", "score", "bars"),
        ("accuracy_silenced", "Accuracy without each head", "accuracy", "dots"),
    ):
        with_name = [part for part in parts if name in part]
        if not with_name:
            continue
        heads = [str(x) for x in with_name[0].attention_head.values]
        rows = by_name(with_name, name, look)
        if name == "head_score" and "head_score_floor" in with_name[0]:
            rows.append(floors(with_name[0].head_score_floor.values))
        panels.append(chart(caption, "head (layer.head)", words, rows, names=heads))
    return panels


def floors(values: np.ndarray) -> dict[str, Any]:
    """Scores of heads that f does not read, beside the scores."""
    x = np.arange(len(values))
    return series("floor: f does not read the head", x, values, look="dots", colour=4)


def alignments(parts: Sequence[xr.Dataset], limit: np.ndarray | None) -> list[Panel]:
    """Overlaps of the leading eigenvectors of the kernel with the labels."""
    with_alignment = [part for part in parts if "kernel_overlap" in part]
    if not with_alignment:
        return []
    rows = by_name(
        [part.isel(rank=slice(RANKS)) for part in with_alignment], "kernel_overlap"
    )
    for row in rows:
        row["x"] = [x + 1 for x in row["x"]]
    if limit is not None:
        ranks = np.arange(1, min(RANKS, len(limit)) + 1)
        row = series(named("gp"), ranks, limit[:RANKS], look="dots", colour=5)
        rows.append(row)
    caption = "Kernel alignment: overlap of its eigenvectors with the labels"
    return [chart(caption, "rank of the eigenvector", "|v·Y| / |Y|", rows)]


class LearningCurve(Sheet):
    """Error, accuracy and variance against the number of examples."""

    def __init__(self, file: File):
        super().__init__(file)
        self.data = self.data.load()

    def choices(self) -> list[Choice]:
        values = lambda name: np.atleast_1d(self.data[name].values).tolist()
        return [
            Choice("width", "hidden width N", values("width")),
            Choice("temperature", "temperature T", values("temperature")),
        ]

    def contents(self, chosen: dict[str, Any], point: xr.Dataset | None) -> list[Panel]:
        part = at(self.data, chosen)
        assert part is not None
        panels = []
        for name, words, logarithmic in (
            ("error", "mean squared test error", ["x", "y"]),
            ("accuracy", "test accuracy", ["x"]),
            ("variance", "posterior variance of f", ["x", "y"]),
        ):
            rows = []
            for key in map(str, part.estimate.values):
                of = part.sel(estimate=key)
                look, colour = drawn_as(key)
                y, error = of[name].values, of[f"{name}_stderr"].values
                words_of = named(key)
                x = part.examples.values
                rows.append(series(words_of, x, y, error, look=look, colour=colour))
            rank = [["|Π| N₀", float(part["rank"])]] if "rank" in part else []
            caption = f"{capital(words)} against the number of examples"
            more = {"logarithmic": logarithmic, "places": rank}
            panels.append(chart(caption, "training examples P", words, rows, **more))
        return panels
