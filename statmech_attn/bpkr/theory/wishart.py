r"""Exact law of the order parameters at finite width (docs/theory/bpkr.md, section 5).

Given U_1 the network is a Gaussian process, and the prior of the chain is

    $N_a U_a \sim$ Wishart of $N_a$ degrees of freedom, scale $\sigma_a^2$,
    $N_l U_l | U_{l+1} \sim$ Wishart of $N_l$, scale
                            $\sigma_l^2 \, 1_{H_l} \otimes U_{l+1}$

at any width, so the posterior of U follows without a limit.  Every U_l is singular
where N_l is smaller than its size; Bartlett factors of the right rank cover that case:

    $U_l = F_l F_l^T$,  $F_l = \sigma_l (1 \otimes F_{l+1}) B_l / \sqrt{N_l}$

    B_l               (r_l, m_l)   lower trapezoidal, r_l = H_l m_{l+1},
                                   m_l = min(N_l, r_l); below the diagonal N(0, 1),
                                   on it chi with N_l, N_l - 1, ... degrees of freedom
    (A_l B_l)         (r_l, m_l)   with a skip, m_l = min(N_l, r_l + m_{l+1}): A_l has
                                   m_{l+1} columns N(0, 1), B_l the other degrees of
                                   freedom; F_l then begins with b_l F_{l+1} (1 0)
    z                 (n,)         all entries, the diagonal as
                                   ln B_ii = ln(k) / 2 + z / sqrt(2 k), k degrees;
                                   B_ii = z for k = 1

With one degree of freedom the sign of B_ii is left free, which changes no U: with
B_ii > 0 alone the two signs of an entry below it would be modes that only a path
through B_ii = 0 connects.  Widths are integers here.
"""

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from statmech_attn import presentation
from statmech_attn.arguments import checks
from statmech_attn.bpkr.posed.activations import Kernels
from statmech_attn.bpkr.posed.kernels import own_variances, path_readout, with_prefactor
from statmech_attn.bpkr.posed.linear_algebra import inverse_cholesky
from statmech_attn.bpkr.posed.newton import CONVERGED, minimise, NewtonSolver
from statmech_attn.bpkr.posed.prior import Skip
from statmech_attn.bpkr.posed.problem import Inputs, Posed
from statmech_attn.bpkr.posed.quantities import heuristic_row
from statmech_attn.bpkr.posed.rounding import require_known, rounding_of_kernels
from statmech_attn.bpkr.theory.action import (
    below,
    energy,
    gaussian_process_limit,
    resolvent,
)
from statmech_attn.bpkr.theory.predictor import dims_of_tests, regression
from statmech_attn.labels import Variable
from statmech_attn.options import Count, WholeNumber
from statmech_attn.statistics import bfmi, Summary, summary


LOG_2PI = math.log(2 * math.pi)
BLOCK, BLOCK_MEMORY = 64, 2**26  # draws whose kernels are held together, and bytes
LEARNING = 400  # steps of warm-up where a covariance is learned
PER_COORDINATE = 8  # of them at least
SMALL = 0.01  # off the symmetric point, where the gradient has no part off the diagonal


class Block(NamedTuple):
    """Shape of one factor B_l of the order parameters."""

    heads: int
    rows: int
    columns: int
    beside: int  # columns of A_l

    @property
    def below(self) -> tuple[np.ndarray, ...]:
        """Rows and columns in (A_l B_l) of all entries that are normal."""
        return np.tril_indices(self.rows, self.beside - 1, self.beside + self.columns)

    @property
    def entries(self) -> int:
        return self.columns + self.below[0].size

    def degrees(self, N):
        """Degrees of freedom of the diagonal entries."""
        return N - self.beside - np.arange(self.columns)


class Law(eqx.Module):
    """Posterior of the order parameters; build with `Problem.law`."""

    problem: Posed
    widths: Float[Array, " layers"]  # readout first, layer 1 last, as the blocks
    variances: Float[Array, " layers"]
    skip: Skip
    blocks: tuple[Block, ...] = eqx.field(static=True)

    @property
    def rows(self) -> "Law":
        """The law of the problem on its rows; the labels outside them are left out."""
        return eqx.tree_at(lambda law: law.problem, self, self.problem.rows)

    @property
    def outside(self) -> Array | float:
        """Log density of the labels outside the rows."""
        problem = self.problem
        return -(problem.outside + problem.lost * LOG_2PI) / 2 if problem.lost else 0.0

    @property
    def dimension(self) -> int:
        """Number of coordinates z."""
        return sum(block.entries for block in self.blocks)

    def order_parameters(self, z: Float[Array, " n"]):
        """(U_1, ..., U_L), U_a as a (K, K) matrix."""
        U_a, *U = [F @ F.T for F in self.factors(z)]
        return tuple(U[::-1]), U_a

    def factors(self, z: Float[Array, " n"]) -> list[Array]:
        """F_{L+1}, F_L, ..., F_1."""
        factors, F = [], jnp.eye(self.blocks[0].rows)
        networks = zip(self.widths, self.variances, self.skip)
        for (block, k, part), (N, s2, b) in zip(self.by_block(z), networks):
            B = bartlett(block, k, part)
            F = below(F, B, block.heads, b, jnp.sqrt(s2 / N))
            factors.append(F)
        return factors

    def log_prior(self, z: Float[Array, " n"]) -> Float[Array, ""]:
        """Log density of z before any label is seen, normalised."""
        total = jnp.asarray(0.0)
        for block, k, part in self.by_block(z):
            total += log_diagonal(part[: block.columns], k).sum()
            total += jax.scipy.stats.norm.logpdf(part[block.columns :]).sum()
        return total

    def log_likelihood(self, z: Float[Array, " n"]) -> Float[Array, ""]:
        """Log density of the labels at given order parameters, normalised."""
        F, problem = self.factors(z)[-1], self.problem.rows
        K = problem.operator.kernel(F @ F.T)
        E = energy(K, problem.temperature, problem.y)
        return -(E + problem.y.size * LOG_2PI) / 2 + self.outside

    def potential(self, z: Float[Array, " n"]) -> Float[Array, ""]:
        """Minus the log of the joint density of z and the labels."""
        return -self.log_prior(z) - self.log_likelihood(z)

    def derivatives(self, z: Float[Array, " n"]):
        """The potential, its gradient and its Hessian."""
        problem = self.problem.rows

        def U_at(z):
            F = self.factors(z)[-1]
            return F @ F.T

        K, pull = jax.vjp(problem.operator.kernel, U_at(z))
        A, alpha = resolvent(K, problem.temperature, problem.y)
        (slope,) = pull(A / 2)
        remainder = lambda z: (slope * U_at(z)).sum() - self.log_prior(z)
        J = jax.jacfwd(U_at)(z)[np.tril_indices(slope.shape[0])]
        curvature = problem.operator.curvature(A, alpha)
        hessian = jax.hessian(remainder)(z) + J.T @ curvature @ J / 2
        return self.potential(z), jax.grad(remainder)(z), (hessian + hessian.T) / 2

    def by_block(self, z):
        """Every block with its degrees of freedom and its coordinates."""
        used = 0
        for block, N in zip(self.blocks, self.widths):
            yield block, block.degrees(N), z[used : used + block.entries]
            used += block.entries


class Draws(NamedTuple):
    """Posterior draws and their diagnostics; chains first."""

    z: Float[Array, "chains draws n"]
    U: tuple[Float[Array, "chains draws d d"], ...]
    U_a: Float[Array, "chains draws K K"]
    summary: tuple[Summary, ...]  # of U_1 ... U_L, U_a
    divergences: Int[Array, ""]
    steps: Int[Array, "chains draws"]  # gradients of each draw
    bfmi: Float[np.ndarray, " chains"]
    posterior: Law

    @property
    def _shown(self):
        of = lambda number, name: lambda draws: getattr(draws.summary[number], name)
        last = len(self.U)
        layers = [
            (f"U_{l + 1}", l, f"path_{l + 1} path_{l + 1}_pair") for l in range(last)
        ]
        return (
            *(
                Variable(
                    name,
                    dims,
                    f"posterior mean of {name}",
                    value=of(number, "mean"),
                    error=of(number, "stderr"),
                )
                for name, number, dims in [*layers, ("U_a", last, "output output_pair")]
            ),
            Variable(
                "draws",
                "",
                "draws of every chain",
                symbol="n",
                value=lambda draws: draws.z.shape[1],
            ),
            Variable("n_eff", "path_1 path_1_pair", "effective number of draws of U_1"),
            Variable("r_hat", "path_1 path_1_pair", "split R-hat of U_1", symbol="R̂"),
            Variable("divergences", "", "divergences", symbol="n"),
            heuristic_row("posterior.problem"),
        )

    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def n_eff(self) -> Float[np.ndarray, "d d"]:
        """Effective number of draws of every entry of U_1."""
        return self.summary[0].n_eff

    @property
    def r_hat(self) -> Float[np.ndarray, "d d"]:
        return self.summary[0].r_hat

    def predict(
        self, xi_test: Inputs, *, memory_limit: int | None = None
    ) -> "Predictive":
        """Posterior of f on new attentioned inputs."""
        problem = self.posterior.problem
        test, labels = problem.cross_inputs(xi_test), problem.Y.shape[1:]
        kernel, size = test.operator(
            outputs=problem.outputs,
            memory_limit=memory_limit or problem.memory_limit,
        )
        block = int(np.clip(BLOCK_MEMORY // size, 1, BLOCK))
        mean, variance = _gaussian_processes(
            self.U[0], problem.rows, kernel, test.own_blocks(), block
        )
        shape = self.z.shape[:2] + xi_test.shape[:1] + labels
        means, variances = (np.asarray(a).reshape(shape) for a in (mean, variance))
        f = summary(means)
        # E[GP variance] + Var[GP mean] is one mean over draws, and has one error.
        total = summary(variances + (means - f.mean) ** 2)
        return Predictive(
            f.mean, f.stderr, total.mean, total.stderr, f.n_eff, f.r_hat, means
        )

    def means(self, sets: Sequence[Inputs]) -> list[Float[Array, "Q *K"]]:
        """Posterior mean of f on several sets of inputs, without their kernels.

        Given U_1 it is linear in the attentioned inputs, and so is its mean over the
        draws.
        """
        problem = self.posterior.problem
        if isinstance(problem.xi, Kernels):
            return [jnp.asarray(self.predict(xi).mean) for xi in sets]
        readout, means = _mean_path_readout(self.U[0], problem.rows), []
        for xi in sets:
            test = problem.test_inputs(xi)
            f = jnp.einsum("qia,kia->qk", test, readout)
            means.append(f.reshape(test.shape[:1] + problem.Y.shape[1:]))
        return means


class Predictive(NamedTuple):
    """Posterior of f: means over the draws, with their Monte Carlo errors.

    `variance` is that of f, GP variance and spread of the GP mean together; `means` are
    the GP means given each draw of U_1.
    """

    mean: Float[np.ndarray, "Q *K"]
    mean_stderr: Float[np.ndarray, "Q *K"]
    variance: Float[np.ndarray, "Q *K"]
    variance_stderr: Float[np.ndarray, "Q *K"]
    n_eff: Float[np.ndarray, "Q *K"]
    r_hat: Float[np.ndarray, "Q *K"]
    means: Float[np.ndarray, "chains draws Q *K"]

    @property
    def _shown(self):
        dims = dims_of_tests(self.mean)
        return (
            Variable(
                "predictor_mean",
                dims,
                "mean of f over the posterior",
                symbol="⟨f⟩",
                value="mean",
                error="mean_stderr",
            ),
            Variable(
                "predictor_variance",
                dims,
                "variance of f over the posterior",
                symbol="⟨δf²⟩",
                value="variance",
                error="variance_stderr",
            ),
            Variable("n_eff", dims, "effective number of draws"),
            Variable("r_hat", dims, "split R-hat over chains", symbol="R̂"),
        )

    __repr__, _repr_html_, to_dataset = presentation.METHODS


def law(problem: Posed) -> Law:
    """The exact posterior of the order parameters at finite width.

    Raises:
        ValueError: widths that are not whole, temperature 0, kernels too large.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> from statmech_attn.bpkr import Problem
        >>> problem = Problem(
        ...     jnp.ones((1, 1, 4)), jnp.ones(1), heads=(2, 2), width=10,
        ...     temperature=0.1)
        >>> problem.law().dimension
        14
    """
    problem.check_finite_width("the exact law")
    U, _ = gaussian_process_limit(
        problem.heads, problem.variances, problem.outputs, skip=problem.skip
    )
    require_known(problem, U[0], rounding_of_kernels, "the likelihood")
    return Law(
        problem.fitted(),
        problem.widths[::-1],
        problem.variances[:0:-1],
        (None, *problem.skip[::-1]),
        blocks(
            np.asarray(problem.widths), problem.heads, problem.outputs, problem.skip
        ),
    )


def blocks(widths, heads: Sequence[int], outputs: int, skip: Skip) -> tuple[Block, ...]:
    """Shapes of all Bartlett factors, the readout's first."""
    shapes, rank = [], outputs
    layers = zip([1, *reversed(heads)], widths[::-1], [None, *reversed(skip)])
    for H, N, b in layers:
        rows, beside = H * rank, 0 if b is None else rank
        columns = min(int(N) - beside, rows)
        shapes.append(Block(H, rows, columns, beside))
        rank = beside + columns
    return tuple(shapes)


def bartlett(block: Block, k, z: Float[Array, " n"]) -> Float[Array, "r m"]:
    """(A_l B_l) from its coordinates: the diagonal of B_l first, then the others."""
    z_diagonal = z[: block.columns]
    positive = jnp.sqrt(k) * jnp.exp(z_diagonal / jnp.sqrt(2 * k))
    diagonal = jnp.where(k == 1, z_diagonal, positive)
    B = jnp.zeros((block.rows, block.beside + block.columns))
    row = np.arange(block.columns)
    B = B.at[row, block.beside + row].set(diagonal)
    return B.at[block.below].set(z[block.columns :])


def log_diagonal(z: Float[Array, " m"], k) -> Float[Array, " m"]:
    """Log density of a diagonal coordinate: ln chi for k > 1, normal for k = 1."""
    return jnp.where(k == 1, jax.scipy.stats.norm.logpdf(z), log_chi(z, k))


def log_chi(z: Float[Array, " m"], k) -> Float[Array, " m"]:
    """Log density of z where sqrt(k) exp(z / sqrt(2 k)) is chi with k degrees."""
    log_x = jnp.log(k) / 2 + z / jnp.sqrt(2 * k)
    constant = (k / 2 - 1) * np.log(2) + jax.scipy.special.gammaln(k / 2)
    return k * log_x - jnp.exp(2 * log_x) / 2 - constant - jnp.log(2 * k) / 2


@checks
def sample(
    key: Key[Array, ""],
    posterior: Law,
    *,
    draws: Count = 1000,
    warmup: WholeNumber | None = None,
    chains: Count = 4,
) -> Draws:
    """Draw order parameters with NUTS (needs numpyro).

    The chains run in coordinates in which the law is close to normal: from the Hessian
    at its mode, and from the warm-up as well where a diagonal entry has fewer than
    three degrees of freedom and the warm-up is long enough to know a covariance: of too
    few steps it is worse than none.  `draws` and `warmup` are per chain, 150 steps of
    warm-up when omitted, or 400 where the coordinates are learned too.
    """
    shapes = zip(posterior.blocks, posterior.widths)
    degrees = [N - b.beside - b.columns + 1 for b, N in shapes]
    needed = PER_COORDINATE * posterior.dimension
    learned = bool(min(degrees) < 3 and needed <= (warmup or LEARNING))
    if warmup is None:
        warmup = LEARNING if learned else 150
    if draws < 4 or warmup < 1 or chains < 1:
        raise ValueError(
            f"draws must be at least 4; got {draws}; warmup and chains at least 1; got "
            f"{warmup} and {chains}."
        )
    mode, root = whitening(posterior)
    rows = posterior.rows
    run = lambda key: jax.block_until_ready(
        _chain(key, rows, mode, root, draws=draws, warmup=warmup, learned=learned)
    )
    with ThreadPoolExecutor(min(chains, os.cpu_count() or 1)) as pool:
        chains_drawn = list(pool.map(run, jax.random.split(key, chains)))
    z, divergent, steps, energy = jax.tree.map(lambda *a: jnp.stack(a), *chains_drawn)
    U, U_a = _order_parameters(rows, z)
    summaries = tuple(summary(u) for u in (*U, U_a))
    return Draws(z, U, U_a, summaries, divergent.sum(), steps, bfmi(energy), posterior)


def whitening(posterior: Law) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
    """Mode of the law and a root of Laplace's covariance there.

    The prior alone has a covariance close to one; directions in which the density is
    flatter than that are cut at ten.
    """
    state, code = _mode(posterior.rows)
    if code != CONVERGED:
        raise RuntimeError(
            "the mode of the exact law was not found: potential "
            f"{float(state.value):.6g}, gradient norm "
            f"{float(jnp.linalg.norm(state.gradient)):.3g} after "
            f"{int(state.iterations)} Newton steps; raise the temperature."
        )
    problem = posterior.problem
    if isinstance(problem.xi, Kernels):
        (U_1, *_), _ = posterior.order_parameters(state.point)
        require_known(problem, U_1, rounding_of_kernels, "the likelihood")
    return state.point, state.vectors / jnp.sqrt(jnp.maximum(state.values, 0.1))


@eqx.filter_jit
def _mode(posterior: Law):
    # Near the GP limit: where free signs make all U small, U = 0 may be a mode too.
    start = []
    for block, k, part in posterior.by_block(jnp.full(posterior.dimension, SMALL)):
        diagonal = jnp.where(k == 1, 1.0, part[: block.columns])
        start += [diagonal, part[block.columns :]]
    solver = NewtonSolver(tolerance=1e-6)
    return minimise(posterior.derivatives, jnp.concatenate(start), solver)


@eqx.filter_jit
def _chain(key, posterior: Law, mode, root, *, draws, warmup, learned):
    from numpyro.infer.hmc import hmc  # optional: only sampling needs it
    from numpyro.infer.hmc_util import euclidean_kinetic_energy

    start_key, run_key = jax.random.split(key)
    start, step = hmc(
        lambda q: posterior.potential(mode + root @ q),
        kinetic_fn=euclidean_kinetic_energy,
        algo="NUTS",
    )
    state = start(
        jax.random.normal(start_key, mode.shape),
        num_warmup=warmup,
        step_size=0.5,
        adapt_mass_matrix=learned,
        dense_mass=True,
        rng_key=run_key,
    )
    state = jax.lax.fori_loop(0, warmup, lambda _, state: step(state), state)

    def draw(state, _):
        state = step(state)
        return state, (state.z, state.diverging, state.num_steps, state.energy)

    q, divergent, steps, energy = jax.lax.scan(draw, state, None, length=draws)[1]
    return mode + q @ root.T, divergent, steps, energy


@eqx.filter_jit
def _order_parameters(posterior: Law, z):
    return jax.vmap(jax.vmap(posterior.order_parameters))(z)


@eqx.filter_jit
def _mean_path_readout(U, problem: Posed):
    """s_pi of `path_readout`, its mean over the draws."""
    y = problem.y

    def add(total, U):
        K = problem.operator.kernel(U)
        half = inverse_cholesky(K + problem.temperature * jnp.eye(y.size))
        U = with_prefactor(U, problem.scale)
        return total + path_readout(problem.xi, U, half.T @ (half @ y)), None

    U = U.reshape(-1, *U.shape[2:])
    start = jnp.zeros((problem.outputs, *problem.xi.shape[1:]))
    return jax.lax.scan(add, start, U)[0] / len(U)


@eqx.filter_jit
def _gaussian_processes(U, problem: Posed, kernel, self_kernel, block):
    """Mean and variance of f given each draw of U_1: arrays (draws, Q K)."""
    y = problem.y

    def given(U):
        K = problem.operator.kernel(U)
        half = inverse_cholesky(K + problem.temperature * jnp.eye(y.size))
        return regression(kernel(U), own_variances(self_kernel, U), half, y)

    return jax.lax.map(given, U.reshape(-1, *U.shape[2:]), batch_size=block)
