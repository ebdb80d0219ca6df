"""Tables of a learning-curve study."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from statmech_attn.montecarlo import Sampling
from statmech_attn.options import Count, Seed
from statmech_attn.studies.learning.tables import BpkrStudy, Method, PosteriorRun
from statmech_attn.studies.tables import Table


class LearningCurveRun(Table, frozen=True):
    """[run]: numbers of examples, training sets, and what stands beside the theory.

    Attributes:
        examples: numbers P of training examples.
        training_sets: how many training sets are drawn, of the largest size; the others
            are their beginnings.
        seed: seed of the training sets and of the Markov chains.
        corrections: whether corrections of order 1/N and the evidence are computed.
        samples: what is sampled beside the theory: "order-parameter" is the exact law
            of the order parameters, "weights" the weights by NUTS, others the weights
            by the sampler of this name.
        draws: samples that each chain draws.
        warmup: steps of each chain before its first sample; as of a posterior study
            when left out.
        chains: independent Markov chains.
    """

    examples: Annotated[list[Count], Field(min_length=1, examples=[[5, 10, 20, 40]])]
    training_sets: Count = 10
    seed: Seed = 0
    corrections: bool = False
    samples: list[Method] = []
    draws: Annotated[int, Field(ge=4)] = 200
    warmup: Count | None = None
    chains: Count = 4

    def sampling(self, method: str) -> Sampling:
        """How a method samples a posterior here."""
        draws, chains = self.draws, self.chains
        return PosteriorRun(
            method=method, draws=draws, warmup=self.warmup, chains=chains, stored=0
        ).sampling

    @model_validator(mode="after")
    def _distinct(self):
        for name in ("examples", "samples"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name}: values must be distinct")
        for method in self.samples:
            self.sampling(method)
        return self


class LearningCurveStudy(BpkrStudy, frozen=True):
    """Test errors against the number of examples, over widths and temperatures."""

    kind: Literal["learning-curve"]
    run: LearningCurveRun

    @property
    def keeps_blocks(self) -> bool:
        return any(method != "order-parameter" for method in self.run.samples)
