"""Entropy production of the published network: scans, onset, plane, other networks.

    python analysis/arrow_of_time.py --output docs

writes arrow_of_time.png (the published scan and its zoom, over the largest exponent)
and arrow_of_time_more.png (the onset with the prediction of the normal form, a plane,
five positional bits, copied spins), and prints what their captions say, and how much of
the time sampled spins go round the cycle of the map at beta = 2.5.  It takes some
minutes.  `--smoke` draws few points.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn import dmft, dynamics, montecarlo
from statmech_attn.dynamics import continuation, diagrams, PHASES
from statmech_attn.plotting.frame import sheets, style


UNIT = "nat / (token spin)"
WHOLE, ZOOM = (0.0, 3.0), (1.2, 1.3)
GAMMA = 1.0, 200.0  # of the plane, logarithmically
DISTANCES = 2.0 ** np.arange(-16.0, -8.0)  # of beta from the onset
SHARES = 1.0, 0.5, 0.25, 0.1  # of spins that are redrawn
PRESETS = {
    "poclopez-pe2": "two positional bits, $C = 4$",
    "poclopez-pe5": "five, $C = 32$",
}
SMALL = 1e-3, 2e-3  # amplitudes that stand for vanishing ones
AT, CYCLE = 2.5, 96  # beta where the map has a cycle inside chaos, and its tokens
SPINS = 10**4, 10**6, 10**7, 10**8  # of a class
NEAR, FAR = 0.2, 0.5  # of a turn from the cycle, in all class means
FIRST = 12  # turns that runs need to forget their start on the cycle


class Sizes(NamedTuple):
    """How many points, and tokens of each."""

    scan: int = 1501
    plane: int = 200
    line: int = 151
    tokens: int = 20_000
    tokens_of_plane: int = 4000
    turns: int = 192
    runs: int = 64


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(), help="folder")
    parser.add_argument("--smoke", action="store_true", help="few points, for tests")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    sizes = Sizes(5, 4, 5, 320, 160, 13, 2) if options.smoke else Sizes()
    model = published("poclopez-pe2")
    scans = [scan(model, span, sizes) for span in (WHOLE, ZOOM)]
    tell_extremes(scans[0])
    for spins in SPINS:
        tell_turns(spins, *turns(model, spins, sizes))
    pictures = {
        "arrow_of_time.png": draw_scans(scans),
        "arrow_of_time_more.png": draw_more(model, sizes),
    }
    for name, figure in pictures.items():
        figure.savefig(options.output / name, dpi=style.PNG_DPI)
        print(f"wrote {options.output / name}")


class Model(NamedTuple):
    """A preset, and the network of its patterns."""

    file: dmft.PatternFile
    net: dmft.Network

    def start(self, params):
        """The checkpoint of the preset where it has one, else a token."""
        if self.file.checkpoint is None:
            return dmft.from_row(self.net, params, 0)
        return dmft.from_checkpoint(self.net, params, self.file)


def published(name: str) -> Model:
    file = dmft.load(name)
    return Model(file, dmft.network(file.patterns, context=file.context))


def scan(model: Model, span: tuple[float, float], sizes: Sizes):
    """Attractors along beta, with their rates."""
    values = {"gamma": model.file.gamma, "epsilon": model.file.epsilon}
    return dynamics.diagram(
        dmft.system(model.net),
        {"beta": np.linspace(*span, sizes.scan), **values},
        lambda p: model.start(dmft.parameters(**p)),
        diagrams.Plan(sizes.tokens, sizes.tokens, exponents=1),
        confirm=diagrams.Confirm(0),
    )


def tell_extremes(attractors) -> None:
    """Which attractors of a scan produce the most, by phase."""
    for code in np.unique(attractors.phase):
        chosen = attractors.isel(beta=attractors.phase.values == code)
        rates = chosen.entropy_production
        for words, place in (
            ("least", rates.argmin("beta")),
            ("most", rates.argmax("beta")),
        ):
            point = chosen.isel(beta=int(place))
            print(
                f"{PHASES[code]}, {words}: {float(point.entropy_production):.4g} at "
                f"beta = {float(point.beta):.4f}, period {int(point.period)}"
            )


@style.styled
def draw_scans(scans):
    """Rates over largest exponents, one column for each scan, coloured by phase."""
    make = lambda: sheets.grid(style.DOUBLE, 3.9, 2, len(scans), sharex="col")
    sheet = sheets.sheet(None, 2 * len(scans), make)
    panels = np.reshape(sheet.axes, (2, -1))
    for column, attractors in zip(panels.T, scans, strict=True):
        rates = attractors.entropy_production, attractors.lyapunov.isel(exponent=0)
        for axis, values in zip(column, rates, strict=True):
            for code in np.unique(attractors.phase):
                name, chosen = PHASES[code], attractors.phase.values == code
                axis.plot(
                    attractors.beta[chosen],
                    values[chosen],
                    ".",
                    ms=2,
                    mew=0,
                    color=style.PHASE_COLOURS[name],
                    label=name,
                )
        column[1].set_ylim(-0.06, None)
        column[1].axhline(0, color=style.BLACK, lw=0.5, zorder=0)
        column[1].set_xlabel(r"output inverse temperature $\beta$")
    panels[0, 0].set_ylabel(rf"$\sigma$ ({UNIT})")
    panels[1, 0].set_ylabel(r"$\lambda_1$ (nat / token)")
    sheet.legend()
    sheet.letters()
    return sheet.figure


def turns(model: Model, spins: int, sizes: Sizes):
    """Rates of turns of 96 tokens of sampled spins, and how far each is from the cycle.

    Returns:
        Rates and distances (turns, runs).  The distance of a turn is the largest of all
        class means of its tokens from those of the cycle, which begins where it is
        nearest, at the same clock.
    """
    net = model.net
    params = dmft.parameters(AT, model.file.gamma, model.file.epsilon)
    start = dmft.advance(net, params, model.start(params), 2 * sizes.tokens)
    classes = np.linalg.inv(net.weighted[0])
    means = lambda overlaps: jnp.einsum("sa,ta...->ts...", classes, overlaps)
    cycle = np.asarray(
        means(dmft.trajectory(net, params, start, steps=CYCLE)[1].m_o_se)
    )
    sampled = montecarlo.simulate(
        net,
        model.file.patterns,
        params,
        start,
        n_spins=spins * net.n_classes,
        runs=sizes.runs,
        steps=sizes.turns * CYCLE + net.context,
        key=jax.random.key(spins),
        stored=sizes.runs,
    )
    tokens = means(sampled.sample.m_o_se)
    wide = lambda x: jnp.repeat(x[..., None], sizes.runs, -1) if x.ndim else x
    state = jax.tree.map(wide, start)
    read = lambda carry, means: dmft.advance_with_entropy(net, params, *carry, means)
    rates = jax.lax.scan(read, (state, dmft.empty_window(net, state)), tokens)[1]
    rates = rates[net.context :].reshape(sizes.turns, CYCLE, sizes.runs)
    seen = np.asarray(tokens)[: -net.context].reshape(
        *rates.shape[:2], *tokens.shape[1:]
    )
    distances = np.full((sizes.turns, sizes.runs), np.inf)
    for first in range(0, CYCLE, net.context):
        away = np.abs(seen - np.roll(cycle, -first, axis=0)[..., None]).max((1, 2))
        distances = np.minimum(distances, away)
    return np.asarray(rates).mean(axis=1)[FIRST:], distances[FIRST:]


def tell_turns(spins: int, rates, distances) -> None:
    """Averages over turns near the cycle and over the others; errors over runs."""

    def average(values, chosen) -> str:
        if not chosen.any():
            return "none"
        mean = values[chosen].mean()
        per_run = ((values - mean) * chosen).sum(axis=0) / chosen.mean(axis=0).mean()
        error = per_run.std(ddof=1) / len(values) / len(per_run) ** 0.5
        return f"{mean:.5f} +- {error:.5f}"

    near, every = distances < NEAR, np.ones(rates.shape, bool)
    print(
        f"beta = {AT}, {spins:.0e} spins of a class: rate {average(rates, every)}; a "
        f"share {average(near * 1.0, every)} of {rates.size} turns is within {NEAR} of "
        f"the cycle, rate {average(rates, near)}, of others {average(rates, ~near)}; "
        f"{np.sum(distances > FAR)} turns are beyond {FAR}"
    )


class Onset(NamedTuple):
    """Rates above that of the clock, at some distances from the Neimark-Sacker point.

    Attributes:
        slope: rate over distance that the normal form predicts for small ones.
    """

    distances: np.ndarray
    rates: np.ndarray
    slope: float


def onset(model: Model, sizes: Sizes) -> Onset:
    """Rates on the torus, started where the normal form says that it is."""
    file, net = model.file, model.net
    values = {"gamma": file.gamma, "epsilon": file.epsilon}
    problem = continuation.Problem(
        dmft.strobe(net, file.epsilon),
        jnp.zeros(net.dimension),
        {"beta": 1.2, **values},
        "beta",
    )
    params = dmft.parameters(1.2, **values)
    rest = dmft.advance(net, params, model.start(params), 20_000)
    branch = continuation.follow_cycle(
        problem, dmft.strobe_point(net, params, rest), 1.2, within=(1.2, 1.3)
    )
    special = next(point for point in branch if point.special).special[0]
    form, critical = special.form, special.value

    def rate(beta, amplitudes, settle):
        """At points x_0 + 2 Re(z q) of real z."""
        x = special.x + (beta - critical)[..., None] * form.drift
        x = x + 2 * amplitudes[..., None] * form.vector.real
        window = np.moveaxis(x.reshape(*beta.shape, net.context, -1), 0, -1)
        params = dmft.parameters(beta, **values)
        state = dmft.from_window(net, params, jnp.asarray(window), 0)
        how = dict(steps=sizes.tokens, transient=settle)
        return np.asarray(dmft.entropy_production(net, params, state, **how).weighted)

    small = np.array([0.0, *SMALL])
    resting, *moving = rate(np.full(small.shape, critical), small, 0)
    per_square = (np.array(moving) - resting) / np.square(SMALL)
    curvature = (per_square[0] * 4 - per_square[1]) / 3  # of order |z|^4 removed
    slope = curvature * form.amplitude(1.0) ** 2
    beta = critical + DISTANCES
    amplitudes = np.array([form.amplitude(d) for d in DISTANCES])
    torus = rate(beta, amplitudes, 10 * sizes.tokens)
    still = rate(beta, np.zeros(beta.shape), 0)[:1]  # before the rest is left
    excess = torus - np.minimum(resting, still)
    return Onset(DISTANCES, excess, float(slope))


@style.styled
def draw_more(model: Model, sizes: Sizes):
    """The onset, a plane, five positional bits, and copied spins."""
    make = lambda: sheets.grid(style.DOUBLE, 5.2, 2, 2)
    sheet = sheets.sheet(None, 4, make)
    first, second, third, fourth = sheet.axes
    draw_onset(first, onset(model, sizes))
    draw_plane(second, model, sizes)
    draw_lines(third, sizes)
    draw_shares(fourth, model, sizes)
    sheet.letters()
    return sheet.figure


def draw_onset(axis, measured: Onset) -> None:
    distances, rates, slope = measured
    (power, _), covariance = np.polyfit(np.log(distances), np.log(rates), 1, cov=True)
    ratios = rates / distances
    print(
        f"onset: power {power:.4f} +- {covariance[0, 0] ** 0.5:.4f}; rate over "
        f"distance {ratios[0]:.4f} to {ratios[-1]:.4f}, normal form {slope:.4f}"
    )
    axis.loglog(distances, slope * distances, color=style.GREY, label="normal form")
    axis.loglog(distances, rates, "o", ms=3, color=style.BLACK, label="map")
    axis.margins(0.05)
    axis.set_xlabel(r"$\beta - \beta_1$")
    axis.set_ylabel(rf"$\sigma$ above the clock's ({UNIT})")
    axis.legend(frameon=False)


def draw_plane(axis, model: Model, sizes: Sizes) -> None:
    beta = np.linspace(1.0, 3.0, sizes.plane)
    gamma = np.geomspace(*GAMMA, sizes.plane)
    plane = dynamics.diagram(
        dmft.system(model.net),
        {"beta": beta, "gamma": gamma, "epsilon": model.file.epsilon},
        lambda p: model.start(dmft.parameters(**p)),
        diagrams.Plan(sizes.tokens_of_plane, sizes.tokens_of_plane, exponents=1),
        confirm=diagrams.Confirm(0),
    )
    rates = plane.entropy_production.transpose("gamma", "beta")
    most = plane.isel(rates.argmax(...))
    print(
        f"plane: most {float(most.entropy_production):.4g} at beta = "
        f"{float(most.beta):.3f}, gamma = {float(most.gamma):.3g}, "
        f"{PHASES[int(most.phase)]}"
    )
    mesh = axis.pcolormesh(beta, gamma, rates, cmap="magma_r", vmin=0, rasterized=True)
    axis.set_yscale("log")
    axis.set_xlabel(r"$\beta$")
    axis.set_ylabel(r"attention inverse temperature $\gamma$")
    axis.figure.colorbar(mesh, ax=axis, label=rf"$\sigma$ ({UNIT})")


def draw_lines(axis, sizes: Sizes) -> None:
    """Rates along beta of both published networks."""
    beta = np.linspace(*WHOLE, sizes.line)
    for (name, label), colour in zip(PRESETS.items(), style.SERIES, strict=False):
        model = published(name)
        params = dmft.parameters(beta, model.file.gamma, model.file.epsilon)
        how = dict(steps=sizes.tokens_of_plane, transient=sizes.tokens_of_plane)
        start = model.start(params)
        rate = dmft.entropy_production(model.net, params, start, **how)
        axis.plot(beta, rate.mean, ".-", ms=2, lw=0.6, color=colour, label=label)
    axis.set_xlabel(r"$\beta$")
    axis.set_ylabel(rf"$\sigma$ ({UNIT})")
    axis.legend(frameon=False)


def draw_shares(axis, model: Model, sizes: Sizes) -> None:
    """Rates per redrawn spin along beta, where a share of spins is redrawn."""
    beta = np.linspace(*WHOLE, sizes.line)
    for share, colour in zip(SHARES, style.SERIES, strict=False):
        values = model.file.gamma, model.file.epsilon
        params = dmft.parameters(beta, *values, redrawn=share)
        how = dict(steps=sizes.tokens_of_plane, transient=sizes.tokens_of_plane)
        rate = dmft.entropy_production(model.net, params, model.start(params), **how)
        look = {"ms": 2, "lw": 0.6, "color": colour, "label": rf"$\Delta = {share:g}$"}
        axis.plot(beta, rate.mean / share, ".-", **look)
    axis.set_xlabel(r"$\beta$")
    axis.set_ylabel(rf"$\sigma / \Delta$ ({UNIT})")
    axis.legend(frameon=False)


if __name__ == "__main__":
    main()
