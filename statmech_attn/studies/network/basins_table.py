"""Tables of the studies of attractors of a network and their basins."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from statmech_attn.dynamics import BasinPlan, Search
from statmech_attn.options import Count
from statmech_attn.studies.network.tables import DmftStudy, ListedSpec, RunSpec
from statmech_attn.studies.tables import ListedStudy, of, Table


class SearchRun(Table, frozen=True):
    """Keys of [run] of basins of any system.

    Attributes:
        starts: random starts at every value of the parameter.
        exponents: Lyapunov exponents of an attractor.
    """

    starts: Annotated[int, Field(ge=2)] = 88
    exponents: Count = 2


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
    SearchRun,
    RunSpec,
    frozen=True,
):
    """Random starts, how long they are followed, and how sets are matched.

    Attributes:
        start: starts are random.
    """

    start: Literal["random"] = "random"


class BasinsStudy(ListedStudy, DmftStudy, frozen=True):
    """Attractors at several values of a parameter, and their basins."""

    template: ClassVar[Mapping[str, Any]] = {
        "parameters.beta": {"start": 0.5, "stop": 2.5, "num": 21}
    }

    kind: Literal["basins"]
    parameters: ListedSpec = ListedSpec()
    run: BasinsRun = BasinsRun()
