"""Spectra against exponents known on paper, identities, and the error bar itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.batches import rng
from statmech_attn.dynamics import (
    classify,
    finite_time_exponents,
    gali,
    lyapunov_spectrum,
    orbit,
)
from statmech_attn.dynamics.exponents.frames import orthonormalise
from statmech_attn.dynamics.maps.catalogue import henon


def logistic(r):
    return lambda x: r * x * (1 - x)


def cat(z):
    return jnp.array([[2.0, 1.0], [1.0, 1.0]]) @ z % 1.0


def test_logistic_map_by_parameter():
    """ln 2 at r = 4, ln|2 - r| at fixed points; superstable orbits have no number."""
    r = jnp.array([4.0, 2.5, 3.2, 2.0, 1 + jnp.sqrt(5.0)])
    at = lambda r: lyapunov_spectrum(
        logistic(r), jnp.array(0.3), steps=40_000, transient=1000
    )
    found = jax.vmap(at)(r)
    value, error = found.exponents[:, 0], found.stderr[:, 0]
    assert abs(value[0] - jnp.log(2)) < 4 * error[0] and error[0] < 1e-3
    assert float(value[1]) == pytest.approx(-np.log(2), abs=1e-12)
    # 2-cycle: ln|4 + 2 r - r^2| / 2
    assert float(value[2]) == pytest.approx(np.log(0.16) / 2, abs=1e-12)
    # Near the critical point the derivative is the rounding of the orbit; there, zero.
    assert np.isnan(value[3:]).all() and np.isnan(error[3:]).all()
    assert (found.bounds[3:] < -10).all()
    assert found.resolved.tolist() == [1, 1, 1, 0, 0]
    flat = lyapunov_spectrum(logistic(2.0), jnp.array(0.5), steps=1000)
    assert np.isneginf(flat.exponents).all() and np.isneginf(flat.weighted).all()


def test_cat_map_is_exact_in_every_average():
    found = lyapunov_spectrum(cat, jnp.array([0.1, 0.234]), steps=4000)
    golden = np.log((3 + np.sqrt(5)) / 2)
    assert np.allclose(found.exponents, [golden, -golden], atol=1e-12)
    assert np.allclose(found.weighted, [golden, -golden], atol=1e-12)
    assert np.allclose(found.halves, [[golden, -golden]] * 2, atol=1e-12)


def test_henon_map_and_its_constant_determinant():
    found = lyapunov_spectrum(
        henon, jnp.array([0.1, 0.2]), steps=200_000, transient=1000
    )
    # Sprott: 0.41922, -1.62319; the sum is ln 0.3 at every step.
    z = (found.exponents - jnp.array([0.41922, -1.62319])) / found.stderr
    assert np.abs(z).max() < 4 and found.stderr.max() < 2e-3
    assert float(found.exponents.sum()) == pytest.approx(np.log(0.3), abs=1e-12)
    assert float(found.weighted.sum()) == pytest.approx(np.log(0.3), abs=1e-12)
    assert float(found.kaplan_yorke) == pytest.approx(1 + 0.41922 / 1.62319, abs=2e-3)


def test_coupled_logistic_maps_have_their_transverse_exponent():
    """Synchronised, (1 - e) f + e g: ln 2 along, ln 2 + ln|1 - 2 e| across."""

    def step(z, e=0.4):
        f = 4 * z * (1 - z)
        return (1 - e) * f + e * f[::-1]

    found = lyapunov_spectrum(step, jnp.array([0.3, 0.3]), steps=40_000, transient=10)
    exact = np.log(2) + np.array([0.0, np.log(0.2)])
    assert (np.abs(found.exponents - exact) < 4 * found.stderr).all()


@pytest.mark.parametrize("sigma", (0.5, 0.9))
def test_forced_map_below_one_contracts_at_ln_sigma(sigma):
    """x' = 2 s tanh(x) cos 2 pi theta: <ln|2 cos|> = 0 over a golden rotation."""
    golden = (np.sqrt(5) - 1) / 2

    def step(state, sigma):
        x, theta = state
        moved = 2 * sigma * jnp.tanh(x) * jnp.cos(2 * jnp.pi * theta)
        return moved, (theta + golden) % 1.0

    start = (jnp.array(0.0), jnp.array(0.1))
    found = lyapunov_spectrum(step, start, sigma, steps=50_000)
    # ln|cos| has poles, so the average over a rotation converges like ln(n) / n.
    assert np.allclose(found.exponents, [0, np.log(sigma)], atol=20 / 50_000)


@pytest.mark.slow
def test_standard_error_is_that_of_repeated_runs():
    """The scatter over starts agrees with the reported error (chi-square, 99.9 %)."""
    starts = rng.uniform(jax.random.key(7), (200,), 0.1, 0.9)
    found = jax.vmap(
        lambda x: lyapunov_spectrum(logistic(3.9), x, steps=4000, transient=100)
    )(starts)
    scatter = np.std(found.exponents[:, 0], ddof=1)
    reported = np.sqrt(np.mean(found.stderr[:, 0] ** 2))
    # 199 degrees of freedom for the scatter, 200 * 15 for the reported error.
    assert abs(scatter / reported - 1) < 3.3 * np.sqrt(1 / (2 * 199) + 1 / 6000)


def test_weighted_average_converges_faster_than_any_power_on_a_torus():
    """Rotation with a smooth stretching: exact exponent 0."""
    golden = (np.sqrt(5) - 1) / 2

    def step(z):  # conjugate to a rotation of the circle by a smooth map
        inverse = z[0] - 0.1 * jnp.sin(2 * jnp.pi * z[1]) / (2 * jnp.pi)
        theta = (z[1] + golden) % 1.0
        moved = inverse + golden + 0.1 * jnp.sin(2 * jnp.pi * theta) / (2 * jnp.pi)
        return jnp.stack([moved % 1.0, theta])

    bent = lambda x: (x + golden + 0.1 * jnp.sin(2 * jnp.pi * x) / (2 * jnp.pi)) % 1.0
    found = lyapunov_spectrum(step, jnp.array([0.2, 0.3]), steps=8000)
    assert np.abs(found.weighted).max() < 1e-12
    circle = lyapunov_spectrum(bent, jnp.array(0.2), steps=8000)
    assert abs(circle.weighted[0]) < 1e-9
    assert abs(circle.weighted[0]) < 1e-3 * abs(circle.exponents[0])


def test_a_lost_column_is_reported_and_not_printed_as_a_number():
    start = jnp.array([0.1, 0.2])
    found = lyapunov_spectrum(henon, start, steps=6400, reorthonormalize_every=40)
    # Gap of two exponents of 2.04 nats: e^{-82} after 40 steps, far below rounding.
    assert int(found.resolved) == 1 and not np.isfinite(found.exponents[1])


def test_a_state_or_jacobian_that_is_not_a_number_is_not_superstable():
    """NaN lengths stay NaN; only a length of exactly zero has the logarithm -inf."""
    escapes = lyapunov_spectrum(lambda z: z**2 + 10.0, jnp.array([0.1, 0.2]), steps=64)
    # The orbit stays in (0, 1), where the added term is 0 and its derivative 0 * inf.
    rooted = lambda x: 3.2 * x * (1 - x) + jnp.sqrt(jnp.maximum(x - 2, 0.0))
    broken = lyapunov_spectrum(rooted, jnp.array(0.3), steps=64)
    for found in (escapes, broken):
        assert np.isnan(found.exponents).all() and np.isnan(found.weighted).all()
        assert int(found.resolved) == 0 and np.isnan(found.kaplan_yorke)


def test_a_short_window_is_aligned():
    """Of a diagonal map exponents are exact however short the window is."""
    growth = np.array([1.2, 0.9])
    found = lyapunov_spectrum(lambda x: growth * x, jnp.ones(2), steps=96)
    assert np.allclose(found.exponents, np.log(growth), atol=1e-12)
    rough = lyapunov_spectrum(lambda x: growth * x, jnp.ones(2), steps=96, align=6)
    assert np.abs(rough.exponents - np.log(growth)).max() > 1e-4


def test_the_sum_rule_holds_in_every_window():
    """sum of exponents = <ln|det DF|>, of the Jacobians and not of the frame."""
    for every in (1, 5):
        found = lyapunov_spectrum(
            henon, jnp.array([0.1, 0.2]), steps=6400, reorthonormalize_every=every
        )
        assert float(found.log_det) == pytest.approx(np.log(0.3), abs=1e-13)
        assert abs(float(found.sum_rule)) < 1e-11
    one = lyapunov_spectrum(henon, jnp.array([0.1, 0.2]), steps=6400, exponents=1)
    with pytest.raises(ValueError, match="the sum rule needs all 2 exponents; got 1"):
        one.sum_rule


def test_what_was_lost_on_the_way_and_grew_again_is_seen():
    """J_2 J_1 of two steps: a column falls below rounding, then all others do."""
    first, second = jnp.diag(jnp.array([1.0, 1e-18])), jnp.diag(jnp.array([1e-18, 1.0]))

    def step(state):
        x, odd = state
        turn = jnp.array([[0.8, -0.6], [0.6, 0.8]])
        return jnp.where(odd == 1, second @ turn, first) @ x, 1 - odd

    start = (jnp.ones(2), jnp.array(0))
    options = dict(steps=640, reorthonormalize_every=2)
    assert np.isnan(lyapunov_spectrum(step, start, **options).exponents[1])


def test_running_average_ends_at_the_average():
    found = lyapunov_spectrum(henon, jnp.array([0.1, 0.2]), steps=3200, blocks=32)
    assert found.running.shape == (32, 2)
    assert np.allclose(found.running[-1], found.exponents, atol=1e-13)


@pytest.mark.parametrize("shape", [(6, 6), (6, 3), (3, 3, 5)])
def test_gram_schmidt_is_a_qr_decomposition(shape):
    frame = rng.normal(jax.random.key(0), shape)
    basis, lengths, pushed = jax.jit(orthonormalise)(frame)
    wide = lambda x: np.asarray(x).reshape(x.shape[0], x.shape[1], -1)
    for lane in range(wide(frame).shape[2]):
        q, r = np.linalg.qr(wide(frame)[..., lane])
        assert np.allclose(np.abs(np.diag(r)), lengths.reshape(shape[1], -1)[:, lane])
        gram = wide(basis)[..., lane].T @ wide(basis)[..., lane]
        assert np.abs(gram - np.eye(shape[1])).max() < 1e-14
        assert np.allclose(np.abs(q), np.abs(wide(basis)[..., lane]), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be at least 1; got 0"),
        ({"steps": 10, "transient": -1}, "transient must be at least 0; got -1"),
        ({"steps": 10, "exponents": 3}, r"exponents must lie in 1..2; got 3"),
        ({"steps": 10, "exponents": 0}, r"exponents must lie in 1..2; got 0"),
        ({"steps": 10, "reorthonormalize_every": 0}, "must be at least 1; got 0"),
        ({"steps": 10, "blocks": 6}, "multiple of 4; got 6"),
    ],
)
def test_bad_counts_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        lyapunov_spectrum(henon, jnp.array([0.1, 0.2]), **options)


def test_a_state_without_coordinates_is_refused():
    with pytest.raises(ValueError, match="no floating-point coordinates"):
        lyapunov_spectrum(lambda n: n + 1, jnp.array(0), steps=10)


@pytest.mark.parametrize(
    "of",
    [
        lambda step, x: lyapunov_spectrum(step, x, steps=10),
        lambda step, x: finite_time_exponents(step, x, window=2, count=2),
        lambda step, x: gali(step, x),
        lambda step, x: orbit(step, x, samples=2),
        lambda step, x: classify(step, x),
    ],
)
def test_a_map_that_changes_its_state_is_refused_in_one_line(of):
    state = jnp.array([0.1, 0.2])
    for step, got in (
        (lambda z: z[:1], r"float64\[1\]"),
        (lambda z: z.astype(jnp.float32), r"float32\[2\]"),
        (lambda z: (z[0], z[1]), r"float64\[\], float64\[\]"),
    ):
        message = rf"must return a state like the .*; got {got} from float64\[2\]"
        with pytest.raises(ValueError, match=message) as caught:
            of(step, state)
        assert "\n" not in str(caught.value)
