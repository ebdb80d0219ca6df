"""Training and test examples of Bayesian learning, with the heads that attend them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float

from statmech_attn.bpkr.posed import prior
from statmech_attn.bpkr.problem import Problem
from statmech_attn.scan import fingerprint


Attended = tuple[Float[Array, "Q N_0 Pi"], Float[Array, " Q"]]
VALIDATION = "validation"  # name of the test set of one's own data that chooses


class LearningTask(NamedTuple):
    """Attentioned inputs and labels of the training and the test set.

    Where a task has several test sets, `sets` has them by name, the test set first, and
    `choices` says which of them choose the temperature; where its heads have names,
    `names` has them, layer by layer.

    Attributes:
        xi: attentioned inputs of the training set.
        Y: labels of the training set.
        xi_test: attentioned inputs of the test set.
        Y_test: labels of the test set.
        heads: number of heads of every layer.
        description: of the task as JSON, the same for the same examples and heads; in
            files their digest where it is empty.
        sets: all test sets by name.
        choices: name of the test set that chooses, by the name of the choice.
        names: names of the heads, layer by layer.
        skip: as in `bpkr.Problem`; a skip is the first of its layer's heads.
    """

    xi: Float[Array, "P N_0 Pi"]
    Y: Float[Array, " P"]
    xi_test: Float[Array, "Q N_0 Pi"]
    Y_test: Float[Array, " Q"]
    heads: tuple[int, ...]
    description: str = ""
    sets: Mapping[str, Attended] = {}
    choices: Mapping[str, str] = {}
    names: tuple[str, ...] = ()
    skip: float | Sequence[float] = 0.0

    @property
    def described(self) -> str:
        """The description, as files have it."""
        return self.description or json.dumps({"sha256": fingerprint(self)})

    @property
    def skips(self) -> prior.Skip:
        """b_l of every layer, None where it has no skip connection."""
        return prior.skips(self.skip, len(self.heads))

    @property
    def branches(self) -> tuple[int, ...]:
        """Ways through every layer: its skip first if it has one, then its heads."""
        return prior.branches(self.heads, self.skips)

    @property
    def data(self) -> tuple[Array, Array]:
        return self.xi, self.Y

    def posed(self, **options: Any) -> Problem:
        """The problem of learning the training set.

        Args:
            options: of `Problem` beside examples and heads.
        """
        return Problem(*self.data, heads=self.heads, skip=self.skip, **options)

    @property
    def tests(self) -> list[Attended]:
        """All test sets."""
        return list(self.sets.values()) or [(self.xi_test, self.Y_test)]

    @property
    def counts(self) -> list[int]:
        """Number of examples of every test set."""
        return [len(y) for _, y in self.tests]

    def of_paths(self, chosen) -> "LearningTask":
        """The same examples as some of the paths attend them.

        For a network of these paths with as many heads in one layer: of those that
        skip more heads than others, by the larger factor that they have in f.

        Args:
            chosen: numbers of the paths.
        """
        shares = prior.path_shares(self.heads, self.skips)[chosen]
        squares = shares[0] / shares
        cut = lambda xi: xi[:, :, chosen] * np.sqrt(squares / squares.mean())
        sets = {name: (cut(xi), y) for name, (xi, y) in self.sets.items()}
        return self._replace(xi=cut(self.xi), xi_test=cut(self.xi_test), sets=sets)

    def path_dims(self, layer: int) -> tuple[str, str]:
        """Names of the two dimensions of U_l, layers counted from one.

        Args:
            layer: number of the layer, from 1.
        """
        return f"path_{layer}", f"path_{layer}_pair"
