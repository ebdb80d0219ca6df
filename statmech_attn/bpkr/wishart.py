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
    z                 (n,)         all entries, the diagonal as
                                   ln B_ii = ln(k) / 2 + z / sqrt(2 k), k degrees;
                                   B_ii = z for k = 1

With one degree of freedom the sign of B_ii is left free, which changes no U: with
B_ii > 0 alone the two signs of an entry below it would be modes that only a path
through B_ii = 0 connects.  Widths are integers here.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from statmech_attn.bpkr import prior as sizes_of
from statmech_attn.bpkr.action import energy
from statmech_attn.bpkr.kernels import MEMORY_LIMIT, Operator, path_kernels
from statmech_attn.bpkr.saddle import check_data


class Block(NamedTuple):
    """One layer of the chain: the shape of B_l and what scales it."""

    heads: int
    rows: int
    columns: int
    width: int
    variance: float

    @property
    def entries(self) -> int:
        return self.rows * self.columns - self.columns * (self.columns - 1) // 2

    @property
    def degrees(self) -> np.ndarray:
        """Degrees of freedom of the diagonal entries."""
        return self.width - np.arange(self.columns)


class Law(eqx.Module):
    """Posterior of the order parameters; build with `law`."""

    operator: Operator
    y: Float[Array, " n"]
    temperature: float
    blocks: tuple[Block, ...] = eqx.field(static=True)  # readout first, layer 1 last

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
        found, used = [], 0
        F = jnp.eye(self.blocks[0].rows)
        for block in self.blocks:
            B = bartlett(block, z[used : used + block.entries])
            used += block.entries
            B = B.reshape(block.heads, -1, block.columns)
            F = jnp.einsum("ab,hbc->hac", F, B).reshape(-1, block.columns)
            F = F * np.sqrt(block.variance / block.width)
            found.append(F)
        return found

    def log_prior(self, z: Float[Array, " n"]) -> Float[Array, ""]:
        """Log density of z before any label is seen, normalised."""
        total, used = jnp.asarray(0.0), 0
        for block in self.blocks:
            diagonal, below = np.split(
                np.arange(used, used + block.entries), [block.columns]
            )
            total += log_diagonal(z[diagonal], block.degrees).sum()
            total += jax.scipy.stats.norm.logpdf(z[below]).sum()
            used += block.entries
        return total

    def log_likelihood(self, z: Float[Array, " n"]) -> Float[Array, ""]:
        """Log density of the labels at given order parameters, normalised."""
        F = self.factors(z)[-1]
        E = energy(self.operator.kernel(F @ F.T), self.temperature, self.y)
        return -(E + self.y.size * jnp.log(2 * jnp.pi)) / 2


class Draws(NamedTuple):
    """Posterior draws and their diagnostics; chains first."""

    z: Float[Array, "chains draws n"]
    U: tuple[Float[Array, "chains draws d d"], ...]
    U_a: Float[Array, "chains draws K K"]
    n_eff: Float[Array, "d d"]  # effective number of draws of every entry of U_1
    r_hat: Float[Array, "d d"]
    divergences: Int[Array, ""]


def law(
    xi: Float[Array, "P N_0 Pi"],
    Y: Float[Array, "P *K"],
    *,
    width,
    temperature: float,
    heads: Sequence[int],
    variances=None,
    form: str | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> Law:
    """The exact posterior of the order parameters; arguments as in `solve`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi, Y = jnp.ones((1, 1, 4)), jnp.ones(1)
        >>> law(xi, Y, width=10, temperature=0.1, heads=(2, 2)).dimension
        14
    """
    xi, Y = check_data(xi, Y, heads)
    checked = sizes_of.prior(width, heads, variances)
    if (checked.widths != np.round(checked.widths)).any():
        raise ValueError(f"width must be whole in the exact law; got {width}.")
    if not (np.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature must be finite and > 0; got {temperature}.")
    outputs = 1 if Y.ndim == 1 else Y.shape[1]
    operator = path_kernels(
        xi, variance=float(checked.variances[0]), outputs=outputs, form=form,
        memory_limit=memory_limit,
    )  # fmt: skip
    chain = blocks(checked, heads, outputs)
    return Law(operator, Y.ravel(), float(temperature), chain)


def blocks(checked, heads: Sequence[int], outputs: int) -> tuple[Block, ...]:
    """Shapes of all Bartlett factors, the readout's first."""
    found, columns = [], outputs
    counts = [1, *reversed(heads)]
    sizes = zip(counts, checked.widths[::-1], checked.variances[:0:-1])
    for H, N, variance in sizes:
        rows = H * columns
        columns = min(int(N), rows)
        found.append(Block(int(H), rows, columns, int(N), float(variance)))
    return tuple(found)


def bartlett(block: Block, z: Float[Array, " n"]) -> Float[Array, "r m"]:
    """B_l from its coordinates: the diagonal first, then the entries below it."""
    k = block.degrees
    z_diagonal = z[: block.columns]
    positive = jnp.sqrt(k) * jnp.exp(z_diagonal / np.sqrt(2 * k))
    diagonal = jnp.where(k == 1, z_diagonal, positive)
    B = jnp.zeros((block.rows, block.columns))
    B = B.at[np.diag_indices(block.columns)].set(diagonal)
    below = np.tril_indices(block.rows, -1, block.columns)
    return B.at[below].set(z[block.columns :])


def log_diagonal(z: Float[Array, " m"], k) -> Float[Array, " m"]:
    """Log density of a diagonal coordinate: ln chi for k > 1, normal for k = 1."""
    log_x = jnp.log(k) / 2 + z / np.sqrt(2 * k)
    constant = (k / 2 - 1) * np.log(2) + jax.scipy.special.gammaln(k / 2)
    log_chi = k * log_x - jnp.exp(2 * log_x) / 2 - constant - np.log(2 * k) / 2
    return jnp.where(k == 1, jax.scipy.stats.norm.logpdf(z), log_chi)


def sample(
    key: Key[Array, ""],
    posterior: Law,
    *,
    draws: int = 1000,
    warmup: int = 500,
    chains: int = 4,
    start: Float[Array, " n"] | None = None,
) -> Draws:
    """Draw order parameters with NUTS (needs numpyro).

    Args:
        draws, warmup: per chain.
        start: coordinates where the chains start, after a small random shift; the
            GP limit when omitted.
    """
    if draws < 4 or warmup < 1 or chains < 1:
        raise ValueError(
            "need draws >= 4, warmup >= 1 and chains >= 1; "
            f"got {draws}, {warmup} and {chains}."
        )
    from numpyro.infer import MCMC, NUTS  # optional: only sampling needs it

    start_key, run_key = jax.random.split(key)
    centre = jnp.zeros(posterior.dimension) if start is None else start
    shift = 0.1 * jax.random.normal(start_key, (chains, posterior.dimension))
    potential = lambda z: -posterior.log_prior(z) - posterior.log_likelihood(z)
    kernel = NUTS(potential_fn=potential, dense_mass=True)
    runner = MCMC(
        kernel, num_warmup=warmup, num_samples=draws, num_chains=chains,
        chain_method="vectorized", progress_bar=False,
    )  # fmt: skip
    first = centre + shift
    runner.run(run_key, init_params=first[0] if chains == 1 else first)
    z = jnp.asarray(runner.get_samples(group_by_chain=True))
    divergent = runner.get_extra_fields()["diverging"]
    return describe(posterior, z, jnp.asarray(divergent).sum())


def describe(posterior: Law, z: Float[Array, "chains draws n"], divergences) -> Draws:
    """Order parameters of draws, with diagnostics of every entry of U_1."""
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    U, U_a = jax.jit(jax.vmap(jax.vmap(posterior.order_parameters)))(z)
    first = np.asarray(U[0])
    n_eff = jnp.asarray(effective_sample_size(first))
    return Draws(z, U, U_a, n_eff, jnp.asarray(split_gelman_rubin(first)), divergences)
