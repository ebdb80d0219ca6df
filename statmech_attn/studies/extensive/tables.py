"""Tables of the studies of patterns growing with N."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Le
from pydantic import AllowInfNan, Discriminator, Field, model_validator, Tag

from statmech_attn.dmft import extensive
from statmech_attn.montecarlo import SampledRecall
from statmech_attn.options import Count, Seed
from statmech_attn.studies.network.tables import NetworkStudy
from statmech_attn.studies.tables import Axis, axis_form, chosen, of, Range, Table


Correlation = Annotated[float, Ge(-1), Le(1)]
PAIRS = ("ov", "oq", "ok", "vq", "vk", "qk")
_Cold = Annotated[float, AllowInfNan(True), Ge(0)]
ColdAxis = Annotated[
    Annotated[_Cold, Tag("number")]
    | Annotated[list[_Cold], Field(min_length=1), Tag("list")]
    | Annotated[Range, Tag("range")],
    Discriminator(axis_form),
]


class EnsembleSpec(Table, frozen=True):
    """[ensemble]: the alpha N patterns besides those of the network.

    Attributes:
        patterns: "cycle": what is read at one index is written at the next;
            "identical" or "independent" kinds o, v, q, k; "correlated": as given below.
        ov: mean of o v at a site, of correlated patterns.
        oq: mean of o q, of correlated patterns.
        ok: mean of o k, of correlated patterns.
        vq: mean of v q, of correlated patterns.
        vk: mean of v k, of correlated patterns.
        qk: mean of q k, of correlated patterns.
    """

    patterns: Literal["cycle", "identical", "independent", "correlated"] = "cycle"
    ov: Correlation = 0.0
    oq: Correlation = 0.0
    ok: Correlation = 0.0
    vq: Correlation = 0.0
    vk: Correlation = 0.0
    qk: Correlation = 0.0

    @property
    def given(self) -> dict[str, float]:
        """Correlations that are not zero."""
        pairs = {name: getattr(self, name) for name in PAIRS}
        return {name: value for name, value in pairs.items() if value}

    @model_validator(mode="after")
    def _correlations_are_used(self):
        if self.given and self.patterns != "correlated":
            raise ValueError(
                f"{', '.join(self.given)} has no use with patterns = {self.patterns!r}"
            )
        return self


class LoadedParameters(Table, frozen=True):
    """[parameters]: numbers, lists or ranges, two of which may be scanned.

    Attributes:
        alpha: patterns per spin besides those of the network, at least 0.
        beta: inverse temperature of the output, inf for deterministic spins.
        gamma: inverse temperature of attention; that of the pattern file when left out.
        epsilon: weight of the positional part; that of the pattern file when left out.
    """

    alpha: Annotated[Axis, Field(examples=[[0.1, 0.2, 0.3]])]
    beta: Annotated[ColdAxis, Field(examples=[4.0])]
    gamma: Axis | None = None
    epsilon: Axis | None = None


class LoadedRun(of(extensive.Recall, "row", "overlap", "steps")):
    """What theory and simulation of patterns growing with N have in common.

    Attributes:
        seed: seed of all random numbers of a run.
    """

    seed: Seed = 0


SEQUENCE = {  # a pattern beside those of a sequence
    "network.patterns": "cycle",
    "network.n_patterns": 1,
    "network.n_bits": 0,
    "network.context": 2,
    "network.seed": 0,
}
RECOVERY = SEQUENCE | {
    "parameters.alpha": [0.1, 0.2, 0.3, 0.4],
    "parameters.beta": 10.0,
    "parameters.gamma": 4.0,
    "parameters.epsilon": 0.0,
    "run.overlap": 0.5,
    "run.steps": 20,
}


class ExtensiveRun(
    of(extensive.SolvedRecall, "error", "trajectories", "two_times"), LoadedRun
):
    """[run] of the theory."""

    @property
    def recall(self) -> extensive.SolvedRecall:
        """What is solved at every point."""
        return chosen(extensive.SolvedRecall, self)


class LoadedStudy(NetworkStudy, frozen=True):
    """A study of networks with alpha N patterns.

    Attributes:
        ensemble: the alpha N patterns.
    """

    ensemble: EnsembleSpec = EnsembleSpec()
    parameters: LoadedParameters
    run: LoadedRun

    @property
    def seeds(self) -> dict[str, int]:
        return {"seed": self.run.seed}


class ExtensiveStudy(LoadedStudy, frozen=True):
    """Networks with alpha N patterns: theory in time, with memory."""

    template: ClassVar[Mapping[str, Any]] = RECOVERY

    kind: Literal["extensive"]
    run: ExtensiveRun = ExtensiveRun()


class ExtensiveSimulationRun(
    of(SampledRecall, "samples", "runs", "two_times"), LoadedRun
):
    """[run] of simulations.

    Attributes:
        n_spins: numbers N of spins.
    """

    n_spins: Annotated[list[Count], Field(min_length=1, examples=[[1000, 4000]])]

    @property
    def recall(self) -> SampledRecall:
        """What is simulated at every point."""
        return chosen(SampledRecall, self)


class ExtensiveSimulationStudy(LoadedStudy, frozen=True):
    """Networks with alpha N patterns: simulations of N spins."""

    template: ClassVar[Mapping[str, Any]] = RECOVERY | {"run.n_spins": [1000, 4000]}

    kind: Literal["extensive-simulation"]
    run: ExtensiveSimulationRun


class CapacityParameters(Table, frozen=True):
    """[parameters] of the capacity: numbers, lists or ranges.

    Attributes:
        beta: inverse temperature of the output, inf for deterministic spins.
        gamma: inverse temperature of attention.
    """

    beta: Annotated[ColdAxis, Field(examples=[4.0])]
    gamma: Axis = 0.0


class CapacityRun(of(extensive.Retrieval)):
    """[run] of the capacity.

    Attributes:
        contexts (token): lengths C of the context window; that of the network when left
            out.
    """

    contexts: Annotated[list[Count], Field(min_length=1)] | None = None

    @property
    def retrieval(self) -> extensive.Retrieval:
        """Of every point."""
        return chosen(extensive.Retrieval, self)

    @model_validator(mode="after")
    def _stays_or_moves(self):
        self.retrieval
        return self


class CapacityStudy(NetworkStudy, frozen=True):
    """The largest alpha of retrieval, over C, beta and gamma.

    Attributes:
        ensemble: the alpha N patterns.
    """

    template: ClassVar[Mapping[str, Any]] = SEQUENCE | {
        "parameters.beta": [math.inf, 10.0, 5.0, 3.0, 2.0],
        "parameters.gamma": 20.0,
        "run.contexts": [1, 2],
    }

    kind: Literal["capacity"]
    ensemble: EnsembleSpec = EnsembleSpec()
    parameters: CapacityParameters
    run: CapacityRun = CapacityRun()

    @property
    def seeds(self) -> dict[str, int]:
        return {}
