"""Where the narrow chaotic bands of the published network end, and why.

    python analysis/band_ends.py --output docs/band_ends.png

At both ends of one closed branch of cycles of 16 and 32 tokens: bands grow out of
period doublings upward from beta = 1.27384 and downward from 1.29917
(docs/band_ends.md).  All is computed with the map over one turn of the clock.

`--smoke` takes shorter runs, for tests.
"""

import argparse
import functools
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import curve_fit
from scipy.spatial import KDTree

from statmech_attn import dmft, dynamics
from statmech_attn.dynamics import continuation
from statmech_attn.plotting.frame import sheets, style


TOKENS = 4  # of a step of the map
RUN = 16_384  # steps for which bands are followed at each beta
OUTSIDE = 8.0  # errors from the law, of a time in a window of a cycle
LEFT = 0.05  # change over eight steps of an orbit that has left the bands


class End(NamedTuple):
    """One end of the bands, and what is asked there.

    Attributes:
        cycle: beta at which the cycle of 32 tokens is stable.
        starts: random states from which it is found.
        step: first step of beta towards the end.
        edges: values of beta at which the edge of the bands is tracked.
        beyond: distances from the end at which orbits leave the bands.
    """

    cycle: float
    starts: int
    step: float
    edges: tuple[float, ...]
    beyond: np.ndarray


ENDS = (
    End(1.2738, 64, 1e-5, (1.2738, 1.2742), np.geomspace(1e-6, 3e-4, 10)),
    End(1.3005, 256, -1e-7, (1.3, 1.2994, 1.29882), np.geomspace(1e-8, 1e-5, 10)),
)


@functools.cache
def network() -> tuple[dynamics.System, dmft.PatternFile]:
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    return dmft.strobe(net, file.epsilon), file


def parameters(beta) -> dict:
    file = network()[1]
    return {"beta": beta, "gamma": file.gamma, "epsilon": file.epsilon}


def problem(beta: float, period: int) -> continuation.Problem:
    return continuation.Problem(
        network()[0], jnp.zeros(12), parameters(beta), "beta", period=period
    )


def random_states(count: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-0.5, 0.5, (count, 12))


def cycle_at(end: End) -> np.ndarray:
    """A point of the cycle of 32 tokens, from orbits that end on it."""
    orbits = dynamics.settle(
        network()[0],
        random_states(end.starts),
        parameters(end.cycle),
        dynamics.Search(horizon=200_000, record=256),
    )
    return orbits.points[np.flatnonzero(orbits.period == 8)[0], 0]


@functools.partial(jax.jit, static_argnums=2)
def followed(x, beta, steps):
    step = lambda x, _: (network()[0].step(x, parameters(beta)), x)
    return jax.lax.scan(step, x, None, length=steps)


def returns(orbit) -> np.ndarray:
    """Changes of an orbit over eight steps."""
    return np.abs(orbit[8:] - orbit[:-8]).max(axis=1)


def bands(x, beta: float, step: float, steps: int, shortest: float) -> list:
    """Bands followed in beta until orbits leave them: (beta, orbit) of each value.

    From the last value before, ever shorter steps are taken.
    """
    kept = [(beta, np.asarray(followed(x, beta, steps)[1]))]
    while abs(step) >= shortest:
        beta, orbit = kept[-1]
        later = np.asarray(followed(orbit[-1], beta + step, steps)[1])
        if returns(later).max() < LEFT:
            kept.append((beta + step, later))
        else:
            step /= 10
    return kept


def edge_of(cycle: continuation.Cycle, beta: float, steps: int) -> dynamics.Edge:
    """The edge between a stable cycle and all that goes far away from it."""
    points = jnp.asarray(around(cycle, beta))
    start, direction = points[0], np.random.default_rng(0).normal(size=12)
    outside = start + 0.3 * direction / np.abs(direction).max()

    def label(x):
        away = jnp.abs(points - x).max(axis=1).min()
        return jnp.where(away > 0.1, 1, jnp.where(away < 1e-8, 0, -1))

    return dynamics.track_edge(
        network()[0],
        start,
        outside,
        parameters(beta),
        label=label,
        steps=steps,
        transient=steps // 2,
        horizon=20_000,
        near=1e-12,
        far=1e-9,
        exponents=4,
    )


def around(cycle: continuation.Cycle, beta: float) -> np.ndarray:
    return np.asarray(followed(jnp.asarray(cycle.x), beta, cycle.period)[1])


def nearest_cycle(branches, beta: float) -> continuation.Cycle:
    """The stable cycle of a cascade at one beta, from between two of a branch."""
    for branch in branches:
        beyond = branch.values > beta
        for i in np.flatnonzero(beyond[1:] != beyond[:-1]):
            share = (beta - branch.values[i]) / np.diff(branch.values)[i]
            near = branch.x[i] + share * (branch.x[i + 1] - branch.x[i])
            cycle = continuation.find_cycle(problem(beta, branch.period), near, beta)
            if cycle.stable:
                return cycle
    raise ValueError(f"no stable cycle at {beta}.")


def times_in_bands(orbit: np.ndarray, betas: np.ndarray, count: int) -> np.ndarray:
    """(beta, mean tokens, relative error) of orbits that begin on bands and leave them.

    A state holds its beta and where it was eight steps before.
    """
    advance = network()[0].strobed(8).step

    def step(s):
        return {"x": advance(s["x"], parameters(s["b"])), "y": s["x"], "b": s["b"]}

    x = np.tile(orbit[:: len(orbit) // count // 8 * 8][:count], (len(betas), 1))
    lifetime, ended = dynamics.escape_times(
        step,
        {"x": x, "y": x, "b": np.repeat(betas, count)},
        lambda s: jnp.abs(s["x"] - s["y"]).max() < LEFT,
        horizon=6000,
    )
    rows = []
    for beta, *times in zip(betas, *(t.reshape(-1, count) for t in (lifetime, ended))):
        rate = dynamics.escape_rate(*times)
        rows.append((beta, 8 * TOKENS * rate.mean, rate.stderr / rate.rate))
    return np.array(rows)


def power_law(beta, tau, error, bracket):
    """tau = exp(a) |beta - beta_c|^-gamma: (a, gamma, beta_c), errors, chi^2, which.

    Times in windows of cycles, far from the law, are left out.

    Args:
        beta: beyond the end.
        tau: mean times.
        error: relative errors of these.
        bracket: the last beta of the bands, and the first without them.
    """
    low, high = sorted(bracket)
    law = lambda b, a, gamma, c: a - gamma * np.log(np.abs(b - low - c * (high - low)))
    guess = np.log(tau[-1]) + 0.5 * np.log(abs(beta[-1] - low)), 0.5, 0.5
    limits = (-np.inf, 0.0, 0.0), (np.inf, 5.0, 1.0)
    fit = lambda to, **way: curve_fit(
        law, beta[to], np.log(tau[to]), guess, error[to], True, bounds=limits, **way
    )
    off = lambda values: (np.log(tau) - law(beta, *values)) / error
    robust, _ = fit(np.full(len(beta), True), loss="soft_l1")
    kept = np.abs(off(robust)) < OUTSIDE
    values, covariance = fit(kept)
    chi2 = float((off(values)[kept] ** 2).sum())
    values[2], scale = low + values[2] * (high - low), np.array([1, 1, high - low])
    return values, np.sqrt(np.diag(covariance)) * scale, chi2, kept


class Measured(NamedTuple):
    """What is drawn of one end."""

    times: np.ndarray  # (m, 3): beta, mean time in the bands (tokens), relative error
    law: np.ndarray  # a, gamma, beta_c
    gaps: np.ndarray | None = None  # (n, 3): beta, extent of the bands, to the saddle


def measure(end: End, smoke: bool) -> tuple[Measured, continuation.Solution | None]:
    """Follow cycles and bands to their end, print what is found there."""
    run, count = (2048, 40) if smoke else (RUN, 400)
    x = cycle_at(end)
    way, gaps, saddle = int(np.sign(end.step)), [], None
    within = (1.27, 1.29) if way > 0 else (1.29, 1.3012)
    branches = list(
        continuation.cascade(
            problem(end.cycle, 8),
            x,
            end.cycle,
            doublings=2 if smoke else 5,
            direction=way,
            within=within,
        )
    )
    doublings = [branch.special[-1].value for branch in branches]
    print(f"doublings of 32 tokens from {end.cycle}:", np.round(doublings, 8))
    for beta in end.edges[: 1 if smoke else None]:
        cycle = nearest_cycle(branches, beta)
        edge = edge_of(cycle, beta, 400 if smoke else 3000)
        away = KDTree(around(cycle, beta)).query(edge.states, p=np.inf)[0].min()
        exponents = np.round(edge.exponents[:2] / TOKENS, 5)
        print(
            f"{beta}: edge of the cycle of {TOKENS * cycle.period} tokens: "
            f"{dynamics.EDGE_RESULTS[edge.result]}, period {TOKENS * edge.period}, "
            f"exponents {exponents} nat/token, at {away:.2g}"
        )
        if way > 0 and beta == end.edges[0]:
            saddle = continuation.find_cycle(problem(beta, 4), edge.states[-1], beta)
    shortest = abs(end.step) if smoke else abs(end.step) / 10
    last = branches[-1]
    kept = bands(last.x[-1], float(last.values[-1]), end.step, run, shortest)
    beta, orbit = kept[-1]
    bracket = beta, beta + (end.step if smoke else end.step / 10)
    print(f"bands from {doublings[-1]:.8f} to {beta:.8f}, none at {bracket[1]:.8f}")
    beyond = bracket[1] + way * end.beyond[-4 if smoke else 0 :]
    times = times_in_bands(orbit, beyond, count)
    for at, mean, share in times:
        print(f"{at:.8f}: {mean:.4g} tokens in the bands, ± {share:.0%}")
    law, error, chi2, fitted = power_law(*times.T, bracket)
    print(
        f"end {law[2]:.8f} ± {error[2]:.1g}, exponent {law[1]:.3f} ± {error[1]:.3f}, "
        f"chi^2 {chi2:.1f} of {fitted.sum() - 3}"
    )
    if way < 0:
        return Measured(times, law), None
    branch = continuation.follow_cycle(
        problem(saddle.value, 4), saddle.x, saddle.value, within=(1.25, 1.35)
    ).run()
    print("cycle of 16 tokens:", continuation.RESULTS[branch.result])
    for special in branch.special:
        print(f"  {special.kind} at {special.value:.8f}")
    inside = on_loop(branch, law[2], kept[-1][1], -1)[0].multipliers
    alpha = np.log(np.abs(inside[:2]))
    print(
        f"multipliers of the cycle in the bands {np.round(inside[:3], 4)}: exponent of "
        f"a heteroclinic tangency {0.5 - alpha[0] / alpha[1]:.3f}"
    )
    for beta, orbit in kept[-1:0:-3]:
        *_, away = on_loop(branch, beta, orbit, 1)
        gaps.append((beta, returns(orbit).max(), away))
    print(
        f"distance of the bands from the saddle: {gaps[0][2]:.2g} at {gaps[0][0]:.8f}"
    )
    return Measured(times, law, np.array(gaps)), branch


def on_loop(branch: continuation.Solution, beta: float, orbit: np.ndarray, sign: int):
    """The cycle of 16 tokens whose largest multiplier has a sign, and its distance."""
    other = sign * branch.multipliers[:, 0].real < 1
    near = branch.x[np.argmin(np.abs(branch.values - beta) + 9 * other)]
    cycle = continuation.find_cycle(problem(beta, 4), near, beta)
    return cycle, float(KDTree(orbit).query(around(cycle, beta), p=np.inf)[0].min())


@style.styled
def figure(ends: list[Measured], loop: continuation.Solution):
    """The closed branch, the way to the first end, and times beyond both."""
    sheet = sheets.sheet(None, 3, lambda: sheets.grid(style.DOUBLE, 2.7, 1, 3))
    cycles, gap, times = sheet.axes
    stable = np.where(loop.stable, loop.x[:, 0], np.nan)
    grey, *colours = style.GREY, *style.SERIES
    cycles.plot(
        loop.values, loop.x[:, 0], color=grey, lw=0.8, label="cycle of 16 tokens"
    )
    cycles.plot(loop.values, stable, color=colours[2], lw=2, label="its stable part")
    for end in ends:
        cycles.axvline(end.law[2], color=grey, lw=0.6, ls=":")
    cycles.set(xlabel=r"$\beta$", ylabel="a coordinate of the cycle")
    beta, width, away = ends[0].gaps.T
    gap.plot(beta, width, ".", ms=2, color=colours[0], label="extent of the bands")
    gap.plot(beta, away, ".", ms=2, color=colours[1], label="from bands to saddle")
    gap.set(xlabel=r"$\beta$", ylabel="distance", ylim=(0, None))
    gap.set_xticks([1.2750, 1.2760])
    for end, marker, colour in zip(ends, "os", colours[3:], strict=False):
        a, exponent, critical = end.law
        beta, mean, error = end.times.T
        beyond = np.abs(beta - critical)
        times.errorbar(
            beyond, mean, mean * error, fmt=marker, color=colour, **style.OPEN
        )
        label = rf"$\beta_c = {critical:.5f}$"
        times.plot(beyond, np.exp(a) * beyond**-exponent, color=colour, label=label)
    times.set(xscale="log", yscale="log", xlim=(5e-9, 1e-3), ylim=(1e2, 3e5))
    times.set(xlabel=r"$\vert\beta - \beta_c\vert$", ylabel="tokens in the bands")
    sheet.letters()
    sheet.legend(3)
    return sheet.figure


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("band_ends.png"))
    parser.add_argument("--smoke", action="store_true", help="short runs, for tests")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    ends, loops = zip(*(measure(end, options.smoke) for end in ENDS), strict=True)
    figure(list(ends), loops[0]).savefig(options.output, dpi=style.PNG_DPI)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
