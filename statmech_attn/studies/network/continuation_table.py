"""Tables of the studies that continue cycles of a network, and of finite size there."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TYPE_CHECKING

from pydantic import Field, model_validator

from statmech_attn.dynamics import continuation
from statmech_attn.montecarlo import CriticalSampling
from statmech_attn.options import Count, WholeNumber
from statmech_attn.studies.network.tables import DmftStudy, Start, StartSpec
from statmech_attn.studies.tables import (
    Bounds,
    chosen,
    Interval,
    of,
    Table,
)


FIRST_STEP = 0.2  # of a continuation, of its largest


class BoundsSpec(Table, frozen=True):
    """[parameters] of a continuation: one interval, {start, stop}, and numbers.

    Attributes:
        beta: inverse temperature of the output.
        gamma: inverse temperature of attention; that of the pattern file when left out.
        epsilon: weight of the positional part; that of the pattern file when left out.
        redrawn: probability with which a spin of the next token is redrawn, else
            copied; all spins are redrawn when left out.
    """

    beta: Annotated[Bounds, Field(examples=[{"start": 1.0, "stop": 1.5}])]
    gamma: Bounds | None = None
    epsilon: Bounds | None = None
    redrawn: Bounds | None = None

    @property
    def free(self) -> dict[str, Interval]:
        """The parameters that are given as intervals."""
        return {n: v for n, v in self if isinstance(v, Interval)}

    @model_validator(mode="after")
    def _one_is_free(self):
        if len(self.free) != 1:
            raise ValueError(
                "give exactly one of beta, gamma, epsilon and redrawn as "
                "{ start, stop }"
            )
        return self


class CycleRun(
    of(
        continuation.Settings,
        "largest_step",
        "smallest_step",
        "max_points",
        largest_step=0.05,
    ),
    Table,
    frozen=True,
):
    """A cycle of `period` drive periods, from a simulated state at the value `at`.

    Steps are arclengths, in units of the coordinates and of the interval.  `switch` is
    the number of period doublings that are followed one after another.

    Attributes:
        period: period of the cycle that is sought, in drive periods.
        at: value of the free parameter that is simulated; the beginning of its interval
            when left out.
        switch: period doublings that are followed one after another.
    """

    period: Annotated[int, Field(ge=1, le=1024)] = 1
    at: float | None = None
    switch: Annotated[int, Field(ge=0, le=8)] = 0

    @property
    def settings(self) -> continuation.Settings:
        """Of the continuation; the first step is a fifth of the largest."""
        first = max(FIRST_STEP * self.largest_step, self.smallest_step)
        return chosen(continuation.Settings, self, first_step=first)

    @model_validator(mode="after")
    def _steps_in_order(self):
        self.settings
        return self


class ContinuationRun(CycleRun, StartSpec, frozen=True):
    """[run] of a continuation.

    Attributes:
        transient (token): steps of the simulation before Newton's method.
    """

    start: Start | None = None
    transient: WholeNumber = 100_000


class CurvesSpec(of(continuation.Settings, "max_points"), Interval, frozen=True):
    """[curves]: the second parameter in which special points are followed.

    Attributes:
        parameter: the second parameter.
        max_points: points of a curve at most.
    """

    parameter: Literal["beta", "gamma", "epsilon", "redrawn"]


class Followed(Table, frozen=True):
    """A continuation of cycles of any system.

    Attributes:
        curves: second parameter in which special points are followed; none when left
            out.
    """

    if TYPE_CHECKING:
        run: Any
        curves: Any

    @property
    def free(self) -> dict[str, Interval]:
        """The one parameter that is given as an interval."""
        raise NotImplementedError

    @property
    def begin(self) -> dict[str, float]:
        """The value of the free parameter at which the cycle is sought."""
        ((free, bounds),) = self.free.items()
        return {free: bounds.start if self.run.at is None else self.run.at}

    @property
    def ranges(self) -> dict[str, Interval]:
        """Parameters that vary, that of the curves included."""
        curves = {} if self.curves is None else {self.curves.parameter: self.curves}
        return self.free | curves

    @model_validator(mode="after")
    def _consistent(self):
        ((free, bounds),) = self.free.items()
        at = self.run.at
        if at is not None and not bounds.start <= at <= bounds.stop:
            raise ValueError(
                f"run.at must lie in the interval of {free}, "
                f"{bounds.start:g} to {bounds.stop:g}"
            )
        if self.curves is not None and self.curves.parameter == free:
            raise ValueError(f"curves.parameter must not be {free}, which is free")
        return self


class ContinuationStudy(Followed, DmftStudy, frozen=True):
    """A continuation of cycles, stable or not."""

    kind: Literal["continuation"]
    parameters: BoundsSpec
    run: ContinuationRun = ContinuationRun()
    curves: CurvesSpec | None = None

    @property
    def free(self) -> dict[str, Interval]:
        return self.parameters.free

    @model_validator(mode="after")
    def _curves_begin_somewhere(self):
        second = self.curves is not None and self.curves.parameter
        if second == "redrawn" and self.parameters.redrawn is None:
            raise ValueError("curves in redrawn begin at a number parameters.redrawn")
        return self


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
