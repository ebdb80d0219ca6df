"""Order parameters at a saddle point, and how they were reached."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, Int

from statmech_attn import presentation
from statmech_attn.bpkr.posed import prior as sizes_of
from statmech_attn.bpkr.posed.newton import CONVERGED, ITERATIONS, RESULTS
from statmech_attn.bpkr.posed.quantities import shown_order_parameters
from statmech_attn.bpkr.posed.rounding import require_known, rounding_of_predictor
from statmech_attn.labels import Variable


class SaddlePoint(eqx.Module):
    """Order parameters of a problem at its saddle point: `bpkr.Solution` as data."""

    problem: Any  # `bpkr.Problem`
    U: tuple[Float[Array, "_d _d"], ...]
    U_a: Float[Array, ""] | Float[Array, "K K"]
    action: Float[Array, ""]
    energy: Float[Array, ""]
    entropy: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    iterations: Int[Array, ""]
    result: Int[Array, ""]
    signature: Int[Array, " 3"]
    point: Float[Array, " n"]

    @property
    def _shown(self):
        return (
            Variable("result", "", "result", flags=RESULTS),
            *shown_order_parameters(self.problem),
            Variable("action", "", "action", symbol="S"),
            Variable("energy", "", "energy per width", symbol="E/N"),
            Variable("entropy", "", "entropy", symbol="s"),
            Variable(
                "gradient_norm", "", "norm of the gradient", symbol="|∇S|", line=False
            ),
            Variable("iterations", "", "Newton steps", symbol="n"),
            Variable("outside_support", "", "outside the support of the exact law"),
        )

    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def converged(self) -> bool:
        """Whether a minimum was reached."""
        return int(self.result) == CONVERGED

    @property
    def reason(self) -> str:
        """The result in words.

        At T = 0 it says whether rounding of kernels that are given hides the predictor,
        which is refused then.
        """
        words, problem = RESULTS[int(self.result)], self.problem
        if self.converged and problem.temperature == 0:
            try:
                require_known(problem, self.U[0], rounding_of_predictor, "f")
            except ValueError as refused:
                return f"{words}, but {refused}"
        if int(self.result) in (CONVERGED, ITERATIONS):
            return words
        return f"{words}; problem.lowest_temperature() finds a temperature that works"

    @property
    def outside_support(self) -> bool:
        """Whether a width is below the size of its U.

        The exact law of such a width has singular U alone (`bpkr.wishart`), and the
        saddle point, which is of full rank, lies outside its support.
        """
        problem = self.problem
        return bool(sizes_of.outside_support(problem.widths, problem.sizes))
