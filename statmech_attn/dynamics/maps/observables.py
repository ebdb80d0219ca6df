"""What is observed of a state, as coordinates of a file."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import xarray as xr
from jaxtyping import PyTree

from statmech_attn.dynamics.maps.systems import System
from statmech_attn.labels import Variable, Variables


_TEXT = Variable("", "observable", "", "1", "x", group="")
OBSERVABLES = Variables(
    _TEXT._replace(name="observable", long_name="name of an observable", symbol="i"),
    _TEXT._replace(name="observable_words", long_name="what the observable is"),
    _TEXT._replace(name="observable_unit", long_name="unit of the observable"),
    _TEXT._replace(name="observable_symbol", long_name="symbol of the observable"),
)


def observable_names(
    system: System,
    state: PyTree,
    names: Sequence[str] | None = None,
    called: str = "the system",
) -> list[str]:
    """Names of what a system observes: those given, or x, or x_1, x_2, ...."""
    count = jax.eval_shape(system.seen, state).shape[0]
    if names is None:
        return ["x"] if count == 1 else [f"x_{i}" for i in range(1, count + 1)]
    if len(names) != count or len(set(names)) < count:
        raise ValueError(
            f"{called} has {count} observables, each with a name of its own; got "
            f"{len(set(names))} names."
        )
    return list(names)


def label_observables(
    dataset: xr.Dataset,
    observables: Sequence[Variable],
    parameters: Mapping[str, tuple[tuple[str, ...], Any]],
    table: Variables,
) -> xr.Dataset:
    """A data set with words, units and symbols of its observables, and with parameters.

    `parameters` that are not scanned have dimensions and values, by name.
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
    values = {n: (*x, table.attributes(n)) for n, x in parameters.items()}
    return dataset.assign_coords(texts | values)
