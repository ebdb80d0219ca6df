"""Spins at a Neimark-Sacker point, a doubling and a fold, beside the law without a fit.

    python analysis/critical_fluctuations.py --output docs/critical_fluctuations.png

Class counts of 10^4 to 10^8 spins of the published network, and of two networks of two
patterns and eight classes, around the bifurcations that continuation has found
(`montecarlo.FiniteSizes`).  Prints what was measured; it takes some minutes.
`--smoke` takes few spins.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from statmech_attn import dmft, montecarlo, plotting
from statmech_attn.dynamics import continuation
from statmech_attn.plotting.frame import sheets, style


SIZES = 10**4, 10**5, 10**6, 10**7, 10**8
NEAR_A_FOLD = -1.0, -0.5, 0.0, 0.5, 1.0, 2.0  # distances, beyond it where positive


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output", type=Path, default=Path("critical_fluctuations.png")
    )
    parser.add_argument("--smoke", action="store_true", help="few spins, for tests")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    sizes, runs = (SIZES[:3], 4) if options.smoke else (SIZES, 48)
    measured = {
        "Neimark–Sacker": published(n_spins=sizes, runs=runs),
        "period doubling": doubled(n_spins=sizes[:4], runs=runs),
        "fold": folded(n_spins=sizes[:4], runs=6 * runs, distances=NEAR_A_FOLD),
    }
    for name, dataset in measured.items():
        tell(name, dataset)
    figure = panels(measured)
    figure.savefig(options.output, dpi=style.PNG_DPI)
    print(f"wrote {options.output}")


def published(**how) -> xr.Dataset:
    """The Neimark-Sacker point of the published network."""
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    start = 1.2, np.zeros(net.dimension)
    return spins(file.patterns, net, file.gamma, file.epsilon, start, 1.3, **how)


def doubled(**how) -> xr.Dataset:
    """A doubling: value patterns are mostly the opposite of the output patterns."""
    patterns = small(seed=49, opposite=0.8)
    net = dmft.network(patterns, context=2)
    return spins(patterns, net, 20.0, 0.3, (0.0, np.zeros(4)), 2.0, **how)


def folded(**how) -> xr.Dataset:
    """A fold, where a state that came down from beta = 3 ends."""
    patterns = small(seed=2, opposite=0.0)
    net = dmft.network(patterns, context=2)
    start = 3.0, np.array([1.0, -1.0, 1.0, -1.0])
    return spins(patterns, net, 4.0, 0.1, start, 1.0, **how)


def small(seed: int, opposite: float) -> dmft.Patterns:
    """Two patterns of eight classes; a share of W^v is made -W^o."""
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], (4, 2, 8))
    signs[1] = np.where(rng.random((2, 8)) < opposite, -signs[0], signs[1])
    return dmft.site_classes(signs, positional=rng.choice([-1.0, 1.0], (4, 2, 2)))


def spins(
    patterns, net, gamma, epsilon, start, end, *, n_spins, runs, **how
) -> xr.Dataset:
    """Spins at the first bifurcation on the way from a state at beta to another beta.

    N are the nearest that the classes divide.
    """
    beta, window = start
    params = dmft.parameters(beta, gamma, epsilon)
    state = dmft.from_window(net, params, window.reshape(net.context, -1), 0)
    state = dmft.advance(net, params, state, 4000)
    parameters = {"beta": beta, "gamma": gamma, "epsilon": epsilon}
    turn = dmft.strobe(net, epsilon)
    problem = continuation.Problem(turn, jnp.zeros(net.dimension), parameters, "beta")
    branch = continuation.follow_cycle(
        problem,
        dmft.strobe_point(net, params, state),
        beta,
        direction=np.sign(end - beta),
        within=(min(beta, end), max(beta, end)),
    )
    special = next(point for point in branch if point.special).special[0]
    law = dmft.critical_fluctuations(problem, special)
    print(law)
    whole = [round(n / net.n_classes) * net.n_classes for n in n_spins]
    points = montecarlo.FiniteSizes(
        jax.random.key(0),
        net,
        patterns,
        law,
        montecarlo.CriticalSampling(runs=runs),
        gamma=gamma,
        epsilon=epsilon,
        n_spins=whole,
        **how,
    )
    return points.compute()


def tell(name: str, dataset: xr.Dataset) -> None:
    """What was measured, beside the theory."""
    of = "passage_time" if name == "fold" else "mean_square"
    value, error = (dataset[of + x] / dataset[of + "_theory"] for x in ("", "_stderr"))
    for n in dataset.n_spins.values:
        rows = (x.sel(n_spins=n).values.round(3).tolist() for x in (value, error))
        print("{}, N = {}: {} +- {} of theory".format(name, n, *rows))
    names = dataset.quantity.attrs["flag_meanings"].split()
    for code in dataset.quantity.values:
        row = dataset.sel(quantity=code)
        print(
            f"{name}: exponent of the {names[code]} {float(row.exponent):.4f} +- "
            f"{float(row.exponent_stderr):.4f}, theory {float(row.exponent_theory):.4f}"
        )


@style.styled
def panels(measured: dict[str, xr.Dataset]):
    """A row of panels for every bifurcation."""
    sheet = sheets.sheet(None, 9, lambda: sheets.grid(style.DOUBLE, 7.4, 3, 3))
    for row, (name, dataset) in enumerate(measured.items()):
        axes = sheet.axes[3 * row : 3 * row + 3]
        plotting.figure(dataset, "finite_size", axes=axes)
        axes[0].set_title(name)
    sheet.legend(of=slice(1))
    sheet.letters()
    sheet.note("bars: one standard error; pale: outside the limits of the theory")
    return sheet.figure


if __name__ == "__main__":
    main()
