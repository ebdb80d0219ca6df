"""Requests that the page may send: models of its messages."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


Number = Annotated[float, Field(allow_inf_nan=False)]
Pixels = Annotated[int, Field(ge=1, le=4096)]
Which = Annotated[int, Field(ge=0)]


class Request(BaseModel):
    """A request of the page; anything else is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class FileRequest(Request):
    """A request about a file."""

    file: Which = 0


class Strip(FileRequest):
    """A request for a stretch of a scan of one parameter."""

    low: Number
    high: Number
    columns: Pixels


class Window(Strip):
    """A request for a window of a bifurcation diagram."""

    bottom: Number
    top: Number
    rows: Pixels


class Map(FileRequest):
    """A request for a window of a scan of two parameters."""

    variable: str
    left: Number
    right: Number
    bottom: Number
    top: Number
    columns: Pixels
    rows: Pixels


class Point(FileRequest):
    """A request for a point of a scan, with the page that waits for it."""

    values: dict[str, Number]
    page: Which = 0


class Part(FileRequest):
    """A request to compute a part of a scan."""

    ranges: dict[str, Any]


class JobRequest(FileRequest):
    """A request for what is new of a job in the background."""

    number: Which
    since: Which = 0


class PictureRequest(FileRequest):
    """A request for a picture of a file: the number of a value for every choice."""

    name: str = ""
    chosen: dict[str, Which] = Field(default_factory=dict)


class Picture(PictureRequest):
    """A request for a picture in a file of its own, of a part of a scan."""

    form: str = "png"
    low: Number | None = None
    high: Number | None = None
    bottom: Number | None = None
    top: Number | None = None


class Solved(PictureRequest):
    """A request for a picture at values that the file does not hold."""

    values: dict[str, Number]
    page: Which = 0
