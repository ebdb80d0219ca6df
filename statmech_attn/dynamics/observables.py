"""What is observed of the states of a system, as files of it say."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import xarray as xr
from jaxtyping import PyTree

from statmech_attn.dynamics.systems import System
from statmech_attn.labels import Variable, Variables


OBSERVABLES = Variables(
    Variable("observable", "observable", "name of an observable", "1", "i", group=""),
    Variable(
        "observable_words", "observable", "what the observable is", "1", "x", group=""
    ),
    Variable(
        "observable_unit", "observable", "unit of the observable", "1", "x", group=""
    ),
    Variable(
        "observable_symbol", "observable", "symbol of the observable", "1", "x",
        group="",
    ),
)  # fmt: skip


def observable_names(
    system: System, state: PyTree, names: Sequence[str] | None = None
) -> list[str]:
    """Names of what a system observes: those given, or x, or x_1, x_2, ....

    Args:
        system: the system.
        state: of some points.
        names: one for each observable.

    Raises:
        ValueError: not one name of its own for each observable.

    Example:
        >>> import jax.numpy as jnp
        >>> observable_names(System(lambda x: x / 2), jnp.ones((2, 5)))
        ['x_1', 'x_2']
    """
    count = jax.eval_shape(system.seen, state).shape[0]
    if names is None:
        return ["x"] if count == 1 else [f"x_{i}" for i in range(1, count + 1)]
    if len(names) != count or len(set(names)) < count:
        raise ValueError(
            f"the system has {count} observables, each with a name of its own; got "
            f"{len(set(names))} names."
        )
    return list(names)


def with_observables(
    dataset: xr.Dataset, observables: Sequence[Variable]
) -> xr.Dataset:
    """A data set along observables, with their words, units and symbols.

    Args:
        dataset: with a dimension `observable`, or without, which is left as it is.
        observables: their labels, in order.
    """
    if "observable" not in dataset.dims:
        return dataset
    texts: Mapping[str, Any] = {
        "observable_words": [label.long_name for label in observables],
        "observable_unit": [label.units for label in observables],
        "observable_symbol": [label.symbol for label in observables],
    }
    return dataset.assign_coords(
        {n: (("observable",), x, OBSERVABLES.attributes(n)) for n, x in texts.items()}
    )
