"""Trajectories of an attention network along beta, with the spread of N spins.

With noise, sqrt(N) times the spread of linear noise is computed beside the mean field
(docs/theory/dmft.md), and derivatives in the parameters.
"""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from statmech_attn.batches import require_double
from statmech_attn.dmft.mean_field import advance, OBSERVABLE_LABELS, TIME, trajectory
from statmech_attn.dmft.network import (
    Network,
    network_attributes,
    PARAMETERS,
    Parameters,
    parameters,
    State,
)
from statmech_attn.dmft.noise.fluctuations import (
    noise_dimension,
    noise_start,
    noise_steps,
    OBSERVABLES,
)
from statmech_attn.dmft.noise.irreversibility import ENTROPY_UNIT, PRODUCTION, rates
from statmech_attn.dmft.patterns import Patterns
from statmech_attn.dynamics import diagrams, Trajectories
from statmech_attn.labels import Variable, Variables
from statmech_attn.options import WholeNumber
from statmech_attn.scan import Arrays, FAILURE, Tick


NOISY_BATCH = 8  # with noise: the last bits of a spread depend on it
DENSE = 40  # dimension from which a point with noise keeps a core busy alone
NOISY = ("A", "m_o_se")  # observables whose spread is stored
BY = ("beta", "gamma", "epsilon")  # parameters of the derivatives
STRETCH = 1e-5  # of a parameter, for its derivative
SCORE = "score_noise_std"  # the spread in which the linear noise is an expansion
STEPWISE, ONE = "beta time pattern", "divide by √N; with run.noise"
NOTES = {"A": "after the token"}
VARIABLES = Variables(
    *(
        Variable(
            name, STEPWISE, words, "1", symbol, group="" if name in NOISY else None,
            note=NOTES.get(name, ""),
        )
        for name, (words, symbol) in OBSERVABLE_LABELS.items()
    ),
    Variable(
        "A_noise_std", STEPWISE, "sqrt(N) times the linear-noise spread of A", "1",
        "√N σ_A", note=ONE,
    ),
    Variable(
        "m_o_se_noise_std", STEPWISE, "sqrt(N) times the linear-noise spread of m_o_se",
        "1", "√N σ_m", note=ONE,
    ),
    Variable(
        SCORE, "beta time",
        "sqrt(N) times the largest linear-noise spread of an attention score; linear "
        "noise holds where the spread is far below 1", "1", "√N σ_s", note=ONE,
    ),
    *(
        Variable(
            f"{name}_by_{parameter}", STEPWISE,
            f"{OBSERVABLE_LABELS[name][0]}: derivative in the logarithm of {parameter}",
            "1", f"∂{OBSERVABLE_LABELS[name][1]}/∂ln {parameter}", group="derivatives",
            note="with run.noise",
        )
        for name in NOISY
        for parameter in BY
    ),
    Variable(
        PRODUCTION, "beta time", "entropy production of the token", ENTROPY_UNIT, "σ_t",
        note="with run.entropy_production",
    ),
    FAILURE,
    PARAMETERS,
    TIME,
    Variable("pattern", "pattern", "feature pattern", "1", "a"),
)  # fmt: skip


def trajectories(
    net: Network,
    grid: Mapping[str, Any],
    start: Callable[[Parameters], State],
    *,
    steps: WholeNumber,
    transient: WholeNumber = 0,
    noise: Patterns | None = None,
    entropy_production: bool = False,
) -> "NetworkTrajectories":
    """Overlaps and attention of every token, for each value of beta.

    Args:
        net: the network.
        grid: `beta` with several values, and numbers `gamma`, `epsilon` and, where
            not all spins are redrawn, `redrawn`.
        start: parameters of many points -> their states, with the points on the last
            axis.
        steps: tokens that are kept.
        transient: tokens before them.
        noise: patterns of the network, for the spread of N spins around the mean field;
            none is computed when omitted.
        entropy_production: whether that of every token is computed, which takes three
            times as long.

    Returns:
        the orbits: `compute()` gives their data set, `run(path)` also writes it.

    Raises:
        ValueError: a grid that makes no sense, or more than fits into memory.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> grid = {"beta": [0.7, 1.4], "gamma": file.gamma, "epsilon": file.epsilon}
        >>> orbits = trajectories(
        ...     net, grid, lambda params: dmft.from_row(net, params, 0), steps=10)
        >>> orbits.compute().A.sizes
        Frozen({'beta': 2, 'time': 10, 'pattern': 3})
    """
    require_double()
    return NetworkTrajectories(
        net,
        *along_beta(grid, start),
        steps=steps,
        transient=transient,
        noise=noise,
        entropy_production=entropy_production,
    )


def along_beta(
    grid: Mapping[str, Any] | diagrams.Axes,
    start: Callable[[Parameters], State],
    *,
    lists: bool = False,
) -> tuple[diagrams.Axes, Callable[[Parameters, np.ndarray], State]]:
    """Parameters of a network along beta, and the starts of its points.

    Args:
        grid, start: as in `trajectories`.
        lists: whether a list of points is taken as well.

    Returns:
        beta as the scanned parameter with the others, and a function of parameters and
        numbers of points that gives their states.

    Raises:
        ValueError: another parameter has several values.

    Example:
        >>> axes, _ = along_beta(
        ...     {"beta": [0.7, 1.4], "gamma": 4.0, "epsilon": 0.0}, lambda params: None)
        >>> axes.points().gamma.tolist()
        [4.0, 4.0]
    """
    axes = diagrams.axes_of(grid)
    for name in () if lists and axes.columns else (*axes.columns, *axes.names):
        if name != "beta":
            raise ValueError(f"{name} must be one number; only beta is scanned.")
    return axes._replace(make=_parameters), partial(_started, start)


def _parameters(table: dict[str, np.ndarray]) -> Parameters:
    return parameters(**table)


def _started(start: Callable[[Parameters], State], params: Parameters, _) -> State:
    return start(params)


class NetworkTrajectories(Trajectories):
    """Overlaps and attention of every token, for each beta; see `trajectories`.

    Args:
        net: the network.
        axes: beta, and the other parameters.
        starts: parameters and numbers of some points -> their states, with the points
            on the last axis.
        steps, transient, noise, entropy_production: as in `trajectories`.
        about: attributes of the file.
        batch: orbits side by side, of which a chunk holds a multiple; a number that
            depends on the points alone when omitted.

    Raises:
        ValueError: more than fits into memory.
    """

    variables = VARIABLES
    lost = "not finite"
    observables = ()
    noisy_segment = 256  # with noise

    def __init__(
        self,
        net: Network,
        axes: diagrams.Axes,
        starts: Callable[[Parameters, np.ndarray], State],
        *,
        steps: int,
        transient: int = 0,
        noise: Patterns | None = None,
        entropy_production: bool = False,
        about: Mapping[str, Any] = {},
        batch: int | None = None,
    ):
        self.net, self.noise = net, noise
        self.produced = [PRODUCTION] if entropy_production else []
        self.alone = noise is not None
        if noise is not None:
            self.segment = self.noisy_segment
        self._begin(axes, starts, VARIABLES, about, steps, transient)
        self.batch = batch or self._chosen_batch()
        self.require_memory(16 * net.n_patterns)
        axes.points()
        self._start(np.arange(1))

    @property
    def names(self) -> list[str]:
        """Variables that are computed."""
        plain = [*OBSERVABLES, *self.produced]
        if self.noise is None:
            return plain
        spread = [*(f"{name}_noise_std" for name in NOISY), SCORE]
        slopes = [f"{name}_by_{parameter}" for name in NOISY for parameter in BY]
        return [*plain, *spread, *slopes]

    @property
    def width(self) -> int:
        return self.net.n_patterns * len(self.names)

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        # The spread of a chaotic point is infinite in the end, which is its value.
        bad = [np.isnan(arrays[n]) for n in self.names if "_by_" not in n]
        bad += [np.isinf(arrays[n]) for n in OBSERVABLES]
        return np.any([x.reshape(len(x), -1).any(axis=1) for x in bad], axis=0)

    def coordinates(self) -> dict[str, Any]:
        patterns = np.arange(1, self.net.n_patterns + 1)
        return {"time": np.arange(self.steps), "pattern": patterns}

    def attributes(self) -> dict[str, Any]:
        return network_attributes(self.net) | {"start": "given"} | super().attributes()

    def advanced(self, params: Parameters, state: State, steps: int) -> State:
        return advance(self.net, params, state, steps)

    def recorded(
        self, params: Parameters, state: State, steps: int, tick: Tick
    ) -> Arrays:
        net, length = self.net, self.length
        whole: Arrays = {} if self.noise is None else self._derivatives(params)
        if self.produced:
            whole[PRODUCTION] = np.asarray(rates(net, params, state, steps)).T
        noise = None
        if self.noise is not None:
            noise = noise_start(net, self.noise, params, state)
        parts = []
        for first in range(0, steps, length):
            state, averages = trajectory(net, params, state, steps=length)
            observed = {name: getattr(averages, name) for name in OBSERVABLES}
            if noise is not None:
                noise, band = noise_steps(net, noise, steps=length)
                observed |= {f"{n}_noise_std": getattr(band.std, n) for n in NOISY}
                observed[SCORE] = band.score
            parts.append(
                {n: np.moveaxis(np.asarray(x), -1, 0) for n, x in observed.items()}
            )
            tick(min(length, steps - first))
        join = lambda name: np.concatenate([p[name] for p in parts], axis=1)
        return whole | {n: join(n)[:, :steps] for n in self.names if n not in whole}

    def _chosen_batch(self) -> int:
        """Points of a batch; fewer with noise, where each has matrices to factorise."""
        if self.noise is None:
            return super()._chosen_batch()
        dense = noise_dimension(self.net, self.grid.points()) >= DENSE
        return 1 if dense else NOISY_BATCH

    def _derivatives(self, params: Parameters) -> Arrays:
        """Derivatives in the logarithm of every parameter, by central differences."""
        arrays = {}
        for parameter in BY:
            ends = []
            for factor in (1 + STRETCH, 1 - STRETCH):
                value = getattr(params, parameter) * factor
                moved = dataclasses.replace(params, **{parameter: value})
                start = self.starts(moved, np.zeros(self.batch, int))
                state = self.moved(moved, start, self.transient, lambda _: None)
                _, observed = trajectory(self.net, moved, state, steps=self.steps)
                ends.append(observed)
            for name in NOISY:
                above, below = (np.asarray(getattr(end, name)) for end in ends)
                slope = (above - below) / (2 * STRETCH)
                arrays[f"{name}_by_{parameter}"] = np.moveaxis(slope, -1, 0)
        return arrays
