"""Points of a scan in batches: what is known of each, points on the last axis."""

import time
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree

from statmech_attn.batches import batches, run_all, Stage
from statmech_attn.dynamics.attractors.orbit_follower import take
from statmech_attn.dynamics.maps.systems import count_of
from statmech_attn.dynamics.motion import phases


class Points(NamedTuple):
    """Flat list of points, on the last axis; a leaf without axes is shared by all."""

    params: PyTree
    starts: PyTree

    @property
    def size(self) -> int:
        """Number of points."""
        return count_of(self.starts)

    def take(self, indices: np.ndarray) -> "Points":
        return Points(*take((self.params, self.starts), indices))


Numbers = np.ndarray | jax.Array


class Verdicts(NamedTuple):
    """The verdict of one window on each point; points on the last axis."""

    phase: Numbers
    period: Numbers
    rotation_number: Numbers
    reasons: Numbers
    evidence: phases.Evidence
    exponents: Numbers
    weighted: Numbers
    stderr: Numbers
    source: Numbers  # of each exponent, an index into SOURCES
    log_det: Numbers  # average of ln|det| over the window; NaN without all exponents
    sum_rule: Numbers  # sum of the averages less log_det
    window: Numbers  # steps of the window that decided
    horizon: Numbers  # steps from the start of the orbit to the verdict
    phase_paper: Numbers  # the paper's classifier, on the first window

    @property
    def rotation_error(self) -> np.ndarray:
        """Error of the rotation number; NaN where the orbit is not on a torus."""
        on_torus = np.asarray(self.phase) == phases.QUASIPERIODIC
        return np.where(on_torus, self.evidence.frequency_error, np.nan)

    @property
    def resolved(self) -> np.ndarray:
        """How many leading exponents are numbers."""
        return np.cumprod(np.isfinite(self.exponents), axis=0).sum(axis=0)


class WindowEnd(NamedTuple):
    """Where the window of a point ended and its tail began; points on the last axis."""

    state: PyTree
    frame: Numbers  # (dimension, exponents)


def gather(stage: Stage, steps: int, points: Points, indices, job) -> Any:
    """Run a stage on batches of some points; trees with points on the last axis."""
    lanes = stage.width(len(indices), steps)
    items = list(batches(indices, lanes))
    clock = time.perf_counter()
    result = joined(lambda item, stop: job(points.take(item[0]), item[1], stop), items)
    stage.measured(len(indices), lanes, steps, time.perf_counter() - clock)
    return result


def joined(job, items):
    """Results of all batches, without their padding, along the last axis."""
    pieces = [None] * len(items)
    for i, result in run_all(lambda i, stop: job(items[i], stop), range(len(items))):
        real = items[i][1]
        pieces[i] = jax.tree.map(lambda x, real=real: _trim(x, real), result)
    join = lambda *xs: np.concatenate(xs, axis=-1) if xs[0].ndim else xs[0]
    return jax.tree.map(join, *pieces)


def _trim(x, real: int) -> np.ndarray:
    x = np.asarray(x)
    return x[..., :real] if x.ndim else x


def put(old, new, indices):
    """Replace the points `indices` (last axis) of a tree of arrays."""

    def replaced(x, y):
        if np.ndim(x) == 0:
            return y
        x = np.array(x)
        x[..., indices] = y
        return x

    return jax.tree.map(replaced, old, new)
