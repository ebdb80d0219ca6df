"""Rotation numbers: closed forms, convergence, the network's own torus."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft, dynamics
from statmech_attn.dynamics.motion import rotation


GOLDEN = (np.sqrt(5) - 1) / 2


def rigid(x, p):
    return x + p["omega"]


def sine(x, p):
    """The sine circle map; 0/1 locks for |omega| < K/2 pi."""
    return x + p["omega"] - p["K"] / (2 * jnp.pi) * jnp.sin(2 * jnp.pi * x)


def test_a_rigid_rotation_has_its_own_rotation_number():
    omega = np.array([GOLDEN, 0.1, -0.3, np.sqrt(2), 0.0])
    found = rotation.rotation_number(rigid, 0.2, {"omega": omega}, steps=2000)
    # Rounding of the sum over 2000 weighted steps; measured 2e-15.
    np.testing.assert_allclose(found.number, omega, atol=1e-12)
    # Angles of a turn, rounded once a step.
    assert (found.error >= 2.0**-53 * np.sqrt(2000 / 3)).all()
    assert (abs(found.number - omega) <= found.error).all()
    assert (found.error < 1e-12).all()
    assert (found.result == rotation.CONVERGED).all()


def test_on_a_torus_the_weighted_average_converges_faster_than_any_power():
    parameters = {"omega": GOLDEN, "K": 0.8}
    at = lambda n: rotation.rotation_number(sine, 0.1, parameters, steps=n)
    best = float(at(100_000).number)
    errors = np.array([abs(float(at(n).number) - best) for n in (300, 1000, 3000)])
    powers = np.log(errors[:-1] / errors[1:]) / np.log(10 / 3)
    assert powers[0] > 4 and powers[1] > powers[0]
    orbit = np.zeros(3001)
    for i in range(3000):
        orbit[i + 1] = float(np.asarray(sine(orbit[i], parameters)))
    plain = abs(orbit[-1] / 3000 - best)
    assert plain > 1e-6 > 1e4 * errors[-1]


@pytest.mark.parametrize(
    ("omega", "K", "steps"),
    # Not once around beside 11/28 and 85/232; one half right by chance
    [(0.4, 0.9, 500), (0.381966, 0.99, 4000), (0.4, 0.9, 4000)],
)
def test_the_stated_error_covers_the_true_one(omega, K, steps):
    """Truth: 1 600 000 steps, four starts agree to 5e-14."""
    exact = {0.9: 0.3928694965929406, 0.99: 0.3663793103448019}[K]
    parameters = {"omega": omega, "K": K}
    starts = np.random.default_rng(1).uniform(size=64)
    rough = rotation.rotation_number(sine, starts, parameters, steps=steps)
    off = np.abs(np.asarray(rough.number) - exact)
    beyond = off > np.asarray(rough.error) + 1e-13
    assert beyond.mean() <= 0.05
    assert not (beyond & (np.asarray(rough.result) == rotation.CONVERGED)).any()


def test_the_rotation_number_does_not_depend_on_the_start_or_the_batch():
    parameters = {"omega": 0.37, "K": 0.7}
    starts = np.linspace(0, 1, 5)
    found = rotation.rotation_number(sine, starts, parameters, steps=20_000)
    alone = rotation.rotation_number(sine, starts[3], parameters, steps=20_000)
    assert np.ptp(np.asarray(found.number)) < 1e-12
    assert float(found.number[3]) == float(alone.number)


@functools.cache
def conjugated():
    """A rotation of the plane seen through a nonlinear change of coordinates."""
    bend = lambda z: jnp.array([z[0] + 0.3 * z[1] ** 2, z[1] + 0.2 * z[0]])

    def straight(u):
        slope = lambda x: u[0] - 0.3 * (u[1] - 0.2 * x) ** 2
        x = jax.lax.fori_loop(0, 60, lambda _, x: slope(x), u[0])
        return jnp.array([x, u[1] - 0.2 * x])

    def step(u, omega):
        c, s = jnp.cos(2 * jnp.pi * omega), jnp.sin(2 * jnp.pi * omega)
        return bend(jnp.array([[c, -s], [s, c]]) @ straight(u))

    return step, bend(jnp.array([0.5, 0.0]))


@pytest.mark.parametrize("omega", [0.6180339887, 0.1234567, 0.9])
def test_a_curve_in_the_plane_has_the_rotation_number_of_its_conjugate(omega):
    step, start = conjugated()
    found = rotation.curve_rotation(
        dynamics.System(step, lambda u: u), start, omega, steps=4000
    )
    assert float(found.number) == pytest.approx(omega, abs=1e-10)
    unoriented = rotation.curve_rotation(step, start, omega, steps=4000)
    assert float(unoriented.number) == pytest.approx(min(omega, 1 - omega), abs=1e-10)


def test_every_second_point_turns_twice_as_far():
    step, start = conjugated()
    found = rotation.curve_rotation(
        dynamics.System(step, lambda u: u), start, 0.15, steps=4000, every=2
    )
    assert float(found.number) == pytest.approx(0.3, abs=1e-10)


@pytest.mark.slow
def test_a_curve_that_does_not_surround_its_center_once_is_ambiguous():
    angle = 2 * np.pi * GOLDEN * np.arange(3000)
    trefoil = np.stack([np.cos(2 * angle), np.sin(2 * angle)], axis=1)
    trefoil *= 1 + 0.3 * np.cos(angle)[:, None]
    found = rotation.series_rotation(jnp.asarray(trefoil))
    wide = np.stack([np.cos(angle), np.sin(angle) * np.sin(3 * angle)], axis=1)
    crossed = rotation.series_rotation(jnp.asarray(wide))
    # The angle of the first turns by 2 rho, but its points lie on two sheets.
    assert {int(found.result), int(crossed.result)} == {rotation.AMBIGUOUS}


@pytest.mark.slow
def test_points_on_a_line_have_the_frequency_of_their_one_coordinate():
    """Rounding decides on which side of its center a straight line passes."""
    turns = GOLDEN * np.arange(3072)
    seen = np.cos(2 * np.pi * (turns + 0.1))
    for off in (0.0, 1e-18, -1e-18):
        number, error, oriented = rotation.frequency_of(
            jnp.stack([jnp.full(3072, off), seen], axis=1)
        )
        assert not oriented
        assert abs(float(number) - (1 - GOLDEN)) <= float(error) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(("p", "q"), [(1, 2), (2, 5)])
def test_a_cycle_surrounds_its_center_from_three_points_on(p, q):
    angle = 2 * jnp.pi * (p / q) * (jnp.arange(420) % q)
    cycle = jnp.stack([jnp.cos(angle), 0.4 * jnp.sin(angle + 0.3)], axis=1)
    found = rotation.series_rotation(cycle)
    expected = rotation.AMBIGUOUS if q == 2 else rotation.CONVERGED
    assert int(found.result) == expected
    assert float(found.number) == pytest.approx(p / q, abs=1e-12)


def test_a_diverging_orbit_is_not_a_number():
    x = jnp.ones((40, 2)).at[7].set(jnp.nan)
    assert int(rotation.series_rotation(x).result) == rotation.NOT_A_NUMBER


def test_a_chaotic_orbit_is_not_converged():
    parameters = {"omega": 0.3, "K": 9.0}
    found = rotation.rotation_number(sine, 0.1, parameters, steps=4000)
    assert int(found.result) == rotation.UNSETTLED


def test_inside_a_locking_the_number_is_the_fraction():
    found = rotation.rotation_number(
        sine, 0.0, {"omega": 0.5, "K": 1.0}, steps=2000, transient=100
    )
    assert float(found.number) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: dynamics.rotation_number(rigid, 0.0, {"omega": 0.1}, steps=1),
            "steps must be at least 2; got 1",
        ),
        (
            lambda: rotation.rotation_number(lambda x, p: 2 * x, 0.1, {}, steps=10),
            "lift must satisfy .* misses by 1",
        ),
        (
            lambda: rotation.rotation_number(rigid, 0.0, {"omga": 0.1}, steps=10),
            "asks for the parameter 'omega', which is not given",
        ),
        (
            lambda: dynamics.rotation_number(rigid, 0.0, {"omega": 0.1}, steps=1e4),
            r"steps must be a whole number; got 10000\.0",
        ),
        (
            lambda: rotation.curve_rotation(
                lambda x: x / 2, jnp.array([1, 0]), steps=10
            ),
            r"must return a state like .*; got float64\[2\] from int64\[2\]",
        ),
        (
            lambda: rotation.principal_plane(jnp.zeros((5, 1))),
            "two coordinates or more; got 1",
        ),
        (
            lambda: rotation.rotation_number(
                lambda x, p: x * np.nan, 0.1, {}, steps=10
            ),
            "lift must satisfy .* misses by nan",
        ),
    ],
)
def test_impossible_requests_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.slow
def test_the_networks_torus_has_the_known_rotation_number_and_locks_to_a_quarter():
    """Of the published network, per clock period, at three beta."""
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)

    @jax.jit
    @jax.vmap
    def at(beta):
        values = dmft.Parameters(beta, jnp.array(file.gamma), jnp.array(file.epsilon))
        start = dmft.from_checkpoint(net, values, file)
        step = lambda state: dmft.step(net, values, state)
        return dynamics.curve_rotation(
            step, start, steps=5000, transient=10_000, every=net.context
        )

    found = at(jnp.array([1.2445, 1.255, 1.25]))
    assert (found.result[:2] == rotation.CONVERGED).all()
    # docs/validation.md, by the strongest line of a spectrum
    assert float(found.number[1]) == pytest.approx(0.256140, abs=5e-7)
    assert 0.2420 < float(found.number[0]) < 0.2435
    assert abs(found.number[2] - 0.25) <= max(found.error[2], 1e-14) < 1e-6
