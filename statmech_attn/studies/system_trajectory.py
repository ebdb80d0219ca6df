"""Trajectories of a system of one's own."""

import jax
import numpy as np

from statmech_attn.batches import once
from statmech_attn.dynamics import OBSERVABLES
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import Arrays, Assembled, FAILURE, Results, Tick
from statmech_attn.studies import build, posed
from statmech_attn.studies.system_tables import SystemTrajectoryStudy
from statmech_attn.studies.trajectory import BATCH, Trajectories


# Files have the scanned parameter as the first dimension.
VARIABLES = Variables(
    Variable(
        "observed",
        "time observable",
        "what is observed of the state",
        "1",
        "x",
        group="",
        note="each with a unit of its own, `observable_unit`",
    ),
    FAILURE,
    Variable("time", "time", "step, 0 is the state after the transient", "1", "t"),
    OBSERVABLES,
    attributes=("system",),
)


class SystemTrajectoryWork(Trajectories):
    """What is observed along trajectories; a `scan.work.Work`.

    Args:
        batch: points side by side, of which a chunk holds a multiple; a number that
            depends on the study alone when omitted.

    Raises:
        ValueError: an impossible setting, a function that is no system, or more than
            fits into memory.
    """

    def __init__(self, study: SystemTrajectoryStudy, batch: int | None = None):
        self.problem, self.options = posed.pose(study), study.run
        self.lost = f"{study.system.name} diverges"
        self.axes = posed.only_one(self.problem.axes, "trajectory")
        self.batch = batch or min(BATCH, -(-self.total // 8) * 8)
        self.width = len(self.problem.observables)
        self.require_memory(self.width)

    @property
    def names(self) -> list[str]:
        return ["observed"]

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        return np.any(~np.isfinite(arrays["observed"]), axis=(1, 2))

    def assemble(self, results: Results) -> Assembled:
        name, table = self.axes.names[0], posed.with_labels(VARIABLES, self.problem)
        variables = {
            "observed": ((name, "time", "observable"), results.column("observed"))
        }
        coordinates = {
            name: self.axes.values[0],
            "time": np.arange(self.options.steps),
            "observable": [row.name for row in self.problem.observables],
        }
        dataset = table.labelled(variables, coordinates)
        dataset = posed.described(dataset, self.problem, "trajectory", table)
        failure, reasons = results.failure(), results.reasons()
        return Assembled(build.with_failures(dataset, failure, (name,), reasons))

    def _states(self, params):
        return self.problem.starts(params, np.zeros(self.batch, int))

    def _advanced(self, params, state, steps: int):
        return self.problem.layout.advance(params, state, steps)

    def _kept(self, params, state, steps: int, tick: Tick) -> Arrays:
        parts = []
        for first in range(0, steps, self._segment):
            state, recorded = self._recorded(params, state)
            parts.append(np.moveaxis(np.asarray(recorded), -1, 0))
            tick(min(self._segment, steps - first))
        return {"observed": np.concatenate(parts, axis=1)[:, :steps]}

    @once
    def _recorded(self):
        """One segment: the state after it, and (steps, observables, points)."""
        system, length = self.problem.system, self._segment

        def step(carry, _):
            params, state = carry
            return (params, system.steps(state, params)), system.seen(state)

        def segment(params, state):
            (_, state), recorded = jax.lax.scan(
                step, (params, state), None, length=length
            )
            return state, recorded

        return jax.jit(segment)
