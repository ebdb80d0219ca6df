"""Transformer blocks as maps: exponents, shares of heads, feedback of soft tokens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dynamics
from statmech_attn.dynamics import growth_shares, looped, transformer_block


TOKENS, WIDTH, HEADS, SIZE, HIDDEN = 4, 8, 2, 3, 12
STRONG = {"scale": 6.0, "temperature": 0.5}


def weights(seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    shapes = {name: (HEADS, SIZE, WIDTH) for name in ("query", "key", "value")} | {
        "output": (HEADS, WIDTH, SIZE),
        "up": (HIDDEN, WIDTH),
        "down": (WIDTH, HIDDEN),
    }
    return {
        name: 2 * random.normal(size=shape) / np.sqrt(shape[-1])
        for name, shape in shapes.items()
    }


START = np.random.default_rng(1).normal(size=(TOKENS, WIDTH))
BLOCK = looped(
    [{"input": lambda h, p: 0.3 * START}, *transformer_block(weights(), causal=True)],
    norm=dynamics.rms_norm,
)


def numpy_step(h, w, p):
    """The same block by hand: input, causal attention, MLP, norm."""
    norm = lambda h: h / np.sqrt((h**2).mean(-1, keepdims=True) + 1e-5)
    h = h + p["scale"] * 0.3 * START
    z, change = norm(h), 0.0
    for head in range(HEADS):
        query, key, value = (z @ w[name][head].T for name in ("query", "key", "value"))
        rows = np.exp(query @ key.T / np.sqrt(SIZE) / p["temperature"])
        rows = np.tril(rows)
        rows /= rows.sum(-1, keepdims=True)
        change = change + rows @ value @ w["output"][head].T
    h = h + p["scale"] * change
    x = norm(h) @ w["up"].T
    gelu = x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return norm(h + p["scale"] * gelu @ w["down"].T)


@pytest.mark.slow
@pytest.mark.parametrize("p", [{"scale": 0.5, "temperature": 2.0}, STRONG])
def test_exponents_are_those_of_a_qr_iteration_in_numpy(p):
    """Of central differences of the block written in NumPy, along the same states."""
    steps, leading, w = 48, 6, weights()
    found = dynamics.lyapunov_spectrum(
        BLOCK, START, p, steps=steps, align=0, exponents=leading
    )
    frame = dynamics.frames.completed(np.empty((START.size, 0)), leading)
    h, logs = START, np.zeros(leading)
    for _ in range(steps):
        at = lambda x: numpy_step(x.reshape(h.shape), w, p).ravel()
        pushed = [
            (at(h.ravel() + 1e-6 * v) - at(h.ravel() - 1e-6 * v)) / 2e-6
            for v in frame.T
        ]
        frame, lengths = np.linalg.qr(np.stack(pushed, axis=1))
        logs += np.log(np.abs(np.diag(lengths)))
        h = numpy_step(h, w, p)
    expected = np.sort(logs / steps)[::-1]
    np.testing.assert_allclose(found.exponents, expected, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.0, 0.5, 6.0])
def test_shares_add_up_to_the_largest_exponent(scale):
    found = growth_shares(BLOCK, START, STRONG | {"scale": scale}, steps=480)
    assert found.parts == ("input", "head 1", "head 2", "mlp", "norm")
    assert abs(found.shares.sum() - found.exponent) < 1e-12


@pytest.mark.slow
def test_the_exponent_of_the_shares_is_that_of_the_spectrum():
    """On a regular orbit, whose average two programs agree on."""
    p, times = {"scale": 0.5}, {"steps": 160, "transient": 400}
    found = growth_shares(BLOCK, START, p, **times)
    spectrum = dynamics.lyapunov_spectrum(BLOCK, START, p, exponents=1, **times)
    assert abs(found.shares.sum() - spectrum.exponents[0]) < 1e-9
    assert found.exponent_stderr < 1e-6


@pytest.mark.slow
def test_branches_that_do_not_turn_the_state_have_no_share():
    """An input that is the same at every step, and a head without an output."""
    silent = weights()
    silent["output"][1] = 0.0
    block = [{"input": lambda h, p: 0.3 * START}, *transformer_block(silent)]
    found = growth_shares(looped(block, norm=dynamics.layer_norm), START, steps=48)
    shares = dict(zip(found.parts, found.shares.tolist(), strict=True))
    assert shares["input"] == shares["head 2"] == 0.0
    assert shares["head 1"] != 0.0


def test_shares_of_one_stage_are_proportional_where_branches_are():
    """Multiples of the state: ln(1 + a + b) is shared as a : b, and a + b = 0 as 0."""
    times = lambda name: lambda h, p: p[name] * h
    both = looped([{"a": times("a"), "b": times("b")}])
    share = lambda a, b: (
        growth_shares(both, jnp.zeros(3), {"a": a, "b": b}, steps=16).shares
    )
    for a, b in ((0.5, 0.25), (-0.5, 0.1), (1e-6, 2e-6), (2.0, -5.0)):
        whole = np.log(abs(1 + a + b))
        expected = whole * np.array([a, b]) / (a + b)
        np.testing.assert_allclose(share(a, b), expected, rtol=1e-9)
    np.testing.assert_allclose(share(0.5, -0.5), [0.5, -0.5], rtol=1e-12)


def test_shares_of_many_scales_side_by_side_are_those_of_each():
    both = looped([{"a": lambda h, p: p["a"] * h, "b": lambda h, p: h / 4}])
    scales = np.array([0.5, 1.0])
    at = lambda a: growth_shares(both, jnp.zeros(3), {"a": a}, steps=16)
    many = jax.vmap(at)(jnp.asarray(scales))
    assert many.to_dataset().growth_share.dims == ("batch", "part")
    whole = np.log(1.25 + scales) / (0.25 + scales)
    expected = whole[:, None] * np.stack([scales, [0.25, 0.25]], axis=1)
    np.testing.assert_allclose(many.shares, expected, rtol=1e-9)


def test_temperature_and_mask_are_those_of_attention():
    """Infinitely hot heads average over all tokens, or over those before."""
    values = weights()["value"][0].T @ weights()["output"][0].T
    hot = {"temperature": 1e12}
    for causal in (False, True):
        head = transformer_block(weights(), causal=causal)[0]["head 1"]
        seen = np.tril(np.ones((TOKENS, TOKENS))) if causal else np.ones((TOKENS,) * 2)
        mean = seen / seen.sum(axis=1, keepdims=True)
        norms = np.sqrt((START**2).mean(-1, keepdims=True) + 1e-5)
        after = jax.jit(lambda h, head=head: head(h, hot))(START)
        np.testing.assert_allclose(after, mean @ (START / norms) @ values, atol=1e-9)


def test_blocks_of_several_layers_are_looped_together():
    layers = [transformer_block(weights(n), prefix=f"{n}.") for n in (0, 1)]
    both = looped([stage for layer in layers for stage in layer])
    apart = [looped(layer) for layer in layers]
    after, expected = jax.jit(
        lambda h: (both.step(h), apart[1].step(apart[0].step(h)))
    )(START)
    np.testing.assert_allclose(after, expected, rtol=1e-12)
    assert both.step.parts == tuple(
        f"{n}.{part}" for n in (0, 1) for part in ("head 1", "head 2", "mlp")
    )


def test_a_cold_model_feeds_back_its_most_likely_token():
    """At low temperature soft feedback is greedy decoding, here a cycle of tokens."""
    embedding = np.eye(5)
    system = dynamics.soft_feedback(
        lambda x: x[-1] @ np.roll(embedding, 1, 1), embedding
    )
    window, step = embedding[[3, 0]], jax.jit(lambda *of: system.step(*of))
    for token in (1, 2, 3, 4, 0, 1):
        window = step(window, {"temperature": 1e-3})
        np.testing.assert_allclose(window[-1], embedding[token], atol=1e-12)
    warm = dynamics.lyapunov_spectrum(
        system, embedding[[3, 0]], {"temperature": 2.0}, steps=160, exponents=1
    )
    # At rest in the mean embedding, where the softmax has slopes 1/(V T) and 0.
    assert abs(warm.exponents[0] - np.log(1 / 10)) < 1e-6


def bad_weights(**changed):
    return {name: changed.get(name, array) for name, array in weights().items()}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        *(
            (lambda stages=stages: looped(stages), "stages must be a")
            for stages in ([], [{"a": abs}, {}], [{"a": 1.0}], {"a": abs})
        ),
        (lambda: looped([{"a": abs}, {"a": abs}]), "differ; got 'a' twice"),
        (lambda: looped([{"norm": abs}], norm=abs), "differ; got 'norm' twice"),
        (lambda: transformer_block({}), "weights must be query, .*; got none"),
        (
            lambda: transformer_block(bad_weights(key=np.zeros((2, 3, 9)))),
            r"key must have axes \(H, d, D\) .*; got \[2, 3, 9\]",
        ),
        (
            lambda: transformer_block(bad_weights(up=np.full((12, 8), np.nan))),
            "'up' in it finite",
        ),
        (
            lambda: growth_shares(looped([{"a": lambda h, p: h[0]}]), START, steps=16),
            r"branch 'a' must return a state like .* float64\[8\] from float64\[4, 8\]",
        ),
        (
            lambda: growth_shares(lambda h: h, START, steps=16),
            "system must be of the type System",
        ),
        (
            lambda: growth_shares(BLOCK, START, STRONG, steps=0),
            "steps must be at least 1; got 0",
        ),
    ],
)
def test_what_is_no_block_is_refused_in_one_line(call, words):
    with pytest.raises(ValueError, match=words) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_shares_of_an_orbit_that_diverges_are_not_numbers():
    found = growth_shares(looped([{"a": lambda h, p: h**3}]), START, steps=160)
    assert np.isnan(found.shares).all() and np.isnan(found.exponent)
