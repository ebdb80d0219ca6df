"""Attention given as arrays: that of heads, masked, padded, of any orientation."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest

from statmech_attn import bpkr


def softmax(scores, axis):
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)


@pytest.fixture(scope="module")
def random():
    return np.random.default_rng(5)


@pytest.mark.parametrize(
    "readout",
    ("mean", 2),
)
def test_arrays_of_heads_give_what_the_heads_give(small, readout):
    x, heads, _ = small
    xi = bpkr.attended(x, bpkr.attention_of(x, heads), readout=readout)
    of_heads = bpkr.attentioned_inputs(x, heads, readout=readout)
    assert np.abs(xi - of_heads).max() <= 1e-15 * np.abs(of_heads).max()


def test_paths_and_layers_are_one_function_with_linear_blocks(small):
    x, heads, _ = small
    omega = bpkr.attention_of(x, (heads[0], None, heads[2], None), causal=True)
    assert omega.heads == (2, 1, 2, 1)
    weights = bpkr.draw_weights(
        jax.random.key(1), n_inputs=6, heads=omega.heads, width=(4, 7, 5, 3, 2)
    )
    by_layer = bpkr.forward(weights, x, omega, readout=2)
    by_path = bpkr.forward_paths(weights, bpkr.attended(x, omega, readout=2))
    # Sums of at most 7 N_0 T |Pi| products.
    scale = float(np.abs(by_layer).max())
    assert np.abs(by_layer - by_path).max() < 1e-12 * scale


def test_a_causal_mask_by_hand(random):
    x, W = random.normal(size=(3, 2, 5)), random.normal(size=(1, 2, 2))
    scores = np.einsum("pis,ij,pjt->pst", x, W[0], x)
    after = np.arange(5)[:, None] > np.arange(5)
    by_hand = softmax(np.where(after, -np.inf, scores), axis=1)
    omega = bpkr.attention_of(x, bpkr.heads_from_products([W]), causal=True)
    np.testing.assert_allclose(omega.layers[0][0], by_hand, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("readout", ("first", "mean"))
def test_padding_changes_nothing(random, readout):
    """Sequences of different lengths, padded on either side, and each for itself."""
    lengths, tokens = (2, 5, 2), 6
    heads = bpkr.heads_from_products(list(random.normal(size=(2, 2, 3, 3))))
    x = np.full((3, 3, tokens), 1e3)
    real = np.zeros((3, tokens), bool)
    alone = []
    for example, (length, first) in enumerate(zip(lengths, (0, 1, 3), strict=True)):
        own = random.normal(size=(1, 3, length))
        x[example, :, first : first + length] = own[0]
        real[example, first : first + length] = True
        alone.append(bpkr.attentioned_inputs(own, heads, readout=readout)[0])
    omega = bpkr.attention_of(x, heads, real=real)
    xi = bpkr.attended(x, omega, readout=readout)
    np.testing.assert_allclose(xi, np.stack(alone), rtol=1e-13, atol=1e-14)


def test_queries_on_rows_and_what_padding_reads(random):
    rows = softmax(random.normal(size=(2, 3, 4, 4)), axis=3)
    x = random.normal(size=(3, 5, 4))
    columns = bpkr.attention_arrays([rows.swapaxes(2, 3)])
    turned = bpkr.attention_arrays([rows], queries="rows")
    np.testing.assert_array_equal(bpkr.attended(x, columns), bpkr.attended(x, turned))
    real = np.array([[True] * 4, [True] * 3 + [False], [True] * 4])
    rows[:, 1, :, 3] = 0
    rows[:, 1] /= rows[:, 1].sum(axis=-1, keepdims=True)
    rows[:, 1, 3] = np.nan
    masked = bpkr.attention_arrays([rows], queries="rows", real=real)
    assert np.isfinite(bpkr.attended(x, masked)).all()


UNIFORM = np.full((1, 2, 3, 3), 1 / 3)
ONE_NAN = UNIFORM[0].copy()
ONE_NAN[1, 0, 2] = np.nan
CAUSAL = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None] * np.ones((1, 2, 1, 1))


@pytest.mark.parametrize("queries", ("columns", "rows"))
def test_weights_of_16_bits_are_divided_by_their_sum_and_it_is_said(random, queries):
    """bfloat16 has 8 bits of mantissa: a weight is off by 2^-9 of its size, one way."""
    axis = 2 if queries == "columns" else 3
    exact = softmax(random.normal(size=(2, 3, 8, 8)), axis=axis)
    exact[0, 0] = 1 / 8 * (1 - 0.003)
    real = np.ones((3, 8), bool)
    for mask in (None, real):
        with pytest.warns(UserWarning, match="add up to one within 0.003 only, as num"):
            omega = bpkr.attention_arrays([None, exact], queries=queries, real=mask)
        (_, weights), scale = omega.layers, exact.sum(axis=axis, keepdims=True)
        expected = exact / scale
        expected = expected if queries == "columns" else expected.swapaxes(2, 3)
        np.testing.assert_allclose(weights, expected, rtol=1e-15)
    single = softmax(random.normal(size=(2, 3, 8, 8)), axis=2).astype(np.float32)
    np.testing.assert_array_equal(bpkr.attention_arrays([single]).layers[0], single)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, message",
    (
        (lambda: bpkr.attention_arrays([]), "at least one layer"),
        (lambda: bpkr.attention_arrays([UNIFORM, UNIFORM[:, :1]]), "layer 2 .* one P"),
        (lambda: bpkr.attention_arrays([CAUSAL]), 'pass queries="rows"'),
        (lambda: bpkr.attention_arrays([UNIFORM], queries="row"), '"columns" or "row'),
        (
            lambda: bpkr.attention_arrays([2 * UNIFORM]),
            "add up to 2 instead of 1; say with real= which tokens are padding",
        ),
        (
            lambda: bpkr.attention_arrays([np.stack([UNIFORM[0], ONE_NAN])]),
            "layer 1, head 2, example 1 the weights of query 2 are not finite",
        ),
        (
            lambda: bpkr.attention_arrays([UNIFORM, UNIFORM[0]]),
            r"layer 2 .* got \(2, 3, 3\); the mean .* average_attn_weights=False",
        ),
        (lambda: bpkr.attention_arrays([1.006 * UNIFORM]), "add up to 1.006 instead"),
        (
            lambda: bpkr.attention_arrays(
                [UNIFORM], real=np.array([[True] * 3, [True, True, False]])
            ),
            "layer 1 reads tokens that are padding",
        ),
        (
            lambda: bpkr.attended(np.ones((2, 4, 5)), bpkr.attention_arrays([UNIFORM])),
            "P = 2 and T = 3",
        ),
        (
            lambda: bpkr.attended(
                np.ones((2, 4, 3)), bpkr.attention_arrays([UNIFORM]), readout=3
            ),
            "readout must be",
        ),
    ),
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_arrays_that_are_traced_are_refused_in_one_line():
    attended = lambda layer: bpkr.attention_arrays([layer]).layers[0]
    with pytest.raises(ValueError, match="call attention_arrays outside jit") as error:
        jax.jit(attended)(UNIFORM)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_the_page_on_own_data_runs(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where its files of arrays are written
    page = Path(__file__).parents[3] / "docs" / "data.md"
    examples = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec("".join(examples).replace("statmech_attn.setup()\n", ""), {})
    assert capsys.readouterr().out.startswith("(Array([")
