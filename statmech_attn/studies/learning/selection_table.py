"""Tables of a model-selection study."""

from typing import Annotated, Literal

from pydantic import Field

from statmech_attn.options import Count, Fraction, Seed
from statmech_attn.studies.learning.tables import BpkrStudy
from statmech_attn.studies.tables import Table


class ModelSelectionRun(Table, frozen=True):
    """[run]: what is held out for validation, and by what law the evidence is taken.

    Attributes:
        validation: share of the training examples that is held out; when left out, a
            fifth, or none where the task has a test set called validation, whose
            examples are taken instead.
        seed: seed of what is held out, and of the Markov chains.
        exact: whether evidence and predictor are those of the exact law, and not of the
            saddle point.
        draws: samples that each of four chains of the exact law draws.
    """

    validation: Annotated[Fraction, Field(examples=[0.2])] | None = None
    seed: Seed = 0
    exact: bool = False
    draws: Count = 500


class ModelSelectionStudy(BpkrStudy, frozen=True):
    """Evidence and validation error over widths and temperatures."""

    kind: Literal["model-selection"]
    run: ModelSelectionRun = ModelSelectionRun()
