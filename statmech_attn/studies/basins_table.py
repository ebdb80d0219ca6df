"""Table of the studies of attractors and their basins."""

from typing import Annotated, Literal

from pydantic import Field

from statmech_attn.studies.dmft_tables import DmftStudy, ParametersSpec, RunSpec
from statmech_attn.studies.tables import Count, Positive, WholeNumber


class BasinsRun(RunSpec):
    """Random starts, how long they are followed, and how sets are matched."""

    start: Literal["random"] = "random"
    starts: Annotated[int, Field(ge=2)] = 88
    transient: WholeNumber = 50_000
    horizon: Count = 200_000
    steps: Count = 20_000
    exponents: Count = 2
    capture: Annotated[float, Field(gt=0, lt=1)] = 1e-3
    points: Annotated[int, Field(ge=16, le=512)] = 256
    matching: Literal["flow", "distance"] = "flow"
    furthest: Positive = 0.1


class BasinsStudy(DmftStudy):
    kind: Literal["basins"]
    parameters: ParametersSpec
    run: BasinsRun = BasinsRun()
