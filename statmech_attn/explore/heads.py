"""Heads on the page: their scores, and what a network loses without them."""

from typing import Any

import numpy as np
import xarray as xr

from statmech_attn.bpkr import estimates
from statmech_attn.explore.files import File
from statmech_attn.explore.learning import floors
from statmech_attn.explore.sheets import (
    at,
    chart,
    Choice,
    layer,
    matrix,
    Panel,
    series,
    Sheet,
)
from statmech_attn.presentation import quantity


HEADS = "head (layer.head)"


class Pruned(Sheet):
    """Scores of heads, accuracy without one and without several."""

    def __init__(self, file: File):
        super().__init__(file)
        self.data = self.data.load()

    def choices(self) -> list[Choice]:
        computed = np.isfinite(self.data.accuracy_sets.isel(test_set=0).values)
        restarts = self.data.restart.values[computed].tolist()
        return [
            Choice("restart", "training", restarts or [0]),
            Choice("test_set", "test set", [str(x) for x in self.data.test_set.values]),
        ]

    def contents(self, chosen: dict[str, Any], point: xr.Dataset | None) -> list[Panel]:
        part = at(self.data, chosen)
        assert part is not None
        heads = [str(x) for x in part.attention_head.values]
        panels = [self._scores(part, heads), self._without_one(part, heads)]
        panels.append(self._without_several(part))
        paths = part.path_1.values
        layers = [layer("saddle point", part.U_1.values)]
        if np.isfinite(part.U_1_exact).any():
            exact = part.U_1_exact.values, part.U_1_exact_stderr.values
            layers.append(layer("exact law", *exact))
        caption = "Order parameter U_1 between paths"
        return [
            *panels,
            matrix(caption, paths, paths, layers, what="paths", signed=True),
        ]

    def _scores(self, part: xr.Dataset, heads: list[str]) -> Panel:
        x, rows = np.arange(len(heads)), []
        for order in map(str, part.order.values):
            score, look = (
                estimates.SCORES[order],
                "bars" if order == "saddle" else "dots",
            )
            y = part.pruning_score.sel(order=order).values
            rows.append(series(score.words, x, y, look=look, colour=score.colour))
        if "head_score_floor" in part:
            rows.append(floors(part.head_score_floor.values))
        return chart("Head scores", HEADS, "score", rows, names=heads)

    def _without_one(self, part: xr.Dataset, heads: list[str]) -> Panel:
        y, error = part.accuracy_pruned.values, part.accuracy_pruned_stderr.values
        row = series("without the head", np.arange(len(heads)), y, error, look="dots")
        return chart(
            "Accuracy without each head",
            HEADS,
            "accuracy",
            [row],
            names=heads,
            levels=[["all heads", float(part.accuracy_sets)]],
        )

    def _without_several(self, part: xr.Dataset) -> Panel:
        rows, notes = [], []
        for order in map(str, part.order.values):
            words, colour, _, dashed = estimates.SCORES[order]
            look = "dashes" if dashed else "line"
            of = part.sel(order=order)
            y, error = of.accuracy_cumulative, of.accuracy_cumulative_stderr.values
            x = part.n_pruned.values
            rows.append(series(words, x, y.values, error, look=look, colour=colour))
            mean, error = of.rank_correlation_mean, of.rank_correlation_mean_stderr
            if np.isfinite(mean):
                notes.append(f"{words} {quantity(mean, error)}")
        note = "Rank correlation of score and accuracy lost: " + ", ".join(notes)
        return chart(
            "Accuracy against the number of heads pruned, lowest scores first",
            "heads pruned",
            "accuracy",
            rows,
            note=note if notes else "",
        )


class Scored(Sheet):
    """Scores of the heads of a trained network."""

    def __init__(self, file: File):
        super().__init__(file)
        self.data = self.data.drop_vars("head_score_resampled", errors="ignore").load()

    def choices(self) -> list[Choice]:
        return []

    def contents(self, chosen: dict[str, Any], point: xr.Dataset | None) -> list[Panel]:
        data = self.data
        heads = [str(x) for x in data.attention_head.values]
        x = np.arange(len(heads))
        y, error = data.head_score.values, data.head_score_stderr.values
        rows = [series("theory", x, y, error, look="bars")]
        if "head_score_floor" in data:
            rows.append(floors(data.head_score_floor.values))
        if "head_score_trained" in data:
            trained = data.head_score_trained.values
            rows.append(
                series("trained value weights", x, trained, look="dots", colour=2)
            )
        of_heads = layer("|U| over the largest", data.U_by_head.values)
        paths = data.path_1.values
        return [
            chart("Head scores", HEADS, "score", rows, names=heads),
            matrix(
                "Sum of |U_1| over paths through both heads",
                heads,
                heads,
                [of_heads],
                what="heads",
            ),
            matrix(
                "Order parameter U_1 between paths",
                paths,
                paths,
                [layer("U_1", data.U_1.values)],
                what="paths",
                signed=True,
            ),
        ]
