r"""Classification of hidden Markov chains (docs/theory/bpkr.md, section 5).

A chain of two hidden states flips its state with a probability that depends on the
class y = +-1.  Token t shows $v_\pm$ plus Gaussian noise whose part in the plane of
$v_+, v_-$ is scaled by $\sigma_\parallel$ and the rest by $\sigma_\perp$.  A bos token
with zero features comes first, and a one-hot code of the position is appended:
N_0 = features + length + 1.

    v_+, v_-          (2, features)      $\sqrt 2$ on one half each     `states_shown`
    x                 (P, N_0, T)        inputs, T = length + 1         `x`
    y                 (P,)               labels, class + first          `y`
    W                 (N_0, N_0)         heads, score x_s^T W x_t       `*_head`
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from statmech_attn.batches import require_double, require_memory, rng
from statmech_attn.bpkr import Heads, heads_from_products
from statmech_attn.options import Even
from statmech_attn.tasks.options import Task


COPIES = 5  # of the inputs that drawing and attending them takes at once


class Preset(NamedTuple):
    """A published setting: the task, its heads and the sizes of the sets."""

    task: Task
    heads: Heads
    n_train: int
    n_test: int
    readout: str | int


PRESETS: dict[
    str, tuple[dict[str, Any], tuple[tuple[str, ...], ...]]
] = {  # settings of the task, and the names of the heads layer by layer
    "four-paths": ({}, (("previous-token", "random"), ("uniform", "random"))),
    "two-paths": (
        {"perpendicular_noise": 5.0, "random_strength": 0.0},
        (("previous-token", "random"), ("uniform",)),
    ),
}


class Examples(NamedTuple):
    """Inputs and labels, class + first."""

    x: Float[Array, "P N_0 T"]
    y: Float[Array, " P"]


def draw(key: Key[Array, ""], setting: Task, *, examples: Even) -> Examples:
    """Draw labelled chains, `examples` / 2 of each class.

    Args:
        key: random key of JAX.
        setting: sizes and noise of the task.
        examples: number of chains, even.

    Returns:
        Tokens x (examples, features, tokens), the first of them the beginning of
        sentence, and labels y (examples,): 1 for the first half, -1 for the second.

    Raises:
        ValueError: a number of examples that is odd or below 2.

    Example:
        >>> import jax
        >>> jax.config.update("jax_enable_x64", True)
        >>> draw(jax.random.key(0), Task(), examples=4).x.shape
        (4, 231, 31)
    """
    require_double()
    entries = setting.n_inputs * setting.tokens
    require_memory(f"{examples} examples", COPIES * 8 * examples * entries)
    hidden_key, noise_key = jax.random.split(key)
    y = np.repeat([1.0, -1.0], examples // 2)
    hidden = hidden_states(hidden_key, setting, y)
    emitted = np.asarray(states_shown(setting))[(hidden < 0).astype(int)]
    emitted = emitted + noise(noise_key, setting, hidden.shape)
    features = np.pad(np.swapaxes(emitted, 1, 2), ((0, 0), (0, 0), (1, 0)))
    code = np.broadcast_to(np.eye(setting.tokens), (examples,) + (setting.tokens,) * 2)
    x = np.concatenate([features, code], axis=1)
    return Examples(*jax.device_put((x, y)))


def hidden_states(
    key: Key[Array, ""], setting: Task, y: Float[Array | np.ndarray, " P"]
) -> Float[np.ndarray, "P length"]:
    """Chains of +-1: the first state uniform, then flips by class."""
    first_key, flip_key = jax.random.split(key)
    first = rng.bernoulli(first_key, 0.5, (y.size, 1))
    rate = np.where(np.asarray(y) > 0, setting.flip_plus, setting.flip_minus)[:, None]
    unflipped = ~rng.bernoulli(flip_key, rate, (y.size, setting.length - 1))
    return np.cumprod(2.0 * np.concatenate([first, unflipped], axis=1) - 1.0, axis=1)


def states_shown(setting: Task) -> Float[Array, "2 features"]:
    """The vectors v_+ and v_- that show the hidden states."""
    halves = jnp.repeat(jnp.eye(2), setting.features // 2, axis=1)
    return math.sqrt(2.0) * halves


def noise(
    key: Key[Array, ""], setting: Task, shape: Sequence[int]
) -> Float[np.ndarray, "P length features"]:
    """Gaussian noise, scaled in the plane of v_+, v_- and outside it."""
    normal = rng.normal(key, (*shape, setting.features))
    directions = states_shown(setting) / math.sqrt(setting.features)
    inside = np.asarray(normal @ directions.T @ directions)
    return setting.parallel_noise * inside + setting.perpendicular_noise * (
        np.asarray(normal) - inside
    )


def previous_token_head(setting: Task) -> Float[Array, "N_0 N_0"]:
    """Attend the previous token if it is in the same state, else bos."""
    v_plus, v_minus = states_shown(setting)
    q = v_plus - v_minus
    q = q / (q @ q / 2)  # q . v_+- = +-1
    positions = jnp.eye(setting.tokens, k=1)
    positions = positions.at[0, 1:].set(setting.bos_score)
    return setting.hardness * _blocks(jnp.outer(q, q), positions)


def uniform_head(setting: Task) -> Float[Array, "N_0 N_0"]:
    """Attend all tokens alike: the positional block is all ones."""
    features = jnp.zeros((setting.features, setting.features))
    return setting.hardness * _blocks(features, jnp.ones((setting.tokens,) * 2))


def random_head(key: Key[Array, ""], setting: Task) -> Float[Array, "N_0 N_0"]:
    """Gaussian scores, of order one in every block."""
    F, T = setting.features, setting.tokens
    normal = rng.normal(key, (F + T, F + T))
    scale = jnp.concatenate([jnp.full(F, 1 / math.sqrt(F)), jnp.ones(T)])
    strength = setting.random_strength * setting.hardness
    return strength * normal * jnp.outer(scale, scale)


GIVEN_HEADS = {"previous-token": previous_token_head, "uniform": uniform_head}


def heads(key: Key[Array, ""], setting: Task, layers: Sequence[Sequence[str]]) -> Heads:
    """Heads by name, layer by layer: "previous-token", "uniform" or "random".

    Args:
        key: random key of JAX, for the random ones.
        setting: sizes of the task, and the strength of random heads.
        layers: the names of each layer.

    Returns:
        Matrices W of shape (heads, features, features), an array for every layer.

    Raises:
        ValueError: an unknown name, or a layer without heads.

    Example:
        >>> import jax
        >>> jax.config.update("jax_enable_x64", True)
        >>> layers = [["previous-token", "random"], ["uniform"]]
        >>> [w.shape for w in heads(jax.random.key(0), Task(), layers)]
        [(2, 231, 231), (1, 231, 231)]
    """
    names = [name for layer in layers for name in layer]
    unknown = [name for name in names if name not in (*GIVEN_HEADS, "random")]
    if unknown or not all(layers):
        allowed = ", ".join(f'"{name}"' for name in (*GIVEN_HEADS, "random"))
        raise ValueError(
            f"heads: every layer needs one or more of {allowed}; got {list(layers)}."
        )
    keys = iter(jax.random.split(key, names.count("random")))
    head = lambda name: (
        GIVEN_HEADS[name](setting)
        if name in GIVEN_HEADS
        else random_head(next(keys), setting)
    )
    return heads_from_products(
        [jnp.stack([head(name) for name in layer]) for layer in layers]
    )


def preset(
    name: str,
    key: Key[Array, ""],
    *,
    layers: Sequence[Sequence[str]] | None = None,
    n_train: int = 100,
    n_test: int = 1000,
    readout: str | int = "last",
    **settings,
) -> Preset:
    """The published settings "four-paths" and "two-paths"; the key draws random heads.

    Args:
        name: "four-paths" or "two-paths".
        key: draws the random heads.
        n_train: training examples that the setting asks for.
        n_test: test examples that the setting asks for.
        readout: token that is read out: "first", "last", "mean" or its number.
        layers: names of the heads as in `heads`, instead of the published ones.
        settings: fields of `Task` that differ from the published ones.

    Example:
        >>> import jax
        >>> jax.config.update("jax_enable_x64", True)
        >>> [w.shape[0] for w in preset("four-paths", jax.random.key(0)).heads]
        [2, 2]
    """
    if name not in PRESETS:
        allowed = " or ".join(f'"{known}"' for known in PRESETS)
        raise ValueError(f"preset must be {allowed}; got {name!r}.")
    published, published_layers = PRESETS[name]
    setting = Task(**(published | settings))
    drawn = heads(key, setting, layers or published_layers)
    return Preset(setting, drawn, n_train, n_test, readout)


def _blocks(features, positions) -> Float[Array, "N_0 N_0"]:
    return jax.scipy.linalg.block_diag(features, positions)
