"""Spins with patterns growing with N, over a grid of N and parameters.

A point is one sample of the patterns, with a key of its own; means, their errors and
the spread over samples are made when all are there.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from statmech_attn.batches import limited, seconds_of
from statmech_attn.dmft import extensive, Network, Patterns
from statmech_attn.labels import Variable, Variables
from statmech_attn.montecarlo.finite_networks.extensive import (
    extensive_plan,
    ExtensivePlan,
)
from statmech_attn.montecarlo.options import SampledRecall
from statmech_attn.scan import Contents, FAILURE, Pilot, Tick
from statmech_attn.statistics import standard_error


SPREADS = {  # ending, words, symbol of what is stored of a simulation
    "_mean": ("mean over samples", "{}"),
    "_stderr": ("standard error of the mean", "s({})"),
    "_spread": ("standard deviation over samples of the patterns", "σ({})"),
}
SAMPLES = "_samples"  # ending of what every sample has
VARIABLES = Variables(
    *(
        Variable(
            name + ending,
            f"n_spins {dims}",
            f"{words}: {what}",
            "1",
            form.format(symbol),
            group="" if name in extensive.points.ONE_TIME else "two_times",
        )
        for name in extensive.points.MEASURED
        for dims, words, symbol in [extensive.points.label(name)]
        for ending, (what, form) in SPREADS.items()
    ),
    *(
        Variable(
            name + SAMPLES,
            f"n_spins sample {dims}",
            f"{words}: of every sample of the patterns",
            "1",
            symbol,
            group="samples"
            if name in extensive.points.ONE_TIME
            else "samples_two_times",
        )
        for name in extensive.points.MEASURED
        for dims, words, symbol in [extensive.points.label(name)]
    ),
    FAILURE,
    extensive.points.LOADED,
    Variable("n_spins", "n_spins", "number of spins", "1", "N"),
    Variable("sample", "sample", "sample of the patterns", "1", "s", group="samples"),
    extensive.points.TIMES,
)


class ExtensiveSamples(extensive.points.TimedPoints):
    """Networks of N spins in time, over N, alpha, beta, gamma and epsilon.

    Args:
        net: condensed patterns and context, as `dmft.network` builds it.
        patterns: the condensed ones, from which the network was built.
        ensemble: of the alpha N other patterns, drawn anew for every sample.
        recall: start, steps, what is kept, and numbers of samples and runs.
        n_spins: numbers N of spins, each divisible by the class fractions.
        alpha: other patterns per spin, whole numbers when multiplied by N; here and
            below a number, which is no axis of the result, or several.
        beta: inverse temperature of the output, infinite for deterministic spins.
        gamma: inverse temperature of attention.
        epsilon: weight of the positional code.
        key: random key of JAX; a sample depends on it and on its place in the grid.

    Raises:
        ValueError: a value out of range, a start without overlap, alpha N that is no
            whole number, or more memory than there is.

    Example:
        >>> from statmech_attn import dmft
        >>> patterns = dmft.site_classes(np.ones((4, 1, 1)))
        >>> spins = ExtensiveSamples(
        ...     dmft.network(patterns, context=2), patterns, extensive.cycle(),
        ...     SampledRecall(steps=3, samples=4), n_spins=[100, 400],
        ...     alpha=[0.1, 0.3], beta=4.0, key=jax.random.key(0))
        >>> dataset = spins.compute()
        >>> dataset.m_o_se_mean.dims, dataset.sizes["sample"]
        (('n_spins', 'alpha', 'time', 'pattern'), 4)
    """

    title = "extensive-simulation"
    variables = VARIABLES

    def __init__(
        self,
        net: Network,
        patterns: Patterns,
        ensemble: extensive.Ensemble,
        recall: SampledRecall = SampledRecall(),
        *,
        n_spins: Sequence[int],
        alpha: extensive.points.ParameterValues,
        beta: extensive.points.ParameterValues,
        gamma: extensive.points.ParameterValues = 0.0,
        epsilon: extensive.points.ParameterValues = 0.0,
        key: Key[Array, ""],
    ):
        grid = {"alpha": alpha, "beta": beta, "gamma": gamma, "epsilon": epsilon}
        super().__init__(net, ensemble, recall, grid)
        self.patterns, self.recall, self.key = patterns, recall, key
        self._sizes = sorted(set(n_spins))
        samples = range(recall.samples)
        self.axes = {"n_spins": self._sizes, **self._grid, "sample": samples}
        for number in range(0, self.total, recall.samples):
            self.plan(number)
        self.require_memory(len(self._sizes) * (len(SPREADS) + 2 * recall.samples))

    @property
    def names(self) -> list[str]:
        return self.compared

    def plan(self, number: int) -> ExtensivePlan:
        """The simulation of a point.

        Args:
            number: of the point.
        """
        return extensive_plan(
            self.problem(number),
            self.patterns,
            self._start,
            n_spins=self._sizes[self.index(number)["n_spins"]],
            steps=self.recall.steps,
            runs=self.recall.runs,
        )

    def row(self, number: int, tick: Tick, folder: Path | None) -> dict[str, Any]:
        tick(0.0)
        key, shape = self.key, (len(self._sizes), self.choices, self.recall.samples)
        for place in np.unravel_index(number, shape):
            key = jax.random.fold_in(key, int(place))
        sample = self.plan(number).sample(key)
        return {n + SAMPLES: np.asarray(getattr(sample, n)) for n in self.names}

    def pilot(self) -> Pilot:
        """Forecast from one step of the smallest N; time grows like N^2."""
        smallest, samples = self._sizes[0], self.recall.samples
        short = self.plan(0)._replace(steps=1)
        sample = lambda: jax.block_until_ready(short.sample(self.key))
        with limited(1):
            compiling = seconds_of(sample, repeats=1)
        squares = float(np.mean(np.square(self._sizes, dtype=float))) / smallest**2
        seconds = seconds_of(sample) * squares * (self.recall.steps + 1) / 2
        of_largest = range(self.total - self.choices * samples, self.total, samples)
        memory = max(self.plan(number).bytes for number in of_largest)
        fixed = compiling * len(self._sizes)
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
        counts = {"samples": self.recall.samples, "runs": self.recall.runs}
        return super().attributes() | counts
