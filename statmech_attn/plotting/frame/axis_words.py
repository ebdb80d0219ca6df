"""Words of axes: those of the published figures, or those of a system of one's own."""

import re

import xarray as xr

from statmech_attn.dynamics.diagrams import INDEX
from statmech_attn.labels import plural, unit_of
from statmech_attn.plotting.frame import style


def is_own(dataset: xr.Dataset) -> bool:
    """Whether a file is of a system of one's own rather than of a network."""
    return "unit" in dataset.attrs  # of a step, which of a network is a token


def label(dataset: xr.Dataset, name: str) -> str:
    """Words of an axis: those of the file where it is of a system of one's own."""
    if not is_own(dataset):
        return style.WORDS[name]
    attributes = dataset[name].attrs
    if "system" not in dataset.attrs and name != INDEX.name:
        return symbol(attributes["symbol"])
    words = attributes["long_name"].partition(": values of")[0]  # the finest grid
    return worded(words, attributes["symbol"], unit_of(attributes))


def sign(dataset: xr.Dataset, name: str) -> str:
    """Symbol of a parameter."""
    if is_own(dataset) or name == INDEX.name:
        return symbol(dataset[name].attrs["symbol"])
    return rf"$\{name}$"


def many(steps: xr.DataArray) -> str:
    """What is counted in a variable, as "tokens"."""
    return plural(unit_of(steps.attrs)).removeprefix("times ")


def shown(dataset: xr.Dataset, samples: str = "strobe") -> str:
    """Words of the observable that the samples of a file show."""
    if not is_own(dataset):
        return style.WORDS["section"]
    strobe = dataset[samples].attrs
    if "system" not in dataset.attrs:
        return symbol(strobe["symbol"])
    words = strobe["long_name"].partition(" at the clock")[0]
    return worded(words, strobe["symbol"], unit_of(strobe))


def worded(words: str, sign: str, units: str) -> str:
    """Words, symbol and unit of an axis."""
    named = "" if words == sign else words.removesuffix(f" {sign}") + " "
    return f"{named}{symbol(sign)}" + ("" if units == "1" else f" ({units})")


def symbol(text: str) -> str:
    """A letter, with an index where it has one, as mathematical text."""
    letter = re.fullmatch(r"([^\W_])(?:_(\w+))?", text)
    if letter is None:
        return text
    return f"${letter[1]}_{{{letter[2]}}}$" if letter[2] else f"${letter[1]}$"
