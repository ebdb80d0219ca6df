"""Table of the studies of attractors and their basins."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from statmech_attn.dynamics import diagrams, Search
from statmech_attn.options import Count, Positive
from statmech_attn.studies.dmft_tables import DmftStudy, ParametersSpec, RunSpec
from statmech_attn.studies.system_tables import (
    Box,
    Grid,
    SystemRun,
    SystemStudy,
)
from statmech_attn.studies.tables import of, Table


class SetsRun(Table, frozen=True):
    """Keys of [run] of basins of any system.

    Attributes:
        exponents: Lyapunov exponents of a set.
        points: of a set that are kept.
        matching: how sets of neighbouring values are told to be one: by flow or by
            distance.
        furthest: largest distance of sets that are one, in units of the points' extent.
    """

    exponents: Count = 2
    points: Annotated[int, Field(ge=16, le=512)] = 256
    matching: Literal["flow", "distance"] = "flow"
    furthest: Positive = 0.1


class BasinsRun(
    SetsRun,
    of(
        Search,
        "transient",
        "horizon",
        "capture",
        step="token",
        transient=50_000,
        horizon=200_000,
    ),
    of(diagrams.Plan, "steps", step="token"),
    RunSpec,
    frozen=True,
):
    """Random starts, how long they are followed, and how sets are matched.

    Attributes:
        start: starts are random.
        starts: random starts at every value of the parameter.
        steps (token): window from which the phase of a set is found.
    """

    start: Literal["random"] = "random"
    starts: Annotated[int, Field(ge=2)] = 88


class BasinsStudy(DmftStudy, frozen=True):
    """Attractors at several values of a parameter, and their basins."""

    kind: Literal["basins"]
    parameters: ParametersSpec
    run: BasinsRun = BasinsRun()


class SystemBasinsRun(
    SetsRun,
    of(Search, "transient", "horizon", "record", "capture"),
    of(diagrams.Plan, "steps"),
    SystemRun,
    frozen=True,
):
    """Random starts, how long they are followed, and how sets are matched.

    Attributes:
        starts: random starts at every value of the parameter.
        steps (step): window from which the phase of a set is found.
        exponents: Lyapunov exponents of a set; as many as there are coordinates, 2 at
            most, when left out.
    """

    starts: Annotated[int, Field(ge=2)] = 88


class SystemBasinsStudy(SystemStudy, frozen=True):
    """Attractors of a system of one's own along a parameter, and their basins."""

    template: ClassVar[Mapping[str, Any]] = {
        "parameters": {"a": {"start": 0.7, "stop": 2.5, "num": 10}}
    }

    kind: Literal["basins"]
    parameters: Grid
    run: SystemBasinsRun = SystemBasinsRun()

    @model_validator(mode="after")
    def _starts_are_random(self):
        if not isinstance(self.system.initial, Box):
            raise ValueError(
                "system.initial must be a box, { low, high }, from which starts are "
                "drawn"
            )
        return self
