"""What the tables of all study files share: types of values, and no unknown keys."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    model_validator,
    StrictInt,
    Tag,
)


Finite = Annotated[float, Field(allow_inf_nan=False, strict=True)]
MAX_COUNT = 10**15  # of anything: more than can be computed
Count = Annotated[StrictInt, Field(ge=1, le=MAX_COUNT)]
Even = Annotated[StrictInt, Field(ge=2, le=MAX_COUNT, multiple_of=2)]
WholeNumber = Annotated[StrictInt, Field(ge=0, le=MAX_COUNT)]
Seed = Annotated[StrictInt, Field(ge=0, lt=2**32)]
MAX_POINTS = 10_000_000


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Range(Table):
    """Evenly spaced values, both ends included."""

    start: Finite
    stop: Finite
    num: Annotated[StrictInt, Field(ge=1, le=MAX_POINTS)]

    def values(self) -> np.ndarray:
        return np.linspace(self.start, self.stop, self.num)


class Interval(Table):
    """A range without steps."""

    start: Finite
    stop: Finite

    @model_validator(mode="after")
    def _upward(self):
        if not self.start < self.stop:
            raise ValueError(f"start must be below stop, {self.stop:g}")
        return self


TAGS = ("number", "list", "range", "interval", "word", "count")


def _axis_form(value: Any) -> str:
    forms = {dict: "range", Range: "range", list: "list"}
    return forms.get(type(value), "number")


Number = Annotated[Finite, Tag("number")]
Values = Annotated[list[Finite], Field(min_length=1, fail_fast=True), Tag("list")]
Axis = Annotated[
    Number | Values | Annotated[Range, Tag("range")], Discriminator(_axis_form)
]
Bounds = Annotated[
    Number | Annotated[Interval, Tag("interval")],
    Discriminator(
        lambda v: "interval" if isinstance(v, (dict, Interval)) else "number"
    ),
]
HowMany = Annotated[
    Annotated[Literal["all"], Tag("word")] | Annotated[WholeNumber, Tag("count")],
    Discriminator(lambda value: "word" if isinstance(value, str) else "count"),
]


class StudyTable(Table):
    """The whole of a study file."""

    @property
    def seeds(self) -> dict[str, int]:
        """Seeds of all random numbers, by what they are for."""
        raise NotImplementedError

    @property
    def keeps_blocks(self) -> bool:
        """Whether a run keeps what it has beside its output, to go on after a kill."""
        return False

    def inputs(self) -> dict[str, str]:
        """SHA-256 of what the study reads beside its text, by name.

        A file that it names by its file name, images with their folder as in
        "omniglot/images_background.zip", a preset as "preset NAME".

        Raises:
            OSError: one of them cannot be read.
        """
        return {}

    def beside(self, folder: Path) -> Self:
        """The study with the files that it names looked up in its own folder."""
        return self
