"""What a reader can choose of a picture, with words: its page, and keywords.

A keyword of a drawing function can be chosen where `registry.picture` names its values.
"""

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from statmech_attn.plotting.frame import notes, style
from statmech_attn.plotting.frame.axis_words import plain
from statmech_attn.plotting.frame.registry import Picture, temperatures


POINT = ("width", "temperature")  # between whose values points are solved
WIDTHS = ("width", "widths")  # keywords that take a width
WORDS = {
    "width": "hidden width N",
    "widths": "hidden width N",
    "temperature": "temperature T",
    "name": "order parameter",
    "m_v": "m of values",  # in a list, which has no letters that stand high
    "m_q": "m of queries",
    "m_k": "m of keys",
}


class Choice(NamedTuple):
    """A choice that a picture offers to its reader.

    Attributes:
        name: in the address of a view.
        words: what it is.
        values: numbers, or what the keyword takes.
        labels: of the values.
        between: whether the page may ask for other numbers, which are then computed.
        first: number of the value that is chosen at first.
    """

    name: str
    words: str
    values: Sequence[Any]
    labels: Sequence[str]
    between: bool = False
    first: int = 0

    def described(self) -> dict[str, Any]:
        """The choice as the page needs it."""
        return self._asdict() | {"values": [*self.values]}


def choices(dataset: xr.Dataset, picture: Picture) -> list[Choice]:
    """What a reader can choose of a picture: its page, and keywords of its function.

    Of order parameters the page is a temperature, and a width is chosen as well.

    Args:
        dataset: a result.
        picture: one of those that it has.

    Example:
        `choices(dataset, offered(dataset)[0])`
    """
    offered = []
    of_theory = dataset.attrs.get("kind") == "order-parameter"
    solved = of_theory and picture.pages is temperatures
    if picture.pages is temperatures:
        for name in POINT if solved else POINT[1:]:
            values = np.atleast_1d(dataset[name].values).tolist()
            labels = [f"{x:g}" for x in values]
            offered.append(Choice(name, WORDS[name], values, labels, between=solved))
    else:
        pages = [_page_words(dataset, page) for _, page in picture.pages(dataset)]
        offered.append(Choice("page", "page", range(len(pages)), pages))
    parameters = inspect.signature(picture.draw).parameters
    for name, values_of in picture.choices.items():
        if solved and name in WIDTHS:
            continue
        values = list(values_of(dataset))
        default = parameters[name].default
        first = values.index(default) if default in values else 0
        labels = [_label(x) for x in values]
        offered.append(Choice(name, WORDS.get(name, name), values, labels, first=first))
    return offered


def _label(value: Any) -> str:
    """A value that can be chosen, in characters."""
    if isinstance(value, str):
        return WORDS.get(value) or plain(f"${style.OVERLAPS.get(value, value)}$")
    return f"{value:g}"


def _page_words(dataset: xr.Dataset, page: xr.Dataset) -> str:
    """What is on a page: values of the coordinates of which it has a part."""
    words = []
    for name, every in dataset.coords.items():
        if every.ndim != 1 or every.size < 2 or name not in page.coords:
            continue
        of_page = np.unique(page[name].values)
        if len(of_page) < len(np.unique(every.values)):
            symbol = every.attrs.get("symbol", notes.SYMBOLS.get(str(name), name))
            sign = plain(f"${symbol}$")
            ends = dict.fromkeys(f"{x:g}" for x in of_page[[0, -1]])
            words.append(f"{sign} = {' to '.join(ends)}")
    return ", ".join(words)
