"""Kaplan-Yorke dimension, finite-time exponents, alignment: known answers."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft
from statmech_attn.dynamics import (
    catalogue,
    finite_time_exponents,
    FiniteTimeExponents,
    gali,
    lyapunov_spectrum,
    orbit,
    Spectrum,
)
from statmech_attn.dynamics.exponents.finite_time import error_of_mean
from statmech_attn.dynamics.exponents.frames import completed


GOLDEN = catalogue.GOLDEN
START = jnp.array([0.1, 0.2])


def spectrum_of(*exponents):
    """A spectrum of which only the exponents matter."""
    values = jnp.array(exponents)
    zero, halves = jnp.zeros_like(values), jnp.stack([values, values])
    bounds = jnp.concatenate([values[None], halves])
    return Spectrum(
        values, values, zero, jnp.array(2), halves, zero[None], bounds, jnp.array(1)
    )


# Results under vmap

PROPERTIES = (
    (
        lambda x: lyapunov_spectrum(catalogue.henon, x, steps=64),
        (lambda s: s.kaplan_yorke, lambda s: s.running),
    ),
    (
        lambda x: finite_time_exponents(catalogue.henon, x, window=5, count=32),
        (
            lambda f: f.mean,
            lambda f: f.variance,
            lambda f: f.merged(2).values,
            lambda f: f.diffusion()[1],
        ),
    ),
    (
        lambda x: gali(catalogue.henon, x, samples=8, every=2),
        (lambda a: a.rate(), lambda a: a.power(), lambda a: a.log_sali),
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize(("compute", "properties"), PROPERTIES)
def test_results_of_a_batch_on_either_end_are_those_of_a_loop(compute, properties):
    """Rounding may differ by lanes; chaos has amplified it little after 160 steps."""
    starts = jnp.stack([START, START + 0.05])
    last, first = (jax.vmap(compute, out_axes=axis)(starts) for axis in (-1, 0))
    alone = [compute(x) for x in starts]
    for of in properties:
        loop = [of(found) for found in alone]
        close = functools.partial(np.allclose, rtol=1e-6, atol=1e-6)
        assert close(of(last), np.stack(loop, axis=-1))
        assert close(of(first), np.stack(loop))


# Kaplan-Yorke dimension


@pytest.mark.parametrize(
    ("exponents", "dimension"),
    [
        ((0.42, -1.62), 1 + 0.42 / 1.62),
        ((0.9056, 0.0, -14.57), 2 + 0.9056 / 14.57),
        ((-0.1, -0.2), 0.0),
        ((-np.inf,), 0.0),
        ((0.3, -np.inf), 1.0),
        ((0.96, -0.96), 2.0),
        ((0.96, -0.96 + 1e-15), 2.0),
        ((0.0,), 1.0),
        ((0.5, 0.2), np.nan),
        ((0.5, np.nan), np.nan),
    ],
)
def test_kaplan_yorke_dimension(exponents, dimension):
    found = float(spectrum_of(*exponents).kaplan_yorke)
    assert found == pytest.approx(dimension, abs=1e-12, nan_ok=True)


@pytest.mark.slow
def test_kaplan_yorke_dimension_of_a_torus_is_its_number_of_zeros():
    """Plain averages leave noise of either sign on the zeros."""
    shift = jnp.array([GOLDEN, np.sqrt(2)])
    bend = lambda x: (x + shift + 0.1 * jnp.sin(2 * jnp.pi * x) / (2 * jnp.pi)) % 1.0
    of = lambda step, **options: lyapunov_spectrum(
        step, jnp.array([0.4, 0.5]), steps=20_000, transient=20_000, **options
    )
    both, one = of(bend), of(bend, exponents=1)
    assert np.abs(both.exponents).max() < 1e-3
    assert float(both.kaplan_yorke) == 2
    # One zero of a two-dimensional map does not say how many there are.
    assert np.isnan(one.kaplan_yorke)
    for noise in (1e-4, -1e-4):
        bent = eqx.tree_at(lambda s: s.exponents, both, jnp.array([noise, -noise]))
        assert float(bent.kaplan_yorke) == 2
    # The invariant circle just beyond the Neimark-Sacker bifurcation at a = 2.
    circle = of(catalogue.at(catalogue.delayed_logistic, a=2.01))
    assert float(circle.kaplan_yorke) == 1


# Finite-time exponents


def test_finite_time_exponents_average_to_the_spectrum():
    found = finite_time_exponents(catalogue.henon, START, window=30, count=400)
    # The determinant is -0.3 at every step.
    assert np.allclose(found.values.sum(axis=1), np.log(0.3), atol=1e-12)
    spectrum = lyapunov_spectrum(catalogue.henon, START, steps=12_000)
    error = np.hypot(spectrum.stderr, np.sqrt(found.variance / 400))
    assert (np.abs(found.mean - spectrum.exponents) < 4 * error).all()


@pytest.mark.slow
def test_growth_of_a_skew_tent_diffuses_with_its_exact_constant():
    """Factors 1/a and 1/(1 - a) are independent: mean and variance in closed form."""
    a, count = 0.3, 6000
    found = finite_time_exponents(
        catalogue.at(catalogue.skew_tent, a=a), jnp.array(0.123), window=50, count=count
    )
    entropy = -a * np.log(a) - (1 - a) * np.log(1 - a)
    diffusion = a * (1 - a) * np.log((1 - a) / a) ** 2
    assert abs(found.mean[0] - entropy) < 4 * np.sqrt(found.variance[0] / count)
    windows, spread, error = found.diffusion()
    assert windows.tolist() == [50 * 2**i for i in range(9)]
    # Nine levels of one orbit: 4 errors each.
    assert (np.abs(spread[:, 0] - diffusion) < 4 * error[:, 0]).all()


def test_finite_time_exponents_of_a_diverging_map_are_not_numbers():
    found = finite_time_exponents(lambda z: z**2 + 10.0, START, window=5, count=4)
    assert np.isnan(found.values).all()


def test_short_windows_are_refused():
    few = FiniteTimeExponents(jnp.zeros((8, 1)), 5)
    with pytest.raises(ValueError, match="at least 16 windows; got 8"):
        few.diffusion()
    with pytest.raises(ValueError, match=r"turns must lie in 1\.\.4; got 5"):
        few.merged(5)
    with pytest.raises(ValueError, match=r"turns must lie in 1\.\.4; got 0"):
        few.merged(0)
    with pytest.raises(ValueError, match="window must be at least 1; got 0"):
        finite_time_exponents(catalogue.henon, START, window=0, count=10)


# Alignment


def test_alignment_of_the_cat_map_is_exact():
    found = gali(catalogue.cat, jnp.array([0.1, 0.234]), samples=50)
    gap = 2 * np.log((3 + np.sqrt(5)) / 2)
    assert float(found.rate()[0]) == pytest.approx(-gap, abs=1e-10)
    # SALI -> GALI_2 for nearly parallel vectors, at e^-962 without underflow.
    assert float(found.log_sali[-1]) == pytest.approx(float(found.log_gali[-1, 0]))
    assert found.log_gali[-1, 0] < -900


def henon_3d(z, a=1.76, b=0.1):
    """Generalised Henon map (Baier & Klein, Phys. Lett. A 151, 281, 1990)."""
    return jnp.stack([a - z[1] ** 2 - b * z[2], z[0], z[1]])


def test_alignment_is_the_volume_of_pushed_unit_vectors():
    """Against singular values and sums of vectors that are pushed by hand."""
    every, samples = 2, 4
    found = gali(henon_3d, jnp.zeros(3), order=3, samples=samples, every=every)
    frame = jnp.asarray(completed(np.empty((3, 0)), 3))
    jacobian, x = jax.jacfwd(henon_3d), jnp.zeros(3)
    for sample in range(samples):
        for _ in range(every):
            x, frame = henon_3d(x), jacobian(x) @ frame
            frame = frame / jnp.linalg.norm(frame, axis=0)
        volumes = [
            np.log(np.linalg.svd(frame[:, :k], compute_uv=False)).sum() for k in (2, 3)
        ]
        assert np.allclose(found.log_gali[sample], volumes, atol=1e-9)
        sali = min(np.linalg.norm(frame[:, 0] + s * frame[:, 1]) for s in (1, -1))
        assert float(found.log_sali[sample]) == pytest.approx(np.log(sali), abs=1e-9)


def test_alignment_decays_with_the_gaps_of_the_spectrum():
    """GALI_k ~ exp(-sum (lambda_1 - lambda_j) n) on the Henon attractor."""
    found = gali(catalogue.henon, START, transient=1000, samples=1000)
    spectrum = lyapunov_spectrum(catalogue.henon, START, steps=10_000, transient=1000)
    gap = spectrum.exponents[0] - spectrum.exponents[1]
    # The same stretch of orbit up to alignment: twice the error of lambda_1.
    assert abs(found.rate(0.0)[0] + gap) < 8 * spectrum.stderr[0]


def test_alignment_on_a_torus_of_the_standard_map_falls_like_a_power():
    found = gali(
        catalogue.at(catalogue.standard, k=0.5), jnp.array([0.4, 0.2]), samples=1000
    )
    assert float(found.power(0.1)[0]) == pytest.approx(-2, abs=0.02)
    assert abs(found.rate(0.5)[0]) < 1e-3


@pytest.mark.slow
def test_alignment_takes_a_batch_of_networks_with_their_own_tangent():
    patterns = dmft.random_independent(
        jax.random.key(1), n_patterns=2, n_sites=16, n_bits=1
    )
    net = dmft.network(patterns, context=1)

    def of(beta):
        params = dmft.parameters(beta, 3.0, 0.1)
        state = dmft.from_row(net, params, 0)
        return gali(dmft.system(net), state, params, samples=5, every=1).log_gali

    both = of([0.5, 2.0])
    assert both.shape == (5, 1, 2)
    np.testing.assert_allclose(both[..., 1], of(2.0), atol=1e-9)


def test_alignment_of_a_diverging_map_is_not_a_number():
    found = gali(lambda z: z**2 + 10.0, START, samples=5)
    assert np.isnan(found.log_gali[-1]).all()


def test_alignment_of_lost_vectors_has_no_number():
    """-inf at the superstable z = 0; NaN where rounding alone keeps two apart."""
    flat = gali(lambda z: z**2, jnp.zeros(2), samples=3)
    assert np.isneginf(flat.log_gali).all()
    onto_a_line = lambda z: jnp.stack([z[0] / 2, z[1] ** 2])
    assert np.isnan(gali(onto_a_line, jnp.zeros(2), samples=3).log_gali).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 1}, "order must be at least 2; got 1"),
        ({"order": 3}, "order must be at most 2, the dimension of the state; got 3"),
        ({"samples": 1}, "samples must be at least 2; got 1"),
        ({"every": 0}, "every must be at least 1; got 0"),
    ],
)
def test_bad_alignments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        gali(catalogue.henon, START, **options)


def test_orbit_records_what_it_is_asked_for():
    halves = orbit(lambda x: x / 2, jnp.array(1.0), samples=2, transient=1, every=2)
    assert halves[:, 0].tolist() == [1 / 8, 1 / 32]
    with pytest.raises(ValueError, match="samples must be at least 1; got 0"):
        orbit(catalogue.henon, START, samples=0)


def test_the_error_of_a_mean_of_two_numbers_is_half_their_distance():
    assert error_of_mean(jnp.array([1.0, 3.0])) == 1.0
