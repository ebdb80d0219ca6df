import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf

from statmech_attn.dmft.extensive import gaussian


@pytest.mark.parametrize("temperature, sigma", [(1.0, 0.3), (0.4, 0.9), (0.02, 1.3)])
def test_mean_of_a_spin_is_the_integral_to_rounding(temperature, sigma):
    a = np.array([-0.7, 0.0, 1.6])
    mean, slope = gaussian.mean_and_slope(jnp.array(a), temperature, sigma)
    z = np.linspace(-9, 9, 20001)  # steps far below the width of the kink
    weights = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    spin = np.tanh((a[:, None] + sigma * z) / temperature)
    assert np.allclose(mean, spin @ weights, rtol=0, atol=1e-14)
    by_hand = (1 - spin**2) @ weights / temperature
    assert np.allclose(slope, by_hand, rtol=1e-12)


@pytest.mark.parametrize("ratio", (0.97, 0.999, 1.0, 1.03, 1.5))
def test_noise_of_the_size_of_the_temperature_costs_no_digits(ratio):
    """Where the rules of both kinds of noise meet, at a sum of 20 000 exact terms."""
    a, T = np.array([0.05, 0.3, 0.7, 1.0, 1.5]), 0.25
    mean, slope = gaussian.mean_and_slope(jnp.array(a), T, ratio * T)
    z = np.linspace(-12, 12, 20001)
    weights = np.exp(-(z**2) / 2)
    weights /= math.fsum(weights)
    for i in range(len(a)):
        spin = np.tanh((a[i] + ratio * T * z) / T)
        assert abs(mean[i] - math.fsum(spin * weights)) < 1e-15
        assert abs(T * slope[i] - math.fsum((1 - spin**2) * weights)) < 1e-15


def test_deterministic_spins_have_error_functions():
    a = jnp.array([-0.7, 0.3])
    mean, slope = gaussian.mean_and_slope(a, 0.0, 0.8)
    x = np.asarray(a) / (0.8 * np.sqrt(2))
    assert np.allclose(mean, erf(x), atol=1e-14)
    by_hand = np.sqrt(2 / np.pi) / 0.8 * np.exp(-(x**2))
    assert np.allclose(slope, by_hand, atol=1e-14)


def test_without_noise_a_spin_has_the_mean_of_the_map():
    """To the rounding of a sum of 157 weights, whose order is the processor's."""
    a = jnp.array([-0.7, 0.0, 0.3])
    sign = gaussian.mean_and_slope(a, 0.0, 0.0)[0]
    assert np.allclose(sign, np.sign(np.asarray(a)), rtol=0, atol=1e-14)
    assert np.allclose(
        gaussian.mean_and_slope(a, 0.5, 0.0)[0], jnp.tanh(a / 0.5), atol=1e-15
    )


@pytest.mark.parametrize("components", gaussian.MIXTURES)
def test_the_mixture_is_tanh_to_its_error(components):
    error, tau, p = gaussian.MIXTURES[components]
    x = np.linspace(0, 20, 20001)
    mixture = erf(x[:, None] / (np.sqrt(2) * np.array(tau))) @ np.array(p)
    largest = np.abs(mixture - np.tanh(x)).max()
    assert 0.9 * error < largest < 1.05 * error


def test_product_of_two_spins_is_the_integral():
    """Gauss-Hermite in two dimensions, where it converges."""
    product = jax.jit(partial(gaussian.product, gaussian.rule(6, 12)))
    z, w = np.polynomial.hermite_e.hermegauss(60)
    w = w / w.sum()
    sigma, temperature, a = (0.5, 0.7), (0.9, 1.1), (0.4, -0.3)
    for r in (-0.8, 0.3, 0.95):
        one = np.tanh((a[0] + sigma[0] * z) / temperature[0])
        field = r * z[:, None] + np.sqrt(1 - r**2) * z
        two = np.tanh((a[1] + sigma[1] * field) / temperature[1])
        by_hand = w * one @ two @ w - (w @ one) * (w @ (two.T @ w))
        covariance = np.array(r * sigma[0] * sigma[1])
        found = product(*jax.tree.map(np.array, (a, temperature, sigma)), covariance)
        assert float(found) == pytest.approx(by_hand, abs=4e-7)


def test_product_of_deterministic_spins_is_the_law_of_the_arcsine():
    product = jax.jit(partial(gaussian.product, gaussian.rule(6, 12)))
    zero = np.array(0.0)
    for r in (-0.9, 0.2, 0.7):
        sigma = np.array(1.0), np.array(2.0)
        found = product((zero, zero), (zero, zero), sigma, np.array(2 * r))
        assert float(found) == pytest.approx(2 / np.pi * np.arcsin(r), abs=1e-8)
