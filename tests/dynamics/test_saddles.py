"""Pseudo-orbits on saddles against exact rates, exponents and dimensions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dynamics
from statmech_attn.dynamics import saddles, stagger_and_step


inside = lambda x: (x >= 0) & (x <= 1)
near = lambda z: jnp.abs(z).max() < 4


def skew(x):
    """Slopes 2.5 and -5: of uniform starts 1/2.5 + 1/5 stay at each step, exactly."""
    return jnp.where(x < 0.5, 2.5 * x, 5 * (1 - x))


def henon(z):
    """With these parameters a complete horseshoe (Devaney, Nitecki 1979)."""
    return jnp.stack([5 - z[0] ** 2 + 0.3 * z[1], z[0]])


def horseshoe(longest: int):
    """Escape rate and largest exponent of this map from its cycles.

    All cycles solve x_n = s_n sqrt(5 + 0.3 x_(n-1) - x_(n+1)), whose iteration
    contracts.  With weights |Λ|^b the zero of the Fredholm determinant
    exp(-sum_n z^n / n sum_x |Λ|^b / |det(1 - DF^n(x))|) is e^-s(b), κ = -s(0) and
    λ_1 = s'(0) (Artuso, Aurell, Cvitanovic, Nonlinearity 3, 325, 1990).
    """
    traces, step = np.zeros((3, longest)), 1e-4
    for n in range(1, longest + 1):
        signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        x = 2.0 * signs
        for _ in range(200):
            x = signs * np.sqrt(5 + 0.3 * np.roll(x, 1, 1) - np.roll(x, -1, 1))
        jacobian = np.broadcast_to(np.eye(2), (2**n, 2, 2))
        for k in range(n):
            zero = np.zeros(2**n)
            of_step = np.array([[-2 * x[:, k], zero + 0.3], [zero + 1, zero]])
            jacobian = np.moveaxis(of_step, 2, 0) @ jacobian
        size = np.abs(np.linalg.eigvals(jacobian)).max(axis=1)
        share = 1 / np.abs(np.linalg.det(np.eye(2) - jacobian))
        traces[:, n - 1] = [(share * size**b).sum() for b in (-step, 0.0, step)]
    growth = []
    for trace in traces:
        terms = np.zeros(longest + 1)  # of the determinant, by its logarithm
        terms[0] = 1
        for n in range(1, longest + 1):
            terms[n] = -(trace[:n] * terms[n - 1 :: -1][:n]).sum() / n
        roots = np.roots(terms[::-1])
        growth.append(-np.log(np.abs(roots).min()))
    return -growth[1], (growth[2] - growth[0]) / (2 * step)


@pytest.fixture(scope="module")
def on_skew():
    return stagger_and_step(
        skew, jnp.array(0.3), inside, steps=4000, lifetime=25, key=jax.random.key(0)
    )


def test_states_on_a_saddle_live_for_as_long_as_was_asked(on_skew):
    saddle = on_skew
    assert saddle.complete and saddle.states.shape == (4000, 1)
    lifetime, _ = dynamics.escape_times(skew, saddle.states[:, 0], inside, horizon=60)
    assert lifetime.min() >= 25
    jumps = np.abs(np.asarray(skew(saddle.states[:-1])) - saddle.states[1:])
    assert saddle.largest <= jumps.max() * 1.0001 < 2e-3
    assert (jumps > 1e-13).sum() <= saddle.staggers < 4000


def test_exponents_are_those_of_the_natural_measure(on_skew):
    """Shares 2/3 and 1/3 of the two branches, whose logarithms differ by ln 2."""
    share = np.array([2, 1]) / 3
    exact = (share * np.log([2.5, 5])).sum()
    error = np.log(2) * np.sqrt(2) / 3 / np.sqrt(0.8 * 4000)  # of independent steps
    assert abs(on_skew.exponents[0] - exact) < 4 * error
    assert on_skew.stderr[0] == pytest.approx(error, rel=1.0)


@pytest.mark.slow
def test_rate_exponent_and_dimension_of_a_horseshoe_are_those_of_its_cycles():
    rate, exponent = horseshoe(9)
    assert np.allclose((rate, exponent), horseshoe(8), rtol=1e-7)
    starts = np.random.default_rng(0).uniform(-3, 3, (20_000, 2))
    escaped = dynamics.escape_rate(
        *dynamics.escape_times(henon, starts, near, horizon=100)
    )
    assert abs(escaped.rate - rate) < 4 * escaped.stderr
    saddle = stagger_and_step(
        henon, jnp.zeros(2), near, steps=3000, lifetime=20, key=jax.random.key(1)
    )
    assert abs(saddle.exponents[0] - exponent) < 4 * saddle.stderr[0]
    assert saddle.exponents.sum() == pytest.approx(np.log(0.3), abs=1e-9)
    entropy = exponent - rate
    expected = entropy / exponent + entropy / (exponent - np.log(0.3))
    value, error = saddle.dimension(escaped)
    assert abs(value - expected) < 4 * error
    assert error < 0.02


def test_the_dimension_of_the_middle_third_set_is_exact():
    dimension = saddles.kantz_grassberger
    assert dimension(np.log([3.0]), np.log(1.5)) == pytest.approx(np.log(2) / np.log(3))
    # Entropy ln 2; across: one whole direction, and the rest over the next exponent.
    exponents = np.array([1.2, -0.4, -0.9])
    expected = 1 + np.log(2) / 1.2 + (np.log(2) - 0.4) / 0.9
    assert dimension(exponents, 1.2 - np.log(2)) == pytest.approx(expected)
    assert np.isnan(dimension(np.array([1.2, 0.1]), 0.3))
    assert np.isnan(dimension(np.array([0.1]), 0.3))
    assert np.isnan(dimension(np.array([1.2, -0.1]), 0.3))


def test_regions_without_a_saddle_are_refused_in_a_line():
    key, middle = jax.random.key(0), jnp.array(0.5)
    with pytest.raises(ValueError, match="for 30 steps; the longest of .* for 1"):
        stagger_and_step(
            lambda x: x + 9, middle, inside, steps=10, lifetime=30, key=key
        )
    with pytest.raises(ValueError, match="size must be positive"):
        stagger_and_step(skew, middle, inside, steps=10, lifetime=30, key=key, size=0.0)
    # Jumps of some 2.5^-25 = 1e-10 are needed.
    tiny = stagger_and_step(
        skew, middle, inside, steps=4000, lifetime=25, key=key, size=1e-13
    )
    assert not tiny.complete and len(tiny.states) < 4000
