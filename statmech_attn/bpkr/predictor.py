r"""Predictions at given order parameters (docs/theory/bpkr.md, sections 2 and 4).

$\langle f(x) \rangle = k^T (K + T)^{-1} Y$,
$\langle \delta f^2 \rangle = K(x, x) - k^T (K + T)^{-1} k$

xi                (P, N_0, Pi)       attentioned inputs, scaled         `xi`
U_1               (d, d)             order parameter, d = |Pi| K        `U`
(K + T)^-1        (n, n)             as half^T half, n = P K            `half`
s_pi              (K, N_0, Pi)       mean f as sum_pi s_pi . xi^pi      `path_readout`
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from statmech_attn.bpkr import prior as sizes_of
from statmech_attn.bpkr.action import gaussian_process_limit
from statmech_attn.bpkr.checks import check_data, check_test
from statmech_attn.bpkr.kernels import (
    cross_kernel,
    own_variances,
    path_readout,
    scaled,
    self_path_path,
)
from statmech_attn.bpkr.linear_algebra import inverse_cholesky, singular


_inverse_cholesky = jax.jit(inverse_cholesky)  # else an operation at a time


class Prediction(NamedTuple):
    """Mean and variance of f over the posterior, per input and output."""

    mean: Float[Array, "Q *K"]
    variance: Float[Array, "Q *K"]


class Theory(eqx.Module):
    """The Gaussian process at one U_1; build with `theory` or `gaussian_process`."""

    xi: Float[Array, "P N_0 Pi"]
    Y: Float[Array, "P *K"]
    U: Float[Array, "d d"]
    temperature: float
    variance: float
    half: Float[Array, "n n"]

    @property
    def kernel(self) -> Float[Array, "n n"]:
        """K(U_1) of the training examples."""
        return cross_kernel(self.xi, self.xi, self.U)

    def predict(self, xi_test: Float[Array, "Q N_0 Pi"]) -> Prediction:
        """Mean and variance on new attentioned inputs, one column per path."""
        test = scaled(check_test(xi_test, *self.xi.shape[1:]), self.variance)
        k = cross_kernel(test, self.xi, self.U)
        own = own_variances(self_path_path(test), self.U)
        mean, variance = regression(k, own, self.half, self.Y.ravel())
        shape = test.shape[:1] + self.Y.shape[1:]
        return Prediction(mean.reshape(shape), variance.reshape(shape))

    def mean(self, xi_test: Float[Array, "Q N_0 Pi"]) -> Float[Array, "Q *K"]:
        """The mean of `predict` alone, which needs no kernel of the new inputs.

        Example:
            >>> import jax, jax.numpy as jnp
            >>> jax.config.update("jax_enable_x64", True)
            >>> t = theory(jnp.ones((1, 1, 1)), [1.0], jnp.eye(1), temperature=1.0)
            >>> round(float(t.mean(jnp.ones((1, 1, 1)))[0]), 12)
            0.5
        """
        test = scaled(check_test(xi_test, *self.xi.shape[1:]), self.variance)
        alpha = self.half.T @ (self.half @ self.Y.ravel())
        f = jnp.einsum("qia,kia->qk", test, path_readout(self.xi, self.U, alpha))
        return f.reshape(test.shape[:1] + self.Y.shape[1:])

    def restricted(self, paths: Sequence[int]) -> "Theory":
        """The same network with all other paths silenced, then trained as before.

        The kernel keeps its prefactor 1 / |Pi| and the entries of U among the paths;
        all others are zero.  Test inputs have the columns of all paths, as before.

        Raises:
            ValueError: indices that are no paths, or come twice.
        """
        chosen = np.asarray(paths, int)
        n_paths = self.xi.shape[2]
        valid = chosen.size and ((chosen >= 0) & (chosen < n_paths)).all()
        if not valid or np.unique(chosen).size != chosen.size:
            raise ValueError(
                f"paths: need distinct indices from 0 to {n_paths - 1}; "
                f"got {chosen.tolist()}."
            )
        shown = np.repeat(np.isin(np.arange(n_paths), chosen), len(self.U) // n_paths)
        U = self.U * np.outer(shown, shown)
        return _trained(self.xi, self.Y, U, self.temperature, self.variance)

    def silenced(
        self, heads: Sequence[int], off: Sequence[tuple[int, int]]
    ) -> "Theory":
        """The same network without the heads in `off`, as by `restricted`.

        Args:
            heads: heads per layer (H_1, ..., H_L).
            off: pairs (layer, head), counted from zero.

        Raises:
            ValueError: heads that do not fit, or no path is left.

        Example:
            >>> import jax, jax.numpy as jnp
            >>> jax.config.update("jax_enable_x64", True)
            >>> full = theory(jnp.ones((1, 1, 4)), [1.0], jnp.eye(4), temperature=1.0)
            >>> jnp.diagonal(full.silenced((2, 2), [(0, 1), (1, 0)]).U).tolist()
            [0.0, 1.0, 0.0, 0.0]
        """
        sizes_of.check_heads(heads)
        n_paths = math.prod(heads)
        if n_paths != self.xi.shape[2]:
            raise ValueError(
                f"heads = {tuple(heads)} have {n_paths} paths, the network "
                f"{self.xi.shape[2]}."
            )
        silent = [paths_through(heads, layer, head) for layer, head in off]
        left = np.setdiff1d(np.arange(n_paths), np.concatenate([[], *silent]))
        if not left.size:
            raise ValueError(f"off: no path is left without the heads {list(off)}.")
        return self.restricted(left.tolist())

    def overlap(self) -> Float[Array, " n"]:
        """|v_i . Y| / |Y| for the eigenvectors of K, largest eigenvalue first."""
        return kernel_overlap(self.kernel, self.Y)


def theory(xi, Y, U, *, temperature: float, variance: float = 1.0) -> Theory:
    """Predictor at a given U_1, of shape (|Pi| K, |Pi| K).

    Args:
        xi, Y: the training set, as in `solve`.
        variance: sigma_0^2.

    Raises:
        ValueError: sizes that disagree, or K + T is not positive definite.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi = jnp.ones((1, 1, 1))
        >>> t = theory(xi, jnp.ones(1), jnp.eye(1), temperature=1.0)
        >>> round(float(t.predict(xi).mean[0]), 12)
        0.5
    """
    xi, Y = check_data(xi, Y, (np.shape(xi)[-1],))
    U = jnp.asarray(U, float)
    d = xi.shape[2] * (1 if Y.ndim == 1 else Y.shape[1])
    if U.shape != (d, d):
        raise ValueError(f"U must have shape {(d, d)}, |Pi| K; got {U.shape}.")
    return _trained(scaled(xi, variance), Y, U, float(temperature), float(variance))


def gaussian_process(
    xi, Y, *, heads: Sequence[int], temperature: float, variances=None
) -> Theory:
    """Predictor in the GP limit, P / N -> 0."""
    variances = sizes_of.prior(1, heads, variances).variances
    outputs = 1 if np.ndim(Y) == 1 else np.shape(Y)[1]
    U, _ = gaussian_process_limit(heads, variances, outputs)
    return theory(xi, Y, U[0], temperature=temperature, variance=float(variances[0]))


def accuracy(mean: Float[Array, "Q *K"], y: Float[Array, "Q *K"]) -> float:
    """Share of right classes: by sign, or by the largest of K outputs.

    Example:
        >>> import jax.numpy as jnp
        >>> accuracy(jnp.array([0.3, -0.2]), jnp.array([1.0, 1.0]))
        0.5
    """
    if mean.shape != y.shape:
        raise ValueError(f"mean and y must share one shape: {mean.shape}, {y.shape}.")
    return float(np.asarray(correct(mean, y)).mean())


def correct(f: Float[Array, "Q *K"], y: Float[Array, "Q *K"]) -> Bool[Array, " Q"]:
    """Whether each class is right: by sign, or by the largest of K outputs.

    Example:
        >>> import jax.numpy as jnp
        >>> correct(jnp.array([0.3, -0.2]), jnp.array([1.0, 1.0])).tolist()
        [True, False]
    """
    if f.ndim == 1:
        return jnp.sign(f) == jnp.sign(y)
    return jnp.argmax(f, axis=1) == jnp.argmax(y, axis=1)


def kernel_overlap(
    K: Float[Array, "n n"], Y: Float[Array, "P *K"]
) -> Float[Array, " n"]:
    """|v_i . Y| / |Y| for the eigenvectors v_i of K, largest eigenvalue first."""
    y = jnp.ravel(Y)
    vectors = jnp.linalg.eigh(K)[1][:, ::-1]
    return jnp.abs(vectors.T @ y) / jnp.linalg.norm(y)


def paths_through(heads: Sequence[int], layer: int, head: int) -> np.ndarray:
    """Indices of the paths through one head; layers and heads count from zero.

    Example:
        >>> paths_through((2, 2), 1, 0).tolist()
        [0, 2]
    """
    if not 0 <= layer < len(heads) or not 0 <= head < heads[layer]:
        raise ValueError(f"no head {head} of layer {layer} in heads = {tuple(heads)}.")
    digits = np.indices(tuple(heads)).reshape(len(heads), -1)
    return np.flatnonzero(digits[layer] == head)


def head_scores(U: Float[Array, "d d"], heads: Sequence[int]) -> tuple[Array, ...]:
    """Weight of every head in U_1, over the largest; one (H_l,) array per layer.

    The sum of |U| over all pairs of paths of which one or both pass through the head;
    over all outputs, if there are several.

    Example:
        >>> import jax.numpy as jnp
        >>> [s.tolist() for s in head_scores(jnp.diag(jnp.array([2.0, 1.0])), (2,))]
        [[1.0, 0.5]]
    """
    weight = path_weights(U, heads)
    n_paths = len(weight)
    scores = []
    for layer, H in enumerate(heads):
        for head in range(H):
            outside = np.setdiff1d(
                np.arange(n_paths), paths_through(heads, layer, head)
            )
            scores.append(weight.sum() - weight[np.ix_(outside, outside)].sum())
    scores = jnp.stack(scores) / jnp.max(jnp.stack(scores))
    return tuple(jnp.split(scores, np.cumsum(heads)[:-1]))


def path_weights(U: Float[Array, "d d"], heads: Sequence[int]) -> Float[Array, "Pi Pi"]:
    """|U| of every pair of paths, summed over outputs.

    Raises:
        ValueError: a matrix of another size than the paths.

    Example:
        >>> import jax.numpy as jnp
        >>> path_weights(-jnp.ones((4, 4)), (2,)).tolist()  # two outputs
        [[4.0, 4.0], [4.0, 4.0]]
    """
    sizes_of.check_heads(heads)
    n_paths = math.prod(heads)
    if U.ndim != 2 or U.shape[0] != U.shape[1] or U.shape[0] % n_paths:
        raise ValueError(
            f"U must be square with |Pi| = {n_paths} paths of heads = {tuple(heads)}; "
            f"got {U.shape}."
        )
    weight = jnp.abs(U).reshape(n_paths, -1, n_paths, U.shape[0] // n_paths)
    return weight.sum(axis=(1, 3))


def block_structure(U: Float[Array, "d d"], heads: Sequence[int]) -> tuple[float, ...]:
    """How much U_1 is made of blocks of one head, for every layer.

    Mean |U| over pairs of different paths that share their head of the layer, over the
    mean of pairs that do not; 1 where the layer's heads leave no mark, NaN where a
    layer has one head or no path has a partner.

    Example:
        >>> import jax.numpy as jnp
        >>> blocks = jnp.kron(jnp.eye(2), jnp.ones((2, 2))) + 1
        >>> [round(x, 3) for x in block_structure(blocks, (2, 2))]
        [2.0, 0.667]
    """
    weight = np.asarray(path_weights(U, heads))
    digits = np.indices(tuple(heads)).reshape(len(heads), -1)
    found = []
    for head in digits:
        same = head[:, None] == head
        within = weight[same & ~np.eye(len(weight), dtype=bool)]
        between = weight[~same]
        known = within.size and between.size
        found.append(float(within.mean() / between.mean()) if known else math.nan)
    return tuple(found)


def regression(
    k: Float[Array, "m n"],
    own: Float[Array, " m"],
    half: Float[Array, "n n"],
    y: Float[Array, " n"],
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Mean and variance of f from k = K(x, x') and K(x, x)."""
    k = k @ half.T
    return k @ (half @ y), own - (k * k).sum(axis=1)


def _trained(X, Y, U, temperature: float, variance: float) -> Theory:
    K = cross_kernel(X, X, U)
    half = _inverse_cholesky(K + temperature * jnp.eye(K.shape[0]))
    lost = temperature == 0 and bool(singular(K))
    if lost or not bool(jnp.isfinite(half).all()):
        raise ValueError(
            "K + T is not positive definite: raise the temperature, or give a "
            "positive semi-definite U."
        )
    return Theory(X, Y, U, temperature, variance, half)
