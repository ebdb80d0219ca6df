"""Spins at a Neimark-Sacker point, a doubling and a fold, beside the law without a fit.

    python analysis/critical_fluctuations.py --output docs/critical_fluctuations.png

Class counts of 10^4 to 10^8 spins of the published network, and of two networks of two
patterns and eight classes, start from the states that continuation has found.  Prints
what was measured; it takes some minutes.  `--smoke` takes few spins.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn import dmft, montecarlo
from statmech_attn.dynamics import continuation
from statmech_attn.plotting import sheets, style


SIZES = 10**4, 10**5, 10**6, 10**7, 10**8
CONTROLS = -2.0, -1.0, 0.0, 1.0, 2.0  # distances in units of the rounding
FOLD_CONTROLS = -0.5, 0.0, 1.0, 2.0  # beyond the fold where positive
LARGE = 1e12  # spins at which scaling functions are read off
SAMPLES = 400  # amplitudes of a run, 20 to the time in which it relaxes
PAST = -0.25  # of the first overlap: far beyond the fold
DOTS = style.OPEN | {"ls": "none", "marker": "o"}
THEORY = {"color": style.BLACK, "zorder": 1}


class Found(NamedTuple):
    """A bifurcation of a network, and the law of the amplitude at it."""

    patterns: dmft.Patterns
    net: dmft.Network
    gamma: float
    epsilon: float
    law: dmft.CriticalFluctuations

    def params(self, betas):
        return dmft.parameters(betas, self.gamma, self.epsilon)

    def counts(self, n_spins: int):
        """Spins of the classes at the nearest possible size, and their number."""
        whole = round(n_spins / self.net.n_classes) * self.net.n_classes
        return montecarlo.class_counts(self.patterns, whole), whole


class Sampled(NamedTuple):
    """Amplitudes (samples, runs) of spins at every beta."""

    n_spins: int
    betas: np.ndarray
    amplitudes: list[np.ndarray]

    def mean_square(self):
        """With its standard error, from independent runs."""
        squares = [(np.abs(z) ** 2).mean(0) for z in self.amplitudes]
        return np.array([mean(runs) for runs in squares]).T


class Measured(NamedTuple):
    """What spins did at the three bifurcations, by their number."""

    torus: Found
    of_torus: list[Sampled]
    doubling: Found
    of_doubling: list[Sampled]
    fold: Found
    of_fold: list[tuple[int, np.ndarray, np.ndarray]]  # N, beta and times

    def ratios(self):
        """N, measured over predicted values at the bifurcations, and errors."""
        for name, found, sampled in (
            ("Neimark–Sacker", self.torus, self.of_torus),
            ("doubling", self.doubling, self.of_doubling),
        ):
            sizes, means, errors = at_the_point(sampled)
            theory = scaled_mean_square(found.law, 0.0) / sizes**0.5
            yield name, sizes, means / theory, errors / theory
        at = FOLD_CONTROLS.index(0.0)
        rows = [
            (n, *(x[at] for x in self.over_theory(n, *r))) for n, *r in self.of_fold
        ]
        yield "fold", *np.array(rows).T

    def over_theory(self, n_spins: int, betas, times):
        """Mean times over those of the theory, with their errors."""
        return (
            np.array(mean(times))
            * scaled_rate(self.fold.law, n_spins, betas)
            / n_spins ** (1 / 3)
        )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output", type=Path, default=Path("critical_fluctuations.png")
    )
    parser.add_argument("--smoke", action="store_true", help="few spins, for tests")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    sizes, runs = (SIZES[:3], 4) if options.smoke else (SIZES, 32)
    torus, doubling, fold = published(), doubled(), folded()
    many = dict.fromkeys(CONTROLS, 3 * runs // 4) | {0.0: 2 * runs}
    of_torus = [sample(torus, n, many) for n in sizes]
    of_doubling = [sample(doubling, n, {0.0: 3 * runs}) for n in sizes]
    of_fold = [passages(fold, n, 8 * runs) for n in sizes[:4]]
    measured = Measured(torus, of_torus, doubling, of_doubling, fold, of_fold)
    tell(measured)
    figure = panels(measured)
    figure.savefig(options.output, dpi=style.PNG_DPI)
    print(f"wrote {options.output}")


def published() -> Found:
    """The Neimark-Sacker point of the published network."""
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    start = 1.2, np.zeros(net.dimension)
    return found(file.patterns, net, file.gamma, file.epsilon, start, 1, 1.3)


def doubled() -> Found:
    """A doubling: value patterns are mostly the opposite of the output patterns."""
    patterns = small(seed=49, opposite=0.8)
    net = dmft.network(patterns, context=2)
    return found(patterns, net, 20.0, 0.3, (0.0, np.zeros(4)), 1, 2.0)


def folded() -> Found:
    """A fold, where a state that came down from beta = 3 ends."""
    patterns = small(seed=2, opposite=0.0)
    net = dmft.network(patterns, context=2)
    start = 3.0, np.array([1.0, -1.0, 1.0, -1.0])
    return found(patterns, net, 4.0, 0.1, start, -1, 1.0)


def small(seed: int, opposite: float) -> dmft.Patterns:
    """Two patterns of eight classes; a share of W^v is made -W^o."""
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], (4, 2, 8))
    signs[1] = np.where(rng.random((2, 8)) < opposite, -signs[0], signs[1])
    return dmft.site_classes(signs, positional=rng.choice([-1.0, 1.0], (4, 2, 2)))


def found(patterns, net, gamma, epsilon, start, direction, end) -> Found:
    """The first bifurcation on the way from a state at beta to another beta."""
    beta, window = start
    params = dmft.parameters(beta, gamma, epsilon)
    state = dmft.from_window(net, params, window.reshape(net.context, -1), 0)
    state = dmft.advance(net, params, state, 4000)
    parameters = {"beta": beta, "gamma": gamma, "epsilon": epsilon}
    problem = continuation.Problem(
        dmft.strobe(net, epsilon), jnp.zeros(net.dimension), parameters, "beta"
    )
    branch = continuation.follow_cycle(
        problem,
        dmft.strobe_point(net, params, state),
        beta,
        direction=direction,
        within=(min(beta, end), max(beta, end)),
    )
    special = next(point for point in branch if point.special).special[0]
    law = dmft.critical_fluctuations(problem, special)
    return Found(patterns, net, gamma, epsilon, law)


def sample(found: Found, n_spins: int, runs: dict[float, int]) -> Sampled:
    """Amplitudes after four times in which the amplitude relaxes, over twenty.

    `runs` are those at distances in units of the rounding.
    """
    counts, n_spins = found.counts(n_spins)
    law, net = found.law, found.net
    width = float(law.rounding(n_spins))
    betas = law.value + np.array(list(runs)) * width
    params = found.params(np.repeat(betas, list(runs.values())))
    relaxation = 1 / (abs(law.growth) * width)
    stride = max(round(20 * relaxation / SAMPLES), 1) * law.steps
    state = dmft.from_window(net, params, law.x.reshape(net.context, -1, 1), 0)
    key = jax.random.key(n_spins)
    windows = run(net, params, state, counts, key, stride, SAMPLES + SAMPLES // 5)
    windows = np.moveaxis(np.asarray(windows)[SAMPLES // 5 :], 1, 0)
    parts = np.split(windows, np.cumsum(list(runs.values()))[:-1], axis=-1)
    shown = [law.amplitude(x, beta) for x, beta in zip(parts, betas, strict=True)]
    return Sampled(n_spins, betas, shown)


def draw(net, params, counts, state, key):
    """A token of spins, by class counts."""
    chances = (1 + dmft.next_means(net, params, state.newest, state.means)) / 2
    counts = counts[:, None].astype(float)
    means = 2 * montecarlo.binomial(key, counts, chances) / counts - 1
    overlaps = dmft.token_overlaps(net, params, means, state.clock)
    return dmft.receive(net, params, state, overlaps)


@partial(jax.jit, static_argnames="samples")
def run(net, params, state, counts, key, stride, samples):
    """Windows (samples, d, runs), so many tokens apart."""

    def one(state, i):
        keyed = lambda t: jax.random.fold_in(key, i * stride + t)
        body = lambda t, state: draw(net, params, counts, state, keyed(t))
        state = jax.lax.fori_loop(0, stride, body, state)
        return state, dmft.window(state).reshape(net.dimension, -1)

    return jax.lax.scan(one, state, jnp.arange(samples))[1]


def passages(found: Found, n_spins: int, runs: int):
    """N, beta and times (controls, runs) after which the state is far beyond the fold.

    They begin far before it, with the state of beta = 3.
    """
    counts, n_spins = found.counts(n_spins)
    law, net = found.law, found.net
    beyond = float(law.rounding(n_spins)) * np.sign(law.growth)
    betas = law.value + np.array(FOLD_CONTROLS) * beyond
    params = found.params(np.repeat(betas, runs))
    begin = np.array([[0.6, -0.2], [0.6, -0.2]])[..., None]
    state = dmft.from_window(net, params, begin, 0)
    times = passed(net, params, state, counts, jax.random.key(n_spins))
    return n_spins, betas, np.asarray(times).reshape(len(betas), runs)


@jax.jit
def passed(net, params, state, counts, key):
    """Tokens until the first attention vector of every run is past the fold."""

    def body(carry):
        state, t, times = carry
        state = draw(net, params, counts, state, jax.random.fold_in(key, t))
        first = jnp.isinf(times) & (state.newest[0] < PAST)
        return state, t + 1, jnp.where(first, t + 1.0, times)

    start = state, 0, jnp.full(params.beta.shape, jnp.inf)
    return jax.lax.while_loop(lambda carry: jnp.isinf(carry[2]).any(), body, start)[2]


def mean(values):
    """Over the last axis, with its standard error."""
    return values.mean(-1), values.std(-1, ddof=1) / values.shape[-1] ** 0.5


def growth(sampled: Sampled):
    """Distance in beta over which <|z|^2> grows by what it is at the bifurcation."""
    means, errors = sampled.mean_square()
    below, at, above = (CONTROLS.index(c) for c in (-1.0, 0.0, 1.0))
    rise = means[above] - means[below]
    distance = (sampled.betas[above] - sampled.betas[below]) * means[at] / rise
    relative = errors[at] / means[at], np.hypot(errors[above], errors[below]) / rise
    return distance, distance * np.hypot(*relative)


def exponent(sizes, values, errors):
    """Slope of ln value in ln N by least squares, with its error."""
    weights = (np.asarray(values) / np.asarray(errors)) ** 2
    x = np.log(sizes) - np.average(np.log(sizes), weights=weights)
    total = (weights * x**2).sum()
    return (weights * x * np.log(values)).sum() / total, total**-0.5


def at_the_point(all_sampled):
    """N and <|z|^2> with its error at the bifurcation, (3, sizes)."""
    rows = []
    for sampled in all_sampled:
        middle = len(sampled.betas) // 2
        means, errors = sampled.mean_square()
        rows.append((sampled.n_spins, means[middle], errors[middle]))
    return np.array(rows).T


def tell(measured: Measured) -> None:
    """What was measured, beside the theory."""
    for found in (measured.torus, measured.doubling, measured.fold):
        print(found.law)
    for name, *rows in measured.ratios():
        for row in zip(*rows, strict=True):
            print("{}, N = {:.3g}: {:.4f} +- {:.4f} of theory".format(name, *row))
    for n, betas, times in measured.of_fold:
        print(f"times at a fold over theory, N = {n:.3g}")
        print(measured.over_theory(n, betas, times).round(3))
    inside = measured.of_torus[1:]  # the limits of the theory, at all distances
    for name, sampled in (
        ("Neimark–Sacker", inside),
        ("doubling", measured.of_doubling),
    ):
        sizes, means, errors = at_the_point(sampled)
        slope, error = exponent(sizes, means**0.5, errors / means**0.5 / 2)
        print(f"{name}: exponent of the amplitude {slope:.4f} +- {error:.4f}")
    widths = np.array([growth(sampled) for sampled in inside]).T
    slope, error = exponent([sampled.n_spins for sampled in inside], *widths)
    print(f"exponent of the rounding: {slope:.4f} +- {error:.4f}")
    at = FOLD_CONTROLS.index(0.0)
    rows = [(n, *(x[at] for x in mean(times))) for n, _, times in measured.of_fold]
    slope, error = exponent(*np.array(rows).T)
    print(f"fold: exponent of the time {slope:.4f} +- {error:.4f}")


def scaled_mean_square(law, distance):
    """N^1/2 <|z|^2> against N^1/2 (beta - beta_c)."""
    return law.mean_square(law.value + distance / LARGE**0.5, LARGE) * LARGE**0.5


def scaled_density(law, amplitude):
    """N^-1/4 p at the bifurcation against N^1/4 r."""
    return law.density(amplitude / LARGE**0.25, law.value, LARGE) / LARGE**0.25


def scaled_rate(law, n_spins, betas):
    """N^1/3 times the rate of escape, against the same N^2/3 (beta - beta_c)."""
    distance = (betas - law.value) * (n_spins / LARGE) ** (2 / 3)
    return law.escape_rate(law.value + distance, LARGE) * LARGE ** (1 / 3)


@style.styled
def panels(measured: Measured):
    """Collapse of densities, mean squares and times; what is left of differences."""
    torus, of_torus, doubling, of_doubling, fold, of_fold = measured
    sheet = sheets.sheet(None, 6, lambda: sheets.grid(style.DOUBLE, 4.4, 2, 3))
    radii, squares, widths, doublings, times, ratios = sheet.axes
    for i, sampled in enumerate(of_torus):
        colour, root = style.SERIES[i], sampled.n_spins**0.5
        words = f"$N = 10^{round(np.log10(sampled.n_spins))}$"
        spread(radii, sampled, 1.6, colour, words)
        spread(doublings, of_doubling[i], 2.2, colour, words)
        means, errors = sampled.mean_square()
        away = (sampled.betas - torus.law.value) * root
        squares.errorbar(away, means * root, errors * root, color=colour, **DOTS)
    for i, (n, betas, passed) in enumerate(of_fold):
        value, error = np.array(mean(passed)) / n ** (1 / 3)
        away = (betas - fold.law.value) * n ** (2 / 3)
        times.errorbar(away, value, error, color=style.SERIES[i], **DOTS)
    r, x = np.linspace(0, 1.6, 300), np.linspace(-2.2, 2.2, 300)
    radii.plot(r, scaled_density(torus.law, r), label="theory", **THEORY)
    doublings.plot(x, scaled_density(doubling.law, x), **THEORY)
    width = float(torus.law.rounding(1))
    away = np.linspace(-2.4 * width, 2.4 * width, 300)
    squares.plot(away, scaled_mean_square(torus.law, away), **THEORY)
    width = float(fold.law.rounding(1))
    away = np.linspace(-2.3 * width, 0.8 * width, 300)
    at = fold.law.value + away / LARGE ** (2 / 3)
    times.plot(away, 1 / scaled_rate(fold.law, LARGE, at), **THEORY)
    power_laws(widths, torus, of_torus)
    for i, (name, sizes, *rows) in enumerate(measured.ratios()):
        beside = sizes * 1.2 ** (i - 1)
        ratios.errorbar(beside, *rows, color=style.SERIES[i], label=name, **DOTS)
    ratios.axhline(1, **THEORY)
    ratios.legend()
    radii.set(xlabel=r"$N^{1/4}\, |z|$", ylabel=r"$N^{-1/4}\, p$", ylim=(0, None))
    doublings.set(xlabel=r"$N^{1/4}\, \xi$", ylabel=r"$N^{-1/4}\, p$", ylim=(0, None))
    squares.set(xlabel=r"$N^{1/2} (\beta - \beta_1)$", ylim=(0, 1.2))
    squares.set_ylabel(r"$N^{1/2} \langle |z|^2 \rangle$")
    times.set(xlabel=r"$N^{2/3} (\beta - \beta_f)$", ylim=(0, None))
    times.set_ylabel(r"$N^{-1/3}\, \tau$ (tokens)")
    ratios.set(xscale="log", xlabel=style.WORDS["n_spins"], ylabel="measured / theory")
    names = *3 * ("Neimark–Sacker",), "doubling", "fold", "at the bifurcations"
    for axis, name in zip(sheet.axes, names, strict=True):
        axis.set_title(name)
    for axis in (widths, ratios):
        axis.margins(x=0.08)
    sheet.legend(of=slice(1))
    sheet.letters()
    return sheet.figure


def spread(axis, sampled: Sampled, edge: float, colour: str, words: str) -> None:
    """Histogram of the amplitude at the bifurcation, scaled; errors from runs."""
    values = sampled.amplitudes[len(sampled.betas) // 2] * sampled.n_spins**0.25
    if np.iscomplexobj(values):
        values, edges = np.abs(values), np.linspace(0, edge, 23)
    else:
        edges = np.linspace(-edge, edge, 23)
    counted = np.array([np.histogram(v, edges)[0] for v in values.T]) / len(values)
    heights, errors = mean(counted.T / np.diff(edges)[:, None])
    middles = (edges[1:] + edges[:-1]) / 2
    axis.errorbar(middles, heights, errors, color=colour, label=words, **DOTS)


def power_laws(axis, torus: Found, of_torus) -> None:
    """Amplitude and rounding against N, in the units of the amplitude and of beta."""
    sizes, means, errors = at_the_point(of_torus)
    root, n = means**0.5, np.geomspace(sizes[0], sizes[-1], 2)
    rounded, of_rounded = np.array([growth(sampled) for sampled in of_torus]).T
    for values, error, colour, words in (
        (root, errors / root / 2, style.BLUE, r"$\langle |z|^2 \rangle^{1/2}$"),
        (rounded, of_rounded, style.VERMILION, r"rounding in $\beta$"),
    ):
        axis.errorbar(sizes, values, error, color=colour, label=words, **DOTS)
    unit = float(torus.law.rounding(1))
    below, at, above = scaled_mean_square(torus.law, np.array([-unit, 0, unit]))
    axis.plot(n, at**0.5 / n**0.25, **THEORY)
    axis.plot(n, 2 * unit * at / (above - below) / n**0.5, **THEORY)
    axis.set(xscale="log", yscale="log", xlabel=style.WORDS["n_spins"])
    axis.legend()


if __name__ == "__main__":
    main()
