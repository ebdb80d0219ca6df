r"""Spins at a bifurcation beside the law without a free parameter, over N and distance.

A point is a number of spins N and a distance from the bifurcation in units of the width
over which N spins round it, positive where the new orbit is, or where no state is left.
Class counts are drawn (`collapsed`), and amplitudes z are read off their windows.

    <|z|^2>    N^{1/2} <|z|^2> over N^{1/2} (beta - beta_c) does not depend on N
    p(z)       N^{-1/4} p over N^{1/4} |z|, or N^{1/4} z of either sign, does not either
    time       at a fold N^{-1/3} times that from -3 to 3 units of the amplitude,
               over N^{2/3} (beta - beta_c)

Theory: docs/theory/critical_fluctuations.md.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from statmech_attn import dmft
from statmech_attn.labels import Variable, Variables
from statmech_attn.montecarlo.finite_networks.collapsed import class_counts, draw_counts
from statmech_attn.montecarlo.finite_networks.randomness import address
from statmech_attn.montecarlo.finite_networks.run_blocks import sampled_step
from statmech_attn.montecarlo.finite_networks.simulation import point_keys
from statmech_attn.montecarlo.options import CriticalSampling
from statmech_attn.options import require_least
from statmech_attn.scan import Assembled, Contents, FAILURE, Points, Results, Tick
from statmech_attn.statistics import in_standard_errors, power_law, standard_error


ENDS = -3.0, 3.0  # of a passage beside a fold, in units of the amplitude
BINS, FINER = 24, 8  # of the amplitude; parts of a bin over which theory is averaged
WIDEST = 2.5  # amplitude at the bifurcation, in its units, beyond which none is counted
CURVE = 200  # points of a line of theory
LARGE = 1e6  # times `least_spins`: spins at which functions of scaling are read off
PIECE = 20  # samples between two ticks
SCALED = {  # exponents of N: of distances, and of what is measured
    "mean_square": (-1 / 2, -1 / 2),
    "passage_time": (-2 / 3, 1 / 3),
}
QUANTITIES = "amplitude", "time", "rounding"
EACH, BOUNDED, FOLD = "n_spins distance", "bounded", "fold"
VARIABLES = Variables(
    Variable("beta", EACH, "inverse temperature of the output", "1", "β", group=""),
    Variable("mean_square", EACH, "mean squared amplitude", "1", "<|z|^2>",
             "_stderr _theory _z", BOUNDED),
    Variable("passage_time", EACH, "mean time of a passage", "token", "τ",
             "_stderr _theory _z", FOLD),
    Variable("density", f"{EACH} amplitude", "density of the scaled amplitude", "1",
             "N^-1/4 p", "_stderr _theory", BOUNDED),
    Variable("scaled_mean_square", EACH, "mean squared amplitude times N^1/2", "1",
             "N^1/2 <|z|^2>", "_stderr", BOUNDED),
    Variable("scaled_passage_time", EACH, "mean time times N^-1/3", "token",
             "N^-1/3 τ", "_stderr", FOLD),
    Variable("scaled_beta", "distance", "scaled distance", "1", "N^p (β - β_c)"),
    Variable("curve_beta", "curve", "scaled distances of a line", "1", "N^p (β - β_c)"),
    Variable("curve_theory", "curve", "scaled mean square or time, by theory", "1",
             "theory"),
    Variable("curve_amplitude", "curve", "scaled amplitudes of a line", "1", "N^1/4 z",
             group=BOUNDED),
    Variable("curve_density", "curve", "density at the bifurcation, by theory", "1",
             "N^-1/4 p", group=BOUNDED),
    Variable("size", "n_spins quantity", "amplitude or time at the bifurcation, "
             "and width of its rounding in β", "1", "X", "_stderr _theory"),
    Variable("exponent", "quantity", "exponent of N", "1", "d ln X/d ln N",
             "_stderr _theory"),
    FAILURE,
    Variable("n_spins", "n_spins", "number of spins", "1", "N"),
    Variable("distance", "distance", "distance in units of the rounding", "1", "κ"),
    Variable("amplitude", "amplitude", "scaled amplitude", "1", "N^1/4 z",
             group=BOUNDED),
    Variable("quantity", "quantity", "quantity", "1", flags=QUANTITIES),
    *(row for row in dmft.PARAMETERS if row.name in ("gamma", "epsilon")),
    attributes=("bifurcation", "beta_c", "least_spins"),
)  # fmt: skip


class FiniteSizes(Points):
    """Amplitudes or times of N spins at a bifurcation in beta, over N and distance.

    Args:
        key: random key of JAX; a point depends on it and on its place in the grid.
        net: the network, as `dmft.network` builds it.
        patterns: those from which the network was built.
        law: of the bifurcation, as `dmft.critical_fluctuations` gives it.
        sampling: runs, and what is taken of each.
        gamma: inverse temperature of attention.
        epsilon: weight of the positional part.
        n_spins: numbers N of spins, divisible by the class fractions.
        distances: from the bifurcation in units of the rounding, 0 among them.
        about: attributes of the file.

    Raises:
        ValueError: a value out of range, a network that is not that of the law, N for
            which the theory does not hold, or a bifurcation of another kind.

    Example:
        >>> from statmech_attn.dynamics import continuation
        >>> patterns = dmft.site_classes([[[1]], [[-1]], [[1]], [[1]]])  # W^v = -W^o
        >>> net = dmft.network(patterns, context=1)
        >>> parameters = {"beta": 0.5, "gamma": 1.0, "epsilon": 0.0}
        >>> turn = dmft.strobe(net, 0.0)
        >>> problem = continuation.Problem(turn, jnp.zeros(1), parameters, "beta")
        >>> rest = continuation.follow_cycle(problem, jnp.zeros(1), 0.5, within=(0, 2))
        >>> law = dmft.critical_fluctuations(problem, rest.run().special[0])
        >>> spins = FiniteSizes(
        ...     jax.random.key(0), net, patterns, law,
        ...     CriticalSampling(runs=8, samples=40), gamma=1.0, epsilon=0.0,
        ...     n_spins=[1000, 10_000], distances=[0.0])
        >>> found = spins.compute()
        >>> found.mean_square.sizes, bool((abs(found.mean_square_z) < 5).all())
        (Frozen({'n_spins': 2, 'distance': 1}), True)
    """

    title, variables = "finite-size", VARIABLES

    def __init__(
        self,
        key: Key[Array, ""],
        net: dmft.Network,
        patterns: dmft.Patterns,
        law: dmft.CriticalFluctuations,
        sampling: CriticalSampling = CriticalSampling(),
        *,
        gamma: float,
        epsilon: float,
        n_spins: Sequence[int],
        distances: Sequence[float] = (-2.0, -1.0, 0.0, 1.0, 2.0),
        about: Mapping[str, Any] = {},
    ):
        require_least(1, sizes=len(n_spins))
        net.check_patterns(patterns)
        if law.kind == "transcritical":
            raise ValueError("law must not be that of a transcritical point.")
        if len(law.x) != net.dimension:
            raise ValueError(
                f"law is of {len(law.x)} coordinates; the network has {net.dimension}."
            )
        if 0.0 not in distances:
            raise ValueError("distances must hold 0, the bifurcation.")
        if max(n_spins) < law.least_spins:
            raise ValueError(
                f"n_spins must reach {law.least_spins:.6g}, from which the theory "
                f"holds at the bifurcation; got {max(n_spins)} at most."
            )
        self.key, self.net, self.patterns = key, net, patterns
        self.law, self.sampling = law, sampling
        self.gamma, self.epsilon = float(gamma), float(epsilon)
        self.axes = {
            "n_spins": sorted(set(n_spins)),
            "distance": np.array(sorted(set(distances)), float),
        }
        self.numbers = ("passage_time" if law.kind == "fold" else "mean_square",)
        self._counts = [class_counts(patterns, n) for n in self.axes["n_spins"]]
        self.about = about

    def row(self, number: int, tick: Tick, folder: Path | None) -> dict[str, Any]:
        tick(0.0)
        place = self.index(number)
        n, distance = (self.axes[name][i] for name, i in place.items())
        law = self.law
        beta = law.value + distance * self._side * float(law.rounding(n))
        high, low = point_keys(self.key, np.array([number]), (1,))
        lanes = address((high, low), jnp.arange(self.sampling.runs))
        params = dmft.parameters(
            np.full(self.sampling.runs, beta), self.gamma, self.epsilon
        )
        runs = params, lanes, jnp.asarray(self._counts[place["n_spins"]], float)
        measure = self._times if self.law.kind == "fold" else self._amplitudes
        return {"beta": beta} | measure(n, beta, runs, tick)

    def coordinates(self) -> dict[str, Any]:
        first = QUANTITIES.index("time" if self.law.kind == "fold" else "amplitude")
        codes = np.array([first, QUANTITIES.index("rounding")], np.int8)
        return {"quantity": codes, "amplitude": self._middles(BINS)}

    def attributes(self) -> dict[str, Any]:
        law = self.law
        return {
            **super().attributes(),
            **dmft.network_attributes(self.net),
            "bifurcation": law.kind,
            "beta_c": law.value,
            **{n: getattr(law, n) for n in ("coefficient", "growth", "diffusion")},
            "least_spins": law.least_spins,
            "runs": self.sampling.runs,
            **self.about,
        }

    def assemble(self, results: Results) -> Assembled:
        fixed = {
            name: ((), getattr(self, name), self.variables.attributes(name))
            for name in ("gamma", "epsilon")
        }
        return Assembled(super().assemble(results).dataset.assign_coords(fixed))

    def derived(self, columns: Contents) -> Contents:
        """Scaled values with their theory, sizes at the bifurcation and exponents."""
        (name,), law = self.numbers, self.law
        n, distance = (np.array(values) for values in self.axes.values())
        _, power = SCALED[name]
        for part in (name, f"{name}_stderr"):
            dims, values = columns[part]
            columns[f"scaled_{part}"] = dims, values / n[:, None] ** power
        low, high = distance[0], distance[-1]
        margin = 0.15 * (high - low) or 1.0
        line = np.linspace(low - margin, high + margin, CURVE)
        unit = self._side * float(law.rounding(1))
        columns["scaled_beta"] = ("distance",), distance * unit
        columns["curve_beta"] = ("curve",), line * unit
        columns["curve_theory"] = ("curve",), self._scaled(line)
        if name == "mean_square":
            y, large = self._edges(CURVE - 1), LARGE * law.least_spins
            density = law.density(y / large**0.25, law.value, large) / large**0.25
            columns["curve_amplitude"] = ("curve",), y
            columns["curve_density"] = ("curve",), density
        return columns | self._powers(columns)

    def _powers(self, columns: Contents) -> Contents:
        """Sizes at the bifurcation, its rounding, and their exponents.

        The rounding is the width over which what is measured changes by what it is at
        the bifurcation, from the nearest distances on both sides.  N for which the
        theory does not hold take no part in exponents.
        """
        (name,), n = self.numbers, np.array(self.axes["n_spins"])
        parts = name, f"{name}_stderr", f"{name}_theory"
        value, error, theory = (columns[part][1] for part in parts)
        of_distance, of_size = SCALED[name]
        root = 0.5 if name == "mean_square" else 1.0
        at = self._at(0.0)
        stderr = root * value[:, at] ** (root - 1) * error[:, at]
        width, of_width = self._width(value, error)
        sizes = np.stack([value[:, at] ** root, width], 1)
        errors = np.stack([stderr, of_width], 1)
        expected, _ = self._width(theory, np.zeros_like(theory))
        expected = np.stack([theory[:, at] ** root, expected], 1)
        fit = power_law(n, np.where(np.isfinite(expected), sizes, np.nan), errors)
        both, of_quantity = ("n_spins", "quantity"), ("quantity",)
        return {
            "size": (both, sizes),
            "size_stderr": (both, errors),
            "size_theory": (both, expected),
            "exponent": (of_quantity, fit.value),
            "exponent_stderr": (of_quantity, fit.stderr),
            "exponent_theory": (of_quantity, np.array([root * of_size, of_distance])),
        }

    def _width(self, value, error):
        """Width of the rounding with its error; NaN without distances on both sides."""
        distance = self.axes["distance"]
        both = [d for d in distance if d > 0 and -d in distance]
        if not both:
            return np.full((2, len(value)), np.nan)
        below, at, above = (self._at(d) for d in (-both[0], 0.0, both[0]))
        rise = value[:, above] - value[:, below]
        unit = self.law.rounding(np.array(self.axes["n_spins"]))
        width = 2 * both[0] * unit * np.abs(value[:, at] / rise)
        of_rise = np.hypot(error[:, above], error[:, below]) / rise
        return width, width * np.hypot(of_rise, error[:, at] / value[:, at])

    def _amplitudes(self, n, beta: float, runs, tick: Tick) -> dict[str, Any]:
        """Moments and the density of the amplitude, with errors from the runs."""
        law, how = self.law, self.sampling
        relaxation = 1 / (abs(law.growth) * float(law.rounding(n)))
        stride = max(round(how.duration * relaxation / how.samples), 1) * law.steps
        skipped = math.ceil(how.warmup * how.samples / how.duration)
        parts, state = [], self._state(runs[0], law.x)
        for first in range(0, skipped + how.samples, PIECE):
            state, part = _windows(self.net, *runs, state, first, stride)
            parts.append(np.asarray(part))
            tick(PIECE / (skipped + how.samples + PIECE))
        windows = np.concatenate(parts)[skipped : skipped + how.samples]
        z = law.amplitude(np.moveaxis(windows, 1, 0), beta)
        squares, y = (np.abs(z) ** 2).mean(0), z * n**0.25
        y, edges = np.abs(y) if law.components == 2 else y, self._edges(BINS)
        counted = np.stack([np.histogram(run, edges)[0] for run in y.T], 1)
        density = counted / how.samples / np.diff(edges)[:, None]
        theory, expected = np.nan, np.full(BINS, np.nan)
        if law.holds(beta, n):
            theory = float(law.mean_square(beta, n))
            fine = law.density(self._middles(BINS * FINER) / n**0.25, beta, n)
            expected = fine.reshape(BINS, FINER).mean(1) / n**0.25
        return _compared("mean_square", squares, theory) | {
            "density": density.mean(1),
            "density_stderr": standard_error(density, 1),
            "density_theory": expected,
        }

    def _times(self, n, beta: float, runs, tick: Tick) -> dict[str, Any]:
        """Mean time of a passage with its error.

        Refused where a run has not passed at the horizon.
        """
        law, (start, end) = self.law, np.array(ENDS) * float(self.law.length(n))
        distance = (beta - law.value) / float(law.rounding(n)) * self._side
        turns = round(float(self._scaled(distance)) * n ** (1 / 3) / law.steps)
        projection, vector = np.real(law.adjoint), np.real(law.vector)
        level = projection @ law.x + end
        state = self._state(runs[0], law.x + start * vector)
        times, longest = np.zeros(self.sampling.runs), self.sampling.horizon
        carry = state, 0, jnp.asarray(times)
        for stop in range(1, round(longest) + 1):
            last = stop * max(turns, 1)
            line = projection, level
            carry = _passages(self.net, *runs, carry, line, law.steps, last)
            tick(0.5**stop)
            times = np.asarray(carry[2])
            if (times > 0).all():
                break
        else:
            raise ValueError(
                f"horizon: {(times == 0).sum()} of {len(times)} runs at N = {n} and "
                f"beta = {beta:.6g} have not passed the fold after {longest:g} "
                "predicted times; the states are not those of the theory."
            )
        theory = np.nan
        if law.holds(beta, n):
            theory = float(law.passage_time(beta, n, *ENDS))
        return _compared("passage_time", times, theory)

    def _state(self, params: dmft.Parameters, x) -> dmft.State:
        window = x.reshape(self.net.context, self.net.n_patterns, 1)
        return dmft.from_window(self.net, params, window, 0)

    def _scaled(self, distance):
        """What is measured by theory at infinitely many spins, scaled."""
        law, (name,) = self.law, self.numbers
        large = LARGE * law.least_spins
        beta = law.value + distance * self._side * law.rounding(large)
        scale = large ** -SCALED[name][1]
        if name == "mean_square":
            return scale * law.mean_square(beta, large)
        return scale * law.passage_time(beta, large, *ENDS)

    @property
    def _side(self) -> float:
        """Sign of beta where the new orbit is, or where a fold leaves no state."""
        return float(np.sign(self.law.growth))

    def _at(self, distance: float) -> int:
        """Place of a distance on its axis."""
        return int(np.flatnonzero(self.axes["distance"] == distance)[0])

    def _edges(self, parts: int) -> np.ndarray:
        """Edges of equal parts of the scaled amplitudes that are counted."""
        beyond = max(self.axes["distance"][-1], 0.0)
        high = float(self.law.length(1)) * (beyond + WIDEST**2) ** 0.5
        low = 0.0 if self.law.components == 2 else -high
        return np.linspace(low, high, parts + 1)

    def _middles(self, parts: int) -> np.ndarray:
        edges = self._edges(parts)
        return (edges[1:] + edges[:-1]) / 2


def _compared(name: str, values: np.ndarray, theory: float) -> dict[str, Any]:
    """The mean of independent runs with its error, and theory beside it."""
    mean, error = values.mean(), standard_error(values)
    z = in_standard_errors(mean - theory, error)
    rows = {"": mean, "_stderr": error, "_theory": theory, "_z": z}
    return {name + ending: value for ending, value in rows.items()}


def _token(net, params, lanes, counts, t, state: dmft.State) -> dmft.State:
    now = address(lanes, t)
    return sampled_step(net, params, state, now, counts, draw_counts)[1]


@jax.jit
def _windows(net, params, lanes, counts, state, first, stride):
    """The state after `PIECE` samples `stride` tokens apart, and their windows."""
    token = partial(_token, net, params, lanes, counts)

    def one(state, i):
        state = jax.lax.fori_loop(i * stride, (i + 1) * stride, token, state)
        return state, dmft.window(state).reshape(net.dimension, -1)

    return jax.lax.scan(one, state, first + jnp.arange(PIECE))


@jax.jit
def _passages(net, params, lanes, counts, carry, line, steps, last):
    """Tokens after which every run is first beyond a level, 0 where it is not yet."""
    token, (projection, level) = partial(_token, net, params, lanes, counts), line

    def turn(carry):
        state, turns, times = carry
        state = jax.lax.fori_loop(turns * steps, (turns + 1) * steps, token, state)
        x = dmft.window(state).reshape(net.dimension, -1)
        first = (times == 0) & (projection @ x >= level)
        return state, turns + 1, jnp.where(first, (turns + 1) * steps, times)

    going = lambda carry: (carry[2] == 0).any() & (carry[1] < last)
    return jax.lax.while_loop(going, turn, carry)
