"""Tables of the studies of finite size at a bifurcation of a network."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from statmech_attn.montecarlo import CriticalSampling
from statmech_attn.options import Count
from statmech_attn.studies.network.continuation_table import ContinuationRun, Followed
from statmech_attn.studies.network.tables import DmftStudy
from statmech_attn.studies.tables import Interval, of, Table


Bifurcation = Literal["neimark_sacker", "period_doubling", "pitchfork", "fold"]


class BetaInterval(Table, frozen=True):
    """[parameters] of a finite-size study: an interval of beta, and numbers.

    Attributes:
        beta: inverse temperature of the output.
        gamma: inverse temperature of attention; that of the pattern file when left out.
        epsilon: weight of the positional part; that of the pattern file when left out.
    """

    beta: Interval
    gamma: float | None = None
    epsilon: float | None = None


class FiniteSizeRun(of(CriticalSampling), ContinuationRun, frozen=True):
    """The bifurcation on the branch of a cycle, and spins around it.

    Attributes:
        bifurcation: kind of bifurcation; the first one of any kind when left out.
        number: number of the bifurcation of this kind along the branch, from 1.
        n_spins: numbers N of spins.
        distances: from the bifurcation, in units of the width over which N spins round
            it, 0 among them; positive where the new orbit is, or no state is left.
    """

    bifurcation: Bifurcation | None = None
    number: Count = 1
    n_spins: Annotated[list[Count], Field(min_length=1, examples=[[99_999, 999_999]])]
    distances: Annotated[list[float], Field(min_length=1)] = [-2.0, -1.0, 0.0, 1.0, 2.0]


class FiniteSizeStudy(Followed, DmftStudy, frozen=True):
    """Spins at a bifurcation in beta, for several N, beside the law without a fit."""

    template: ClassVar[Mapping[str, Any]] = {
        "parameters.beta": {"start": 1.2, "stop": 1.25}
    }

    kind: Literal["finite-size"]
    parameters: BetaInterval
    run: FiniteSizeRun
    curves: ClassVar[None] = None  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def free(self):
        return {"beta": self.parameters.beta}

    @model_validator(mode="after")
    def _at_the_bifurcation(self):
        if 0.0 not in self.run.distances:
            raise ValueError("run.distances must hold 0, the bifurcation")
        return self
