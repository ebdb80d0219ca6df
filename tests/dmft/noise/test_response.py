"""Response and noise: driven maps, closed forms, all states of spins, simulations."""

import itertools
import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from scipy import stats

from statmech_attn import dmft, montecarlo
from statmech_attn.dmft.noise.response import close_orbit, transfer
from statmech_attn.statistics.agreement import threshold


FILE = dmft.load("poclopez-pe2")
NET = dmft.network(FILE.patterns, context=FILE.context)
GRID = np.array([0.05, 0.3, 1.0, 2.2, 3.0])


def published(beta, **changes):
    params = dmft.parameters(beta, FILE.gamma, FILE.epsilon, **changes)
    return params, dmft.from_checkpoint(NET, params, FILE)


def hopfield(beta, redrawn=None, epsilon=0.0, seed=0, sign=1):
    """Symmetric couplings of two patterns over nine sites, and one token of context.

    Query and key patterns are arbitrary, as attention to one token is.
    """
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (4, 2, 9))
    signs[1] = sign * signs[0]
    net = dmft.network(dmft.site_classes(signs), context=1)
    params = dmft.parameters(beta, 1.0, epsilon, redrawn)
    return net, params, dmft.from_row(net, params, 0)


@jax.jit
def driven(net, params, state, fields):
    """Observables of the map in fields (steps, S) on the classes, (steps, 5, M)."""
    redrawn = 1.0 if params.redrawn is None else params.redrawn

    def turn(state, field):
        fresh = jnp.tanh(params.beta * net.output.T @ state.newest + field)
        before = 0.0 if state.means is None else (1 - redrawn) * state.means
        means = before + redrawn * fresh
        overlaps = dmft.token_overlaps(net, params, means, state.clock)
        after = dmft.receive(net, params, state, overlaps, means)
        seen = dmft.observation(net, params, state, overlaps, after)
        return after, jnp.stack([getattr(seen, name) for name in dmft.OBSERVABLES])

    return jax.lax.scan(turn, state, fields)


def kept_cycle(period):
    """Parameters and a window of a cycle of `floquet.json`."""
    reference = json.loads((Path(__file__).parents[1] / "floquet.json").read_text())
    (cycle,) = (c for c in reference["cycles"] if c["period"] == period)
    params = dmft.parameters(cycle["beta"], reference["gamma"], reference["epsilon"])
    return params, dmft.from_window(NET, params, np.array(cycle["window"]), 0)


def along(net, family, pattern):
    return np.sign(np.asarray(net.weighted))["ovqk".index(family), pattern]


def settled(net, params, start, transient=20_000):
    """The state from which time counts."""
    state = dmft.advance(net, params, start, transient + net.context)
    return dmft.advance(net, params, state, -state.clock % net.context)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("beta", "redrawn", "period", "family", "settling"),
    [
        (1.2, None, 4, "v", 3000),
        (1.0, 0.5, 4, "k", 1500),
        (1.27, None, 28, "q", 1400),
        (None, None, 60, "o", 1800),
    ],
)
def test_static_susceptibility_is_the_slope_of_the_average_in_the_field(
    beta, redrawn, period, family, settling
):
    if beta is None:
        params, start = kept_cycle(period)
    else:
        params, start = published(beta, redrawn=redrawn)
    given = dict(frequencies=[0.0], field=family, pattern=1, longest=300)
    result = dmft.response(NET, params, start, **given)
    assert result.period == period
    state = settled(NET, params, start)
    field = along(NET, family, 1)

    def average(b):
        fields = np.tile(b * field, (settling // period * period + period, 1))
        return np.asarray(driven(NET, params, state, fields)[1])[-period:].mean(0)

    slope = lambda b: (average(b) - average(-b)) / (2 * b)
    step = 1e-5  # Richardson: errors of order step^4
    expected = (4 * slope(step / 2) - slope(step)) / 3
    chi = result.susceptibility[0]
    assert abs(chi.imag).max() < 1e-12 * abs(chi).max()
    scale = abs(expected).max()
    np.testing.assert_allclose(chi.real, expected, rtol=1e-8, atol=1e-8 * scale)


@pytest.mark.parametrize("harmonic", [0, 1, -3])
def test_dynamic_susceptibility_is_that_of_the_driven_map(harmonic):
    """A wave of small amplitude; two of them, a quarter apart, are a complex one."""
    params, start = published(1.2)
    period = 4
    turns, step = 5 * 28, 2e-6  # a turn of the field ends with one of the orbit
    omega = 2 * np.pi * 9 / turns
    given = dict(frequencies=[omega], field="k", pattern=2, longest=300)
    result = dmft.response(NET, params, start, harmonic=harmonic, **given)
    assert result.period == period
    state = settled(NET, params, start)
    time = np.arange(12 * turns)[:, None]

    def slope(wave, b):
        fields = [sign * b * wave * along(NET, "k", 2) for sign in (1, -1)]
        up, down = (np.asarray(driven(NET, params, state, x)[1]) for x in fields)
        return (up - down)[-turns:] / (2 * b)

    moved = 0.0
    for factor, b in ((4 / 3, step / 2), (-1 / 3, step)):
        waves = np.cos(omega * time), np.sin(omega * time)
        moved = moved + factor * (slope(waves[0], b) + 1j * slope(waves[1], b))
    back = np.exp(-1j * (omega + 2 * np.pi * harmonic / period) * time[-turns:, 0])
    expected = np.tensordot(back, moved, (0, 0)) / turns
    chi = result.susceptibility[0]
    assert abs(chi - expected).max() < 1e-8 * abs(moved).max()


def test_a_cycle_of_280_tokens_responds_as_its_block_cyclic_equations():
    """All deviations of the cycle at once, as one sparse system."""
    params, start = kept_cycle(280)
    given = dict(frequencies=GRID, field="v", pattern=0, transient=0, longest=300)
    result = dmft.response(NET, params, start, **given)
    assert result.period == 280
    state = settled(NET, params, start, 0)
    orbit = close_orbit(NET, params, state, 280)
    p, d = orbit.J.shape[:2]
    push = orbit.gain * along(NET, "v", 0)
    shift = scipy.sparse.kron(np.roll(np.eye(p), 1, axis=1), np.eye(d))
    blocks = scipy.sparse.block_diag(orbit.J)
    right = np.einsum("tds,ts->td", orbit.B, push).ravel()
    for i, omega in enumerate(GRID):
        system = (np.exp(1j * omega) * shift - blocks).tocsc()
        z = scipy.sparse.linalg.spsolve(system, right).reshape(p, d)
        y = np.einsum("tod,td->to", orbit.C, z)
        y = y + np.einsum("tos,ts->to", orbit.D, push)
        chi = result.susceptibility[i].ravel()
        assert abs(chi - y.mean(0)).max() < 1e-10 * abs(chi).max()


def test_an_orbit_gone_round_a_thousand_times_responds_as_gone_round_once():
    """The product of 4000 Jacobians underflows; what is made of it does not change."""
    params, start = published(0.25)
    state = settled(NET, params, start)
    once = close_orbit(NET, params, state, 4)
    often = type(once)(*(np.tile(x, (1000,) + (1,) * (x.ndim - 1)) for x in once))
    for expected, value in zip(transfer(once, NET, GRID), transfer(often, NET, GRID)):
        np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12)


def test_the_spectrum_adds_up_to_the_solution_of_lyapunovs_equation():
    """Of class means x' = (1 - D) x + D tanh h, with matrices written out here."""
    beta, change = 1.8, 0.3
    net, params, start = hopfield(beta, change)
    frequencies = 2 * np.pi * np.arange(4096) / 4096
    result = dmft.response(net, params, start, frequencies=frequencies)
    m = np.asarray(dmft.advance(net, params, start, 20_000).newest)
    weighted = np.asarray(net.weighted)
    output = np.asarray(net.output)
    shrink = 1 - np.tanh(beta * output.T @ m) ** 2
    J = (1 - change) * np.eye(net.n_classes)
    J = J + change * beta * shrink[:, None] * (output.T @ weighted[1])
    noise = np.diag(change * (2 - change) * shrink / abs(weighted[0, 0]))
    covariance = scipy.linalg.solve_discrete_lyapunov(J, noise)
    variance = np.einsum("kas,st,kat->ka", weighted, covariance, weighted)
    spectrum = result.spectrum.mean(0)[1:]
    np.testing.assert_allclose(spectrum, variance, rtol=1e-10)


@pytest.mark.parametrize(
    ("beta", "redrawn"),
    [
        (0.5, 0.01),
        (1.8, None),
        (1.8, 0.5),
    ],
)
def test_a_hopfield_network_is_in_equilibrium(beta, redrawn):
    """At rest without order and with it, whatever share of the spins moves at once."""
    net, params, start = hopfield(beta, redrawn, epsilon=0.1)
    result = dmft.response(net, params, start, frequencies=GRID)
    np.testing.assert_allclose(result.temperature[:, 1:], 1, rtol=1e-9)
    assert np.isnan(result.temperature[:, 0]).all()


def test_a_cycle_of_two_of_symmetric_couplings_is_in_equilibrium():
    net, params, start = hopfield(1.8, sign=-1)
    result = dmft.response(net, params, start, frequencies=GRID)
    assert result.period == 2
    np.testing.assert_allclose(result.temperature[:, 1:], 1, rtol=1e-9)


def test_asymmetric_couplings_and_memory_are_out_of_equilibrium():
    params, start = published(1.2)
    result = dmft.response(NET, params, start, frequencies=GRID, longest=300)
    assert (abs(result.temperature[:, 1:] - 1) > 0.1).mean() > 0.8


def chain(couplings, redrawn):
    """Transition matrix of a few spins, each redrawn with this probability, at b."""
    states = np.array(list(itertools.product([-1.0, 1.0], repeat=len(couplings))))

    def matrix(field):
        h = states @ couplings.T + field
        up = redrawn / (1 + np.exp(-2 * h))
        up = up[:, None] + (1 - redrawn) * (states[:, None] > 0)
        return np.where(states > 0, up, 1 - up)  # from, to, spin

    return states, lambda field: matrix(field).prod(2)


def relation(redrawn, seed=3, symmetric=True, lags=6):
    """N (C(n) - C(n + 2)) / (2 - Delta) and R(n) of four spins, from all states.

    A spin that is redrawn alone is in equilibrium only if it does not couple to itself.
    """
    rng = np.random.default_rng(seed)
    couplings = rng.normal(size=(4, 4)) / 2
    if redrawn < 1:
        np.fill_diagonal(couplings, 0)
    if symmetric:
        couplings = (couplings + couplings.T) / 2
    states, matrix = chain(couplings, redrawn)
    field = rng.choice([-1.0, 1.0], 4)
    m, step = states @ field / 4, 1e-5
    T = matrix(0.2 * field)
    slope = (matrix((0.2 + step) * field) - matrix((0.2 - step) * field)) / (2 * step)
    law = np.linalg.matrix_power(T, 2**20)[0]
    powers = [np.linalg.matrix_power(T, n) for n in range(lags + 2)]
    later = np.array([law @ (m * (power @ m)) for power in powers]) - (law @ m) ** 2
    response = np.array([law @ slope @ power @ m for power in powers[:lags]])
    return 4 * (later[:-2] - later[2:]) / (2 - redrawn), response


def test_spins_that_all_move_obey_perettos_fluctuation_dissipation_relation():
    expected, response = relation(1.0)
    np.testing.assert_allclose(response, expected, rtol=0, atol=1e-9)
    expected, response = relation(1.0, symmetric=False)
    assert abs(response - expected).max() > 0.01  # detailed balance is needed


def test_spins_that_move_one_by_one_obey_the_relation_as_the_share_goes_to_zero():
    """First-order in Delta: half the share, half the relative difference."""
    errors = []
    for redrawn in (0.02, 0.01, 0.005):
        expected, response = relation(redrawn)
        errors.append((abs(response - expected) / abs(response)).max())
    assert errors[2] < 0.05
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 2, rtol=0.1)


@pytest.mark.parametrize("redrawn", [0.5, 0.1])
def test_spins_of_any_share_obey_the_relation_to_order_one_over_their_number(redrawn):
    """The Curie-Weiss magnet h = beta m + b of N spins, from all its magnetisations."""
    errors = []
    for n in (16, 32, 64, 128):
        m = 2 * np.arange(n + 1) / n - 1

        def matrix(b):
            up = redrawn / (1 + np.exp(-2 * (0.5 * m + b)))
            rows = []
            for k, chance in enumerate(up):
                lost = stats.binom.pmf(np.arange(k + 1), k, redrawn - chance)
                won = stats.binom.pmf(np.arange(n - k + 1), n - k, chance)
                rows.append(np.convolve(lost[::-1], won))
            return np.array(rows)

        T, step = matrix(0.0), 1e-5
        slope = (matrix(step) - matrix(-step)) / (2 * step)
        law = np.linalg.matrix_power(T, 2**12)[0]
        later = [law @ (m * x) for x in (m, T @ T @ m)]
        expected = n * (later[0] - later[1]) / (2 - redrawn)
        errors.append(expected / (law @ slope @ m) - 1)
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 2, rtol=0.05)


def test_one_pattern_has_the_spectrum_and_response_by_hand():
    """m = tanh(beta m): a = beta (1 - m^2), chi = (1 - m^2) / (1 - a e^{-i omega})."""
    net = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=1)
    params = dmft.parameters(1.3, 1.0, 0.0)
    start = dmft.from_row(net, params, 0)
    result = dmft.response(net, params, start, frequencies=GRID, field="q")
    m = float(dmft.advance(net, params, start, 5000).newest[0])
    shrink, turn = 1 - m**2, np.exp(-1j * GRID)
    chi = shrink / (1 - 1.3 * shrink * turn)
    for i in range(5):
        np.testing.assert_allclose(result.susceptibility[:, i, 0], chi, rtol=1e-11)
        expected = abs(chi) ** 2 / shrink
        np.testing.assert_allclose(result.spectrum[:, i, 0], expected, rtol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("beta", "redrawn", "period"), [(1.0, 0.5, 4), (1.27, None, 28)]
)
def test_sampled_spins_have_the_spectrum(beta, redrawn, period):
    """Periodograms of 112 tokens, from every phase of the clock or cycle."""
    params, start = published(beta, redrawn=redrawn)
    state = settled(NET, params, start)
    n, runs, n_spins, settling = 112, 1000, 6 * 10**13, 5 * 28
    sample = montecarlo.simulate(
        NET,
        FILE.patterns,
        params,
        state,
        n_spins=n_spins,
        runs=runs,
        steps=settling + n + period,
        key=jax.random.key(5),
        stored=runs,
    ).sample
    steps = settling + n + period
    _, shown = dmft.trajectory(NET, params, state, steps=steps)
    names, chosen = ("A", "m_o_se", "m_k"), np.arange(2, 54, 8)
    moved = [
        getattr(sample, x) - np.asarray(getattr(shown, x))[..., None] for x in names
    ]
    moved = np.stack(moved, 1)[settling:]
    powers = np.zeros((len(chosen), *moved.shape[1:]))
    for phase in range(period):
        waves = np.fft.fft(moved[phase : phase + n], axis=0)[chosen]
        powers += n_spins * abs(waves) ** 2 / (n * period)
    K = 3584
    given = dict(
        frequencies=2 * np.pi * np.arange(K) / K, observables=names, longest=64
    )
    spectrum = dmft.response(NET, params, start, **given).spectrum
    covariance = np.fft.ifft(spectrum, axis=0).real
    lags = np.arange(-n + 1, n)
    weights = (1 - abs(lags) / n) * np.exp(-2j * np.pi * np.outer(chosen, lags) / n)
    expected = np.tensordot(weights, covariance[lags], (1, 0)).real
    z = (powers.mean(-1) - expected) / (powers.std(-1, ddof=1) / runs**0.5)
    assert abs(z).max() < threshold(z.size, runs), z


def test_a_batch_is_its_points_and_a_data_set():
    params, start = published(np.array([[0.9, 1.0], [1.1, 1.2]]))
    result = dmft.response(NET, params, start, frequencies=GRID, longest=300)
    assert result.susceptibility.shape == (5, 5, 3, 2, 2)
    params, start = published(1.1)
    alone = dmft.response(NET, params, start, frequencies=GRID, longest=300)
    for name in ("susceptibility", "spectrum", "multiplier"):
        value = getattr(result, name)[..., 1, 0]
        np.testing.assert_allclose(value, getattr(alone, name), rtol=1e-9)
    dataset = result.to_dataset()
    sizes = {"batch_1": 2, "batch_2": 2, "frequency": 5, "observable": 5, "pattern": 3}
    assert dict(dataset.sizes) == sizes
    assert list(dataset.observable.values) == list(dmft.OBSERVABLES)
    assert "effective temperature" in repr(result) and "<table>" in result._repr_html_()


def test_an_orbit_that_still_turns_about_a_cycle_has_the_period_of_the_cycle():
    """It comes back sooner, to 1e-6, after a turn of 248 tokens than after 4."""
    params, start = published(1.2434)
    given = dict(frequencies=GRID, longest=300, transient=200_000)
    result = dmft.response(NET, params, start, **given)
    assert result.period == 4
    assert -np.log(result.multiplier) / 4 < 1e-4


@pytest.mark.slow
def test_without_a_clock_the_spectrum_adds_up_to_the_stationary_variance():
    """The window moves on by one slot, its coordinates by age do not."""
    params = dmft.parameters(0.9, 2.0, 0.0)
    start = dmft.from_row(NET, params, 0)
    grid = 2 * np.pi * np.arange(256) / 256
    result = dmft.response(NET, params, start, frequencies=grid, longest=300)
    assert result.period == 1
    state = settled(NET, params, start)
    std = dmft.linear_noise(NET, FILE.patterns, params, state, steps=256).std
    variance = np.stack([getattr(std, name)[-1] ** 2 for name in dmft.OBSERVABLES])
    np.testing.assert_allclose(result.spectrum.mean(0), variance, rtol=1e-10)


def test_an_orbit_that_is_nearly_settled_is_closed():
    params, start = published(1.2)
    given = dict(frequencies=GRID, longest=300)
    state = settled(NET, params, start, 1000)  # within 1e-6, not within rounding
    away = dmft.step(NET, params, dmft.advance(NET, params, state, 3))
    moved = np.asarray(away.attention) - np.asarray(state.attention)
    assert 1e-9 < abs(moved).max() < 1e-6
    early = dmft.response(NET, params, start, transient=1000, **given)
    late = dmft.response(NET, params, start, **given)
    np.testing.assert_allclose(early.spectrum, late.spectrum, rtol=1e-9)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"beta": 1.255}, "needs a fixed point or a cycle"),  # a torus
        ({"beta": 1.28}, "beta = 1.28 the orbit returns within"),  # chaos
        ({"observables": ("A", "m_x")}, "observables must be of A, m_o_se.*'m_x'"),
        ({"observables": ()}, "observables must be of"),
        ({"field": "w"}, "field must be one of o, v, q, k; got 'w'"),
        ({"pattern": 3}, r"pattern must lie in 0\.\.2; got 3"),
        ({"frequencies": [np.nan]}, "frequencies must be"),
        ({"frequencies": 0.3}, "frequencies must be"),
        ({"beta": 1.255, "tolerance": 0.05}, "Newton's method finds no cycle of 16"),
        ({"longest": 3}, "in 3 tokens"),
        ({"transient": -1}, "transient"),
    ],
)
def test_what_has_no_response_is_refused_in_one_line(changes, named):
    changes = {"beta": 1.0, "frequencies": GRID, "longest": 300} | changes
    params, start = published(changes.pop("beta"))
    with pytest.raises(ValueError, match=named) as error:
        dmft.response(NET, params, start, **changes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("beta", "named"),
    [(1.0, "a resonance at the frequency 0 rad"), (1.1, "is unstable")],
)
def test_orbits_that_are_not_stable_are_refused(beta, named):
    """m = tanh(beta m) at and above the critical point, held at m = 0."""
    net = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=1)
    params = dmft.parameters(beta, 1.0, 0.0)
    start = dmft.from_token(net, params, jnp.zeros(1))
    with pytest.raises(ValueError, match=named):
        dmft.response(net, params, start, frequencies=[0.3])


def test_traced_parameters_are_refused_in_one_line():
    def traced(beta):
        params = dmft.parameters(beta, FILE.gamma, FILE.epsilon)
        start = dmft.from_checkpoint(NET, params, FILE)
        return dmft.response(NET, params, start, frequencies=[0.3]).spectrum

    with pytest.raises(ValueError, match="response works with numbers"):
        jax.jit(traced)(1.0)


def test_an_orbit_that_diverged_is_refused():
    params, start = published(1.0)
    start = dmft.from_window(NET, params, np.zeros((4, 3)), 0)
    start = eqx.tree_at(lambda state: state.attention, start, np.nan * start.v)
    with pytest.raises(ValueError, match="the orbit diverged"):
        dmft.response(NET, params, start, frequencies=[0.3])
