r"""Kernels of attention paths (docs/theory/bpkr.md, section 2).

    $K(x, x') = \frac{\sigma_0^2}{N_0 |\Pi|}
                \sum_{\pi\pi'} U_{\pi\pi'} \, \xi^\pi(x) \cdot \xi^{\pi'}(x')$

With K outputs, U has the index (pi, k) and the kernel the index (mu, k), k the faster
one.

    U                 (d, d)             d = |Pi| K                      `U`
    K_{pi pi'}        (Pi, Pi, P, P)     path-path kernels, scaled       `blocks`
    xi^pi             (P, N_0, Pi)       attentioned inputs              `xi`
    c_pi              (Pi,)              their prefactor, of `prefactor` `scale`
    X_pi              (P, N_0, Pi)       c_pi xi^pi, scaled inputs

The prefactor is put on U, so that inputs are kept once, as they were given; and sums
over features go by slabs of them, so that nothing as large as the inputs is copied.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from statmech_attn.bpkr.posed.streamed_kernels import gram, SLAB
from statmech_attn.options import Count, Numbers, Positive


ROWS = 4  # blocks of examples of a large symmetric kernel: 5/8 of the products


def cross_kernel(
    left: Float[Array, "P N_0 Pi"],
    right: Float[Array, "Q N_0 Pi"],
    U: Annotated[Numbers, "n n"],
) -> Float[Array, "m n"]:
    """K(x, x') between two sets of scaled attentioned inputs."""
    width = slab_width(left.shape, U)
    if width >= left.shape[1]:
        return _part_kernel(left, right, U)
    return _summed(lambda x, y: (_part_kernel(x, y, U),), (left, right), width)[0]


def self_kernel(xi: Float[Array, "P N_0 Pi"], U) -> Float[Array, "n n"]:
    """K(x, x') of a set of scaled attentioned inputs with itself.

    Where they are many, blocks below the diagonal alone are computed.  With
    `with_prefactor` of U_1, inputs need not be scaled.
    """
    width = slab_width(xi.shape, U)
    if width >= xi.shape[1]:
        return _part_kernel(xi, xi, U)
    U = (U + U.T) / 2  # the derivative in U is symmetric then
    if not any(isinstance(x, Tracer) for x in (xi, U)):
        return _squares_kernel(np.asarray(xi), np.asarray(U))
    P, outputs = xi.shape[0], U.shape[0] // xi.shape[2]
    ends = [P * block // ROWS for block in range(ROWS + 1)]
    blocks = list(zip(ends, ends[1:]))

    def rows(x):
        return tuple(_part_kernel(x[a:b], x[:b], U) for a, b in blocks)

    below = [
        jnp.pad(row, ((0, 0), (0, (P - b) * outputs)))
        for row, (_, b) in zip(_summed(rows, (xi,), width), blocks)
    ]
    K = jnp.concatenate(below)
    return jnp.tril(K) + jnp.tril(K, -1).T


def _squares_kernel(xi: Float[np.ndarray, "P N_0 Pi"], U) -> Float[Array, "n n"]:
    """`self_kernel` outside of compiled programs, by squares: half of the products."""
    values, V = np.linalg.eigh(U)
    K = np.zeros(())
    for sign, of_sign in ((1, values >= 0), (-1, values < 0)):
        if of_sign.any():
            K = K + sign * gram(xi, V[:, of_sign] * np.sqrt(abs(values[of_sign])))
    return jnp.asarray(K + np.triu(K, 1).T)


def slab_width(shape: tuple[int, ...], U: Array) -> int:
    """Features whose inputs times U are no more than `SLAB` numbers, at least one."""
    P, _, paths = shape
    return max(1, SLAB // (P * paths * (U.shape[0] // paths) ** 2))


def _summed(kernels: Callable, inputs: tuple[Array, ...], width: int):
    """Sum of kernels over slabs of features; a gradient computes each slab anew."""
    n_inputs = inputs[0].shape[1]
    last = n_inputs - n_inputs % width

    @jax.checkpoint
    def add(total, first):
        of = partial(jax.lax.dynamic_slice_in_dim, slice_size=width, axis=1)
        part = kernels(*(of(x, first) for x in inputs))
        return jax.tree.map(jnp.add, total, part), None

    total = kernels(*(x[:, last:] for x in inputs))  # of no features it is zero
    return jax.lax.scan(add, total, jnp.arange(0, last, width))[0]


@jax.jit
def _part_kernel(left, right, U) -> Float[Array, "m n"]:
    """`cross_kernel` of some features."""
    n_left, n_paths = left.shape[0], left.shape[2]
    U = _by_output(U, n_paths)
    outputs = U.shape[1]
    through = jnp.einsum("pia,akbl->pklib", left, U)
    through = through.reshape(n_left * outputs**2, -1)
    K = through @ right.reshape(right.shape[0], -1).T
    K = K.reshape(n_left * outputs, outputs, -1)
    return jnp.swapaxes(K, 1, 2).reshape(n_left * outputs, -1)


@jax.jit
def unexplained_variances(
    left: Float[Array, "Q N_0 Pi"],
    right: Float[Array, "P N_0 Pi"],
    U: Float[Array, "d d"],
    c: Float[Array, "m n"],
) -> Float[Array, " m"]:
    r"""$|\phi(x) - \sum_\mu c_\mu \phi(x_\mu)|^2$ of features with the kernel of U.

    `c` has the coefficients of every input and output of the left in those of the
    right.
    """
    (Q, _, n_paths), P = left.shape, right.shape[0]
    U = _by_output(U, n_paths)
    outputs = U.shape[1]
    own = jnp.eye(outputs)
    c = c.reshape(Q, outputs, P, outputs)

    def part(x, y):
        off = jnp.einsum("kl,qia->qkial", own, x) - jnp.einsum("qkpl,pia->qkial", c, y)
        through = jnp.einsum("qkial,albm->qkibm", off, U)
        return (jnp.einsum("qkibm,qkibm->qk", through, off).ravel(),)

    width = max(1, SLAB // (Q * n_paths * outputs**2))
    return _summed(part, (left, right), min(width, left.shape[1]))[0]


def with_prefactor(
    U: Float[Array, "d d"], scale: Float[Array, " Pi"]
) -> Float[Array, "d d"]:
    r"""$c_\pi U_{\pi\pi'} c_{\pi'}$: the prefactor of both inputs, put on U."""
    c = jnp.repeat(scale, U.shape[0] // scale.shape[0])
    return c[:, None] * U * c


def path_path(
    left: Float[Array, "Q N_0 Pi"], right: Float[Array, "P N_0 Pi"]
) -> Float[Array, "Pi Pi Q P"]:
    """Path-path kernels between two sets of scaled attentioned inputs."""
    n_paths = left.shape[2]
    of_left = _by_path(left)
    of_right = of_left if left is right else _by_path(right)
    blocks = (of_left @ of_right.T).reshape(n_paths, -1, n_paths, right.shape[0])
    return jnp.swapaxes(blocks, 1, 2)


def _by_path(xi: Float[Array, "P N_0 Pi"]) -> Float[Array, "PiP N_0"]:
    return jnp.moveaxis(xi, 2, 0).reshape(-1, xi.shape[1])


def self_path_path(xi: Float[Array, "Q N_0 Pi"]) -> Float[Array, "Pi Pi Q 1"]:
    """Path-path kernels of every input with itself."""
    return jnp.einsum("pia,pib->abp", xi, xi)[..., None]


def contracted(
    blocks: Float[Array, "Pi Pi Q P"], U: Float[Array, "d d"]
) -> Float[Array, "m n"]:
    """K(x, x') from path-path kernels."""
    by_output = _by_output(U, blocks.shape[0])
    K = jnp.einsum("akbl,abpq->pkql", by_output, blocks)
    return K.reshape(blocks.shape[2] * by_output.shape[1], -1)


def own_variances(
    blocks: Float[Array, "Pi Pi Q 1"], U: Float[Array, "d d"]
) -> Float[Array, " m"]:
    """K(x, x) of every input and output, from `self_path_path`."""
    outputs = U.shape[0] // blocks.shape[0]
    K = contracted(blocks, U).reshape(-1, outputs, outputs)
    return jnp.diagonal(K, axis1=1, axis2=2).ravel()


def path_readout(
    xi: Float[Array, "P N_0 Pi"], U: Float[Array, "d d"], alpha: Float[Array, " n"]
) -> Float[Array, "K N_0 Pi"]:
    r"""$s_\pi = \sum_{\pi'} U_{\pi\pi'} X_{\pi'}^T \alpha$: the mean f is linear.

    $f(x) = \sum_\pi s_\pi \cdot \xi^\pi(x)$, $\alpha = (K + T)^{-1} Y$; scaled inputs,
    or any with `with_prefactor` of U.
    """
    by_output = _by_output(U, xi.shape[2])
    alpha = alpha.reshape(xi.shape[0], -1)
    through = jnp.einsum("pib,pl->ibl", xi, alpha)
    return jnp.einsum("akbl,ibl->kia", by_output, through)


def prefactor(
    variance: Positive, n_inputs: Count, shares: Float[np.ndarray, " Pi"]
) -> Float[np.ndarray, " Pi"]:
    r"""$\sigma_0 c_\pi / \sqrt{N_0}$, with shares $1 / c_\pi^2$ of `prior`."""
    return np.sqrt(variance / (n_inputs * shares))


def _by_output(U, n_paths):
    outputs = U.shape[0] // n_paths
    return U.reshape(n_paths, outputs, n_paths, outputs)
