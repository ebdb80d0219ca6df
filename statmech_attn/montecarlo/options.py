"""Options of sampling; nothing slow is imported to read a study."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from annotated_types import Ge

from statmech_attn.bpkr import estimates
from statmech_attn.dmft import extensive
from statmech_attn.options import Count, Options, Positive


class Sampling(NamedTuple):
    """How a posterior is sampled; draws and warm-up are counted for each chain.

    Attributes:
        method: "order-parameter" is the exact law, others a sampler of weights.
        draws: samples that each chain draws.
        warmup: steps before the first of them; what the method needs when omitted.
        chains: independent Markov chains.
        block: samples of the weights between two writes to disk.
        step_size: of a sampler that does not adapt it.
        evidence: whether the evidence is computed from the exact law.
    """

    method: str = estimates.EXACT_LAW
    draws: int = 1000
    warmup: int | None = None
    chains: int = 4
    block: int = 100
    step_size: float | None = None
    evidence: bool = False


@dataclass(frozen=True)
class SampledRecall(extensive.Recall):
    """Recall of networks of N spins, and how often it is sampled.

    Attributes:
        samples: draws of the patterns, for every N and point.
        runs: runs of every sample.
    """

    samples: Annotated[int, Ge(2)] = 20
    runs: Count = 1


@dataclass(frozen=True)
class CriticalSampling(Options):
    """Options by which spins are sampled at a bifurcation.

    An amplitude relaxes in (N / a D)^(1/2) iterates of the map.

    Attributes:
        runs: independent runs of every N and distance.
        samples: number of amplitudes that are taken from a run.
        warmup: beginning that is left out, in relaxation times of the amplitude.
        duration: length over which amplitudes are taken, in relaxation times.
        horizon: predicted times after which every run must have passed a fold.
    """

    runs: Annotated[int, Ge(2)] = 32
    samples: Count = 400
    warmup: Positive = 4.0
    duration: Positive = 20.0
    horizon: Annotated[float, Ge(1)] = 40.0
