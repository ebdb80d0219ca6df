"""Patterns growing with N: theory, simulation and capacity as studies.

A point of the theory is a choice of parameters, a point of a simulation one sample of
the patterns, a point of the capacity one context and choice of parameters.
"""

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from statmech_attn import dmft, montecarlo
from statmech_attn.batches import limited, seconds_of
from statmech_attn.dmft import extensive, Network, network
from statmech_attn.labels import Variable, Variables
from statmech_attn.reporting import size
from statmech_attn.scan import Arrays, Contents, lacking, Pilot, Points, Tick
from statmech_attn.statistics import standard_error
from statmech_attn.studies import build
from statmech_attn.studies.extensive_tables import (
    CapacityStudy,
    EnsembleSpec,
    ExtensiveSimulationStudy,
    ExtensiveStudy,
    PAIRS,
)


LARGEST = 4 * 2**30  # bytes of a result that are kept in memory
FEW = 8  # steps of the pilot
HALVINGS = 8  # of alpha, in search of a retrieval state
HIGHEST = 2.0  # alpha to which the capacity is sought
ONE_TIME = {  # dimensions beside time, words, symbol
    "m_o_se": ("pattern", "semantic output overlap", "m^{o,SE}"),
    "A": ("pattern", "attention", "A"),
    "weights": ("age", "attention weight", "p_d"),
}
TWO_TIMES = {
    "C": ("correlation of the spins", "C"),
    "S": ("correlation of the value overlaps of the other patterns", "S^{vv}"),
    "G": ("response of a token to a field on the token after time_2", "G"),
    "S_qk": (
        "correlation of query overlaps with key overlaps at time_2, other patterns",
        "S^{qk}",
    ),
    "self_interaction": ("self-interaction of a spin through the other patterns", "Γ"),
    "noise": ("covariance of the crosstalk", "V"),
}
BY = ("alpha", "beta", "gamma", "epsilon")  # parameters of the derivatives
COPIES = 2 + len(BY)  # of a number: with its error and derivatives
STEP = {True: 1e-3, False: 0.05}  # in the logarithm, of a closed and a sampled theory
FIELDS = {"self_interaction": "Gamma"}  # names in a file must differ by more than case
MEASURED = (*ONE_TIME, "C", "S")  # by spins, and compared with them
SPREADS = {  # ending, words, symbol of what is stored of a simulation
    "_mean": ("mean over samples", "{}"),
    "_stderr": ("standard error of the mean", "s({})"),
    "_spread": ("standard deviation over samples of the patterns", "σ({})"),
}
SAMPLES = "_samples"  # ending of what every sample has
PARAMETERS = Variables(
    Variable("alpha", "", "patterns per spin besides those of the network", "1", "α"),
    dmft.PARAMETERS,
)
_TOKEN = "token step, 0 is the start"
TIMES = Variables(
    Variable("time", "time", _TOKEN, "token", "t"),
    Variable("time_2", "time_2", _TOKEN, "token", "t'"),
    Variable("pattern", "pattern", "pattern of the network", "1", "a"),
    Variable("age", "age", "age of the token that is read, 0 the newest", "token", "d"),
)


def _of_times(name: str) -> tuple[str, str, str]:
    """Dimensions, words and symbol."""
    if name in ONE_TIME:
        last, words, symbol = ONE_TIME[name]
        return f"time {last}", words, symbol
    return "time time_2", *TWO_TIMES[name]


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
        for dims, words, symbol in [_of_times(name)]
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
        for dims, words, symbol in [_of_times(name)]
        for parameter in BY
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
    build.FAILURE,
    PARAMETERS,
    TIMES,
)
SIMULATED = Variables(
    *(
        Variable(
            name + ending,
            f"n_spins {dims}",
            f"{words}: {what}",
            "1",
            form.format(symbol),
            group="" if name in ONE_TIME else "two_times",
        )
        for name in MEASURED
        for dims, words, symbol in [_of_times(name)]
        for ending, (what, form) in SPREADS.items()
    ),
    *(
        Variable(
            name + SAMPLES,
            f"n_spins sample {dims}",
            f"{words}: of every sample of the patterns",
            "1",
            symbol,
            group="samples" if name in ONE_TIME else "samples_two_times",
        )
        for name in MEASURED
        for dims, words, symbol in [_of_times(name)]
    ),
    build.FAILURE,
    PARAMETERS,
    Variable("n_spins", "n_spins", "number of spins", "1", "N"),
    Variable("sample", "sample", "sample of the patterns", "1", "s", group="samples"),
    TIMES,
)
CAPACITY = Variables(
    Variable(
        "capacity",
        "context",
        "largest alpha of retrieval",
        "1",
        "α_c",
        "_error",
        group="",
        note="error: of half or twice as many lags and a coarser rule, and of the fold",
    ),
    Variable(
        "retrieved_overlap", "context", "overlap where retrieval ends", "1", "m_c"
    ),
    Variable(
        "noise_multiplier",
        "context",
        "multiplier of noise in the correlations where retrieval ends, stable below 1",
        "1",
        "μ_C",
    ),
    Variable("context", "context", "length of the context window", "token", "C"),
    build.FAILURE,
    dmft.PARAMETERS,
)


class LoadedWork(Points):
    """What the three kinds have in common: parameters, ensemble, start.

    Raises:
        ValueError: an impossible setting.
    """

    def __init__(self, study: Any, parameters: dict[str, Any]):
        self.study, self.options = study, study.run
        self.made = build.model(study.network)
        self.ensemble = ensemble_of(study.ensemble)
        grid = build.grid(build.defaults(parameters, self.made.file), dict)
        values = {name: [x] for name, x in grid.fixed.items()} | grid.scanned
        self.grid = {name: values[name] for name in parameters}
        self.axes, self.single = self.grid, tuple(grid.fixed)
        if self.options.row >= self.made.net.n_patterns:
            raise ValueError(
                f"run.row: must be below the number of patterns, "
                f"{self.made.net.n_patterns}; got {self.options.row}."
            )

    @property
    def values(self) -> int:
        """Number of choices of parameters."""
        return math.prod(map(len, self.grid.values()))

    def parameters(self, number: int) -> dict[str, float]:
        """Alpha, beta and the others of a point."""
        place = self.index(number)
        return {name: float(x[place[name]]) for name, x in self.grid.items()}

    def corners(self) -> Iterator[dict[str, float]]:
        """Parameters at the ends of their ranges."""
        ends = [(float(np.min(x)), float(np.max(x))) for x in self.grid.values()]
        for corner in sorted(set(itertools.product(*ends))):
            yield dict(zip(self.grid, corner))

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        return lacking(arrays, *(name for name in arrays if "_by_" not in name))

    def attributes(self) -> dict[str, Any]:
        return {
            "kind": self.study.kind,
            "network": dmft.network_digest(self.made.net),
            "ensemble": described(self.ensemble),
        }

    def identity(self) -> dict[str, Any]:
        return self.study.identity()


class TimedWork(LoadedWork):
    """Theory and simulation: order parameters in time."""

    def __init__(self, study: Any):
        names = ("alpha", "beta", "gamma", "epsilon")
        super().__init__(study, {n: getattr(study.parameters, n) for n in names})
        self.start = self.options.overlap * np.asarray(
            self.made.net.output[self.options.row]
        )
        for corner in self.corners():
            self._posed(corner)
        extensive.require_overlap(self.made.net, self.start)
        self.key = jax.random.key(self.options.seed)

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Order parameters that are kept."""

    @property
    def compared(self) -> list[str]:
        """Those that theory and simulation both have."""
        return [n for n in MEASURED if n in ONE_TIME or self.options.two_times]

    def problem(self, number: int) -> extensive.LoadedNetwork:
        """The network of a point."""
        return self._posed(self.parameters(number))

    def _posed(self, values: dict[str, float]) -> extensive.LoadedNetwork:
        return extensive.loaded_network(self.made.net, self.ensemble, **values)

    def stored_numbers(self) -> int:
        """Numbers of a point for each of which one is kept."""
        n, net = self.options.steps + 1, self.made.net
        pairs = sum(name in TWO_TIMES for name in self.names)
        return n * (2 * net.n_patterns + net.context + n * pairs)

    def require_memory(self, copies: int) -> None:
        """Refuse a result that fills the memory."""
        needed = 8 * copies * self.values * self.stored_numbers()
        if needed > LARGEST:
            raise ValueError(
                f"run.steps: this result needs {size(needed)} of memory, more than "
                f"{size(LARGEST)}; take fewer steps or points, or two_times = false."
            )

    def coordinates(self) -> dict[str, Any]:
        n, net = self.options.steps + 1, self.made.net
        return {
            "time": np.arange(n),
            "time_2": np.arange(n),
            "pattern": np.arange(1, net.n_patterns + 1),
            "age": np.arange(net.context),
        }

    def attributes(self) -> dict[str, Any]:
        start = f"overlap {self.options.overlap:g} with pattern {self.options.row + 1}"
        of_file = {"context": self.made.net.context, "start": start}
        return super().attributes() | of_file


class ExtensiveWork(TimedWork):
    """Order parameters of the theory; a `scan.Points`."""

    title = "extensive"
    variables = VARIABLES
    lost = "the closed equations have no finite solution"

    def __init__(self, study: ExtensiveStudy):
        super().__init__(study)
        for corner in self.corners():
            self._require_fitting(self._posed(corner))
        self.require_memory(COPIES)

    @property
    def names(self) -> list[str]:
        return [*ONE_TIME, *(TWO_TIMES if self.options.two_times else ())]

    def row(self, number: int, tick: Tick, folder: Path | None) -> dict[str, Any]:
        tick(0.0)
        solution = self._solved(self.parameters(number), number)
        return self._row(solution) | self._derivatives(number)

    def _solved(
        self,
        values: dict[str, float],
        number: int,
        steps: int = 0,
        error: float | None = None,
    ) -> extensive.Trajectory:
        return extensive.solve(
            self._posed(values),
            self.start,
            steps=steps or self.options.steps,
            key=jax.random.fold_in(self.key, number),
            error=error or self.options.error,
            most=self.options.trajectories // extensive.POPULATION,
        )

    def _derivatives(self, number: int) -> dict[str, np.ndarray]:
        """From parameters slightly larger and smaller, with the same key."""
        values, step = self.parameters(number), STEP[self.ensemble.is_closed]
        most, row = {"epsilon": np.exp(-step)}, {}
        for parameter in BY:
            defined = 0 < values[parameter] < most.get(parameter, np.inf)
            factors = np.exp([step, -step]) if defined else [1.0]
            solved = [
                self._solved(
                    values | {parameter: values[parameter] * factor},
                    number,
                    error=np.inf,
                ).value
                for factor in factors
            ]
            for name in self.compared:
                ends = [np.asarray(getattr(value, name)) for value in solved]
                slope = (ends[0] - ends[-1]) / (2 * step)
                row[f"{name}_by_{parameter}"] = slope if defined else slope + np.nan
        return row

    def _require_fitting(self, problem: extensive.LoadedNetwork) -> None:
        steps = self.options.steps
        extensive.check_steps(
            problem, steps, extensive.trajectory_bytes(problem, steps)
        )

    def _row(self, solution: extensive.Trajectory) -> dict[str, np.ndarray]:
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
        """From a few steps, of which a sampled point has the fewest trajectories."""
        steps = min(FEW, self.options.steps)
        solve = lambda: self._solved(self.parameters(0), 0, steps, np.inf)
        with limited(1):
            compiling, solution = seconds_of(solve, repeats=1), solve()
        seconds = seconds_of(solve) * ((self.options.steps + 1) / (steps + 1)) ** 2
        needed = [getattr(solution.error, n).max() for n in (*ONE_TIME, "C")]
        assumes, solutions = "", 2 * len(BY)  # for the derivatives
        if self.ensemble.is_closed:
            solutions += 1
        else:
            solutions += max(1.0, (float(max(needed)) / self.options.error) ** 2)
            assumes = f"errors grow no more after {steps} steps"
        seconds *= solutions
        memory = extensive.two_time_bytes(self.options.steps)
        memory += extensive.trajectory_bytes(self.problem(0), self.options.steps)
        stored = 8 * COPIES * self.stored_numbers()
        return Pilot(seconds, memory, stored, fixed=compiling, assumes=assumes)

    def attributes(self) -> dict[str, Any]:
        method = "closed" if self.ensemble.is_closed else "sampled"
        return super().attributes() | {"method": method}


class ExtensiveSimulationWork(TimedWork):
    """Samples of networks of N spins; a `scan.Points` of samples."""

    title = "extensive-simulation"
    variables = SIMULATED

    def __init__(self, study: ExtensiveSimulationStudy):
        super().__init__(study)
        self.sizes = sorted(set(self.options.n_spins))
        samples = range(self.options.samples)
        self.axes = {"n_spins": self.sizes, **self.grid, "sample": samples}
        for number in range(0, self.total, len(samples)):
            self._plan(number)
        self.require_memory(len(self.sizes) * (len(SPREADS) + 2 * self.options.samples))

    @property
    def names(self) -> list[str]:
        return self.compared

    def _plan(self, number: int) -> montecarlo.ExtensivePlan:
        return montecarlo.extensive_plan(
            self.problem(number),
            self.made.patterns,
            self.start,
            n_spins=self.sizes[self.index(number)["n_spins"]],
            steps=self.options.steps,
            runs=self.options.runs,
        )

    def row(self, number: int, tick: Tick, folder: Path | None) -> dict[str, Any]:
        tick(0.0)
        key, shape = self.key, (len(self.sizes), self.values, self.options.samples)
        for place in np.unravel_index(number, shape):
            key = jax.random.fold_in(key, int(place))
        drawn = self._plan(number).sample(key)
        return {n + SAMPLES: np.asarray(getattr(drawn, n)) for n in self.names}

    def pilot(self) -> Pilot:
        """From one step of the smallest N; the time goes like N^2 and the steps."""
        smallest, run = self.sizes[0], self.options
        short = self._plan(0)._replace(steps=1)
        sample = lambda: jax.block_until_ready(short.sample(self.key))
        with limited(1):
            compiling = seconds_of(sample, repeats=1)
        squares = np.mean(np.square(self.sizes, dtype=float)) / smallest**2
        seconds = seconds_of(sample) * squares * (run.steps + 1) / 2
        of_largest = self.total - self.values * run.samples
        points = range(of_largest, self.total, run.samples)
        memory = max(self._plan(number).bytes for number in points)
        fixed = compiling * len(self.sizes)
        return Pilot(seconds, memory, 8 * self.stored_numbers(), fixed=fixed)

    def derived(self, columns: Contents) -> Contents:
        """Moments over the samples; a point fails with one of its samples."""
        over = lambda dims: tuple(d for d in dims if d != "sample")
        if "failure" in columns:
            dims, codes = columns["failure"]
            columns["failure"] = over(dims), codes.max(dims.index("sample"))
        for name in self.names:
            dims, values = columns[name + SAMPLES]
            axis = dims.index("sample")
            columns[f"{name}_mean"] = over(dims), values.mean(axis)
            columns[f"{name}_stderr"] = over(dims), standard_error(values, axis)
            columns[f"{name}_spread"] = over(dims), values.std(axis, ddof=1)
        return columns

    def attributes(self) -> dict[str, Any]:
        counts = {"samples": self.options.samples, "runs": self.options.runs}
        return super().attributes() | counts


class CapacityWork(LoadedWork):
    """Where retrieval ends; a `scan.Points`."""

    title = "capacity"
    variables = CAPACITY

    def __init__(self, study: CapacityStudy):
        chosen = study.parameters
        super().__init__(study, {"beta": chosen.beta, "gamma": chosen.gamma})
        self.contexts = study.run.contexts or [self.made.net.context]
        if len(set(self.contexts)) < len(self.contexts):
            raise ValueError("run.contexts: values must be distinct.")
        self.axes = {"context": self.contexts, **self.grid}
        self.start = np.asarray(self.made.net.output[self.options.row])
        for C, corner in itertools.product(self.contexts, self.corners()):
            posed = self._posed(C, corner, self.options.begin)
            if self.options.moving:
                extensive.check_moving(posed)
            else:
                extensive.check_stationary(posed, at_rest=self.options.at_rest)
            extensive.chosen_lags(posed, self.options.lags)

    def _network(self, context: int) -> Network:
        return network(self.made.patterns, context=context)

    def _posed(self, context: int, values: dict[str, float], alpha: float):
        return extensive.loaded_network(
            self._network(context), self.ensemble, alpha=alpha, **values
        )

    def row(self, number: int, tick: Tick, folder: Path | None) -> dict[str, float]:
        tick(0.0)
        context = self.contexts[self.index(number)["context"]]
        values = self.parameters(number)
        lags = extensive.chosen_lags(self._posed(context, values, 0), self.options.lags)
        fold = self._fold(context, values, lags)
        error = fold.error
        if context > 1 and not self.options.at_rest:
            half = lags // 2  # no fewer than the window has
            others = half if half >= context - 1 else 2 * lags
            other = self._fold(context, values, others, coarse=True)
            error += abs(fold.value - other.value)
        return {
            "capacity": fold.value,
            "capacity_error": error,
            "retrieved_overlap": float(abs(fold.overlap).max()),
            "noise_multiplier": fold.noise,
        }

    def _fold(
        self, context: int, values: dict[str, float], lags: int, coarse: bool = False
    ) -> extensive.Capacity:
        """The end of retrieval, from the largest alpha that has such a state."""
        for halvings in range(HALVINGS):
            alpha = self.options.begin / 2**halvings
            posed = self._posed(context, values, alpha)
            given = {"lags": lags, "coarse": coarse, "within": (alpha / 4, HIGHEST)}
            try:
                if self.options.moving:
                    return extensive.moving_capacity(posed, **given)
                at_rest = self.options.at_rest
                return extensive.capacity(posed, self.start, at_rest=at_rest, **given)
            except extensive.NoRetrieval:
                continue
        least = self.options.begin / 2 ** (HALVINGS - 1)
        raise RuntimeError(f"no pattern is retrieved down to alpha = {least:.1g}.")


def ensemble_of(spec: EnsembleSpec) -> extensive.Ensemble:
    """The ensemble of a study.

    Raises:
        ValueError: correlations that no patterns have.
    """
    if spec.patterns == "correlated":
        return extensive.correlated(**{name: getattr(spec, name) for name in PAIRS})
    return {
        "cycle": extensive.cycle,
        "identical": extensive.identical,
        "independent": extensive.independent,
    }[spec.patterns]()


def described(ensemble: extensive.Ensemble) -> str:
    """An ensemble in words; files with the same words have the same.

    Example:
        >>> described(extensive.cycle()), described(extensive.correlated(ov=0.5))
        ('cycle', 'ov = 0.5')
    """
    if ensemble.is_cycle:
        return "cycle"
    rho = ensemble.correlations[np.triu_indices(4, 1)]
    known = [f"{name} = {x:g}" for name, x in zip(PAIRS, rho) if x]
    return ", ".join(known) or "independent"
