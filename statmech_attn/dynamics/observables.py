"""What is observed of a state, as coordinates of a file."""

from collections.abc import Mapping, Sequence

import xarray as xr

from statmech_attn.labels import Variable, Variables


_TEXT = Variable("", "observable", "", "1", "x", group="")
OBSERVABLES = Variables(
    _TEXT._replace(name="observable", long_name="name of an observable", symbol="i"),
    _TEXT._replace(name="observable_words", long_name="what the observable is"),
    _TEXT._replace(name="observable_unit", long_name="unit of the observable"),
    _TEXT._replace(name="observable_symbol", long_name="symbol of the observable"),
)


def label_observables(
    dataset: xr.Dataset,
    observables: Sequence[Variable],
    fixed: Mapping[str, float],
    table: Variables,
) -> xr.Dataset:
    """A data set with labels of its observables, and with fixed parameters.

    Args:
        dataset: with or without the dimension `observable`.
        observables: what is observed, in the order of this dimension.
        fixed: parameters by name.
        table: variables of the file.

    Returns:
        The data set with coordinates `observable_words`, `observable_unit` and
        `observable_symbol`, and the fixed parameters.

    Example:
        >>> rows, x = [Variable("x", "", "position", "m", "x")], ("observable", [0.0])
        >>> labelled = label_observables(xr.Dataset({"x": x}), rows, {}, OBSERVABLES)
        >>> labelled.observable_words.values.tolist()
        ['position']
    """
    words = {
        "observable_words": [row.long_name for row in observables],
        "observable_unit": [row.units for row in observables],
        "observable_symbol": [row.symbol for row in observables],
    }
    texts = {
        name: (("observable",), texts, table.attributes(name))
        for name, texts in words.items()
        if "observable" in dataset.dims
    }
    values = {name: ((), x, table.attributes(name)) for name, x in fixed.items()}
    return dataset.assign_coords(texts | values)
