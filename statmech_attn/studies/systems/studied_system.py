"""A study's map or flow in Python, with its parameters and initial states."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from statmech_attn import dynamics
from statmech_attn.dynamics import (
    Coordinates,
    diagrams,
    flow,
    System,
)
from statmech_attn.labels import Variable, Variables
from statmech_attn.studies.files import user_code
from statmech_attn.studies.network import models
from statmech_attn.studies.network.studied_system import StudiedSystem
from statmech_attn.studies.systems import blocks
from statmech_attn.studies.systems.tables import (
    Box,
    LabelSpec,
    SectionSpec,
    SystemSpec,
    SystemStudy,
)
from statmech_attn.studies.tables import ListedStudy


RESERVED = ("point",)  # dimensions of files that are no variables


def of_system(
    study: SystemStudy, values: Mapping[str, Any] | None = None
) -> StudiedSystem:
    """The system of a study; runs the code that it names.

    `values` (numbers, lists or ranges) stand for those of the study.
    """
    values = study.parameters if values is None else values
    points = study.points if isinstance(study, ListedStudy) else None
    columns = models.columns_of(points)
    spec, names = study.system, [*columns, *values]
    system = _system(spec, names)
    axes = models.grid(values, diagrams.on_device, columns)
    starts = partial(_starts, spec.initial, jax.random.key(study.run.seed))
    index = np.zeros((1, len(axes.shape)), int)
    params = axes.at(index)
    state = starts(params, np.zeros(1, int))
    _check(spec, system, state, params)
    rows = _observables(study, system, state)
    study.require_named([*names, *(row.name for row in rows)])
    shown = _place(spec.shown or rows[0].name, rows, "system.shown")
    section = _section(spec.section, rows)
    labels = [_labelled(name, study.labels) for name in names]
    parameters = Variables(*labels, *([diagrams.INDEX] if columns else []))
    variables = diagrams.variables(
        parameters,
        unit=system.unit,
        shown=rows[shown].long_name,
        shown_unit=rows[shown].units,
        section=_section_words(spec.section),
        symbol=rows[shown].symbol,
    )
    _require_free(names, variables)
    dimension = jax.eval_shape(system.beside(params).vector, state).shape[0]
    random = f"random {study.run.seed}" if isinstance(spec.initial, Box) else "initial"
    return StudiedSystem(
        system,
        axes,
        starts,
        Coordinates(system, state),
        dimension,
        system.drive_period,
        rows,
        {"value": shown, **section},
        parameters,
        variables,
        {"system": spec.name, "unit": system.unit, "start": random},
    )


def _system(spec: SystemSpec, names: list[str]) -> System:
    """The system that a study names."""
    reference, observer = spec.function, spec.observer
    observe = None if observer is None else user_code.function(observer, names)
    if reference is None:
        system = blocks.looped(spec, names, _shape(spec.initial))
    elif isinstance(named := user_code.load(reference), System):
        if spec.flow is not None:
            raise ValueError(
                f"system.flow: {spec.name} is a System, which has its steps already."
            )
        system = _guarded(
            named, partial(user_code.Function, reference, parameters=names)
        )
    else:
        system = System(user_code.function(reference, names))
        if spec.flow is not None:
            system = flow(system.step, time=spec.flow.time, substeps=spec.flow.substeps)
    return dataclasses.replace(
        system,
        observe=observe or system.observe,
        unit=spec.unit or system.unit,
        display=system.display if observe is None else None,
    )


def _guarded(system: System, guard: Callable[[Callable], Callable]) -> System:
    """A system each function of which is a user's."""
    names = ("step", "observe", "tangent", "display", "clock")
    functions = {name: getattr(system, name) for name in names}
    named = {name: guard(f) for name, f in functions.items() if f is not None}
    return dataclasses.replace(system, **named)


def _starts(initial, key: jax.Array, params: PyTree, numbers: np.ndarray):
    """States of some points, the points on the last axis."""
    if not isinstance(initial, Box):
        state = np.asarray(initial, float)
        return np.repeat(state[..., None], len(numbers), axis=-1)
    low, high = (np.asarray(x, float) for x in (initial.low, initial.high))
    shape = _shape(initial)
    draw = lambda number: jax.random.uniform(
        jax.random.fold_in(key, number), shape, float, low, high
    )
    return jnp.moveaxis(jax.vmap(draw)(jnp.asarray(numbers)), 0, -1)


def _shape(initial) -> tuple[int, ...]:
    """Shape of an initial state."""
    if not isinstance(initial, Box):
        return np.shape(initial)
    corners = np.broadcast_shapes(np.shape(initial.low), np.shape(initial.high))
    return tuple(initial.shape or corners)


def _check(spec: SystemSpec, system: System, state: PyTree, params: PyTree) -> None:
    """Refuse a function that is no map of the state, or leaves the numbers at once."""
    try:
        system.check(state, params)
    except user_code.Refused:
        raise
    except ValueError as error:
        raise ValueError(f"{spec.name}: {error}") from error
    steps = eqx.filter_jit(system.steps)
    after = jax.tree.leaves(steps(state, params))
    if any(np.isnan(x).any() for x in after):
        values = ", ".join(f"{n} = {float(x[0]):g}" for n, x in params.items())
        raise ValueError(f"{spec.name}: returns NaN for the initial state at {values}.")


def _observables(
    study: SystemStudy, system: System, state: PyTree
) -> tuple[Variable, ...]:
    """What is observed, labelled as the study says."""
    try:
        observables = study.system.observables
        names = dynamics.observable_names(system, state, observables, study.system.name)
    except ValueError as error:
        raise ValueError(f"system.observables: {error}") from None
    return tuple(_labelled(name, study.labels) for name in names)


def _labelled(name: str, labels: Mapping[str, LabelSpec]) -> Variable:
    label = labels.get(name, LabelSpec())
    return Variable(name, "", label.words or name, label.unit, label.symbol or name)


def _place(name: str, rows: tuple[Variable, ...], key: str) -> int:
    names = [row.name for row in rows]
    if name not in names:
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise ValueError(f"{key}: there is no observable {name!r}; there are {shown}.")
    return names.index(name)


def _section(spec: SectionSpec | None, rows: tuple[Variable, ...]) -> dict[str, Any]:
    """Options of a `diagrams.Plan`."""
    if spec is None:
        return diagrams.WITHOUT_SECTION
    return {
        "on": _place(spec.observable, rows, "system.section.observable"),
        "level": spec.value,
        "section_tolerance": spec.tolerance,
    }


def _section_words(spec: SectionSpec | None) -> str:
    if spec is None:
        return ""
    if spec.tolerance is None:
        return f"{spec.observable} = {spec.value:g}, upwards"
    return f"|{spec.observable} - {spec.value:g}| < {spec.tolerance:g}"


def _require_free(names: list[str], variables: Variables) -> None:
    """Refuse parameters that have the name of another variable of the file."""
    rows = [row.name for row in variables]
    for name in names:
        if rows.count(name) > 1 or name in RESERVED:
            raise ValueError(
                f"parameters.{name}: files have a variable of this name; choose "
                "another one."
            )
