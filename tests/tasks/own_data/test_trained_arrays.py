"""Arrays of a trained network: heads that are chosen, classes, value weights."""

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr
from statmech_attn.tasks import arrays, trained_arrays


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """What `write_example` writes, as arrays by name."""
    path = arrays.write_example(tmp_path_factory.mktemp("example"))
    with np.load(path) as file:
        return dict(file)


@pytest.fixture
def load(tmp_path):
    """Read changed arrays as a file."""

    def load(given, **options):
        np.savez(tmp_path / "mine.npz", **given)
        return trained_arrays.load_scored(tmp_path / "mine.npz", **options)

    return load


def test_no_test_set_is_needed(example, load, tmp_path):
    given = load({k: x for k, x in example.items() if not k.endswith("_test")})
    np.savez(tmp_path / "both.npz", **example)
    np.testing.assert_array_equal(given.xi, arrays.load(tmp_path / "both.npz").xi)
    assert given.weights is None and given.heads == (2, 2)


def test_some_heads_have_the_columns_of_their_paths(example, load):
    every = load(example, skip=(0, 0.5))
    some = load(example, skip=(0, 0.5), heads=["1.2", "2.1"])
    assert some.heads == (1, 1) and some.names == ("decisive", "skip 2", "chosen")
    np.testing.assert_allclose(some.xi, every.xi[:, :, [3, 4]], rtol=1e-12)
    ready = {"xi": every.xi, "Y": every.Y, "heads": [2, 2]}
    taken = load(ready, skip=(0, 0.5), heads=["1.2", "2.1"])
    np.testing.assert_array_equal(taken.xi, every.xi[:, :, [3, 4]])
    assert taken.names == ("1.2", "skip 2", "2.1")


def test_classes_become_signs_or_columns(example, load):
    classes = np.arange(60) % 3
    given = load(example | {"Y": classes}, classes=True)
    np.testing.assert_array_equal(given.Y, np.eye(3)[classes])
    given = load(example | {"Y": classes[:] == 1}, classes=True)
    np.testing.assert_array_equal(given.Y, np.where(classes == 1, 1, -1))


def test_value_weights_that_act_are_those_of_the_theory(example, load):
    """f of the theory's normalisation is a . sum V x Omega, with the skip b x."""
    random, N = np.random.default_rng(4), 12
    values = {
        "V_1": random.normal(size=(2, N, N)),
        "V_2": random.normal(size=(2, N, N)),
    }
    given = load(example | values | {"a": random.normal(size=N)}, skip=(0.5, 0))
    hidden = example["x"].transpose(0, 2, 1)
    scores = np.einsum(
        "pit,hij,pjs->hpts", example["x"], example["heads_1"], example["x"]
    )
    first = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    for V, omega, b in zip(values.values(), (first, example["attention_2"]), (0.5, 0)):
        hidden = b * hidden + np.einsum("hij,psj,hpst->pti", V, hidden, omega)
    a = given.weights.a / np.sqrt(N)
    weights = given.weights._replace(V_0=np.sqrt(N) * jnp.eye(N))
    f = bpkr.forward_paths(weights, given.xi)
    np.testing.assert_allclose(f, hidden[:, -1] @ a, rtol=1e-9)


def test_the_prior_of_f_has_variance_one(example, load):
    problem = load(example, skip=(0, 0.5)).problem(temperature=0.1)
    kernel = problem.gaussian_process().kernel
    np.testing.assert_allclose(np.diagonal(kernel).mean(), 1.0, rtol=1e-12)
    assert problem.widths[0] == 12


@pytest.mark.parametrize(
    "change, options, words",
    (
        ({"Y": np.arange(60)}, {}, "--classes makes one-hot columns"),
        ({"Y": np.arange(60) / 7}, {"classes": True}, "Y must hold the numbers of two"),
        ({"a": np.ones(3)}, {}, "no array V_1; there are"),
        ({"a": np.ones((1, 1, 3))}, {}, "a must have shape (N,) or (K, N)"),
        (
            {"a": np.ones(3), "V_1": np.ones((2, 3, 3)), "V_2": np.ones((2, 4, 4))},
            {},
            "V_2 must have shape (H, N, N) with H = 2 (heads of the layer), N = 3",
        ),
        ({}, {"memory_limit": 2**10}, "4 attention paths with 60 examples of 12 feat"),
    ),
)
def test_what_does_not_fit_is_one_line(example, load, change, options, words):
    with pytest.raises(ValueError) as error:
        load(example | change, **options)
    assert words in str(error.value) and str(error.value).startswith("mine.npz: ")
    assert "\n" not in str(error.value)


def test_inputs_that_are_all_zero_are_refused(example, load):
    given = load(example | {"x": np.zeros_like(example["x"])})
    with pytest.raises(ValueError, match="all zero"):
        given.problem(temperature=0.1)
