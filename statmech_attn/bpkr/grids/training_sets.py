r"""Training sets of several sizes in equal arrays (docs/theory/bpkr_weights.md, 10).

All numbers of examples have one shape, and so one compiled program.  An example beyond
the first P has infinite noise: it tells nothing of f.  Input and label zero at the
temperature T say the same, for then its row of K vanishes and

    $E = E_P + (n - n_P) \ln T$,
    $\ln p(Y) = \ln p(Y_P) - \tfrac12 (n - n_P) \ln 2\pi T$

while saddle point, exact law and predictor are those of P examples.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from statmech_attn.bpkr.posed.activations import Kernels
from statmech_attn.bpkr.posed.kernel_forms import PathFactors
from statmech_attn.bpkr.problem import Problem
from statmech_attn.options import require_least
from statmech_attn.statistics import standard_error


def checked_sizes(examples: Sequence[int], available: int) -> Int[np.ndarray, " sizes"]:
    """Numbers of examples, in rising order; each once, from 1 to `available`."""
    sizes = np.sort(np.ravel(examples))
    integers = np.ndim(examples) == 1 and sizes.size and sizes.dtype.kind in "iu"
    if not integers or sizes[0] < 1 or (np.diff(sizes) == 0).any():
        raise ValueError(
            "examples must be distinct whole numbers of training examples, at least 1; "
            f"got {np.ravel(examples).tolist()}."
        )
    if sizes[-1] > available:
        raise ValueError(
            f"examples: there are {available} examples to draw from; got {sizes[-1]}."
        )
    return sizes


def fitting_labels(problem: Problem, xi_test, Y_test) -> Float[np.ndarray, "Q *K"]:
    """Labels of a test set, once it is known that they fit its inputs."""
    Y_test = np.asarray(Y_test, float)
    expected = tuple(xi_test.shape[:1]) + problem.Y.shape[1:]
    if Y_test.shape != expected:
        raise ValueError(
            f"Y_test must have shape {expected}, one row per example of xi_test; got "
            f"{Y_test.shape}."
        )
    return Y_test


def drawn_examples(
    key: Key[Array, ""], available: int, size: int, sets: int
) -> tuple[Int[np.ndarray, "sets size"], bool]:
    """Draw the examples of every training set; say whether sets have some in common."""
    require_least(1, training_sets=sets)
    if sets * size <= available:
        order = jax.random.permutation(key, available)[: sets * size]
        return np.asarray(order).reshape(sets, size), False
    keys = jax.random.split(key, sets)
    orders = [jax.random.permutation(k, available)[:size] for k in keys]
    return np.stack(orders), True


def truncated(problem: Problem, size: int) -> Problem:
    """The problem with the first examples alone, in arrays of the shape of all.

    Where there are more examples than the kernel has rank, as many stay as that has.
    """
    alone = lambda size: problem.subset(np.arange(size), form=problem.form)
    rank = len(problem.rows.Y)
    if size <= rank < len(problem.Y) and not isinstance(problem.xi, Kernels):
        problem = alone(rank)
    if problem.compressed is not None:  # its rows are no examples
        return alone(size)
    is_example = (jnp.arange(len(problem.Y)) < size).astype(float)

    rows = lambda x: x * is_example.reshape(-1, *[1] * (x.ndim - 1))
    operator = problem.operator.masked(is_example)
    if isinstance(operator, PathFactors):
        xi = operator.xi
    elif isinstance(problem.xi, Kernels):
        xi = problem.xi.masked(is_example)
    else:
        xi = rows(problem.xi)
    parts = lambda p: (p.xi, p.Y, p.operator)
    return eqx.tree_at(parts, problem, (xi, rows(problem.Y), operator))


def over_sets(
    values: Float[np.ndarray, "sizes *estimates sets"], examples, available: int
) -> Float[np.ndarray, "sizes *estimates"]:
    """Standard error of the mean over training sets; NaN where all are the same set.

    Sets that are drawn from the same examples tell how far another draw from these
    examples moves the mean, and sets of all examples do not differ.
    """
    error = standard_error(values)
    all_examples = np.asarray(examples) == available
    return np.where(all_examples.reshape(-1, *[1] * (error.ndim - 1)), np.nan, error)
