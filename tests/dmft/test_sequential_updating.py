"""Random sequential updating: limits of the map, and spins."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft, dynamics, montecarlo, statistics
from statmech_attn.dynamics.exponents.finite_exponents import finite_exponents


FILE = dmft.load("poclopez-pe2")
NET = dmft.network(FILE.patterns, context=FILE.context)


def given(redrawn, beta=1.4, epsilon=FILE.epsilon):
    return dmft.parameters(beta, FILE.gamma, epsilon, redrawn)


def orbit(params, samples, transient=0, net=NET):
    start = dmft.from_row(net, params, 0)
    system = dmft.sequential(net, float(params.epsilon))
    return dynamics.orbit(system, start, params, samples=samples, transient=transient)


def test_all_spins_at_once_are_the_published_map_to_the_last_bit():
    params = dmft.parameters(1.4, FILE.gamma, FILE.epsilon)
    state = dmft.from_row(NET, params, 0)
    _, seen = dmft.trajectory(NET, params, state, steps=30)
    np.testing.assert_array_equal(orbit(given(1.0), 30), seen.A)


def test_a_state_at_rest_is_the_same_however_many_spins_move():
    """m = tanh(beta m) of one pattern; copies of what stays are what is drawn."""
    one = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=3)
    for redrawn in (1.0, 0.3):
        ((m,),) = orbit(given(redrawn, 1.5, 0.0), 1, transient=400, net=one)
        assert m > 0.5 and m == pytest.approx(np.tanh(1.5 * m), abs=1e-12)


def test_coordinates_determine_the_state():
    """The state that they give goes on as the state that they were taken from."""
    params = given(0.4)
    start = dmft.from_row(NET, params, 0)
    map = dmft.sequential(NET).at(params)
    state = dmft.advance(NET, params, start, 6)
    again = map.at(state, map.vector(state))
    for name in ("v", "k", "newest", "means"):
        np.testing.assert_allclose(
            getattr(again, name), getattr(state, name), atol=1e-15, err_msg=name
        )
    changed = map.at(state, map.vector(state) + 1e-3)
    newest = [np.asarray(map.step(x).newest) for x in (changed, state)]
    assert np.abs(np.subtract(*newest)).max() > 1e-4


@pytest.mark.slow
def test_the_rank_is_that_of_the_coordinates_also_of_a_state_of_numpy():
    params = given(0.4, beta=1.2)
    map = dmft.sequential(NET).at(params)
    start = dmft.from_row(NET, params, 0)
    rank = finite_exponents(map, start)
    assert rank is not None and 0 < rank <= map.vector(start).size
    copied = jax.tree.map(np.asarray, start)
    assert finite_exponents(map, copied) == rank


def test_tangent_columns_are_differences_of_neighbouring_orbits():
    params, step = given(0.4, beta=1.2), 1e-6
    map = dmft.sequential(NET).at(params)
    state = dmft.from_checkpoint(NET, params, FILE)
    x = np.asarray(map.vector(state))
    push = jax.jit(lambda frame: map.push(map.lift(state), frame)[1])
    units = np.eye(x.size)[:2]
    frame = np.asarray(push(units.T))
    after = jax.jit(lambda x: map.vector(map.step(map.at(state, x))))
    for column, unit in zip(frame.T, units, strict=True):
        ends = (after(x + sign * step * unit) for sign in (1, -1))
        there, back = jax.tree.map(np.asarray, tuple(ends))
        np.testing.assert_allclose(column, (there - back) / (2 * step), atol=1e-6)


@pytest.mark.slow
@pytest.mark.statistical
def test_spread_between_runs_is_the_linear_noise_at_several_sizes():
    """Relative corrections are the square of the scores' spread, below 0.002 here."""
    redrawn, runs, steps = [0.25, 0.6, 1.0], 2000, 8
    params, sizes = given(redrawn), (6 * 10**10, 6 * 10**11, 6 * 10**12)
    start = dmft.from_checkpoint(NET, params, FILE)
    band = dmft.linear_noise(NET, FILE.patterns, params, start, steps=steps)
    _, theory = dmft.trajectory(NET, params, start, steps=steps)
    names = ("A", "m_o_se")
    allowed = statistics.threshold(2 * len(sizes) * len(names) * 3 * steps * 3, runs)
    for number, n_spins in enumerate(sizes):
        result = montecarlo.simulate(
            NET,
            FILE.patterns,
            params,
            start,
            n_spins=n_spins,
            runs=runs,
            steps=steps,
            key=jax.random.key(number),
        )
        for name in names:
            mean, spread, stderr, std, expected = (
                np.asarray(getattr(x, name))
                for x in (result.mean, result.spread, result.stderr, band.std, theory)
            )
            ratio = spread * np.sqrt(n_spins) / std
            assert np.abs(ratio - 1).max() * np.sqrt(2 * runs) < allowed, name
            assert np.abs((mean - expected) / stderr).max() < allowed, name
    parallel = dmft.parameters(1.4, FILE.gamma, FILE.epsilon)
    window = dmft.from_checkpoint(NET, parallel, FILE)
    today = dmft.linear_noise(NET, FILE.patterns, parallel, window, steps=steps)
    np.testing.assert_allclose(band.std.A[..., -1], today.std.A, rtol=1e-13)


@pytest.mark.slow
@pytest.mark.statistical
def test_counted_spins_and_a_literal_network_have_one_law():
    """Overlaps of 300 spins after two tokens, in mean and in spread."""
    params, runs, n_spins = given(0.4), 20_000, 300
    start = dmft.from_row(NET, params, 0)
    result = montecarlo.simulate(
        NET,
        FILE.patterns,
        params,
        start,
        n_spins=n_spins,
        runs=runs,
        steps=2,
        key=jax.random.key(5),
    )
    columns = np.repeat(FILE.patterns.semantic, n_spins // 3, axis=2)
    x = np.tile(columns[0, 0], (runs, 1))
    state = jax.tree.map(
        lambda a: jnp.repeat(a[..., None], runs, -1) if a.ndim else a, start
    )
    random, allowed = np.random.default_rng(6), statistics.threshold(2 * 2 * 3)
    for t in range(2):
        field = 1.4 * np.asarray(state.newest).T @ columns[0]
        drawn = np.where(random.random(x.shape) < (1 + np.tanh(field)) / 2, 1, -1)
        x = np.where(random.random(x.shape) < 0.4, drawn, x)
        means = x.reshape(runs, 3, -1).mean(-1).T
        overlaps = dmft.token_overlaps(NET, params, jnp.asarray(means), state.clock)
        state = dmft.receive(NET, params, state, overlaps, jnp.asarray(means))
        m = np.einsum("ai,ri->ar", columns[0], x) / n_spins
        mean, spread = result.mean.m_o_se[t], result.spread.m_o_se[t]
        z = (m.mean(1) - mean) / (np.sqrt(2 / runs) * spread)
        assert np.abs(z).max() < allowed
        assert np.abs(m.std(1) / spread - 1).max() * np.sqrt(runs) < allowed


@pytest.mark.parametrize("redrawn", (0.0, 1.5))
def test_bad_probabilities_are_refused(redrawn):
    with pytest.raises(ValueError, match=f"redrawn must lie in .* got {redrawn:g}"):
        given(redrawn)


def test_what_the_attention_window_does_not_determine_is_refused():
    params = given(0.5)
    state = dmft.from_row(NET, params, 0)
    with pytest.raises(ValueError, match="take dmft.sequential"):
        dmft.system(NET).at(params)
    with pytest.raises(ValueError, match="take dmft.sequential"):
        dmft.jacobian(NET, params, state)
    plain = dmft.from_row(NET, dmft.parameters(1.4, 1.0, 0.0), 0)
    with pytest.raises(ValueError, match="state has no class means to copy"):
        dmft.step(NET, params, plain)
    with pytest.raises(ValueError, match='method must be "collapsed" where'):
        montecarlo.simulate(
            NET,
            FILE.patterns,
            params,
            state,
            n_spins=300,
            runs=2,
            steps=1,
            key=jax.random.key(0),
            method="spins",
        )
    with pytest.raises(ValueError, match="tokens must be at least 1"):
        dmft.stretched(NET, 0)
