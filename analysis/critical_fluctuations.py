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
SAMPLES = 400  # amplitudes of a run, 20 to the time in which it relaxes
PAST = -0.25  # of the first overlap: far beyond the fold


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
    """Amplitudes (controls, samples, runs) of spins at distances `betas`."""

    n_spins: int
    betas: np.ndarray
    amplitudes: np.ndarray

    def mean_square(self):
        """With its standard error, from independent runs."""
        squares = (np.abs(self.amplitudes) ** 2).mean(1)
        return squares.mean(1), squares.std(1, ddof=1) / squares.shape[1] ** 0.5


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output", type=Path, default=Path("critical_fluctuations.png")
    )
    parser.add_argument("--smoke", action="store_true", help="few spins, for tests")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    sizes, runs = (SIZES[:2], 4) if options.smoke else (SIZES, 64)
    torus, doubling, fold = published(), doubled(), folded()
    of_torus = [sample(torus, n, CONTROLS, runs) for n in sizes]
    of_doubling = [sample(doubling, n, (0.0,), 2 * runs) for n in sizes]
    of_fold = [passages(fold, n, 4 * runs) for n in sizes]
    tell(torus, of_torus, doubling, of_doubling, fold, of_fold)
    figure = panels(torus, of_torus, doubling, of_doubling, fold, of_fold)
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


def sample(found: Found, n_spins: int, controls, runs: int) -> Sampled:
    """Amplitudes after four times in which the amplitude relaxes, over twenty."""
    counts, n_spins = found.counts(n_spins)
    law, net = found.law, found.net
    width = float(law.rounding(n_spins))
    betas = law.value + np.array(controls) * width
    params = found.params(np.repeat(betas, runs))
    relaxation = 1 / (abs(law.growth) * width)
    stride = max(round(20 * relaxation / SAMPLES), 1) * law.steps
    state = dmft.from_window(net, params, law.x.reshape(net.context, -1, 1), 0)
    key = jax.random.key(n_spins)
    windows = run(net, params, state, counts, key, stride, SAMPLES + SAMPLES // 5)
    windows = np.asarray(windows)[SAMPLES // 5 :].reshape(SAMPLES, -1, len(betas), runs)
    shown = [
        law.amplitude(np.moveaxis(windows[:, :, i], 1, 0), beta)
        for i, beta in enumerate(betas)
    ]
    return Sampled(n_spins, betas, np.stack(shown))


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
    # A positive control is beyond the fold, at smaller beta.
    controls = np.array([-1.0, 0.0, 1.0, 2.0]) * np.sign(law.growth)
    betas = law.value + controls * float(law.rounding(n_spins))
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


def mean_time(times):
    """With its standard error."""
    return times.mean(-1), times.std(-1, ddof=1) / times.shape[-1] ** 0.5


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


def tell(torus, of_torus, doubling, of_doubling, fold, of_fold) -> None:
    """What was measured, beside the theory."""
    for name, found, sampled in (
        ("Neimark-Sacker", torus, of_torus),
        ("doubling", doubling, of_doubling),
    ):
        print(name, found.law, sep="\n")
        sizes, means, errors = at_the_point(sampled)
        theory = scaled_mean_square(found.law, 0.0) / sizes**0.5
        for row in zip(sizes, means / theory, errors / theory, strict=True):
            print("N = {:.3g}: mean square over theory {:.4f} +- {:.4f}".format(*row))
        slope, error = exponent(sizes, means**0.5, errors / means**0.5 / 2)
        print(f"exponent of the amplitude: {slope:.4f} +- {error:.4f}")
    widths = np.array([growth(sampled) for sampled in of_torus]).T
    sizes = [sampled.n_spins for sampled in of_torus]
    slope, error = exponent(sizes, *widths)
    print(f"exponent of the rounding: {slope:.4f} +- {error:.4f}")
    print("fold", fold.law, sep="\n")
    for n, betas, times in of_fold:
        ratio = (
            np.array(mean_time(times)) * scaled_rate(fold.law, n, betas) / n ** (1 / 3)
        )
        words = ", ".join(f"{r:.3f} +- {e:.3f}" for r, e in ratio.T)
        print(f"N = {n:.3g}: mean times over theory {words}")
    values = np.array([(n, *(x[1] for x in mean_time(t))) for n, _, t in of_fold]).T
    slope, error = exponent(*values)
    print(f"exponent of the time at the fold: {slope:.4f} +- {error:.4f}")


LARGE = 1e12  # spins at which scaling functions are read off


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
def panels(torus, of_torus, doubling, of_doubling, fold, of_fold):
    """Collapse of densities, mean squares and times; what is left of differences."""
    sheet = sheets.sheet(None, 6, lambda: sheets.grid(style.DOUBLE, 4.4, 2, 3))
    radii, squares, widths, doublings, times, ratios = sheet.axes
    dots = dict(style.OPEN, ls="none", marker="o")
    for i, sampled in enumerate(of_torus):
        colour = style.SERIES[i]
        words = f"$N = 10^{round(np.log10(sampled.n_spins))}$"
        spread(radii, sampled, colour, words, signed=False)
        spread(doublings, of_doubling[i], colour, words, signed=True)
        root = sampled.n_spins**0.5
        means, errors = sampled.mean_square()
        away = (sampled.betas - torus.law.value) * root
        squares.errorbar(away, means * root, errors * root, color=colour, **dots)
        n, betas, passed = of_fold[i]
        mean, error = np.array(mean_time(passed)) / n ** (1 / 3)
        away = (betas - fold.law.value) * n ** (2 / 3)
        times.errorbar(away, mean, error, color=colour, **dots)
    theory = dict(color=style.BLACK, zorder=1)
    r = np.linspace(0, radii.get_xlim()[1], 300)
    radii.plot(r, scaled_density(torus.law, r), label="theory", **theory)
    x = np.linspace(*doublings.get_xlim(), 300)
    doublings.plot(x, scaled_density(doubling.law, x), **theory)
    away = np.linspace(*squares.get_xlim(), 300)
    squares.plot(away, scaled_mean_square(torus.law, away), **theory)
    away = np.linspace(*times.get_xlim(), 300)
    at = fold.law.value + away / LARGE ** (2 / 3)
    times.plot(away, 1 / scaled_rate(fold.law, LARGE, at), **theory)
    power_laws(widths, torus, of_torus, dots)
    differences(ratios, torus, of_torus, doubling, of_doubling, fold, of_fold, dots)
    radii.set(xlabel=r"$N^{1/4}\, |z|$", ylabel=r"$N^{-1/4}\, p$", ylim=(0, None))
    doublings.set(xlabel=r"$N^{1/4}\, \xi$", ylabel=r"$N^{-1/4}\, p$", ylim=(0, None))
    squares.set(
        xlabel=r"$N^{1/2} (\beta - \beta_1)$",
        ylabel=r"$N^{1/2} \langle |z|^2 \rangle$",
        ylim=(0, None),
    )
    times.set(
        xlabel=r"$N^{2/3} (\beta - \beta_f)$",
        ylabel=r"$N^{-1/3}\, \tau$ (tokens)",
        yscale="log",
    )
    names = "Neimark–Sacker", "Neimark–Sacker", "Neimark–Sacker", "doubling", "fold", ""
    for axis, name in zip(sheet.axes, names, strict=True):
        axis.set_title(name)
    sheet.legend(of=slice(1))
    sheet.letters()
    return sheet.figure


def spread(axis, sampled: Sampled, colour, words: str, signed: bool) -> None:
    """Histogram of the amplitude at the bifurcation, scaled; errors from runs."""
    values = sampled.amplitudes[len(sampled.betas) // 2] * sampled.n_spins**0.25
    values = values if signed else np.abs(values)
    edge = 2.2 if signed else 1.6
    edges = np.linspace(-edge if signed else 0, edge, 23)
    each = np.array([np.histogram(v, edges)[0] for v in values.T]) / len(values)
    each = each / np.diff(edges)
    error = each.std(0, ddof=1) / len(each) ** 0.5
    middles = (edges[1:] + edges[:-1]) / 2
    given = dict(style.OPEN, ls="none", marker="o", color=colour, label=words)
    axis.errorbar(middles, each.mean(0), error, **given)


def power_laws(axis, torus: Found, of_torus, dots) -> None:
    """Amplitude and rounding against N, in the units of the amplitude and of beta."""
    sizes, means, errors = at_the_point(of_torus)
    root = means**0.5
    rounded, error = np.array([growth(sampled) for sampled in of_torus]).T
    words = r"$\langle |z|^2 \rangle^{1/2}$", r"rounding in $\beta$"
    axis.errorbar(
        sizes, root, errors / root / 2, color=style.BLUE, label=words[0], **dots
    )
    axis.errorbar(sizes, rounded, error, color=style.VERMILION, label=words[1], **dots)
    n = np.geomspace(sizes[0], sizes[-1], 2)
    square = lambda k: float(scaled_mean_square(torus.law, k * unit))
    unit = float(torus.law.rounding(1))
    axis.plot(n, square(0) ** 0.5 / n**0.25, color=style.BLACK, zorder=1)
    width = 2 * unit * square(0) / (square(1) - square(-1))
    axis.plot(n, width / n**0.5, color=style.BLACK, zorder=1)
    axis.set(xscale="log", yscale="log", xlabel=style.WORDS["n_spins"])
    axis.margins(x=0.05)
    axis.legend()


def differences(axis, torus, of_torus, doubling, of_doubling, fold, of_fold, dots):
    """Measured over predicted, at the bifurcations."""
    for found, sampled, colour, words in (
        (torus, of_torus, style.BLUE, r"Neimark–Sacker, $\langle |z|^2 \rangle$"),
        (doubling, of_doubling, style.VERMILION, r"doubling, $\langle \xi^2 \rangle$"),
    ):
        sizes, means, errors = at_the_point(sampled)
        theory = scaled_mean_square(found.law, 0.0) / sizes**0.5
        axis.errorbar(
            sizes, means / theory, errors / theory, color=colour, label=words, **dots
        )
    rows = []
    for n, betas, passed in of_fold:
        scale = scaled_rate(fold.law, n, betas) / n ** (1 / 3)
        rows.append((n, *(x[1] * scale[1] for x in mean_time(passed))))
    sizes, means, errors = np.array(rows).T
    axis.errorbar(
        sizes, means, errors, color=style.GREEN, label=r"fold, $\tau$", **dots
    )
    axis.axhline(1, color=style.BLACK, zorder=1)
    axis.set(xscale="log", xlabel=style.WORDS["n_spins"], ylabel="measured / theory")
    axis.margins(x=0.05)
    axis.legend()


if __name__ == "__main__":
    main()
