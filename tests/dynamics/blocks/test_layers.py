"""Depth of a network as time: exponents of all layers over many inputs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from statmech_attn import dynamics
from statmech_attn.dynamics import depth_exponents, layered


INPUTS, SIZE, LAYERS = 5, 6, 4
RANDOM = np.random.default_rng(0)
STARTS = jnp.asarray(RANDOM.normal(size=(INPUTS, SIZE)))
MATRICES = 2 * RANDOM.normal(size=(LAYERS, SIZE, SIZE)) / np.sqrt(SIZE)


class Branch(eqx.Module):
    matrix: Array

    def __call__(self, h, parameters):
        return jnp.tanh(self.matrix @ h)


NETWORK = [dynamics.looped([{"a": Branch(jnp.asarray(w))}]) for w in MATRICES]


def jacobian(h, scale=1.0):
    """Of all layers, by hand."""
    whole = np.eye(SIZE)
    for w in MATRICES:
        x = np.tanh(w @ h)
        whole = (np.eye(SIZE) + scale * (1 - x**2)[:, None] * w) @ whole
        h = h + scale * x
    return whole


def test_exponents_are_singular_values_of_all_layers():
    found = depth_exponents(NETWORK, STARTS, exponents=SIZE)
    sizes = [np.linalg.svd(jacobian(h), compute_uv=False) for h in STARTS]
    np.testing.assert_allclose(found.values, np.log(sizes) / LAYERS, atol=1e-10)
    np.testing.assert_allclose(found.mean, np.mean(np.log(sizes), 0) / LAYERS)
    spread = np.std(np.log(sizes) / LAYERS, axis=0, ddof=1)
    np.testing.assert_allclose(found.spread, spread, rtol=1e-9)
    np.testing.assert_allclose(found.stderr, spread / np.sqrt(INPUTS), rtol=1e-9)
    assert found.by_layer.shape == found.by_layer_stderr.shape == (LAYERS, SIZE)


def test_layers_of_one_form_and_of_several_are_the_same_network():
    """Stacked weights chosen by the clock, and programs chosen by it."""
    of_two_forms = [*NETWORK[:-1], lambda h, p=None: NETWORK[-1].step(h, p)]
    same = depth_exponents(NETWORK, STARTS).growth
    np.testing.assert_allclose(
        depth_exponents(of_two_forms, STARTS).growth, same, atol=1e-12
    )
    state = (jnp.asarray(STARTS[0]), jnp.array(0))
    for _ in range(LAYERS):
        state = layered(NETWORK).step(state)
    h = STARTS[0]
    for w in MATRICES:
        h = h + np.tanh(w @ h)
    np.testing.assert_allclose(state[0], h, rtol=1e-12)
    assert state[1] == 0


@pytest.mark.slow
def test_a_network_that_starts_again_has_the_exponents_of_its_product():
    """At rest in 0, where layers are linear, of the whole loop and per layer."""
    start = (jnp.zeros(SIZE), jnp.array(0))
    found = dynamics.lyapunov_spectrum(layered(NETWORK), start, steps=800)
    whole = jacobian(np.zeros(SIZE))
    values, vectors = np.linalg.eig(whole)
    expected = np.sort(np.log(np.abs(values)) / LAYERS)[::-1]
    remainder = 2 * np.log(np.linalg.cond(vectors)) + np.log(np.linalg.cond(whole))
    np.testing.assert_allclose(found.exponents, expected, atol=remainder / 800)
    assert found.unit == "layer"


@pytest.mark.slow
def test_exponents_of_many_scales_side_by_side_are_those_of_each():
    at = lambda scale: depth_exponents(NETWORK, STARTS, {"scale": scale}, exponents=2)
    many = jax.vmap(at)(jnp.array([0.5, 1.0]))
    assert many.to_dataset().depth_exponent.dims == ("batch", "input", "exponent")
    np.testing.assert_allclose(many.mean[1], at(1.0).mean, atol=1e-12)
    largest = [np.linalg.svd(jacobian(h, 0.5), compute_uv=False)[0] for h in STARTS]
    expected = np.mean(np.log(largest)) / LAYERS
    assert abs(many.mean[0, 0] - expected) < 1e-10


def test_directions_that_rounding_hides_are_not_numbers():
    found = depth_exponents([lambda h: h * jnp.array([1.0, 1e-17])] * 2, STARTS[:, :2])
    assert abs(found.mean[0]) < 1e-15
    both = [lambda h: h * jnp.array([1.0, 1e-9])] * 2
    found = depth_exponents(both, STARTS[:, :2], exponents=2)
    assert np.isnan(found.mean[1]) and abs(found.mean[0]) < 1e-15


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: layered([]), "layers must hold at least one layer"),
        (lambda: depth_exponents(NETWORK, STARTS[:1]), "inputs must be at least two"),
        (
            lambda: depth_exponents([lambda h: h[1:]], STARTS),
            r"step must return a state like .*float64\[5\]",
        ),
        (
            lambda: depth_exponents(NETWORK, STARTS, exponents=7),
            r"exponents must lie in 1\.\.6; got 7",
        ),
    ],
)
def test_what_is_no_network_is_refused_in_one_line(call, words):
    with pytest.raises(ValueError, match=words) as refused:
        call()
    assert "\n" not in str(refused.value)
