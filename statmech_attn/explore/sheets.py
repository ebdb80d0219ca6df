"""Files that are seen as panels: the figures of the package, as data for the page.

A picture is the one of its name in `plotting`; what can be chosen of it are its page (a
temperature, values of beta, ...) and the keywords that `plotting.registry.picture`
names.  Files that are open beside it are drawn in it where it takes them, and compared
with it where they are a theory and its simulation.
"""

import copy
import inspect
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from statmech_attn import comparison
from statmech_attn.explore.files import File
from statmech_attn.explore.pictures import DRAWING, LARGEST
from statmech_attn.plotting import drawing, notes, panels, style
from statmech_attn.plotting.registry import Beside, Picture, temperatures


KEPT = 32  # pictures that are remembered
POINT = ("width", "temperature")  # between whose values points are solved
WIDTHS = ("width", "widths")  # keywords that take a width
WORDS = {
    "width": "hidden width N",
    "widths": "hidden width N",
    "temperature": "temperature T",
    "name": "order parameter",
}
COMPARED = "comparison"  # begins the names of pictures of a comparison
PAIRS = {  # kinds of files that are compared: of a theory, and of its simulations
    "trajectory": "monte-carlo",
    "extensive": "extensive-simulation",
    "order-parameter": "posterior",
}


class Choice(NamedTuple):
    """What can be chosen of a picture.

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


class Offer(NamedTuple):
    """A picture of a data set, with what can be chosen."""

    dataset: xr.Dataset
    picture: Picture
    choices: list[Choice]


class Sheet:
    """A file as the panels of its pictures.

    Args:
        file: of a kind that has pictures.

    Attributes:
        others: files that are open beside it.
    """

    def __init__(self, file: File):
        self.file = file
        self.others: list[File] = []
        self._shown: OrderedDict[Any, Any] = OrderedDict()

    def beside(self, others: Sequence[File]) -> "Sheet":
        """The same sheet with other files open beside it."""
        sheet = copy.copy(self)
        sheet.others = list(others)
        return sheet

    def described(self, keywords: bool = True) -> dict[str, Any]:
        """What the page needs to know beside what it knows of any file.

        Args:
            keywords: whether those of pictures can be chosen, beside pages.
        """
        return {
            "drawings": [
                {
                    "name": name,
                    "words": name.replace("_", " ").replace("/", ": "),
                    "told": inspect.getdoc(offer.picture.draw).partition("\n")[0],  # type: ignore[union-attr]
                    "choices": [
                        choice.described()
                        for choice in offer.choices
                        if keywords or choice.name not in offer.picture.choices
                    ],
                }
                for name, offer in self.offers().items()
            ]
        }

    def offers(self) -> dict[str, Offer]:
        """Pictures of the file by name, and those of its comparison with others."""
        return self._once("offers", self._offers)

    def _offers(self) -> dict[str, Offer]:
        with self.file.lock:
            offers = _offers(self.file.dataset)
            compared = self._comparison()
            if compared is not None:
                of = _offers(compared)
                offers |= {f"{COMPARED}/{name}": offer for name, offer in of.items()}
        return offers

    def panels(
        self,
        name: str,
        chosen: Mapping[str, int] = {},
        point: xr.Dataset | None = None,
    ) -> dict[str, Any]:
        """What a picture shows, as `plotting.panels.content` describes it.

        Args:
            name: of the picture.
            chosen: numbers of the values that are chosen, by name.
            point: what has been computed at other values.

        Raises:
            ValueError: there is no such picture, choice or value.
        """

        def draw() -> dict[str, Any]:
            try:
                return panels.content(self.figure(name, chosen, point))
            except panels.Unread:
                return {"image": True}

        if point is None:
            return self._once((name, *sorted(chosen.items())), draw)
        content = draw()
        for panel in content.get("panels", ()):
            if panel["x"]["words"] == panels.plain(style.WORDS["width"]):
                panel["marks"].append(_computed(float(point.width)))
        return content

    def figure(
        self,
        name: str,
        chosen: Mapping[str, int] = {},
        point: xr.Dataset | None = None,
    ) -> Figure:
        """A picture, drawn.

        Args:
            name, chosen, point: as for `panels`.
        """
        offers = self.offers()
        if name not in offers:
            raise ValueError(f"picture should be one of {', '.join(offers)}.")
        dataset, picture, choices = offers[name]
        values = _chosen(choices, chosen)
        with self.file.lock, DRAWING:
            if point is None:
                number = chosen.get("page", chosen.get("temperature", 0))
                _, page = list(picture.pages(dataset))[number]
            else:
                page = joined(dataset, point)
                values["width"] = float(point.width)
            if _is_solved(dataset, picture):
                values |= dict.fromkeys(WIDTHS, values["width"])
            if page.nbytes > LARGEST:
                raise ValueError("This file holds more than fits into a picture.")
            options = {n: values[n] for n in picture.choices if n in values}
            return picture.draw(page, **options, **self._taken(picture, page))

    def _taken(self, picture: Picture, page: xr.Dataset) -> dict[str, Any]:
        """Files that are open beside this one and that a picture draws as well."""
        taken = {}
        for keyword, wanted in picture.beside.items():
            found = [x.dataset for x in self.others if _fits(x, wanted, page)]
            if found:
                taken[keyword] = found if wanted.several else found[0]
        return taken

    def _comparison(self) -> xr.Dataset | None:
        """Its theory against its simulations; none where they do not fit together."""
        files = [self.file, *self.others]
        for theory, simulation in PAIRS.items():
            if self.file.kind not in (theory, simulation):
                continue
            of = lambda kind: [x.dataset for x in files if x.kind == kind]
            theories, simulations = of(theory)[:1], of(simulation)
            several = simulation == "posterior"
            both = [*theories, *(simulations if several else simulations[:1])]
            if theories and simulations and sum(x.nbytes for x in both) <= LARGEST:
                try:
                    return comparison.compare(*both)
                except ValueError:
                    return None
        return None

    def _once(self, what: Any, make: Any) -> Any:
        """What is made of this version of the files, remembered for a while."""
        sources = [(x.source, x.version) for x in (self.file, *self.others)]
        key = what, *sources
        if key not in self._shown:
            self._shown[key] = make()
        self._shown.move_to_end(key)
        while len(self._shown) > KEPT:
            self._shown.popitem(last=False)
        return self._shown[key]


def sheet_of(file: File) -> Sheet | None:
    """The sheet of a file; none of a kind that has no pictures."""
    return Sheet(file) if file.pictures else None


def joined(stored: xr.Dataset, point: xr.Dataset) -> xr.Dataset:
    """Order parameters of a file with those of a point, at its temperature.

    At a temperature that the file does not have, the point is alone, and what was not
    computed with it is not known.

    Args:
        stored: over width and temperature.
        point: of one width and temperature.

    Example:
        >>> of = {"width": [10.0, 20.0], "temperature": [1.0]}
        >>> stored = xr.Dataset({"U": (tuple(of), [[1.0], [2.0]])}, of)
        >>> point = xr.Dataset({"U": 1.5}, {"width": 15.0, "temperature": 1.0})
        >>> joined(stored, point).U.values.tolist()
        [1.0, 1.5, 2.0]
    """
    width, temperature = float(point.width), float(point.temperature)
    known = np.isclose(np.atleast_1d(stored.temperature.values), temperature).any()
    widths = np.union1d(stored.width.values, [width]) if known else np.array([width])
    at = {"width": widths, "temperature": [temperature]}
    alone = stored.temperature.ndim == 0
    stored = stored.expand_dims("temperature") if alone else stored
    together = stored.reindex(at, method=None).isel(temperature=0).copy(deep=True)
    for name in point.data_vars:
        if name in together and "width" in together[name].dims:
            together[name].loc[{"width": width}] = point[name]
    return together


def _offers(dataset: xr.Dataset) -> dict[str, Offer]:
    pictures = drawing.offered(dataset)
    return {x.name: Offer(dataset, x, _choices(dataset, x)) for x in pictures}


def _choices(dataset: xr.Dataset, picture: Picture) -> list[Choice]:
    """Pages and keywords of a picture; of order parameters width and temperature."""
    choices = []
    solved = _is_solved(dataset, picture)
    if picture.pages is temperatures:
        for name in POINT if solved else POINT[1:]:
            values = np.atleast_1d(dataset[name].values).tolist()
            labels = [f"{x:g}" for x in values]
            choices.append(Choice(name, WORDS[name], values, labels, between=solved))
    else:
        pages = [_page_words(dataset, page) for _, page in picture.pages(dataset)]
        choices.append(Choice("page", "page", range(len(pages)), pages))
    parameters = inspect.signature(picture.draw).parameters
    for name, values_of in picture.choices.items():
        if solved and name in WIDTHS:
            continue
        values = list(values_of(dataset))
        default = parameters[name].default
        first = values.index(default) if default in values else 0
        labels = [_label(x) for x in values]
        choices.append(Choice(name, WORDS.get(name, name), values, labels, first=first))
    return choices


def _label(value: Any) -> str:
    """A value that can be chosen, in characters."""
    if isinstance(value, str):
        return panels.plain(f"${style.OVERLAPS.get(value, value)}$")
    return f"{value:g}"


def _is_solved(dataset: xr.Dataset, picture: Picture) -> bool:
    """Whether a picture can show points between the stored ones."""
    of = dataset.attrs.get("kind") == "order-parameter"
    return of and picture.pages is temperatures


def _chosen(choices: Sequence[Choice], chosen: Mapping[str, int]) -> dict[str, Any]:
    """Values of all choices; the first ones where nothing is chosen."""
    known = {choice.name: choice for choice in choices}
    for name, number in chosen.items():
        if name not in known:
            raise ValueError(f"chosen: there is no {name!r}.")
        if number >= len(known[name].values):
            raise ValueError(
                f"chosen.{name} should be below {len(known[name].values)}."
            )
    return {n: c.values[chosen.get(n, c.first)] for n, c in known.items()}


def _page_words(dataset: xr.Dataset, page: xr.Dataset) -> str:
    """What is on a page: values of the coordinates of which it has a part."""
    words = []
    for name, every in dataset.coords.items():
        if every.ndim != 1 or every.size < 2 or name not in page.coords:
            continue
        here = np.unique(page[name].values)
        if len(here) < len(np.unique(every.values)):
            symbol = every.attrs.get("symbol", notes.SYMBOLS.get(str(name), name))
            sign = panels.plain(f"${symbol}$")
            ends = dict.fromkeys(f"{x:g}" for x in here[[0, -1]])
            words.append(f"{sign} = {' to '.join(ends)}")
    return ", ".join(words)


def _fits(file: File, wanted: Beside, page: xr.Dataset) -> bool:
    """Whether a file is of the kind and the problem that a picture takes."""
    of = file.dataset.attrs
    return file.kind == wanted.kind and all(
        np.array_equal(of.get(name, ""), page.attrs.get(name, ""))
        for name in wanted.same
    )


def _computed(width: float) -> dict[str, Any]:
    """A line at the width that was computed."""
    look = {"colour": style.GREY, "width": 0.8, "dash": [3.0, 2.0], "alpha": 1.0}
    return {"type": "place", "value": width, "words": "computed here"} | look
