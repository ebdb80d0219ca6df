"""A context of 32 tokens, and 8 or 16 independent patterns."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft
from statmech_attn.batches import lanes_for, limited, rng
from statmech_attn.dynamics import PHASES
from statmech_attn.dynamics.diagrams import Plan, Points, run, Scan


SIZES = {"three": (3, 8), "eight": (8, 64), "sixteen": (16, 128)}


def network(name):
    if name == "three":
        return dmft.network(dmft.load("random-c32").patterns, context=32)
    n_patterns, n_sites = SIZES[name]
    patterns = dmft.random_independent(
        jax.random.key(1), n_patterns=n_patterns, n_sites=n_sites, n_bits=5
    )
    return dmft.network(patterns, context=32)


def test_the_preset_is_made_from_its_key():
    file = dmft.load("random-c32")
    again = dmft.random_segments(
        jax.random.key(2), n_patterns=3, n_segments=8, n_bits=5
    )
    for one, other in zip(file.patterns, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert file.context == 32 and file.checkpoint is None
    net = network("three")
    assert net.dimension == 96 and net.output_rank == 3
    assert dmft.clock_period(net, file.epsilon) == 32
    # Five bits tell all 32 positions apart.
    assert len(np.unique(np.asarray(net.positional).reshape(32, -1), axis=0)) == 32


@pytest.mark.slow
@pytest.mark.parametrize("name", ("three", "sixteen"))
def test_structured_push_is_the_jacobian_at_any_size(name):
    net = network(name)
    params = dmft.parameters(1.7, 20.0, 0.05)
    state = dmft.from_random(net, params, jax.random.key(3))
    state = dmft.advance(net, params, state, 37)
    system = dmft.TangentMap(net, params)
    z = dmft.window(state)
    frame = rng.normal(jax.random.key(4), (*z.shape, 2))

    @eqx.filter_jit
    def structured(state, by_age):
        """Three pushes of columns given newest first."""
        age = (state.clock - jnp.arange(net.context)) % net.context
        columns = jnp.zeros_like(by_age).at[age].set(by_age)
        lifted, columns = system.lift(state), columns.reshape(net.dimension, -1)
        for _ in range(3):
            lifted, columns = system.push(lifted, columns)
        after = system.lower(lifted)
        age = (after.clock - jnp.arange(net.context)) % net.context
        return columns.reshape(by_age.shape)[age]

    @eqx.filter_jit
    def differentiated(z, column):
        def moved(z):
            after = dmft.from_window(net, params, z, state.clock)
            for _ in range(3):
                after = dmft.step(net, params, after)
            return dmft.window(after)

        return jax.jvp(moved, (z,), (column,))[1]

    found = structured(state, frame)
    for i in range(2):
        expected = differentiated(z, frame[..., i])
        scale = float(jnp.abs(expected).max())
        np.testing.assert_allclose(found[..., i], expected, atol=1e-12 * scale)


@pytest.mark.slow
def test_networks_with_long_sums_keep_to_one_width():
    """XLA may order terms by the width: few points go into batches as wide as many."""
    net = network("eight")
    file = dmft.load("poclopez-pe2")
    assert dmft.system(dmft.network(file.patterns, context=file.context)).any_width
    assert not dmft.system(net).any_width
    params = dmft.parameters(np.linspace(0.5, 4.0, 24), 60.0, 0.02)
    points = Points(params, dmft.from_row(net, params, 0))
    plan = Plan(64, 128, exponents=2, max_doublings=0, compiler="xla")
    scan, few = Scan(dmft.system(net), plan, points), points.take(np.arange(3))
    with limited(1):
        assert scan.lanes == lanes_for(24, any_width=False) == 24
    scan.advance.measured(24, 24, 1.0, seconds=1e6)
    assert scan.advance.width(3, 1e6) == 24
    a, b = run(scan, points), run(scan, few)
    for one, other in zip(
        jax.tree.leaves(a.verdicts), jax.tree.leaves(b.verdicts), strict=True
    ):
        np.testing.assert_array_equal(one[..., :3], other)


@pytest.mark.slow
def test_a_settled_orbit_has_the_period_of_its_clock():
    net, file = network("three"), dmft.load("random-c32")
    params = dmft.parameters([1.0, 2.8], file.gamma, file.epsilon)
    points = Points(params, dmft.from_row(net, params, 0))
    plan = Plan(transient=2000, steps=2048, exponents=2, max_doublings=1)
    found = run(Scan(dmft.system(net), plan, points), points).verdicts
    assert [PHASES[i] for i in found.phase] == ["fixed", "chaotic"]
    assert found.period[0] == 32
