"""Rows on entropy production: an exact cycle, another program, a reversible network."""

import jax
import numpy as np

from statmech_attn import dmft, montecarlo
from statmech_attn.statistics import standard_error
from statmech_attn.validation.rows import Measurement, Row


BETA = 1.5
UNIT = "nat / (token spin)"


def _recited():
    """Three orthogonal patterns, each followed by the next one."""
    hadamard = np.array([[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1]])
    patterns = dmft.site_classes([np.roll(hadamard, -1, 0), *3 * [hadamard]])
    net = dmft.network(patterns, context=1)
    params = dmft.parameters(BETA, 1.0, 0.0)
    start = dmft.from_row(net, params, 0)
    rate = dmft.entropy_production(net, params, start, steps=48, transient=400)
    return Measurement([float(rate.mean)])


def _square_overlap() -> float:
    """The square of m = tanh(beta m), from the iteration of this equation."""
    m = 1.0
    for _ in range(400):
        m = float(np.tanh(BETA * m))
    return m**2


def _published():
    """The published network where its torus is locked, tokens 12 000 to 24 000."""
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(1.26451, file.gamma, file.epsilon)
    start = dmft.from_checkpoint(net, params, file)
    rate = dmft.entropy_production(net, params, start, steps=12_000, transient=12_000)
    return Measurement([float(rate.mean)], [float(rate.stderr)], len(rate.blocks))


def _reversible():
    """Spins of a network of one slot whose couplings are symmetric."""
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (4, 2, 8))
    signs[0] = signs[1]
    patterns = dmft.site_classes(signs)
    net = dmft.network(patterns, context=1)
    params = dmft.parameters(BETA, 1.0, 0.0)
    sampled = montecarlo.simulate(
        net,
        patterns,
        params,
        dmft.from_row(net, params, 0),
        n_spins=1000,
        runs=64,
        steps=1201,
        transient=200,
        stored=0,
        key=jax.random.key(0),
        entropy_production=True,
    )
    rates = np.asarray(sampled.averages.entropy_production)
    return Measurement([float(rates.mean())], [float(standard_error(rates))], 64)


ROWS = (
    Row("Cycle of three patterns", ("sigma",), _recited, (BETA * _square_overlap(),),
        "sigma = beta m^2 (docs/theory/irreversibility.md, 1)", tolerance=1e-12,
        unit=UNIT),
    Row("Arrow of published network", ("sigma at beta 1.26451",), _published,
        (0.012968,), "an independent program", error=1e-6, unit=UNIT),
    Row("Little's symmetric network", ("sigma of 1000 spins",), _reversible, (0.0,),
        "detailed balance (Peretto 1984)", unit=UNIT),
)  # fmt: skip
