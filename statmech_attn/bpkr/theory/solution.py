"""Order parameters at a saddle point, and what they say (docs/theory/bpkr.md, 3, 4)."""

from typing import TYPE_CHECKING

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from statmech_attn import presentation
from statmech_attn.arguments import checks
from statmech_attn.bpkr.posed import prior as sizes_of
from statmech_attn.bpkr.posed.compression import require_known, rounding_of_predictor
from statmech_attn.bpkr.posed.newton import CONVERGED, ITERATIONS, RESULTS
from statmech_attn.bpkr.posed.quantities import shown_order_parameters
from statmech_attn.bpkr.problem import Inputs, Problem
from statmech_attn.labels import Variable


if TYPE_CHECKING:
    from statmech_attn.bpkr.theory.predictor import Prediction


class Solution(eqx.Module):
    """Order parameters of a problem at its saddle point, and how they were reached.

    `energy` is E / N and `entropy` the sum of s_l, with N the largest width: `action`
    is their sum.  Where the result is not "converged" all five are NaN;
    `gradient_norm`, `signature` and `point` then tell where the iteration ended, and
    the solution may be given as `start` to go on.  `iterations` counts Newton steps.

    Attributes:
        problem: the problem that was solved.
        U: order parameters (U_1, ..., U_L): U_l over pairs of paths of the layers from
            l.
        U_a: order parameter of the readout.
        action: value of the action at the saddle point.
        energy: E / N.
        entropy: sum of the entropies s_l.
        gradient_norm: where the iteration ended.
        iterations: Newton steps.
        result: index into `RESULTS`; `reason` is its word.
        signature: numbers of negative, zero and positive eigenvalues of the Hessian; -1
            where there was no memory for it.
        point: coordinates of the solution, for a warm start.
    """

    problem: Problem
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
        """The result in words, with a temperature that works where this one is too low.

        That is found by solving at others.  At T = 0 it says whether rounding of
        kernels that are given hides the predictor, which is refused then.
        """
        from statmech_attn.bpkr.theory.saddle import lowest_temperature

        words, problem = RESULTS[int(self.result)], self.problem
        if self.converged and problem.temperature == 0:
            try:
                require_known(problem, self.U[0], rounding_of_predictor, "f")
            except ValueError as refused:
                return f"{words}, but {refused}"
        if int(self.result) in (CONVERGED, ITERATIONS):
            return words
        lowest = lowest_temperature(self.problem)
        return words if lowest is None else f"{words}; T = {lowest:.2g} works"

    @property
    def outside_support(self) -> bool:
        """Whether a width is below the size of its U.

        The exact law of such a width has singular U alone (`bpkr.wishart`), and the
        saddle point, which is of full rank, lies outside its support.
        """
        problem = self.problem
        return bool(sizes_of.outside_support(problem.widths, problem.sizes))

    @checks
    def predict(self, xi_test: Inputs) -> "Prediction":
        """Mean and variance of f on new attentioned inputs, one column per path.

        For several sets of inputs `problem.theory(solution)` factorises K + T once.

        Args:
            xi_test: attentioned inputs (Q, N_0, paths), of `attended` for example.
        """
        return self.problem.theory(self).predict(xi_test)

    def head_scores(self) -> tuple[Array, ...]:
        """Weight of every head in U_1, over the largest; one (H_l,) array per layer.

        A skip connection is the first of its layer's heads.
        """
        from statmech_attn.bpkr.theory.predictor import head_scores

        return head_scores(self)

    def head_floors(self) -> tuple[Float[np.ndarray, " _H"], ...]:
        """What `head_scores` would be of heads that f does not read: `head_floors`."""
        from statmech_attn.bpkr.heads.scores import head_floors

        return head_floors(self.problem, self.U, self.U_a)

    def overlap(self) -> Float[Array, " n"]:
        """|v_i . Y| / |Y| for the eigenvectors of K(U_1), largest eigenvalue first."""
        return self.problem.theory(self).overlap()
