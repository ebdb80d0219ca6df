"""Order parameters of patterns growing with N in time, over a grid of parameters.

A point is a choice of parameters, which `solve` solves; its derivatives in the
logarithms of the parameters say what a comparison with spins could have seen.
"""

from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from statmech_attn.batches import limited, seconds_of
from statmech_attn.dmft.extensive.effective_process import (
    POPULATION,
    solve,
    trajectory_bytes,
)
from statmech_attn.dmft.extensive.ensembles import Ensemble
from statmech_attn.dmft.extensive.grids.options import SolvedRecall
from statmech_attn.dmft.extensive.grids.points import (
    corners,
    label,
    LOADED,
    MEASURED,
    ONE_TIME,
    ParameterValues,
    SCANNED,
    TimedPoints,
    TIMES,
    TWO_TIMES,
)
from statmech_attn.dmft.extensive.loaded_network import check_steps, two_time_bytes
from statmech_attn.dmft.extensive.results import Trajectory, Values
from statmech_attn.dmft.network import Network
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import FAILURE, Pilot, Tick


FEW = 8  # steps of the pilot
COPIES = 2 + len(SCANNED)  # of a number: with its error and derivatives
STEP = {True: 1e-3, False: 0.05}  # in the logarithm, of a closed and a sampled theory
FIELDS = {"self_interaction": "Gamma"}  # names in a file must differ by more than case
VARIABLES = Variables(
    *(
        Variable(
            name,
            dims,
            words,
            "1",
            symbol,
            "_error",
            group="" if name in ONE_TIME else "two_times",
            note="" if name in ONE_TIME else "with run.two_times",
        )
        for name in (*ONE_TIME, *TWO_TIMES)
        for dims, words, symbol in [label(name)]
    ),
    *(
        Variable(
            f"{name}_by_{parameter}",
            dims,
            f"{words}: derivative in the logarithm of {parameter}",
            "1",
            f"∂{symbol}/∂ln {parameter}",
            group="derivatives" if name in ONE_TIME else "derivatives_two_times",
            note="NaN where the parameter is 0 or infinite",
        )
        for name in MEASURED
        for dims, words, symbol in [label(name)]
        for parameter in SCANNED
    ),
    Variable("noise_std", "time", "standard deviation of the crosstalk", "1", "σ"),
    Variable("trajectories", "", "effective trajectories, 0 where none", "1", "K"),
    Variable("reached", "", "whether errors are as small as asked", "1", "reached"),
    Variable(
        "jitter",
        "",
        "largest variance of the noise that rounding or quadrature made negative",
        "1",
        "jitter",
    ),
    Variable(
        "positive", "", "whether jitter is within the errors of the noise", "1", "V ≥ 0"
    ),
    FAILURE,
    LOADED,
    TIMES,
)


class OrderParameters(TimedPoints):
    """Order parameters of the theory in time, over alpha, beta, gamma and epsilon.

    Args:
        net: condensed patterns and context, as `dmft.network` builds it.
        ensemble: of the alpha N other patterns.
        recall: start, steps, what is kept, and how precisely it is solved.
        alpha: other patterns per spin; here and below a number, which is no axis of the
            result, or several.
        beta: inverse temperature of the output, infinite for deterministic spins.
        gamma: inverse temperature of attention.
        epsilon: weight of the positional code.
        key: random key of JAX, for an ensemble that is not closed.

    Raises:
        ValueError: a value out of range, a start without overlap, no key where one is
            needed, or more memory than there is.

    Example:
        >>> from statmech_attn import dmft
        >>> from statmech_attn.dmft import extensive
        >>> net = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=2)
        >>> points = extensive.OrderParameters(
        ...     net, extensive.cycle(), extensive.SolvedRecall(steps=3),
        ...     alpha=[0.1, 0.3], beta=4.0)
        >>> theory = points.compute()
        >>> theory.m_o_se.dims, theory.m_o_se.isel(time=-1, pattern=0).values.round(4)
        (('alpha', 'time', 'pattern'), array([0.9877, 0.8615]))
    """

    title = "extensive"
    variables = VARIABLES
    lost = "the closed equations have no finite solution"

    def __init__(
        self,
        net: Network,
        ensemble: Ensemble,
        recall: SolvedRecall = SolvedRecall(),
        *,
        alpha: ParameterValues,
        beta: ParameterValues,
        gamma: ParameterValues = 0.0,
        epsilon: ParameterValues = 0.0,
        key: Key[Array, ""] | None = None,
    ):
        if key is None and not ensemble.is_closed:
            raise ValueError("key: effective trajectories are sampled; give a JAX key.")
        grid = {"alpha": alpha, "beta": beta, "gamma": gamma, "epsilon": epsilon}
        super().__init__(net, ensemble, recall, grid)
        self.recall, self.key = recall, key
        for corner in corners(self._grid):
            problem = self._posed(corner)
            check_steps(problem, recall.steps, trajectory_bytes(problem, recall.steps))
        self.require_memory(COPIES)

    @property
    def names(self) -> list[str]:
        return [*ONE_TIME, *(TWO_TIMES if self.recall.two_times else ())]

    def row(self, number: int, tick: Tick, folder: Path | None) -> dict[str, Any]:
        tick(0.0)
        solution = self._solved(self.parameters(number), number)
        return self._row(solution) | self._derivatives(number, solution.value)

    def _solved(
        self,
        values: dict[str, float],
        number: int,
        steps: int = 0,
        error: float | None = None,
    ) -> Trajectory:
        return solve(
            self._posed(values),
            self._start,
            steps=steps or self.recall.steps,
            key=None if self.key is None else jax.random.fold_in(self.key, number),
            error=error or self.recall.error,
            most=self.recall.trajectories // POPULATION,
        )

    def _differentiated(self, values: dict[str, float]) -> list[str]:
        """Parameters that have a logarithm, and room beside it."""
        most = {"epsilon": np.exp(-STEP[self.ensemble.is_closed])}
        return [n for n in SCANNED if 0 < values[n] < most.get(n, np.inf)]

    def _derivatives(self, number: int, solved: Values) -> dict[str, np.ndarray]:
        """Derivatives by slightly larger and smaller parameters, with the same key.

        Where a parameter is not moved they are NaN, in the shapes of `solved`.
        """
        values, step = self.parameters(number), STEP[self.ensemble.is_closed]
        slopes = {
            f"{name}_by_{parameter}": np.full_like(getattr(solved, name), np.nan)
            for parameter in SCANNED
            for name in self.compared
        }
        for parameter in self._differentiated(values):
            moved = (values[parameter] * np.exp(x) for x in (step, -step))
            above, below = (
                self._solved(values | {parameter: x}, number, error=np.inf).value
                for x in moved
            )
            for name in self.compared:
                ends = (np.asarray(getattr(end, name)) for end in (above, below))
                slopes[f"{name}_by_{parameter}"] = np.subtract(*ends) / (2 * step)
        return slopes

    def _row(self, solution: Trajectory) -> dict[str, np.ndarray]:
        variance = np.diagonal(np.asarray(solution.value.noise))
        row = {"noise_std": np.sqrt(np.maximum(variance, 0.0))}
        for name in self.names:
            field = FIELDS.get(name, name)
            row[name] = np.asarray(getattr(solution.value, field))
            row[f"{name}_error"] = np.asarray(getattr(solution.error, field))
        return row | {
            "trajectories": np.asarray(solution.trajectories),
            "reached": np.asarray(solution.reached),
            "jitter": np.asarray(solution.jitter, float),
            "positive": np.asarray(solution.positive),
        }

    def pilot(self) -> Pilot:
        """Forecast from a few steps, and few trajectories of a sampled point."""
        all_steps = self.recall.steps
        steps = min(FEW, all_steps)
        solve_few = lambda: self._solved(self.parameters(0), 0, steps, np.inf)
        with limited(1):
            compiling, solution = seconds_of(solve_few, repeats=1), solve_few()
        seconds = seconds_of(solve_few) * ((all_steps + 1) / (steps + 1)) ** 2
        moved = self._differentiated(self.parameters(self.total - 1))
        assumes, solutions = "", 2 * len(moved)  # for the derivatives
        if self.ensemble.is_closed:
            solutions += 1
        else:
            needed = [getattr(solution.error, n).max() for n in (*ONE_TIME, "C")]
            solutions += max(1.0, (float(max(needed)) / self.recall.error) ** 2)
            assumes = f"errors grow no more after {steps} steps"
        seconds *= solutions
        memory = two_time_bytes(all_steps)
        memory += trajectory_bytes(self.problem(0), all_steps)
        stored = 8 * COPIES * self.stored_numbers()
        return Pilot(seconds, memory, stored, fixed=compiling, assumes=assumes)

    def attributes(self) -> dict[str, Any]:
        method = "closed" if self.ensemble.is_closed else "sampled"
        return super().attributes() | {"method": method}
