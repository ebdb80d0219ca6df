"""Options of patterns growing with N; nothing slow is imported to read a study."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le

from statmech_attn.options import Count, Options, Positive, WholeNumber


@dataclass(frozen=True)
class Recall(Options):
    """Options of recall: its start, its length and what is stored of it.

    Attributes:
        row: number of the network's pattern on which the start condenses, from 0.
        overlap: overlap of the start with the outputs of pattern `row`, 1 where every
            spin agrees with them.
        steps (token): steps after the start.
        two_times: whether arrays of two times are kept.
    """

    row: WholeNumber = 0
    overlap: Annotated[float, Ge(-1), Le(1)] = 1.0
    steps: Count = 40
    two_times: bool = True


@dataclass(frozen=True)
class SolvedRecall(Recall):
    """Options of recall by the theory: those of `Recall`, and how precise it is.

    Attributes:
        error: largest standard error of m, A, C and weights that are sampled.
        trajectories: sampled effective trajectories of a point at most.
    """

    error: Positive = 0.01
    trajectories: Annotated[int, Ge(2**17)] = 2**24


@dataclass(frozen=True)
class Retrieval(Options):
    """Options of a capacity: the retrieval state, and how its end is found.

    Attributes:
        row: number of the network's pattern that is retrieved.
        begin: patterns per spin at which the retrieval state is sought, halved until
            there is one.
        lags (token): largest lag that is told from an infinite one; 8 (C - 1) when left
            out.
        at_rest: static spins, as in a Hopfield network; of identical patterns at
            beta = inf.
        moving: recall moves along the cycle, one pattern a token, instead of staying
            with the pattern of `row`.
    """

    row: WholeNumber = 0
    begin: Positive = 0.05
    lags: Count | None = None
    at_rest: bool = False
    moving: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.at_rest and self.moving:
            raise ValueError("at_rest and moving exclude each other.")
