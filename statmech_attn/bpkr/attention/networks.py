r"""Networks with given weights: outputs and order parameters (docs/theory/bpkr.md, 1).

    $x^0_t = V_0 x_t / \sqrt{N_0}$,
    $x^l_t = b_l x^{l-1}_t
             + \sum_h V_{l,h} \sum_s x^{l-1}_s \Omega^{l,h}_{st} / \sqrt{N_l H_l}$,
    $f = a \cdot x^L_{t^*} / \sqrt{N_a}$

    V_0, V_{l,h}, a                     the weights that are learned     `Weights`
    w_pi              (Pi K, N_1)       effective weights                `w`

An output index, if any, comes after the path.  All numbers are dimensionless.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from statmech_attn.batches import rng
from statmech_attn.bpkr.attention.attention import attention_matrix, check_inputs, Heads
from statmech_attn.bpkr.attention.attention_weights import (
    Attention,
    readout_weights,
)
from statmech_attn.bpkr.posed.prior import layer_widths, path_shares, prior, Skip
from statmech_attn.options import Count, NotNegatives, Numbers


class Weights(NamedTuple):
    """Weights of one network: V_0, one V per layer, the readout a.

    Attributes:
        V_0: embedding.
        V: values of every layer, head by head.
        a: readout.
        skip: factors b_l of its skip connections, None or the number 0 for a layer
            without; none at all when left out.
    """

    V_0: Float[Array, "N_1 N_0"]
    V: tuple[Float[Array, "H N_out N_in"], ...]
    a: Float[Array, "*K N_a"]
    skip: Skip = ()


def forward(
    weights: Weights,
    x: Float[Array, "P N_0 T"],
    heads: Heads | Attention,
    *,
    readout: str | int = "last",
) -> Float[Array, "P *K"]:
    """Output f(x) of a network with given weights, layer by layer.

    Args:
        weights: all weights, as `draw_weights` gives them.
        x: P examples of T tokens with N_0 features.
        heads: attention heads of every layer, or attention given as arrays.
        readout: token that is read out: "first", "last", "mean" or its number.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> from statmech_attn.bpkr import heads_from_products
        >>> weights = draw_weights(jax.random.key(0), n_inputs=3, heads=(2, 2), width=5)
        >>> heads = heads_from_products([jnp.zeros((2, 3, 3))] * 2)
        >>> forward(weights, jnp.ones((5, 3, 4)), heads).shape
        (5,)
    """
    is_attention = isinstance(heads, Attention)
    x = heads.check(x) if is_attention else check_inputs(x, heads)
    hidden = jnp.einsum("ni,pit->pnt", weights.V_0, x) / math.sqrt(x.shape[1])
    layers = heads.layers if is_attention else heads
    for V, layer, b in zip(weights.V, layers, skips_of(weights), strict=True):
        scale, below = math.sqrt(V.shape[2] * V.shape[0]), hidden
        if layer is None:
            hidden = jnp.einsum("mn,pnt->pmt", V[0], hidden) / scale
        else:
            omegas = (
                layer if is_attention else (attention_matrix(x, head) for head in layer)
            )
            hidden = sum(
                jnp.einsum("mn,pns,pst->pmt", v, below, omega) / scale
                for v, omega in zip(V, omegas, strict=True)
            )
        hidden = hidden if b is None else b * below + hidden
    real = heads.real if is_attention else None
    read = jnp.einsum("pnt,pt->pn", hidden, readout_weights(readout, x, real))
    return (
        read
        @ jnp.swapaxes(jnp.atleast_2d(weights.a), 0, 1).reshape(
            (-1,) + weights.a.shape[:-1]
        )
        / math.sqrt(read.shape[1])
    )


def forward_paths(
    weights: Weights, xi: Float[Array, "P N_0 Pi"]
) -> Float[Array, "P *K"]:
    r"""$f = \sum_\pi w_\pi^T V_0 \xi^\pi / \sqrt{N_1 N_0 |\Pi|}$.

    With skip connections $c_\pi = \prod H_l^{-1/2}$ over the layers that a path passes
    through a head stands for $1 / \sqrt{|\Pi|}$.

    Args:
        weights: all weights of a network.
        xi: attentioned inputs.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> from statmech_attn.bpkr import attentioned_inputs, heads_from_products
        >>> weights = draw_weights(jax.random.key(0), n_inputs=3, heads=(2, 2), width=5)
        >>> heads = heads_from_products([jnp.zeros((2, 3, 3))] * 2)
        >>> x = jnp.ones((5, 3, 4))
        >>> f = forward_paths(weights, attentioned_inputs(x, heads))
        >>> bool(jnp.allclose(f, forward(weights, x, heads)))
        True
    """
    n_inputs, n_paths = xi.shape[1:]
    shares = path_shares([len(V) for V in weights.V], skips_of(weights))
    xi = xi * np.sqrt(n_paths / shares)
    w = effective_weights(weights)
    w = w.reshape((n_paths, -1, w.shape[-1]))
    f = jnp.einsum("akn,ni,pia->pk", w, weights.V_0, xi, optimize="optimal")
    f = f / math.sqrt(w.shape[-1] * n_inputs * n_paths)
    return f.reshape((xi.shape[0],) + weights.a.shape[:-1])


def effective_weights(weights: Weights) -> Float[Array, "PiK N_1"]:
    r"""Effective weights of every path: $w_\pi = V_{1,h_1}^T \cdots V_{L,h_L}^T a$.

    Each step is divided by $\sqrt{width}$; a skip connection is a factor b_l instead.
    """
    return _all_effective_weights(weights)[0]


def order_parameters(weights: Weights):
    r"""Order parameters of one network: $U_l = w w^T / N_l$.

    Args:
        weights: all weights of a network.

    Returns:
        (U_1, ..., U_L) and U_a.

    Example:
        >>> import jax
        >>> jax.config.update("jax_enable_x64", True)
        >>> weights = draw_weights(jax.random.key(0), n_inputs=3, heads=(2, 2), width=5)
        >>> U, U_a = order_parameters(weights)
        >>> [values.shape for values in U], U_a.shape
        ([(4, 4), (2, 2)], ())
    """
    grams = [w @ w.T / w.shape[1] for w in _all_effective_weights(weights)]
    U_a = grams[-1] if weights.a.ndim == 2 else grams[-1][0, 0]
    return tuple(grams[:-1]), U_a


def draw_weights(
    key: Key[Array, ""],
    *,
    n_inputs: Count,
    heads: Sequence[int],
    width: Numbers,
    variances: NotNegatives | None = None,
    outputs: Count | None = None,
    skip: Sequence | Numbers | None = None,
) -> Weights:
    """Draw a network from the prior.

    Args:
        key: random key of JAX.
        n_inputs: number N_0 of features.
        heads: heads per layer (H_1, ..., H_L).
        width: one number, or (N_1, ..., N_L, N_a).
        variances: (sigma_0^2, ..., sigma_L^2, sigma_a^2); one when omitted.
        outputs: number of outputs K; a scalar network when omitted.
        skip: factors of its skip connections, as in `Problem`.

    Returns:
        `Weights` with independent Gaussian entries.

    Example:
        >>> import jax
        >>> jax.config.update("jax_enable_x64", True)
        >>> weights = draw_weights(jax.random.key(0), n_inputs=3, heads=(2, 2), width=5)
        >>> [values.shape for values in order_parameters(weights)[0]]
        [(4, 4), (2, 2)]
    """
    law = prior(width, heads, variances, skip)
    sizes = [int(n) for n in layer_widths(width, len(heads))]
    keys = jax.random.split(key, len(heads) + 2)
    draw = lambda k, s2, shape: jnp.sqrt(s2) * rng.normal(k, shape)
    V = tuple(
        draw(k, s2, (H, n_out, n_in))
        for k, s2, H, n_out, n_in in zip(
            keys[1:-1], law.variances[1:-1], heads, sizes[1:], sizes[:-1]
        )
    )
    shape_a = (sizes[-1],) if outputs is None else (outputs, sizes[-1])
    V_0 = draw(keys[0], law.variances[0], (sizes[0], n_inputs))
    return Weights(V_0, V, draw(keys[-1], law.variances[-1], shape_a), law.skip)


def skips_of(weights: Weights) -> Skip:
    """The factors of the skip connections of every layer, None where it has none."""
    none = lambda b: b is None or (isinstance(b, (int, float)) and b == 0)
    factors = weights.skip or (None,) * len(weights.V)
    return tuple(None if none(b) else b for b in factors)


def _all_effective_weights(weights: Weights) -> list[Array]:
    w = jnp.atleast_2d(weights.a)
    chain = [w]
    for V, b in zip(weights.V[::-1], skips_of(weights)[::-1], strict=True):
        # (h_l, rest) in this order: the head of the earlier layer is the slowest.
        through = jnp.einsum("hmn,rm->hrn", V, w).reshape(-1, V.shape[2])
        through = through / math.sqrt(V.shape[1])
        w = through if b is None else jnp.concatenate([b * w, through])
        chain.append(w)
    return chain[::-1]
