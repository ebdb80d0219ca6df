"""Names, units, symbols and words of quantities (docs/hdf5.md).

A quantity is declared once, as a `Variable`.  That label is read by all that shows it:
the text and the data set of a result, files, tables, figures and the explorer.
Every kind of file has a table of its variables, `Variables`, where they are made.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TYPE_CHECKING

import numpy as np


if TYPE_CHECKING:
    import xarray as xr


STEP = "step"  # what a step of a system is, where it does not say
NATS = "nat / token"
# Words of UDUNITS that units of files may be made of, as CF asks.
UDUNITS = """
    m s kg g A K mol cd Hz N Pa J W C V F H T Wb lm lx S Bq Gy Sv ohm rad sr
    km cm mm um nm ms us ns min hour h day year kHz MHz GHz kPa kJ kW MW eV keV mV kV
    meter metre second gram kelvin radian degree percent bar litre liter per
""".split()
OF_DRAWS = "chain draw"  # dimensions that draws have before those of the quantity
ENDINGS = {  # words, units (None: those of the quantity itself), symbol
    "_rms_slope": ("exponent of the difference in the width", "1", "d ln Δ{}/d ln N"),
    "_rms": ("root mean square difference from the reference", None, "Δ{}"),
    "_stderr": ("standard error", None, "s({})"),
    "_error": ("error", None, "δ({})"),
    "_std": ("standard deviation over the posterior", None, "σ({})"),
    "_n_eff": ("effective number of draws", "1", "n_eff({})"),
    "_r_hat": ("split R-hat over chains", "1", "R̂({})"),
    "_draws": ("draws", None, "{}"),
    "_exact": ("by the exact law", None, "{}"),
    "_corrected": ("corrected to order 1/N", None, "{}"),
    "_by_temperature": (
        "derivative in the logarithm of the temperature",
        None,
        "∂{}/∂ln T",
    ),
    "_by_width": ("derivative in the logarithm of the width", None, "∂{}/∂ln N"),
    "_grid": ("values of the finest grid", None, "{}"),
    "_index": ("place on the finest grid", "1", "i({})"),
    "_theory": ("by theory", None, "{} (theory)"),
    "_z": ("difference from the reference in standard errors", "1", "z({})"),
}


class Variable(NamedTuple):
    """A quantity: a number of a result, or a variable or coordinate of a file.

    Attributes:
        name: `{l}` stands for the number of a layer, `{free}` and `{second}` for the
            parameters that the file attributes of these names hold, whose words and
            symbol then stand for the same in `long_name` and `symbol`.
        dims: that it has among others, with blanks between them; those of one result,
            without a batch.
        long_name, units, symbol: its attributes.  Units that UDUNITS does not know,
            such as nats per token, are dimensionless there, and named `unit_name`.  In
            units of a result `{unit}` stands for what a step is; without a symbol its
            name is one.
        parts: endings of variables that come with it, such as "_stderr" (`ENDINGS`).
        group: "" of what every file of the kind holds; another word: the variables of
            one word are all there or none; None: may be absent.
        flags: words of its codes 0, 1, ....
        masks: whether the codes are bits.
        note: what else a reader should know of its values.
        value: of a result: attribute of it, with dots where it is one of an attribute,
            or a function of it; the name where it is empty.
        error: the same of its first part, a standard error where `parts` names none,
            which is written after ±.
        line: whether it stands in the text of a result, where it does if it is known,
            and not in the data set alone.
    """

    name: str
    dims: str
    long_name: str
    units: str = "1"
    symbol: str = ""
    parts: str = ""
    group: str | None = None
    flags: Sequence[str] = ()
    masks: bool = False
    note: str = ""
    value: str | Callable[[Any], Any] = ""
    error: str | Callable[[Any], Any] = ""
    line: bool = True

    @property
    def endings(self) -> list[str]:
        """Endings of all variables that the row describes, its own first."""
        parts = self.parts or ("_stderr" if self.error else "")
        return ["", *parts.split()]

    @property
    def meanings(self) -> tuple[str, ...]:
        """Its flags of the characters that CF allows."""
        return cf_words(self.flags)

    @property
    def part_of_error(self) -> str:
        """Ending of the part that `error` leads to."""
        return (self.parts or "_stderr").split()[0]

    def over(self, dims: str, parts: str = "", **changed: Any) -> "Variable":
        """The same quantity over other dimensions, with such parts."""
        return self._replace(dims=dims, parts=parts or self.parts, **changed)

    def filled(self, fill: Callable[[str], str]) -> "Variable":
        """This label with places in its words, units and symbol filled in."""
        return self._replace(
            long_name=fill(self.long_name),
            units=fill(self.units),
            symbol=fill(self.symbol),
        )

    def in_steps(self, unit: str) -> "Variable":
        """This label for a result whose steps are called `unit`."""
        return self._replace(units=self.units.replace("{unit}", unit))

    def attributes(self) -> dict[str, Any]:
        """Attributes of the stored variable."""
        known = all(word in UDUNITS for word in re.findall(r"[^\W\d]+", self.units))
        attributes: dict[str, Any] = {
            "long_name": self.long_name,
            "units": self.units if known else "1",
            "symbol": self.symbol or self.name,
        }
        if not known:
            attributes["unit_name"] = self.units
        if self.flags:
            codes = np.arange(len(self.flags), dtype=np.int32)
            if self.masks:
                attributes["flag_masks"] = 1 << codes
            else:
                attributes["flag_values"] = codes.astype(np.int8)
            attributes["flag_meanings"] = " ".join(self.meanings)
        return attributes

    def ended(self, ending: str) -> "Variable":
        """The part of it with this ending, without flags."""
        if not ending:
            return self
        last = next(suffix for suffix in ENDINGS if ending.endswith(suffix))
        base = self.ended(ending.removesuffix(last))
        words, units, symbol = ENDINGS[last]
        return Variable(
            self.name + ending,
            f"{OF_DRAWS} {base.dims}" if last == "_draws" else base.dims,
            f"{base.long_name}: {words}",
            units or base.units,
            symbol.format(base.symbol or base.name),
        )


class Variables:
    """What files of a kind hold, and how it is labelled.

    Args:
        rows: variables, and tables of them.
        attributes: of the file, without which it is no whole one; with the variable
            that needs each, or "" where all do.

    Example:
        >>> U = Variable("U_{l}", "width", "order parameter", parts="_stderr")
        >>> table = Variables(U)
        >>> table.attributes("U_2_stderr")["long_name"]
        'order parameter: standard error'
    """

    def __init__(
        self,
        *rows: "Variable | Variables",
        attributes: Mapping[str, str] | Sequence[str] = (),
    ) -> None:
        self.rows: list[Variable] = []
        for row in rows:
            self.rows += row.rows if isinstance(row, Variables) else [row]
        of_all = not isinstance(attributes, Mapping)
        self.file_attributes = dict.fromkeys(attributes, "") if of_all else attributes
        self._plain = {row.name: row for row in self.rows if "{" not in row.name}
        self._patterns = [
            (re.compile(_pattern(row.name + ending)), row, ending)
            for row in self.rows
            for ending in row.endings
        ]

    def __repr__(self) -> str:
        return f"Variables{self.rows, self.file_attributes}"

    def __iter__(self) -> Iterator[Variable]:
        return iter(self.rows)

    def variable(self, name: str) -> Variable:
        """The row of a stored variable, with layers and parameters filled in.

        Raises:
            KeyError: the kind has no such variable.
        """
        if name in self._plain:
            return self._plain[name]
        for pattern, row, ending in self._patterns:
            if match := pattern.fullmatch(name):
                known = match.groupdict()
                layer = known.pop("l", "")
                if all(parameter in self._plain for parameter in known.values()):
                    return self._filled(row, layer, known).ended(ending)
        raise KeyError(name)

    def attributes(self, name: str) -> dict[str, Any]:
        """Attributes of one variable.

        Raises:
            KeyError: the kind has no such variable.
        """
        return self.variable(name).attributes()

    def dims(self, name: str) -> tuple[str, ...]:
        """Dimensions of one variable.

        Raises:
            KeyError: the kind has no such variable.

        Example:
            >>> table = Variables(Variable("U_{l}", "width path_{l}", "U"))
            >>> table.dims("U_2")
            ('width', 'path_2')
        """
        return tuple(self.variable(name).dims.split())

    def place(self, name: str) -> int:
        """Position of a stored variable's row in the table; the end for others."""
        if name in self._plain:
            return self.rows.index(self._plain[name])
        for pattern, row, _ in self._patterns:
            if pattern.fullmatch(name):
                return self.rows.index(row)
        return len(self.rows)

    def labelled(
        self,
        variables: Mapping[str, tuple[tuple[str, ...], Any]],
        coordinates: Mapping[str, Any],
    ) -> "xr.Dataset":
        """A data set with attributes on every variable and coordinate."""
        import xarray as xr

        data = {
            name: (dims, np.asarray(values), self.attributes(name))
            for name, (dims, values) in variables.items()
        }
        coords = {
            name: ((name,), np.asarray(values), self.attributes(name))
            for name, values in coordinates.items()
        }
        return xr.Dataset(data, coords)

    def groups(self, attrs: Mapping[str, Any]) -> Iterator[list[Variable]]:
        """Variables that are there together, by the attributes of a file.

        Those of every file come first.
        """
        words = dict.fromkeys(row.group for row in self.rows)
        for word in ["", *(word for word in words if word)]:
            yield [_of_file(row, attrs) for row in self.rows if row.group == word]

    def _filled(self, row: Variable, layer: str, known: dict[str, str]) -> Variable:
        """A row for one layer and for parameters by their names."""
        words = row.long_name.replace("{l}", layer)
        symbol = row.symbol.replace("{l}", layer)
        for place, parameter in known.items():
            words = words.replace(f"{{{place}}}", self._plain[parameter].long_name)
            symbol = symbol.replace(f"{{{place}}}", self._plain[parameter].symbol)
        dims = row.dims.replace("{l}", layer)
        return row._replace(dims=dims, long_name=words, symbol=symbol)


class CodeWords(tuple[str, ...]):
    """Words of the codes 0, 1, ...; an array of codes gives an array of words.

    Example:
        >>> import numpy as np
        >>> fruit = CodeWords("apple", "pear")
        >>> fruit[1], fruit[np.array([1, 0])].tolist()
        ('pear', ['pear', 'apple'])
    """

    def __new__(cls, *texts: str):
        return super().__new__(cls, texts)

    def __getnewargs__(self):
        return tuple(self)

    def __getitem__(self, code: Any) -> Any:
        if isinstance(code, slice) or np.ndim(code) == 0:
            return super().__getitem__(code)
        return np.array(self)[np.asarray(code)]


def cf_words(texts: Iterable[str]) -> tuple[str, ...]:
    """Meanings of codes, of the characters that CF allows.

    Example:
        >>> cf_words(["not finite (yet)"])
        ('not_finite_yet',)
    """
    return tuple(
        re.sub(r"[^A-Za-z0-9_.+@-]", "", text.replace(" ", "_")) for text in texts
    )


def plural(unit: str) -> str:
    """What a step is, after a number of them other than one.

    Example:
        >>> plural("token"), plural("period of the drive"), plural("0.05 units of time")
        ('tokens', 'periods of the drive', 'times 0.05 units of time')
    """
    head, blank, rest = unit.partition(" ")
    return f"{head}s{blank}{rest}" if head.isalpha() else f"times {unit}"


def with_count(count: int, unit: str) -> str:
    """A number of steps in words.

    Example:
        >>> with_count(1, "token"), with_count(20, "0.05 units of time")
        ('1 token', '20 times 0.05 units of time')
    """
    return f"{count} {unit if count == 1 else plural(unit)}"


def step_unit(times: int, unit: str) -> str:
    """What so many steps are that are taken as one.

    Example:
        >>> step_unit(1, "token"), step_unit(4, "token")
        ('token', '4 tokens')
    """
    return unit if times == 1 else with_count(times, unit)


def unit_of(attributes: Mapping[Any, Any]) -> str:
    """The unit of a variable as people write it, by its attributes.

    Example:
        >>> unit_of(Variable("p", "", "period", "token").attributes())
        'token'
    """
    return attributes.get("unit_name", attributes["units"])


def rate(unit: str) -> str:
    """A unit of something over another, in running text.

    Example:
        >>> rate("nat / token"), rate("nat / 0.05 units of time")
        ('nat/token', 'nat per 0.05 units of time')
    """
    above, _, below = unit.partition(" / ")
    return f"{above} per {below}" if " " in below else unit.replace(" / ", "/")


def _pattern(name: str) -> str:
    """A regular expression of the stored names of a variable."""
    pattern = re.escape(name)
    for place, values in (("l", r"\d+"), ("free", r"\w+"), ("second", r"\w+")):
        pattern = pattern.replace(rf"\{{{place}\}}", f"(?P<{place}>{values})")
    return pattern


def _of_file(row: Variable, attrs: Mapping[str, Any]) -> Variable:
    """A row of the first layer, and of the parameters that a file names."""
    fill = lambda text: text.format(
        l=1, free=attrs.get("free", "?"), second=attrs.get("second", "?")
    )
    return row._replace(name=fill(row.name), dims=fill(row.dims))
