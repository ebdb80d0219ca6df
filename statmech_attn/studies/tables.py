"""What the tables of all study files share: types of values, and no unknown keys."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    model_validator,
    Tag,
)


MAX_COUNT = 10**15  # of anything: more than can be computed
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Even = Annotated[int, Field(ge=2, le=MAX_COUNT, multiple_of=2)]
WholeNumber = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
MAX_POINTS = 10_000_000


class Table(BaseModel):
    """Known keys only, and every key a value of its own type.

    A `float` takes finite numbers, integers included, an `int` integers; neither takes
    `true`, `false` or a text, in any table.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False
    )


class Range(Table):
    """Evenly spaced values, both ends included."""

    start: float
    stop: float
    num: Annotated[int, Field(ge=1, le=MAX_POINTS)]


class Interval(Table):
    """A range without steps."""

    start: float
    stop: float

    @model_validator(mode="after")
    def _upward(self):
        if not self.start < self.stop:
            raise ValueError(f"start must be below stop, {self.stop:g}")
        return self


TAGS = ("number", "list", "range", "interval", "word", "count")


def _axis_form(value: Any) -> str:
    forms = {dict: "range", Range: "range", list: "list"}
    return forms.get(type(value), "number")


Number = Annotated[float, Tag("number")]
Values = Annotated[list[float], Field(min_length=1, fail_fast=True), Tag("list")]
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

    def files(self) -> list[Path]:
        """Files that the study names, and image files that it reads."""
        return []

    def beside(self, folder: Path) -> Self:
        """The study with the files that it names looked up in its own folder."""
        return self
