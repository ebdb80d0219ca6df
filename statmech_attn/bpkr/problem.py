r"""A Bayesian learning problem, and what the theory says of it (docs/theory/bpkr.md).

solve, sweep, multi_start     saddle point of the action, large widths
corrections                   means to order 1/N about a saddle point
law, posterior                exact law of the order parameters, and its draws
theory, gaussian_process      predictor at given order parameters, and N -> infinity
"""

from typing import Any

from jaxtyping import Array, Key

from statmech_attn.arguments import checks
from statmech_attn.bpkr.posed.problem import Posed
from statmech_attn.bpkr.theory import predictor, saddle, wishart
from statmech_attn.bpkr.theory.action import action, gaussian_process_limit
from statmech_attn.bpkr.theory.corrections import corrections, evidence_correction
from statmech_attn.bpkr.theory.minima import multi_start


class Problem(Posed):
    """Data, network and temperature of one posterior; a pytree.

    Args:
        xi: attentioned inputs (P, N_0, |Pi|), paths ordered h_1 slowest; or `Kernels`
            of the training examples, and kernels then wherever inputs are asked for.
        Y: labels (P,), or (P, K) for K outputs; then U has the index (path, output).
        heads: heads per layer (H_1, ..., H_L), or the heads themselves.
        width: one number, or (N_1, ..., N_L, N_a).
        temperature: variance of the labels; zero only where K(U) is invertible.
        variances: (sigma_0^2, ..., sigma_L^2, sigma_a^2); one when omitted.
        skip: factor b of the skip connections, or one a layer, 0 where it has none; xi
            then has the paths of `attended` with the same skip.
        form: "kernels" or "factors" to choose the form of the kernel by hand.
        memory_limit: bytes that kernels and a Newton step may take.

    Attributes:
        widths: (N_1, ..., N_L, N_a).
        scale: prefactor of the kernel, by path.
        operator: the kernel of U_1.
        compressed: rows in the place of examples where these are more than the rank of
            the kernel or hide it by rounding, else None; `rows` is the problem with
            them.

    Raises:
        ValueError: sizes that disagree, or values that are not finite or out of range.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi, Y = jnp.ones((1, 1, 1)), jnp.ones(1)
        >>> problem = Problem(xi, Y, heads=(1,), width=10, temperature=0.1)
        >>> solution = problem.solve()
        >>> solution.reason, round(float(solution.predict(xi).mean[0]), 3)
        ('converged', 0.908)
    """

    __init__ = Posed.__init__
    action = checks(action)
    solve = checks(saddle.solve)
    lowest_temperature = saddle.lowest_temperature
    sweep = checks(saddle.sweep)
    multi_start = checks(multi_start)
    corrections = checks(corrections)
    evidence_correction = checks(evidence_correction)
    law = wishart.law

    def theory(self, U=None) -> predictor.Theory:
        """The predictor at given order parameters.

        Args:
            U: U_1 of shape (|Pi| K, |Pi| K), or a solution of this problem; solved for
                when omitted.

        Raises:
            ValueError: sizes that disagree, a solution that has not converged or is of
                another problem, or K + T is not positive definite.

        Example:
            >>> import jax, jax.numpy as jnp
            >>> jax.config.update("jax_enable_x64", True)
            >>> xi, Y = jnp.ones((1, 1, 1)), jnp.ones(1)
            >>> problem = Problem(xi, Y, heads=(1,), width=10, temperature=1.0)
            >>> round(float(problem.theory(jnp.eye(1)).predict(xi).mean[0]), 12)
            0.5
        """
        return predictor.theory(self, self.solve() if U is None else U)

    def gaussian_process(self) -> predictor.Theory:
        """The predictor in the GP limit, P / N -> 0, whatever the widths.

        Example:
            >>> import jax, jax.numpy as jnp
            >>> jax.config.update("jax_enable_x64", True)
            >>> xi, Y = jnp.ones((1, 1, 1)), jnp.ones(1)
            >>> problem = Problem(xi, Y, heads=(1,), width=10, temperature=3.0)
            >>> round(float(problem.gaussian_process().mean(xi)[0]), 12)
            0.25
        """
        U, _ = gaussian_process_limit(
            self.heads, self.variances, self.outputs, skip=self.skip
        )
        return predictor.theory(self, U[0])

    @checks
    def posterior(self, key: Key[Array, ""], **options: Any) -> wishart.Draws:
        """Draws of the order parameters from `law` by NUTS (needs numpyro).

        Args:
            key: random key of JAX.
            options: `draws`, `warmup` and `chains` of `wishart.sample`.

        Example:
            >>> import jax, jax.numpy as jnp
            >>> jax.config.update("jax_enable_x64", True)
            >>> xi, Y = jnp.ones((1, 1, 1)), jnp.ones(1)
            >>> problem = Problem(xi, Y, heads=(1,), width=10, temperature=0.1)
            >>> draws = problem.posterior(jax.random.key(0), draws=100, chains=2)
            >>> draws.U[0].shape, draws.predict(xi).mean.shape
            ((2, 100, 1, 1), (1,))
        """
        return wishart.sample(key, self.law(), **options)
