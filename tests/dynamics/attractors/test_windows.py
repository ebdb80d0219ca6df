"""Windows that grow: sets with slow passages are regular, chaos is not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from statmech_attn.dynamics import find_attractors, flow, Search
from statmech_attn.dynamics.attractors.basins import STABILITY
from statmech_attn.dynamics.attractors.orbit_follower import Follower
from statmech_attn.dynamics.attractors.settled_orbits import (
    CYCLE,
    IRREGULAR,
    REGULAR,
    settle,
)
from statmech_attn.dynamics.attractors.windows import (
    Averages,
    place_of,
    Windows,
    witnesses,
)
from statmech_attn.dynamics.exponents.lyapunov import window_weights


def weights_of(length):
    return np.asarray(jax.vmap(window_weights)((jnp.arange(length) + 0.5) / length))


def passing(period):
    """The flow theta' = omega - cos theta over a time 1, around an attracting circle.

    It passes the ghost of a saddle and a node in a time 2 pi / sqrt(omega^2 - 1), its
    period.  In z = exp(i theta) it is a Riccati equation, so its map is a Möbius map.
    """
    omega = np.sqrt(1 + (2 * np.pi / period) ** 2)
    (a, b), (c, d) = expm(0.5j * np.array([[omega, -1.0], [1.0, -omega]]))

    def step(x):
        z = x[0] + 1j * x[1]
        r = jnp.abs(z)
        w = (a * z + b * r) / (c * z + d * r) * jnp.sqrt(r)
        return jnp.stack([w.real, w.imag])

    return step


def near_separatrix(z, h=1e-4):
    """A cycle at energy h around both wells; it passes the saddle in ln(1 / h)."""
    x, y = z
    energy = y**2 / 2 - x**2 / 2 + x**4 / 4
    return jnp.stack([y, x - x**3 - y * (energy - h)])


def relaxing(z, mu=10.0):
    """Van der Pol's oscillator."""
    x, y = z
    return jnp.stack([y, mu * (1 - x**2) * y - x])


def assert_is_one_regular_attractor(found):
    assert found.kind.tolist() == [REGULAR] and (found.label == 0).all()
    assert STABILITY[found.stability].tolist() == ["stable"]


@pytest.mark.slow
@pytest.mark.parametrize("period", [100.37, 300.37])
def test_a_cycle_that_passes_a_ghost_slowly_is_one_regular_attractor(period):
    starts = np.random.default_rng(0).uniform(-1, 1, (8, 2))
    found = find_attractors(passing(period), starts, search=Search(horizon=65_536))
    assert_is_one_regular_attractor(found)
    assert np.hypot(*found.points[0].T) == pytest.approx(1, abs=1e-12)
    # The radius is the square root of itself at every step: within capture in 12.
    assert (found.orbits.lifetime[found.orbits.exact] <= 12).all()


@pytest.mark.slow
@pytest.mark.parametrize("field", [near_separatrix, relaxing])
def test_limit_cycles_of_flows_with_slow_passages_are_regular(field):
    starts = np.random.default_rng(1).uniform(-1.5, 1.5, (4, 2))
    system = flow(field, time=1.0, substeps=20)
    found = find_attractors(system, starts, search=Search(horizon=40_000))
    assert_is_one_regular_attractor(found)


@pytest.mark.slow
def test_chaos_is_irregular_up_to_the_last_look():
    """Narrow bands at 3.9065 aside; chaos at 3.9615 passes look 40 by chance."""
    r = np.delete(np.linspace(3.9, 4, 201), 13)
    logistic = lambda x, r: r * x * (1 - x)
    kind = settle(logistic, np.full(200, 0.3), r, Search(horizon=40_000)).kind
    assert np.sum(kind == IRREGULAR) == 196 and np.sum(kind == CYCLE) == 4


def test_independent_numbers_agree_by_chance_as_often_in_windows_of_any_length():
    """Their averages scatter as n^(-1/2), and so does what is asked of them."""
    rng, n, shares = np.random.default_rng(0), 4000, []
    for looks in (1, 16):
        x, w = rng.random((64 * looks, n)), weights_of(64 * looks)
        quarters = x.reshape(4, -1, 1, n)
        averages = Averages(
            (w.T @ x)[:, None],
            np.repeat(w.sum(axis=0)[:, None], n, axis=1),
            quarters.min(axis=1),
            quarters.max(axis=1),
        )
        shares.append(witnesses(averages, 2, looks)[0].mean())
    share = np.mean(shares)
    assert share > 0.01
    error = np.sqrt(2 * share * (1 - share) / n)
    # The range of 64 numbers is 3 % short of that of 1024, and the share with it.
    assert abs(shares[0] - shares[1]) < 3 * error + 0.03 * share


@pytest.mark.slow
def test_sums_over_looks_are_those_over_the_window():
    search = Search(horizon=7 * 64, record=64)
    system = lambda x: 3.9 * x * (1 - x)
    follower = Follower(system, search, np.array([0.3]))
    windows, state, lanes = Windows(1, 1, 64, 5.0), np.array([0.3]), np.array([0])
    orbit, looks, ends = [], follower.looks, []
    for number in range(looks):
        [(_, state, look)] = follower.look(state, None, lanes, number=number)
        place = place_of(number, looks)
        windows.add(lanes, look.part, look.record, place)
        orbit.extend(look.record[:, 0, 0])
        if not place.is_last:
            continue
        ends.append(number + 1)
        x = np.array(orbit[-64 * place.looks :])
        whole = windows.total.take(lanes)
        w = weights_of(len(x))
        means = (x @ w) / w.sum(axis=0)
        assert whole.sums[:, 0, 0] / whole.mass[:, 0] == pytest.approx(means, rel=1e-13)
        quarters = np.split(x, 4)
        if place.looks < 3:  # of three looks a quarter is whole quarters of looks
            assert whole.low[:, 0, 0].tolist() == [q.min() for q in quarters]
            assert whole.high[:, 0, 0].tolist() == [q.max() for q in quarters]
    assert ends == [1, 2, 4, 7]
