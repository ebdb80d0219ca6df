"""Table of the studies of attractors and their basins."""

from typing import Annotated, Literal

from pydantic import Field

from statmech_attn.dynamics import diagrams, Search
from statmech_attn.options import Count, Positive
from statmech_attn.studies.dmft_tables import DmftStudy, ParametersSpec, RunSpec
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
    of(diagrams.Plan, "steps", step="token"),
    RunSpec,
    frozen=True,
):
    """Random starts, how long they are followed, and how sets are matched.

    Attributes:
        start: starts are random.
        starts: random starts at every value of the parameter.
        steps (token): window from which the phase of a set is found.
        exponents: number of Lyapunov exponents that are computed for every set.
        points: points of every set that are stored.
        matching: how sets of neighbouring values are told to be one: by flow or by
            distance.
        furthest: largest distance of sets that are one, in units of the points' extent.
    """

    start: Literal["random"] = "random"
    starts: Annotated[int, Field(ge=2)] = 88
    exponents: Count = 2
    points: Annotated[int, Field(ge=16, le=512)] = 256
    matching: Literal["flow", "distance"] = "flow"
    furthest: Positive = 0.1


class BasinsStudy(DmftStudy, frozen=True):
    """Attractors at several values of a parameter, and their basins."""

    kind: Literal["basins"]
    parameters: ParametersSpec
    run: BasinsRun = BasinsRun()
