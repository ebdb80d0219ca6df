"""Words of axes, of the published figures or of a system of one's own, and formulas."""

import re
import unicodedata

import xarray as xr

from statmech_attn.dynamics.diagrams import INDEX
from statmech_attn.labels import plural, unit_of
from statmech_attn.plotting.frame import style


SIGNS = {
    "cdot": "·",
    "ell": "ℓ",
    "equiv": "≡",
    "geq": "≥",
    "infty": "∞",
    "lambda": "λ",
    "langle": "⟨",
    "leq": "≤",
    "left": "",
    "pm": "±",
    "prime": "′",
    "propto": "∝",
    "rangle": "⟩",
    "right": "",
    "sum": "∑",
    "times": "×",
    "to": "→",
    ",": " ",
    ";": " ",
    "!": "",
}


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


def plain(words: str) -> str:
    r"""Words with formulas as characters; `_{...}` and `^{...}` stand low and high.

    Args:
        words: of a figure, with formulas between dollar signs.

    Example:
        >>> plain(r"width $N_0$, $m^{o,\mathrm{SE}}_1$, $\beta \to \infty$")
        'width N_{0}, m^{o,SE}_{1}, β → ∞'
    """
    parts = words.split("$")
    if len(parts) % 2 == 0:
        return words
    return "".join(_formula(x) if i % 2 else x for i, x in enumerate(parts))


def _formula(text: str) -> str:
    text = re.sub(r"\\(?:mathrm|mathit|mathbf|mathdefault)(?=\{)", "", text)
    text = re.sub(r"\\([A-Za-z]+|.)", lambda found: _sign(found[1]), text)
    text = text.replace("^′", "′").replace("'", "′").replace("-", "−")
    text = re.sub(r"([_^])([^{}\s])", r"\1{\2}", text)
    return re.sub(r"(?<![_^])\{([^{}]*)\}", r"\1", text)


def _sign(command: str) -> str:
    if command in SIGNS:
        return SIGNS[command]
    size = "CAPITAL" if command[0].isupper() else "SMALL"
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {command.upper()}")
    except KeyError:
        return command
