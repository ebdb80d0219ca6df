r"""Attention given as arrays, of any source (docs/theory/bpkr.md, section 1).

The theory needs of a network the attentioned inputs only, so its attention may come
from a trained model, with masks, biases and positions of any kind:

    Omega^{l,h}       (P, T, T)         column t: weights with which query t reads key s
    layer             (H_l, P, T, T)    None for a linear block: one head, Omega = 1
    real              (P, T)            which tokens are no padding

A query that is padding is read by nobody: its weights are set to zero.  Weights that
add up to one within the rounding of bfloat16 are divided by their sum, and a warning
says so.
"""

import warnings
from collections.abc import Sequence
from typing import Any, TypeGuard

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from statmech_attn.batches import require_double, require_real


SUM_TOLERANCE = 5e-3  # of the weights of a query, as bfloat16 rounds them
SINGLE = 1e-5  # the same of single precision, up to which they are taken as they are
QUERIES = ("columns", "rows")
AVERAGED = (
    "the mean over heads has lost them: torch.nn.MultiheadAttention returns each with "
    "average_attn_weights=False"
)


class Attention(eqx.Module):
    """Attention weights of all layers on some inputs; a pytree.

    Attributes:
        layers: from the first to the last; None for a linear block.
        real: which tokens are no padding; None if none is.
    """

    layers: tuple[Float[Array, "_H P T T"] | None, ...]
    real: Bool[Array, "P T"] | None = None

    @property
    def heads(self) -> tuple[int, ...]:
        """Heads per layer (H_1, ..., H_L), one for a linear block."""
        return tuple(1 if layer is None else len(layer) for layer in self.layers)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of inputs and of tokens, (P, T)."""
        layer = next(layer for layer in self.layers if layer is not None)
        _, examples, tokens, _ = layer.shape
        return examples, tokens

    def check(self, x) -> Float[Array, "P N_0 T"]:
        """Inputs as a float64 (P, N_0, T) array that fits."""
        require_real("x", x)
        x = jnp.asarray(x, float)
        examples, tokens = self.shape
        if x.ndim != 3 or (x.shape[0], x.shape[2]) != (examples, tokens):
            raise ValueError(
                f"x must have shape (P, N_0, T) with P = {examples} and T = {tokens} "
                f"as the attention, (H, P, T, T); got {x.shape}."
            )
        if self.real is not None:
            x = jnp.where(self.real[:, None, :], x, 0.0)
        return x


def attention_arrays(
    layers: Sequence,
    *,
    queries: str = "columns",
    real: Bool[Array | np.ndarray, "P T"] | None = None,
) -> Attention:
    """Attention weights of a network that is given by them alone.

    Args:
        layers: for each layer an array (H_l, P, T, T), or None for a linear block.
        queries: whether a query is a column of its matrix, or a row as in PyTorch and
            flax.
        real: which tokens are no padding; all when omitted.

    Returns:
        `Attention`, for `attended`.

    Raises:
        ValueError: shapes that disagree, weights that are not finite, do not add up to
            one over the keys of a query, or read padding; arrays that JAX traces.

    Warns:
        UserWarning: they add up to one as numbers of 16 bits do, to 0.005, and were
            divided by their sum.

    Example:
        >>> import jax, numpy as np
        >>> jax.config.update("jax_enable_x64", True)
        >>> rows = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
        >>> omega = attention_arrays([rows[None, None]], queries="rows")
        >>> omega.layers[0][0, 0, :, 1].tolist()
        [0.5, 0.5, 0.0, 0.0]
    """
    require_double()
    if queries not in QUERIES:
        raise ValueError(f'queries must be "columns" or "rows"; got {queries!r}.')
    if any(isinstance(values, Tracer) for values in (*layers, real)):
        raise ValueError(
            "attention: weights are checked by their numbers, which JAX does not have "
            "while it traces; call attention_arrays outside jit and give its result."
        )
    for number, layer in enumerate(layers, 1):
        require_real(f"attention: layer {number}", layer)
    arrays = [None if layer is None else np.asarray(layer, float) for layer in layers]
    shapes = [array.shape for array in arrays if array is not None]
    if not shapes:
        raise ValueError("attention: need at least one layer that is no linear block.")
    for number, array in enumerate(arrays, 1):
        if array is None:
            continue
        square = array.ndim == 4 and array.shape[2] == array.shape[3]
        if not square or not len(array) or array.shape[1:] != shapes[0][1:]:
            averaged = f"; {AVERAGED}" if array.shape == shapes[0][-3:] else ""
            raise ValueError(
                f"attention: layer {number} must have shape (H, P, T, T) with one P "
                f"and T for all layers; got {array.shape}{averaged}."
            )
    if real is not None:
        real = np.asarray(real)
        if real.shape != shapes[0][1:3] or real.dtype != bool:
            raise ValueError(
                f"real must be truth values of shape (P, T) = {shapes[0][1:3]}; got "
                f"{real.dtype} of shape {real.shape}."
            )
        if not real.any(axis=1).all():
            raise ValueError(
                f"real: example {int(np.argmin(real.any(axis=1)))} has no token; "
                "every example needs one that is no padding."
            )
    checked = []
    for number, array in enumerate(arrays, 1):
        if array is not None:
            array = array.swapaxes(2, 3) if queries == "rows" else array
            array = _checked(array, real, number, queries)
        checked.append(array)
    return Attention(tuple(checked), None if real is None else jnp.asarray(real))


def readout_weights(
    readout: str | int, x: Array, real: Bool[Array, "P T"] | None = None
) -> Float[Array | np.ndarray, "#P T"]:
    """e_{t*} of every example: "first", "last", "mean" or the index of a token.

    `x` is (P, N_0, T), of which the shape counts; `real` says which tokens are no
    padding.  Without it all are, and P is 1.
    """
    tokens = x.shape[2]
    known = np.ones((1, tokens), bool) if real is None else real
    if readout == "mean":
        return known / known.sum(axis=1, keepdims=True)
    if readout == "first":
        index = known.argmax(axis=1)
    elif readout == "last":
        index = tokens - 1 - known[:, ::-1].argmax(axis=1)
    elif not _is_token(readout, tokens):
        raise ValueError(
            f'readout must be "first", "last", "mean" or a token below {tokens}; '
            f"got {readout!r}."
        )
    else:
        if not known[:, readout].all():
            example = int(known[:, readout].argmin())
            raise ValueError(
                f"readout: token {readout} of example {example} is padding."
            )
        index = np.full(len(known), readout % tokens)
    return (np.arange(tokens) == index[:, None]).astype(float)


def _is_token(readout: Any, tokens: int) -> TypeGuard[int]:
    """Whether this is the number of a token, counted from 0 or backwards from -1."""
    is_integer = isinstance(readout, (int, np.integer)) and not isinstance(
        readout, bool
    )
    return bool(is_integer and -tokens <= readout < tokens)


def _checked(omega: np.ndarray, real, number: int, queries: str) -> Array:
    """Weights (H, P, T, T) of one layer, queries on columns, those of padding zero."""
    read = np.ones(omega.shape[1:3], bool) if real is None else real
    given, omega = omega, np.where(read[None, :, None, :], omega, 0.0)
    wrong = _off(omega, read)
    if not wrong.max() <= SUM_TOLERANCE:
        turned = np.where(read[None, :, None, :], given.swapaxes(2, 3), 0.0)
        if _off(turned, read).max() <= SUM_TOLERANCE:
            transposed = QUERIES[1 - QUERIES.index(queries)]
            raise ValueError(
                f"attention: in layer {number} the weights add up to one over the "
                f'other axis of the matrix; pass queries="{transposed}" '
                f"(--queries {transposed})."
            )
        head, example, query = map(int, np.unravel_index(np.argmax(wrong), wrong.shape))
        place = f"layer {number}, head {head + 1}, example {example}"
        total = omega[head, example, :, query].sum()
        negative = bool((omega < 0).any())
        unlike = "; some are negative, as scores are before the softmax"
        if not np.isfinite(total):
            raise ValueError(
                f"attention: in {place} the weights of query {query} are not "
                f"finite{unlike * negative}."
            )
        advice = unlike if negative else "; say with real= which tokens are padding"
        raise ValueError(
            f"attention: in {place} the weights of query {query} add up to "
            f"{total:.6g} instead of 1{advice}."
        )
    if real is not None and (np.abs(omega) * ~real[None, :, :, None]).max() > 0:
        raise ValueError(
            f"attention: layer {number} reads tokens that are padding by real=; their "
            "weights must be 0."
        )
    if wrong.max() > SINGLE:
        warnings.warn(
            f"attention: in layer {number} the weights of a query add up to one within "
            f"{wrong.max():.1g} only, as numbers of 16 bits do; they were divided by "
            "their sum.",
            stacklevel=3,
        )
        omega = omega / np.where(read, omega.sum(axis=2), 1.0)[:, :, None, :]
    return jnp.asarray(omega, float)


def _off(omega: np.ndarray, read: np.ndarray) -> np.ndarray:
    """How far the weights of each query that is read are from a sum of one, else 0."""
    with np.errstate(invalid="ignore"):  # inf - inf
        return np.where(read, np.abs(omega.sum(axis=2) - 1), 0.0)
