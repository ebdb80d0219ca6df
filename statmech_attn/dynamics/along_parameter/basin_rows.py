"""From the attractors at some values of a parameter to the rows of their file."""

import numpy as np

from statmech_attn.dynamics.attractors.basins import (
    arrival_rate,
    Attractors,
    DIVERGED,
    NOT_SETTLED,
)
from statmech_attn.scan import Arrays


BLANK = {  # where a value has fewer attractors; NaN in others
    "count": 0,
    "period": 0,
    "n_points": 0,
    "fraction": 0.0,
    "phase": -1,
    "rotation_oriented": -1,
}


def columns_of(of_values: list[Attractors], points: int) -> Arrays:
    """What is known of every attractor, those of all values one after the other.

    Of an attractor `points` points are kept.
    """
    pooled = lambda read: np.concatenate([np.asarray(read(x)) for x in of_values])
    distinct = pooled(lambda x: x.orbits.distinct[x.leader])
    return {
        "count": pooled(lambda x: x.counts),
        "fraction": pooled(lambda x: x.fraction),
        "fraction_low": pooled(lambda x: x.interval[0]),
        "fraction_high": pooled(lambda x: x.interval[1]),
        "period": pooled(lambda x: x.period),
        "points": pooled(lambda x: _some_points(x, points)),
        "n_points": np.minimum(distinct, points),
    }


def _some_points(attractors: Attractors, count: int) -> np.ndarray:
    """Points of every attractor: all of a cycle, repeated, or evenly chosen ones."""
    clouds = np.empty((len(attractors.leader), count, attractors.points.shape[2]))
    for k, leader in enumerate(attractors.leader):
        points = attractors.orbits.set_of(leader)
        evenly = np.linspace(0, len(points) - 1, count).astype(int)
        few = len(points) <= count
        clouds[k] = np.resize(points, clouds[k].shape) if few else points[evenly]
    return clouds


def rows_of(columns: Arrays, of_values: list[Attractors], drive_period: int) -> Arrays:
    """Arrays with a row for each value; slots without an attractor are blank.

    `drive_period` is in steps.
    """
    ends = np.cumsum([len(x.counts) for x in of_values])[:-1]
    slots = len(of_values[0].label)
    rows = {
        name: np.stack(
            [
                _padded(part, slots, BLANK.get(name, np.nan))
                for part in np.split(column, ends)
            ]
        )
        for name, column in columns.items()
    }
    rates = [arrival_rate(x, drive_period) for x in of_values]
    for name in ("rate", "stderr", "events", "after", "constancy"):
        stored = f"escape_{name}".replace("_stderr", "_rate_stderr")
        rows[stored] = np.array([getattr(rate, name) for rate in rates])
    label = np.array([x.label for x in of_values])
    orbits = lambda name: np.array([getattr(x.orbits, name) for x in of_values])
    return rows | {
        "count_inexact": np.array([x.inexact for x in of_values]),
        "count_unsettled": np.sum(label == NOT_SETTLED, axis=1),
        "count_diverged": np.sum(label == DIVERGED, axis=1),
        "lifetime": orbits("lifetime"),
        "lifetime_ended": orbits("ended"),
        "lifetime_exact": orbits("exact"),
        "label": label,
    }


def _padded(x: np.ndarray, length: int, blank: float) -> np.ndarray:
    return np.concatenate([x, np.full((length - len(x), *x.shape[1:]), blank, x.dtype)])
