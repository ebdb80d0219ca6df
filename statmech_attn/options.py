"""Numerical choices as tables of checked keys, which a study file may hold.

A class that computes declares its choices once, in a module that imports nothing slow;
the table [run] of a study extends it.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


MAX_COUNT = 10**15  # of anything: more than can be computed
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Even = Annotated[int, Field(ge=2, le=MAX_COUNT, multiple_of=2)]
WholeNumber = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


class Table(BaseModel, frozen=True):
    """Known keys only, and every key a value of its own type.

    A `float` takes finite numbers, integers included, an `int` integers; neither takes
    `true`, `false` or a text, in any table.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
