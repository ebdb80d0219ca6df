"""What the page may ask for: models of its messages; anything else is refused."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


Number = Annotated[float, Field(allow_inf_nan=False)]
Pixels = Annotated[int, Field(ge=1, le=4096)]
Which = Annotated[int, Field(ge=0)]


class Nothing(BaseModel):
    """What the page asks for; anything else is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Asked(Nothing):
    """Something of a file."""

    file: Which = 0


class Strip(Asked):
    """A part of a scan of one parameter."""

    low: Number
    high: Number
    columns: Pixels


class Window(Strip):
    """A window of its diagram."""

    bottom: Number
    top: Number
    rows: Pixels


class Map(Asked):
    """A window of a scan of two parameters."""

    variable: str
    left: Number
    right: Number
    bottom: Number
    top: Number
    columns: Pixels
    rows: Pixels


class At(Asked):
    """A point of a scan, and the page that asks for it."""

    values: dict[str, Number]
    page: Which = 0


class Part(Asked):
    """A part of a scan that is to be computed."""

    ranges: dict[str, Any]


class Since(Asked):
    """What is new of a background run."""

    number: Which
    since: Which = 0


class Picture(Asked):
    """A picture of a file, or of a part of it."""

    name: str = ""
    form: str = "png"
    low: Number | None = None
    high: Number | None = None
    bottom: Number | None = None
    top: Number | None = None


class Sheet(Asked):
    """The panels of a sheet; of every choice the number of a value."""

    chosen: dict[str, Which] = Field(default_factory=dict)


class Solved(Sheet):
    """The same at values that the file does not hold, and the page that asks."""

    values: dict[str, Number]
    page: Which = 0
