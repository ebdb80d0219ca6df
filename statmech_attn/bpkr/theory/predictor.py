r"""Predictions at given order parameters (docs/theory/bpkr.md, sections 2 and 4).

$\langle f(x) \rangle = k^T (K + T)^{-1} Y$,
$\langle \delta f^2 \rangle = K(x, x) - k^T (K + T)^{-1} k
    = |\phi(x) - \sum_\mu c_\mu \phi(x_\mu)|^2 + T |c|^2$,  $c = (K + T)^{-1} k$

The second form, in features $\phi$ with $K = \phi \cdot \phi$, takes the place of the
first where that cancels.

xi                (P, N_0, Pi)       attentioned inputs, scaled         `xi`
U_1               (d, d)             order parameter, d = |Pi| K        `U`
(K + T)^-1        (n, n)             as half^T half, n = P K            `half`
s_pi              (K, N_0, Pi)       mean f as sum_pi s_pi . xi^pi      `path_readout`
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from statmech_attn import presentation
from statmech_attn.arguments import checks
from statmech_attn.bpkr.posed.kernel_forms import CrossInputs
from statmech_attn.bpkr.posed.kernels import own_variances
from statmech_attn.bpkr.posed.linear_algebra import inverse_cholesky, singular
from statmech_attn.bpkr.posed.prior import head_counts
from statmech_attn.bpkr.posed.problem import Inputs, Posed
from statmech_attn.bpkr.posed.quantities import TEMPERATURE_OF_ONE
from statmech_attn.bpkr.posed.rounding import (
    require_known,
    ROUNDING,
    rounding_of_predictor,
)
from statmech_attn.bpkr.theory.saddle_point import SaddlePoint
from statmech_attn.labels import Variable
from statmech_attn.options import Numbers, WholeNumber


CANCELLED = 1e-8  # of the prior variance, below which features give the variance


@jax.jit
def _half(K, T) -> Array:
    """L^-1 of K + T."""
    return inverse_cholesky(K + T * np.eye(len(K)))


def dims_of_tests(values) -> str:
    """Dimensions of what is predicted, of one output or of several."""
    return "test output" if values.ndim == 2 else "test"


class Prediction(NamedTuple):
    """Mean and variance of f over the posterior, per input and output.

    Attributes:
        mean: of f, for Q inputs and K outputs.
        variance: of f, likewise.
    """

    mean: Float[Array, "Q *K"]
    variance: Float[Array, "Q *K"]

    @property
    def std(self) -> Float[Array, "Q *K"]:
        """Standard deviation of f over the posterior."""
        return jnp.sqrt(self.variance)

    @property
    def _shown(self):
        return (
            Variable(
                "predictor_mean",
                dims_of_tests(self.mean),
                "mean of f over the posterior ± its standard deviation",
                symbol="⟨f⟩",
                parts="_std",
                value="mean",
                error="std",
            ),
        )

    __repr__, _repr_html_, to_dataset = presentation.METHODS


class Theory(eqx.Module):
    """The Gaussian process of a problem at one U_1; build with `Problem.theory`.

    Attributes:
        problem: the problem that was posed.
        U: order parameter U_1 over pairs of paths.
        half: inverse Cholesky factor of K(U) + T, of `problem.rows`.
    """

    problem: Posed
    U: Float[Array, "d d"]
    half: Float[Array, "_n _n"]

    _shown = (
        Variable(
            "examples", "", "examples", symbol="P", value=lambda t: t.problem.shape[0]
        ),
        TEMPERATURE_OF_ONE._replace(value="problem.temperature"),
        Variable("U_1", "path_1 path_1_pair", "order parameter U_1", value="U"),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def kernel(self) -> Float[Array, "n n"]:
        """K(U_1) of the training examples."""
        return self.problem.training.kernel(self.U)

    @checks
    def predict(self, xi_test: Inputs) -> Prediction:
        """Mean and variance on new attentioned inputs, one column per path.

        Rounding leaves 1e-31 of the prior variance K(x, x) unknown, and 2e-15 where
        kernels are given: a variance is no less than this there.

        Args:
            xi_test: attentioned inputs (Q, N_0, paths), of `attended` for example.
        """
        test = self.problem.cross_inputs(xi_test)
        prior_variances = own_variances(test.own_blocks(), self.U)
        k = test.kernel(self.U)
        mean, variance = regression(k, prior_variances, self.half, self.problem.rows.y)
        lost = variance < CANCELLED * prior_variances
        if isinstance(test, CrossInputs) and (isinstance(lost, Tracer) or lost.any()):
            c = k @ self.half.T @ self.half
            of_noise = self.problem.temperature * (c * c).sum(axis=1)
            smaller = test.unexplained(self.U, c) + of_noise
            variance = jnp.where(lost, jnp.maximum(smaller, 0.0), variance)
        shape = xi_test.shape[:1] + self.problem.Y.shape[1:]
        return Prediction(mean.reshape(shape), variance.reshape(shape))

    @checks
    def mean(self, xi_test: Inputs) -> Float[Array, "Q *K"]:
        """The mean of `predict` alone, which needs no kernel of the new inputs.

        Args:
            xi_test: attentioned inputs (Q, N_0, paths), of `attended` for example.

        Example:
            >>> import jax, jax.numpy as jnp
            >>> jax.config.update("jax_enable_x64", True)
            >>> from statmech_attn.bpkr import Problem
            >>> xi, Y = jnp.ones((1, 1, 1)), jnp.ones(1)
            >>> problem = Problem(xi, Y, heads=(1,), width=10, temperature=1.0)
            >>> round(float(problem.theory(jnp.eye(1)).mean(xi)[0]), 12)
            0.5
        """
        alpha = self.half.T @ (self.half @ self.problem.rows.y)
        f = self.problem.cross_inputs(xi_test).mean(self.U, alpha)
        return f.reshape(xi_test.shape[:1] + self.problem.Y.shape[1:])

    @checks
    def restricted(self, paths: Sequence[int]) -> "Theory":
        """The same network with all other paths silenced, then trained as before.

        The kernel keeps its prefactor 1 / |Pi| and the entries of U among the paths;
        all others are zero.  Test inputs have the columns of all paths, as before.

        Args:
            paths: numbers of the paths that stay.

        Raises:
            ValueError: indices that are no paths, or come twice.
        """
        chosen = np.asarray(paths, int)
        n_paths = self.problem.shape[2]
        valid = chosen.size and ((chosen >= 0) & (chosen < n_paths)).all()
        if not valid or np.unique(chosen).size != chosen.size:
            raise ValueError(
                f"paths: need distinct indices from 0 to {n_paths - 1}; "
                f"got {chosen.tolist()}."
            )
        in_chosen = np.repeat(np.isin(np.arange(n_paths), chosen), self.problem.outputs)
        return theory(self.problem, self.U * np.outer(in_chosen, in_chosen))

    @checks
    def silenced(self, off: Sequence[tuple[int, int]]) -> "Theory":
        """The same network without the heads in `off`, as by `restricted`.

        Args:
            off: pairs (layer, head), counted from zero; a skip is the first of its
                layer's heads.

        Raises:
            ValueError: a head that there is not, or no path is left.

        Example:
            >>> import jax, jax.numpy as jnp
            >>> jax.config.update("jax_enable_x64", True)
            >>> from statmech_attn.bpkr import Problem
            >>> xi, Y = jnp.ones((1, 1, 4)), jnp.ones(1)
            >>> problem = Problem(xi, Y, heads=(2, 2), width=10, temperature=1.0)
            >>> full = problem.theory(jnp.eye(4))
            >>> jnp.diagonal(full.silenced([(0, 1), (1, 0)]).U).tolist()
            [0.0, 1.0, 0.0, 0.0]
        """
        heads = self.problem.branches
        silent = [paths_through(heads, layer, head) for layer, head in off]
        remaining = np.setdiff1d(
            np.arange(math.prod(heads)), np.concatenate([[], *silent])
        )
        if not remaining.size:
            raise ValueError(f"off: no path is left without the heads {list(off)}.")
        return self.restricted(remaining.tolist())

    def overlap(self) -> Float[Array, " n"]:
        """|v_i . Y| / |Y| for the eigenvectors of K, largest eigenvalue first.

        Where K has less rank than there are examples, the first eigenvector outside its
        range is that along the labels, and the others have no overlap.
        """
        problem, rows = self.problem, self.problem.rows
        overlap = kernel_overlap(rows.training.kernel(self.U), rows.Y)
        if problem.compressed is None or not problem.lost:
            return overlap
        inside = jnp.linalg.norm(rows.Y)
        outside = jnp.sqrt(problem.compressed.residual)
        null = jnp.zeros(problem.lost).at[0].set(outside)
        return jnp.append(overlap * inside, null) / jnp.linalg.norm(problem.Y)

    def head_scores(self) -> tuple[Array, ...]:
        """Weight of every head in U_1, over the largest; one (H_l,) array per layer.

        A skip connection is the first of its layer's heads.
        """
        return head_scores(self.U, self.problem.branches)


def theory(problem: Posed, U) -> Theory:
    """The predictor at a given U_1, or that of a solution of the problem."""
    if isinstance(U, SaddlePoint):
        problem.check_same(U.problem, "solution")
        if not U.converged:
            raise ValueError(f"solution is no saddle point: {U.reason}.")
    U, d = first_order_parameter(U), problem.sizes[0]
    if U.shape != (d, d):
        raise ValueError(
            f"U must be U_1 of shape {(d, d)}, |Pi| K, or a solution; got {U.shape}."
        )
    K = problem.rows.training.kernel(U)
    half = _half(K, problem.temperature)
    lost = problem.temperature == 0 and bool(singular(K))
    if lost or not np.isfinite(half).all():
        raise ValueError(
            "K + T is not positive definite: raise the temperature, or give a "
            "positive semi-definite U."
        )
    require_known(problem, U, rounding_of_predictor, "f")
    return Theory(problem, U, half)


def first_order_parameter(U) -> Float[Array, "d d"]:
    """U_1 as given, the first of (U_1, ..., U_L), or that of a solution."""
    if isinstance(U, SaddlePoint):
        U = U.U
    return jnp.asarray(U[0] if isinstance(U, tuple) else U, float)


def accuracy(
    mean: Float[Array | np.ndarray, "Q *K"], y: Float[Array | np.ndarray, "Q *K"]
) -> float:
    """Share of the examples that are classified correctly.

    By the sign of one output, or by the largest of K outputs.

    Args:
        mean: predictor f of Q examples.
        y: labels: +-1, or one-hot rows of K.

    Returns:
        A number between 0 and 1.

    Raises:
        ValueError: `mean` and `y` have different shapes.

    Example:
        >>> import jax.numpy as jnp
        >>> accuracy(jnp.array([0.3, -0.2]), jnp.array([1.0, 1.0]))
        0.5
    """
    if mean.shape != y.shape:
        raise ValueError(f"y must have the shape of mean, {mean.shape}; got {y.shape}.")
    return float(np.asarray(correct(mean, y)).mean())


def correct(
    f: Float[Array | np.ndarray, "Q *K"], y: Float[Array | np.ndarray, "Q *K"]
) -> Bool[Array, " Q"]:
    """Whether each class is right: by sign, or by the largest of K outputs.

    Args:
        f: predictor of Q examples.
        y: labels: +-1, or one-hot rows of K.

    Example:
        >>> import jax.numpy as jnp
        >>> correct(jnp.array([0.3, -0.2]), jnp.array([1.0, 1.0])).tolist()
        [True, False]
    """
    if f.ndim == 1:
        return jnp.sign(f) == jnp.sign(y)
    return jnp.argmax(f, axis=1) == jnp.argmax(y, axis=1)


def kernel_overlap(
    K: Float[Array | np.ndarray, "n n"], Y: Float[Array | np.ndarray, "P *K"]
) -> Float[Array, " n"]:
    """Overlaps of the eigenvectors of a kernel with the labels.

    |v_i . Y| / |Y| for the eigenvectors v_i of K, largest eigenvalue first.
    """
    y = jnp.ravel(Y)
    if len(y) != len(K):
        raise ValueError(f"Y must hold {len(K)} labels, as K has rows; got {len(y)}.")
    vectors = jnp.linalg.eigh(K)[1][:, ::-1]
    return jnp.abs(vectors.T @ y) / jnp.linalg.norm(y)


def paths_through(
    heads: Sequence[int], layer: WholeNumber, head: WholeNumber
) -> np.ndarray:
    """Indices of the paths through one head; layers and heads count from zero.

    Args:
        heads: heads per layer.
        layer: number of the layer, from 0.
        head: number of the head, from 0.

    Returns:
        Numbers of the paths, in increasing order.

    Raises:
        ValueError: there is no such head.

    Example:
        >>> paths_through((2, 2), 1, 0).tolist()
        [0, 2]
    """
    if not 0 <= layer < len(heads) or not 0 <= head < heads[layer]:
        raise ValueError(
            f"there is no head {head} of layer {layer} in heads = {tuple(heads)}, of "
            "which both are counted from 0."
        )
    digits = np.indices(tuple(heads)).reshape(len(heads), -1)
    return np.flatnonzero(digits[layer] == head)


def head_scores(
    U: SaddlePoint | Sequence[Numbers] | Numbers, heads: Sequence | None = None
) -> tuple[Array, ...]:
    """Weight of every head in U_1, over the largest; one (H_l,) array per layer.

    The sum of |U| over all pairs of paths of which one or both pass through the head;
    over all outputs, if there are several.

    Args:
        U: U_1 of shape (|Pi| K, |Pi| K), or a solution, which has `head_scores` itself.
        heads: heads per layer (H_1, ..., H_L), or the heads themselves; with skips
            `Problem.branches`, as a skip is the first of its layer's heads.  A solution
            knows its own.

    Returns:
        One array (H_l,) for each layer; the largest score of all heads is 1.

    Raises:
        ValueError: no heads, or a matrix of another size than their paths.

    Example:
        >>> import jax.numpy as jnp
        >>> [s.tolist() for s in head_scores(jnp.diag(jnp.array([2.0, 1.0])), (2,))]
        [[1.0, 0.5]]
    """
    weights = head_weights(U, heads)
    return tuple(of_layer / max(map(jnp.max, weights)) for of_layer in weights)


def head_weights(U, heads: Sequence | None = None) -> tuple[Array, ...]:
    """The sums of which `head_scores` are the shares of the largest, layer by layer."""
    heads = _heads_of(U, heads)
    weight = path_weights(U, heads)
    return _sums(weight, heads)


@partial(jax.jit, static_argnames="heads")
def _sums(weight: Array, heads: tuple[int, ...]) -> tuple[Array, ...]:
    n_paths = len(weight)
    sums = []
    for layer, H in enumerate(heads):
        for head in range(H):
            outside = np.setdiff1d(
                np.arange(n_paths), paths_through(heads, layer, head)
            )
            sums.append(weight.sum() - weight[np.ix_(outside, outside)].sum())
    return tuple(jnp.split(jnp.stack(sums), np.cumsum(heads)[:-1]))


def _heads_of(U, heads: Sequence | None) -> tuple[int, ...]:
    """Heads per layer, those of its problem for a solution."""
    if heads is None and not isinstance(U, SaddlePoint):
        raise ValueError(
            "heads: give the heads per layer beside U, such as (2, 2), or a solution, "
            "which knows its own."
        )
    return head_counts(U.problem.branches if heads is None else heads)


def path_weights(U, heads: Sequence[int]) -> Float[Array, "Pi Pi"]:
    """|U| of every pair of paths, summed over outputs."""
    U, n_paths = first_order_parameter(U), math.prod(heads)
    if U.ndim != 2 or U.shape[0] != U.shape[1] or U.shape[0] % n_paths:
        raise ValueError(
            f"U must be square with |Pi| = {n_paths} paths of heads = {tuple(heads)}; "
            f"got {U.shape}."
        )
    weight = jnp.abs(U).reshape(n_paths, -1, n_paths, U.shape[0] // n_paths)
    return weight.sum(axis=(1, 3))


def head_floors(
    problem: Posed, U: Sequence, U_a: Numbers
) -> tuple[Float[np.ndarray, " _H"], ...]:
    """Scores that heads would have if f did not read them, at the U of layers above.

    Nothing is known then of the values of the head but their prior, of variance
    sigma_l^2, and the weight of a head of layer l is sigma_l^2 sum|U_{l+1}| times the
    prior weights of all ways through the layers below it; b_l^2 stands for sigma_l^2
    where the head is a skip connection.  A head whose output is zero has this score
    exactly.  It is divided by the weight that divides the scores.
    """
    above = [float(abs(np.asarray(values)).sum()) for values in (*U[1:], U_a)]
    below, weights = 1.0, []
    for variance, b, heads, total in zip(
        problem.variances[1:-1], problem.skip, problem.heads, above, strict=True
    ):
        ways = np.array([*([] if b is None else [b**2]), *[variance] * heads], float)
        weights.append(below * total * ways)
        below = below * ways.sum()
    largest = float(max(map(np.max, head_weights(U[0], problem.branches))))
    return tuple(of_layer / largest for of_layer in weights)


def block_structure(
    U: SaddlePoint | Sequence[Numbers] | Numbers, heads: Sequence | None = None
) -> tuple[float, ...]:
    """How much U_1 is made of blocks of one head, for every layer.

    Mean |U| over pairs of different paths that share their head of the layer, over the
    mean of pairs that do not; 1 where the layer's heads leave no mark, NaN where a
    layer has one head or no path has a partner.

    Args:
        U, heads: as for `head_scores`.

    Returns:
        One number for each layer.

    Example:
        >>> import jax.numpy as jnp
        >>> blocks = jnp.kron(jnp.eye(2), jnp.ones((2, 2))) + 1
        >>> [round(x, 3) for x in block_structure(blocks, (2, 2))]
        [2.0, 0.667]
    """
    heads = _heads_of(U, heads)
    weight = np.asarray(path_weights(U, heads))
    digits = np.indices(heads).reshape(len(heads), -1)
    ratios = []
    for head in digits:
        same = head[:, None] == head
        within = weight[same & ~np.eye(len(weight), dtype=bool)]
        between = weight[~same]
        nonempty = within.size and between.size
        ratios.append(float(within.mean() / between.mean()) if nonempty else math.nan)
    return tuple(ratios)


def regression(
    k: Float[Array, "m n"],
    prior_variances: Float[Array, " m"],
    half: Float[Array, "n n"],
    y: Float[Array, " n"],
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Mean and variance of f from k = K(x, x') and K(x, x); no less than rounding."""
    k = k @ half.T
    variance = prior_variances - (k * k).sum(axis=1)
    return k @ (half @ y), jnp.maximum(variance, ROUNDING * prior_variances)
