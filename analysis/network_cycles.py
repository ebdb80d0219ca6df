"""Unstable cycles of the published network, under its bifurcation diagram.

    python analysis/network_cycles.py --output docs/network_cycles.png

Cycles of up to four turns of the clock (16 tokens) are found from nothing at one beta
and followed from there.  Four things say how complete the list is: what more starts
find, what two searches from different orbits share, whether branches that turn
round in beta come back to cycles that are not in it, and the sum of indices, which is
1 for a map of a ball into itself (docs/band_ends.md).

`--smoke` takes shorter runs, for tests.
"""

import argparse
import functools
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn import dmft, dynamics
from statmech_attn.dynamics import continuation
from statmech_attn.plotting.frame import sheets, style


TOKENS = 4  # of a step of the map
PERIOD = 4  # steps of the longest cycle
FOUND_AT, WINDOW = 1.285, (1.266, 1.304)
POINTS = 300  # of a branch in one direction, at most
UNIT = 0.05  # of beta, as long as a unit of the coordinates
SAME = 1e-6  # distance of two points that are one


class Branch(NamedTuple):
    """One direction of a branch of cycles.

    Attributes:
        period: steps.
        solution: its points.
    """

    period: int
    solution: continuation.Solution


@functools.cache
def network() -> tuple[dynamics.System, dmft.PatternFile]:
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    return dmft.strobe(net, file.epsilon), file


def parameters(beta) -> dict:
    file = network()[1]
    return {"beta": beta, "gamma": file.gamma, "epsilon": file.epsilon}


def problem(period: int) -> continuation.Problem:
    return continuation.Problem(
        network()[0], jnp.zeros(12), parameters(FOUND_AT), "beta", period=period
    )


def cycles_from(starts: int, seed: int) -> dynamics.UnstableCycles:
    begin = np.random.default_rng(seed).uniform(-0.5, 0.5, 12)
    return dynamics.unstable_cycles(
        network()[0],
        jnp.asarray(begin),
        parameters(FOUND_AT),
        period=PERIOD,
        transient=5000,
        starts=starts,
        exponents=3,  # down to one that contracts, for indices
    )


def is_among(x: np.ndarray, cycles: dynamics.UnstableCycles) -> bool:
    """Whether a state is a point of one of the cycles."""
    return bool((np.abs(cycles.points - x).max(axis=2) < SAME).any())


def shared(first: dynamics.UnstableCycles, second: dynamics.UnstableCycles):
    """Cycles of every period in both lists, and Chapman's estimate of all.

    It holds where all are equally easy to find, and is a lower bound where not.
    """
    among = np.array([is_among(x, second) for x in first.points[:, 0]])
    both = first.where(among).counts
    return both, (first.counts + 1) * (second.counts + 1) / (both + 1) - 1


def branches_of(cycles: dynamics.UnstableCycles) -> list[Branch]:
    """Every cycle down and up in beta, as far as its branch stays in the window."""
    return [
        Branch(
            int(period),
            continuation.follow_cycle(
                problem(period),
                x,
                FOUND_AT,
                direction=direction,
                within=WINDOW,
                settings=continuation.Settings(max_points=POINTS),
                unit=UNIT,
            ).run(),
        )
        for period, x in zip(cycles.length, cycles.points[:, 0], strict=True)
        for direction in (-1, 1)
    ]


def returning(branches: list[Branch]) -> list[tuple[int, np.ndarray]]:
    """Period and state of the cycles in which branches come back to their start."""
    states = []
    for period, solution in branches:
        beyond = solution.values[1:] > FOUND_AT
        for i in 1 + np.flatnonzero(beyond[1:] != beyond[:-1]):
            near = solution.x[i : i + 2].mean(axis=0)
            cycle = continuation.find_cycle(problem(period), near, FOUND_AT)
            if cycle.converged and cycle.period == period:
                states.append((period, cycle.x))
    return states


@functools.partial(jax.jit, static_argnums=2)
def coordinate(x, beta, length: int):
    """A coordinate of the states that follow, (n, length)."""

    def step(x, _):
        later = jax.vmap(lambda x, b: network()[0].step(x, parameters(b)))(x, beta)
        return later, x[:, 0]

    return jax.lax.scan(step, x, None, length=length)[1].T


def attractor(count: int, transient: int, samples: int):
    """(beta, a coordinate of orbits, their largest exponents in nats per token)."""
    beta = jnp.linspace(*WINDOW, count)
    begin = jnp.asarray(np.random.default_rng(0).uniform(-0.5, 0.5, (count, 12)))
    orbits = np.asarray(coordinate(begin, beta, transient + samples))[:, transient:]
    exponent = lambda x, b: dynamics.lyapunov_spectrum(
        network()[0], x, parameters(b), steps=3000, transient=transient, exponents=1
    ).exponents[0]
    return np.asarray(beta), orbits, jax.jit(jax.vmap(exponent))(begin, beta) / TOKENS


def maxima(values: np.ndarray) -> np.ndarray:
    """Values that are larger than both neighbours in time, NaN elsewhere."""
    before, after = np.roll(values, 1, axis=1), np.roll(values, -1, axis=1)
    return np.where((values > before) & (values > after), values, np.nan)


def measure(smoke: bool):
    """Search and follow, print what there is; the branches and the attractor."""
    for starts in (100,) if smoke else (125, 500, 2000):
        first, second = (cycles_from(starts, seed) for seed in (0, 1))
        both, estimate = shared(first, second)
        print(
            f"{starts} starts: {first.counts.tolist()} cycles of 1, 2, .. steps, "
            f"{second.counts.tolist()} from another orbit, {both.tolist()} in both: at "
            f"least {np.round(estimate, 1).tolist()}"
        )
    cycles = cycles_from(100 if smoke else 8000, 0)
    print(
        f"{cycles.counts.tolist()} followed, hit by {cycles.hits.min()} starts or "
        f"more. {cycles.explain()}"
    )
    longer = cycles.where(cycles.length > 1)
    branches = branches_of(longer)
    for name, values in (
        ("ends", [part.solution.reason for part in branches]),
        ("bifurcations", [p.kind for part in branches for p in part.solution.special]),
    ):
        print(name, {value: values.count(value) for value in sorted(set(values))})
    back = returning(branches)
    new = [period for period, x in back if not is_among(x, longer)]
    print(f"{len(back)} returns to {FOUND_AT}, to cycles that are not listed: {new}")
    return branches, attractor(*(20, 100, 50) if smoke else (420, 4000, 250))


@style.styled
def figure(branches: list[Branch], orbits):
    """Cycles under the diagram, and their largest exponents around that of orbits."""
    sheet = sheets.sheet(None, 2, lambda: sheets.grid(style.DOUBLE, 3.4, 1, 2))
    diagram, exponents = sheet.axes
    beta, states, largest = orbits
    grey, colours = style.GREY, {3: style.SERIES[0], 4: style.SERIES[1]}
    diagram.plot(beta, maxima(states), ".", ms=1.2, mew=0, color=grey)
    for period, solution in branches:
        points = coordinate(jnp.asarray(solution.x), solution.values, period)
        look = {"color": colours[period], "lw": 0.6}
        diagram.plot(solution.values, maxima(np.asarray(points)), **look)
        growth = np.log(np.abs(solution.multipliers).max(axis=1)) / period / TOKENS
        exponents.plot(solution.values, growth, **look)
    exponents.plot(beta, largest, ".", ms=2.5, color=grey, label="orbits")
    for period, colour in colours.items():
        label = f"cycles of {TOKENS * period} tokens"
        exponents.plot([], [], color=colour, label=label)
    exponents.axhline(0, color=grey, lw=0.5)
    diagram.set(xlabel=r"$\beta$", ylabel="maxima of a coordinate in time", xlim=WINDOW)
    exponents.set(xlabel=r"$\beta$", ylabel=r"$\lambda_1$ (nat/token)", xlim=WINDOW)
    sheet.letters()
    sheet.legend(3)
    return sheet.figure


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("network_cycles.png"))
    parser.add_argument("--smoke", action="store_true", help="short runs, for tests")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    figure(*measure(options.smoke)).savefig(options.output, dpi=style.PNG_DPI)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
