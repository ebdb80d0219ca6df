"""Table of the studies of attractors and their basins."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from statmech_attn.dynamics import BasinPlan, Search
from statmech_attn.options import Count
from statmech_attn.studies.dmft_tables import DmftStudy, ParametersSpec, RunSpec
from statmech_attn.studies.system_tables import (
    Box,
    Grid,
    SystemRun,
    SystemStudy,
)
from statmech_attn.studies.tables import of


class BasinsRun(
    of(
        Search,
        "transient",
        "horizon",
        "capture",
        step="token",
        transient=50_000,
        horizon=200_000,
    ),
    of(BasinPlan, "steps", "points", "matching", "furthest", step="token"),
    RunSpec,
    frozen=True,
):
    """Random starts, how long they are followed, and how sets are matched.

    Attributes:
        start: starts are random.
        starts: random starts at every value of the parameter.
        exponents: Lyapunov exponents of an attractor.
    """

    start: Literal["random"] = "random"
    starts: Annotated[int, Field(ge=2)] = 88
    exponents: Count = 2


class BasinsStudy(DmftStudy, frozen=True):
    """Attractors at several values of a parameter, and their basins."""

    kind: Literal["basins"]
    parameters: ParametersSpec
    run: BasinsRun = BasinsRun()


class SystemBasinsRun(
    of(Search, "transient", "horizon", "record", "capture"),
    of(BasinPlan, "steps", "points", "matching", "furthest"),
    SystemRun,
    frozen=True,
):
    """Random starts, how long they are followed, and how sets are matched.

    Attributes:
        starts: random starts at every value of the parameter.
        exponents: Lyapunov exponents of an attractor; as many as there are coordinates,
            2 at most, when left out.
    """

    starts: Annotated[int, Field(ge=2)] = 88
    exponents: Count = 2


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
