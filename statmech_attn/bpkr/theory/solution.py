"""What order parameters at a saddle point say (docs/theory/bpkr.md, 3, 4)."""

import numpy as np
from jaxtyping import Array, Float

from statmech_attn.arguments import checks
from statmech_attn.bpkr.posed.problem import Inputs
from statmech_attn.bpkr.theory import predictor
from statmech_attn.bpkr.theory.saddle_point import SaddlePoint


class Solution(SaddlePoint):
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

    @checks
    def predict(self, xi_test: Inputs) -> predictor.Prediction:
        """Mean and variance of f on new attentioned inputs, one column per path.

        For several sets of inputs `problem.theory(solution)` factorises K + T once.

        Args:
            xi_test: attentioned inputs (Q, N_0, paths), of `attended` for example.
        """
        return predictor.theory(self.problem, self).predict(xi_test)

    def head_scores(self) -> tuple[Array, ...]:
        """Weight of every head in U_1, over the largest; one (H_l,) array per layer.

        A skip connection is the first of its layer's heads.
        """
        return predictor.head_scores(self)

    def head_floors(self) -> tuple[Float[np.ndarray, " _H"], ...]:
        """What `head_scores` would be of heads that f does not read: `head_floors`."""
        return predictor.head_floors(self.problem, self.U, self.U_a)

    def overlap(self) -> Float[Array, " n"]:
        """|v_i . Y| / |Y| for the eigenvectors of K(U_1), largest eigenvalue first."""
        return predictor.theory(self.problem, self).overlap()
