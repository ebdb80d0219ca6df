r"""One-shot image classification (docs/theory/one_shot.md, 1).

Two images of different classes with a symbol + or - each, then a query image with the
symbol ?, another drawing of one of the two classes; y is the label of the matching one.
An image is cut into patches row by row, each patch layer-normalised.  Token t is

    x_t = patch_t + position_t + symbol_{image(t)},     t = 1 .. 3 p

    p                 patches of an image, (S / patch)^2          `patches`
    N_0               patch^2 x channels                          `n_inputs`
    x                 (P, N_0, T)      inputs, T = 3 p            `x`
    y                 (P,)             labels, +1 or -1           `y`
    symbols           (3, N_0)         of +, - and ?              `symbols`
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int32, Key

from statmech_attn.batches import require_double, require_memory
from statmech_attn.options import Even
from statmech_attn.tasks.image_files.images import ImageClasses
from statmech_attn.tasks.options import Setting


COPIES = 5  # of the inputs that drawing and attending them takes at once
EPSILON = 1e-5  # of the layer norm


class Codes(NamedTuple):
    """What is added to the patches; the symbols are those of +, - and ?."""

    positions: Float[np.ndarray, "T N_0"]
    symbols: Float[np.ndarray, "3 N_0"]


class Choices(NamedTuple):
    """Which images make up each example.

    Classes of the first and second image, drawings of first, second and query, which of
    the two is the query's class (0 or 1), and its label.
    """

    classes: Int32[Array | np.ndarray, "B 2"]
    drawings: Int32[Array | np.ndarray, "B 3"]
    match: Int32[Array | np.ndarray, " B"]
    y: Int32[Array | np.ndarray, " B"]


class Examples(NamedTuple):
    """Inputs and labels, class + first."""

    x: Float[Array, "P N_0 T"]
    y: Float[Array, " P"]


def patches(
    images: Float[np.ndarray, "C D S S"], setting: Setting
) -> Float[np.ndarray, "C D p N_0"]:
    """Layer-normalised patches, row by row; a constant patch becomes 0."""
    size, side = setting.image_size, setting.patch
    if np.ndim(images) != 4 or images.shape[2:] != (size, size):
        raise ValueError(
            f"images must have shape (classes, drawings, {size}, {size}); "
            f"got {np.shape(images)}."
        )
    n = size // side
    images = np.asarray(images, np.float32)
    cut = images.reshape(*images.shape[:2], n, side, n, side).swapaxes(3, 4)
    flat = cut.reshape(*images.shape[:2], n * n, side * side)
    flat = flat - flat.mean(-1, keepdims=True, dtype=np.float64).astype(np.float32)
    variance = np.mean(flat**2, -1, keepdims=True, dtype=np.float64)
    normed = flat / np.sqrt(variance + EPSILON).astype(np.float32)
    return np.tile(normed, setting.channels)


def codes(setting: Setting) -> Codes:
    """Standardised sinusoidal positions (base 10 000) and the symbols' vectors."""
    rates = 10_000.0 ** (-np.arange(0, setting.n_inputs, 2) / setting.n_inputs)
    angles = np.arange(setting.tokens)[:, None] * rates
    table = np.stack([np.sin(angles), np.cos(angles)], -1)
    table = table.reshape(setting.tokens, setting.n_inputs)
    draws = np.random.default_rng(setting.symbol_seed)
    return Codes(
        (table - table.mean()) / table.std(),
        draws.standard_normal((3, setting.n_inputs)),
    )


def choose(
    key: Key[Array, ""],
    *,
    n_classes: int,
    n_drawings: int,
    examples: int,
    classes: Int[Array | np.ndarray, "..."] | None = None,
) -> Choices:
    """Draw the choices of independent examples; sizes are static under `jax.jit`.

    `classes` (examples, 2) are unordered pairs of classes, as from `pairs`; None draws
    them, all alike probable.
    """
    if n_classes < 2 or n_drawings < 2 or examples < 1:
        raise ValueError(
            "two or more classes, two or more drawings of each and one or more "
            f"examples are needed; got {n_classes}, {n_drawings} and {examples}."
        )
    if classes is not None and jnp.shape(classes) != (examples, 2):
        raise ValueError(
            f"classes must have shape ({examples}, 2); got {jnp.shape(classes)}."
        )
    return _choose(key, classes, n_classes, n_drawings, examples)


def pairs(key: Key[Array, ""], n_classes: int) -> Int32[Array, "n_pairs 2"]:
    """All unordered pairs of classes in random order: one published pass."""
    if n_classes < 2:
        raise ValueError(f"two or more classes are needed; got {n_classes}.")
    listed = np.stack(np.triu_indices(n_classes, 1), 1).astype(np.int32)
    return jax.random.permutation(key, jnp.asarray(listed))


def sequences(
    patches: Float[Array | np.ndarray, "C D p N_0"], choices: Choices, codes: Codes
) -> tuple[Float[Array, "B N_0 T"], Float[Array, " B"]]:
    """Inputs and labels of the choices, in the dtype of `patches`."""
    return _assembled(shown(patches, choices), choices, codes)


def shown(
    patches: Float[Array | np.ndarray, "C D p n"], choices: Choices
) -> Float[Array, "B 3 p n"]:
    """Patches of first, second and query image of the choices."""
    try:
        return jnp.stack([patches[rows] for rows in _rows(choices)], 1)
    except IndexError as error:
        raise ValueError(f"patches must hold what is chosen: {error}.") from None


def first_symbol(choices: Choices) -> Int32[Array, " B"]:
    """Sign of the first image's symbol, 1 or -1; the second has the other one."""
    return jnp.asarray(choices.y * (1 - 2 * choices.match))


def draw(
    key: Key[Array, ""], classes: ImageClasses, setting: Setting, *, examples: Even
) -> Examples:
    """Draw labelled examples in float64, `examples` / 2 of each label, + first.

    Args:
        key: random key of JAX.
        classes: images by class, as from `images.omniglot` or `images.split`.
        setting: sizes of the task.
        examples: number of examples, even.

    Returns:
        Patches x (examples, features, tokens), and labels y (examples,), 1 and -1.

    Raises:
        ValueError: a number of examples that is not even.

    Example:
        >>> import jax, numpy as np
        >>> jax.config.update("jax_enable_x64", True)
        >>> classes = ImageClasses(("a", "b"), np.zeros((2, 5, 32, 32), np.float32))
        >>> draw(jax.random.key(0), classes, Setting(), examples=4).x.shape
        (4, 192, 48)
    """
    C, D = classes.images.shape[:2]
    chosen = choose(key, n_classes=C, n_drawings=D, examples=_even(examples, setting))
    chosen = _balanced(chosen)
    images = np.stack([classes.images[rows] for rows in _rows(chosen, np)], 1)
    return _examples(images, chosen, setting)


def draw_elsewhere(
    key: Key[Array, ""],
    support: ImageClasses,
    query: ImageClasses,
    setting: Setting,
    *,
    examples: Even,
) -> Examples:
    """Draw examples whose queries come from other images than the supports.

    The class named first always comes first; its label, the query's class and the
    drawings are random; `examples` / 2 of each label, + first.

    Args:
        key: random key of JAX.
        setting: sizes of the task.
        examples: number of examples, even.
        support, query: the same two classes, as from `images.elsewhere`.

    Raises:
        ValueError: other classes, or a number of examples that is not even.

    Example:
        >>> import jax, numpy as np
        >>> jax.config.update("jax_enable_x64", True)
        >>> digits = ImageClasses(("0", "1"), np.zeros((2, 5, 32, 32), np.float32))
        >>> both = digits, digits
        >>> draw_elsewhere(jax.random.key(0), *both, Setting(), examples=4).x.shape
        (4, 192, 48)
    """
    if len(support.names) != 2 or support.names != query.names:
        raise ValueError(
            "support and query must hold the same two classes; "
            f"got {support.names} and {query.names}."
        )
    P = _even(examples, setting)
    bits = np.asarray(jax.random.bits(key, (4, P), jnp.uint32))
    supports, queries = support.images.shape[1], query.images.shape[1]
    drawings = [_below(supports, bits[0]), _below(supports, bits[1])]
    drawings = np.stack([*drawings, _below(queries, bits[2])], 1)
    classes = np.tile(np.array([0, 1], np.int32), (P, 1))
    chosen = Choices(classes, drawings, _below(2, bits[3]), np.ones(P, np.int32))
    chosen = _balanced(chosen)
    first, second, last = _rows(chosen, np)
    images = [support.images[first], support.images[second], query.images[last]]
    return _examples(np.stack(images, 1), chosen, setting)


@partial(jax.jit, static_argnums=(2, 3, 4))
def _choose(key, classes, n_classes: int, n_drawings: int, examples: int) -> Choices:
    """All choices from one call of the generator: the rows of `bits`."""
    bits = jax.random.bits(key, (8, examples), jnp.uint32)
    if classes is None:
        classes = _two_of(n_classes, bits[0], bits[1])
    order = _below(2, bits[2])[:, None]
    classes = jnp.where(order == 1, classes[:, ::-1], classes).astype(jnp.int32)
    shown = jnp.stack([_below(n_drawings, bits[3]), _below(n_drawings, bits[4])], 1)
    match = _below(2, bits[5])
    matching = jnp.take_along_axis(shown, match[:, None], 1)[:, 0]
    query = (matching + 1 + _below(n_drawings - 1, bits[6])) % n_drawings
    drawings = jnp.concatenate([shown, query[:, None]], 1)
    return Choices(classes, drawings, match, 1 - 2 * _below(2, bits[7]))


def _below(stop: int, bits):
    """0 .. stop - 1 from 32 bits; probabilities differ by less than 2^-32."""
    return (bits % np.uint32(stop)).astype(np.int32)


def _two_of(n_classes: int, bits, more_bits) -> Int32[Array, "B 2"]:
    """Two different classes for each example."""
    first = _below(n_classes, bits)
    second = (first + 1 + _below(n_classes - 1, more_bits)) % n_classes
    return jnp.stack([first, second], 1)


def _rows(choices: Choices, xp: Any = jnp) -> list[tuple[Any, Any]]:
    """(class, drawing) of the first, second and query image."""
    classes, drawings, match = (xp.asarray(part) for part in choices[:3])
    of_query = xp.take_along_axis(classes, match[:, None], 1)[:, 0]
    of = (classes[:, 0], classes[:, 1], of_query)
    return [(of[image], drawings[:, image]) for image in range(3)]


@jax.jit
def _assembled(shown: Float[Array, "B 3 p N_0"], choices: Choices, codes: Codes):
    """Add positions and symbols, then tokens last."""
    B, _, p, N_0 = shown.shape
    positions, symbols = (jnp.asarray(part, shown.dtype) for part in codes)
    first_is_minus = (first_symbol(choices) < 0).astype(jnp.int32)
    marks = jnp.stack(
        [first_is_minus, 1 - first_is_minus, jnp.full(B, 2, jnp.int32)], 1
    )
    x = shown + positions.reshape(3, p, N_0) + symbols[marks][:, :, None]
    return jnp.swapaxes(x.reshape(B, 3 * p, N_0), 1, 2), choices.y.astype(shown.dtype)


def _even(examples: int, setting: Setting) -> int:
    entries = setting.n_inputs * setting.tokens
    require_memory(f"{examples} examples", COPIES * 8 * examples * entries)
    return examples


def _balanced(choices: Choices) -> Choices:
    """The choices with labels + first, then -, as arrays of NumPy."""
    classes, drawings, match, y = (np.asarray(part) for part in choices)
    y = np.repeat(np.array([1, -1], np.int32), len(y) // 2)
    return Choices(classes, drawings, match, y)


def _examples(images, choices: Choices, setting: Setting) -> Examples:
    require_double()
    shown = jnp.asarray(patches(images, setting), jnp.float64)
    return Examples(*_assembled(shown, choices, codes(setting)))
