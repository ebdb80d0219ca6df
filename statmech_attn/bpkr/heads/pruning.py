r"""Networks without some of their heads (docs/theory/one_shot.md, section 5).

The output of a pruned head is zero and the factor of its layer becomes
$(H_l - n_l)^{-1/2}$, so a network is a sum over the paths that avoid such heads,

    $f = |\Pi'|^{-1/2} \sum_{\pi \in \Pi'} c_\pi(x)$,  $|\Pi'| = \prod_l (H_l - n_l)$,
    $c_\pi(x) = w_\pi^T V_0 \xi^\pi(x) / \sqrt{N_1 N_0}$

    c_pi              (P, Pi)      what every path contributes      `parts`
    n_l               (L,)         pruned heads of a layer
    (l, h)                         a head, both counted from zero   `head`

Nothing is trained again, and $c_\pi$ is computed once.  The factor is positive: it
changes f, but no sign and no accuracy.  Without any head of a layer no path is left;
such a network has no output, and its accuracy is NaN.

The skip connection of a layer is pruned like a head, and is the first of them
(`branches`).  With skips the factor belongs to the path, the product of
$(H_l - n_l)^{-1/2}$ over the layers that it passes through a head; n_l counts heads
alone.
"""

import math
from collections.abc import Sequence
from typing import Annotated

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, Real
from scipy import stats

from statmech_attn.batches import rng
from statmech_attn.bpkr.attention.networks import effective_weights, Weights
from statmech_attn.bpkr.posed.kernels import path_readout, with_prefactor
from statmech_attn.bpkr.posed.prior import branches, head_counts, path_shares, skips
from statmech_attn.bpkr.theory.predictor import paths_through, Theory
from statmech_attn.options import Count, Gaps, Numbers


Skips = Sequence | Numbers | None
FEWEST = 3  # heads of which a rank correlation is taken

Head = tuple[int, int]


def contributions(
    weights: Weights, xi: Float[Array | np.ndarray, "P N_0 Pi"]
) -> Float[Array, "P Pi"]:
    r"""$c_\pi(x)$ of every path of a network with one output."""
    if weights.a.ndim != 1:
        raise ValueError(
            f"pruning needs a network with one output; got {weights.a.shape[0]}."
        )
    w, (n_inputs, n_paths) = effective_weights(weights), xi.shape[1:]
    if len(w) != n_paths:
        raise ValueError(
            f"xi must have one column for each of the network's {len(w)} paths; "
            f"got {n_paths}."
        )
    f = jnp.einsum("an,ni,pia->pa", w, weights.V_0, xi, optimize="optimal")
    return f / math.sqrt(w.shape[1] * n_inputs)


def mean_contributions(
    theory: Theory, xi: Float[Array | np.ndarray, "P N_0 Pi"]
) -> Float[Array, "P Pi"]:
    r"""Posterior mean of $c_\pi(x)$, at the order parameters of a theory.

    Pruned, these give the mean over the posterior of the pruned networks.

    Args:
        theory: predictor of a problem with one output.
        xi: attentioned inputs, with the paths of the problem.

    Raises:
        ValueError: several outputs, or inputs that do not fit the problem.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from statmech_attn.bpkr.problem import Problem
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi = jax.random.normal(jax.random.key(0), (3, 2, 4))
        >>> problem = Problem(xi, jnp.ones(3), heads=(2, 2), width=9, temperature=0.1)
        >>> theory = problem.gaussian_process()
        >>> f = pruned_outputs(mean_contributions(theory, xi), (2, 2))
        >>> bool(np.abs(f - theory.mean(xi)).max() < 1e-12)
        True
    """
    problem = theory.problem.rows
    if problem.outputs > 1:
        raise ValueError(
            f"pruning needs a network with one output; got {problem.outputs}."
        )
    alpha = theory.half.T @ (theory.half @ problem.y)
    U = with_prefactor(theory.U, problem.scale)
    (readout,) = path_readout(problem.xi, U, alpha)
    shares = path_shares(problem.heads, problem.skip)
    xi = problem.test_inputs(jnp.asarray(xi))
    return jnp.einsum("pia,ia->pa", xi, readout) * np.sqrt(shares)


def contribution_sizes(
    parts: Float[Array | np.ndarray, "P Pi"],
    heads: Annotated[Sequence[Count], "L"],
    skip: Skips = None,
) -> Float[np.ndarray, " n"]:
    """Root mean square of what the paths through every head add to f, over the largest.

    The magnitude of a network of which no weights are known.

    Args:
        parts: contributions of the paths.
        heads: heads per layer (H_1, ..., H_L).
        skip: as in `Problem`.

    Example:
        >>> contribution_sizes(np.array([[1.0, -2.0], [1.0, 2.0]]), (2,)).tolist()
        [0.5, 1.0]
    """
    skip = skips(skip, len(heads))
    ways = branches(heads, skip)
    scaled = np.asarray(parts) / np.sqrt(path_shares(heads, skip))
    of_heads = [
        scaled[:, paths_through(ways, *h)].sum(axis=1) for h in heads_in_order(ways)
    ]
    sizes = np.sqrt(np.mean(np.square(of_heads), axis=1))
    return sizes / sizes.max()


def pruned_outputs(
    parts: Float[Array | np.ndarray, "P Pi"],
    heads: Sequence[int],
    off: Sequence[Head] = (),
    skip: Skips = None,
) -> Float[np.ndarray, " P"]:
    """f without the heads in `off`; NaN where these leave no path."""
    heads, parts = head_counts(heads), np.asarray(parts)
    skip = skips(skip, len(heads))
    ways = branches(heads, skip)
    if parts.ndim != 2 or parts.shape[1] != math.prod(ways):
        raise ValueError(
            f"parts must be (P, {math.prod(ways)}), one column for each path of "
            f"heads = {heads}; got {parts.shape}."
        )
    remaining = np.ones(parts.shape[1], bool)
    shares = np.ones(1)
    for layer, (count, b) in enumerate(zip(ways, skip, strict=True)):
        silent = {head for l, head in off if l == layer}
        for head in silent:
            remaining[paths_through(ways, layer, head)] = False
        skipped = b is not None
        active = count - skipped - len(silent - {0} if skipped else silent)
        shares = np.outer(
            shares, [1.0] * skipped + [active] * (count - skipped)
        ).ravel()
    if not remaining.any():
        return np.full(parts.shape[0], np.nan)
    shares = shares[remaining]
    relative = np.sqrt(shares[0] / shares)  # 1 without skip connections
    return (parts[:, remaining] * relative).sum(axis=1) / math.sqrt(shares[0])


def correct_without_heads(
    parts: Float[Array | np.ndarray, "P Pi"],
    y: Float[np.ndarray, " P"],
    heads: Sequence[int],
    off: Sequence[Head] = (),
    skip: Skips = None,
) -> Float[np.ndarray, " P"]:
    """Whether the sign is right without heads `off`, 1 or 0; NaN without a path."""
    f = pruned_outputs(parts, heads, off, skip)
    return np.where(np.isnan(f), np.nan, np.sign(f) == np.sign(y))


def heads_in_order(heads: Sequence[int]) -> list[Head]:
    """All heads, layer by layer: the order in which scores are given.

    Args:
        heads: heads per layer; with skips `Problem.branches`.

    Example:
        >>> heads_in_order((1, 2))
        [(0, 0), (1, 0), (1, 1)]
    """
    return [(layer, head) for layer, H in enumerate(heads) for head in range(H)]


def cumulative_accuracy(
    parts: Float[Array | np.ndarray, "P Pi"],
    y: Float[np.ndarray, " P"],
    heads: Sequence[int],
    order: Sequence[int] | Int[np.ndarray, " heads"],
    skip: Skips = None,
) -> Float[np.ndarray, " n"]:
    """Accuracy after 0, 1, 2, ... heads, pruned one after the other.

    Args:
        parts: contributions of the paths, (P, Pi).
        y: labels.
        heads: heads per layer (H_1, ..., H_L).
        order: numbers of the heads as in `heads_in_order`, the first to go first.
        skip: as in `Problem`.

    Returns:
        sum(H) - L + 1 numbers: with more heads pruned no order leaves a path.  NaN
        from where this one has emptied a layer.

    Raises:
        ValueError: an order that does not have every head once.

    Example:
        >>> import numpy as np
        >>> parts, y = np.array([[1.0, -3.0, 2.5]]), np.ones(1)
        >>> cumulative_accuracy(parts, y, (3,), [2, 1, 0]).tolist()
        [1.0, 0.0, 1.0]
    """
    named = heads_in_order(branches(heads, skips(skip, len(heads))))
    if sorted(order) != list(range(len(named))):
        raise ValueError(
            f"order must have every number from 0 to {len(named) - 1} once; "
            f"got {list(order)}."
        )
    off = [named[number] for number in order]
    stop = len(named) - len(heads) + 1
    right = [correct_without_heads(parts, y, heads, off[:n], skip) for n in range(stop)]
    return np.mean(right, axis=1)


def ascending(
    scores: Sequence[float] | Real[np.ndarray, " n"],
) -> Int[np.ndarray, " n"]:
    """Numbers of the heads from the lowest score to the highest; ties in order.

    Raises:
        ValueError: a score that is not finite.

    Example:
        >>> ascending([0.5, 1.0, 0.2]).tolist()
        [2, 0, 1]
    """
    scores = np.asarray(scores, float)
    if not np.isfinite(scores).all():
        raise ValueError("scores must be finite to give an order.")
    return np.argsort(scores, kind="stable")


def random_orders(
    key: Key[Array, ""], heads: Sequence[int], count: int
) -> Int[np.ndarray, "count n"]:
    """Random orders of all heads, each as likely as any other.

    Example:
        >>> import jax
        >>> random_orders(jax.random.key(0), (2, 2), 3).shape
        (3, 4)
    """
    uniform = rng.uniform(key, (count, sum(heads)))
    return np.argsort(np.asarray(uniform), axis=1)


def head_magnitudes(weights: Weights) -> Float[np.ndarray, " n"]:
    r"""Frobenius norm of every head's values $V_{l,h}$ over the largest of them.

    The usual baseline of pruning by magnitude.  Queries and keys, which say where a
    head looks and not how strongly it speaks, do not enter.  A skip connection, the
    first of its layer's heads, has the norm of the values that act as it does,
    $b \sqrt{N H}\, 1$.
    """
    norms = []
    for V, b in zip(
        weights.V, skips(weights.skip or None, len(weights.V)), strict=True
    ):
        N, H = V.shape[-1], len(V)
        norms += [] if b is None else [abs(b) * N * math.sqrt(H)]
        norms += np.linalg.norm(np.asarray(V), axis=(1, 2)).tolist()
    magnitudes = np.array(norms)
    return magnitudes / magnitudes.max()


def rank_correlation(
    scores: Annotated[Gaps, "n"], drops: Annotated[Gaps, "n"]
) -> float:
    """Spearman's rank correlation of scores with accuracy drops; ties share a rank.

    Heads without a drop, the only ones of their layer, do not enter.  NaN for fewer
    than three heads, for scores that are not known, and where all scores or all drops
    are the same.
    """
    scores, drops = np.asarray(scores, float), np.asarray(drops, float)
    finite = np.isfinite(drops)
    scores, drops = scores[finite], drops[finite]
    if len(drops) < FEWEST or not np.isfinite(scores).all():
        return math.nan
    if np.ptp(scores) == 0 or np.ptp(drops) == 0:
        return math.nan
    return float(np.asarray(stats.spearmanr(scores, drops)[0]))


def chance_correlation(
    correlations: Annotated[Gaps, "R"], drops: Annotated[Gaps, "R n"]
) -> float:
    r"""Standard deviation of the mean rank correlation of scores that say nothing.

    $1 / \sqrt{R (n - 1)}$ for R trainings that have a correlation, and n heads that
    have a drop; NaN where there is none.
    """
    finite = np.isfinite(correlations)
    if not finite.any():
        return math.nan
    heads = np.isfinite(drops)[finite].sum(axis=1)
    return float(np.sqrt(np.sum(1 / (heads - 1))) / finite.sum())
