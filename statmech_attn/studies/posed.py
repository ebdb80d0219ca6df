"""A study's system with its parameters and initial states: the network's, or one's own.

What computes takes a `Posed`, and does not ask where it is from.
"""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from statmech_attn import dmft, dynamics
from statmech_attn.dynamics import (
    Coordinates,
    diagrams,
    flow,
    System,
)
from statmech_attn.labels import Variable, Variables
from statmech_attn.studies import build, code
from statmech_attn.studies.dmft_tables import DmftStudy
from statmech_attn.studies.system_tables import (
    Box,
    LabelSpec,
    SectionSpec,
    SystemSpec,
    SystemStudy,
)


RESERVED = ("point",)  # dimensions of files that are no variables
NETWORK = Variables(
    diagrams.variables(
        dmft.PARAMETERS,
        unit="token",
        shown="m_o_se_1",
        section="|m_o_se_2| < tolerance",
        symbol="m^{o,SE}_1",
    ),
    attributes=("section_tolerance",),
)


class Windows(eqx.Module):
    """States of a network as its attention windows, at clock 0, and back."""

    net: dmft.Network

    def advance(self, params: PyTree, state: PyTree, steps: int) -> PyTree:
        return dmft.advance(self.net, params, state, steps)

    def array(self, params: PyTree, state: PyTree) -> Float[Array, "C M points"]:
        return dmft.window(state)

    def state(self, params: PyTree, array: Float[Array, "C M points"]) -> PyTree:
        return dmft.from_window(self.net, params, array, 0)


class Posed(NamedTuple):
    """A system, its parameters, its initial states, and how all of them are called.

    Attributes:
        starts: parameters and numbers of the starts of some points -> their states,
            with the points on the last axis.
        layout: states as arrays, and back.
        dimension: coordinates of a state.
        turn: steps after which the drive and the layout of a state repeat.
        observables: what is observed of a state, in order.
        section: options of a `diagrams.Plan` that say what is recorded where.
        parameters: as they are labelled.
        variables: of the file of a diagram.
        attributes: of every file: which system it is, and how it starts.
    """

    system: System
    axes: diagrams.Axes
    starts: Callable[[PyTree, np.ndarray], PyTree]
    layout: Coordinates | Windows
    dimension: int
    turn: int
    observables: tuple[Variable, ...]
    section: Mapping[str, Any]
    parameters: Variables
    variables: Variables
    attributes: Mapping[str, Any]


def only_one(axes: diagrams.Axes, kind: str) -> diagrams.Axes:
    """Refuse two scanned parameters.

    Raises:
        ValueError: naming the second one.
    """
    if len(axes.names) > 1:
        raise ValueError(
            f"parameters.{axes.names[1]}: a {kind} study scans one parameter; give one "
            "number."
        )
    return axes


def pose(
    study: DmftStudy | SystemStudy, values: Mapping[str, Any] | None = None
) -> Posed:
    """The system of a study; runs the code that it names.

    Args:
        values: of the parameters of a system of one's own, numbers, lists or ranges;
            those of the study when omitted.

    Raises:
        ValueError: an impossible setting, or a function that is no system, in one
            line.
    """
    if isinstance(study, SystemStudy):
        return _own(study, study.parameters if values is None else values)
    return _network(study)


def _network(study: DmftStudy) -> Posed:
    model, options = build.model(study.network), study.run
    net = model.net
    axes = build.axes(study.parameters, model.file)  # type: ignore[arg-type]
    given = axes.fixed | axes.scanned
    epsilon = float(np.max(given["epsilon"]))
    starts = lambda params, numbers: build.starts(options, model, params, numbers)
    system, layout, dimension = dmft.system(net, epsilon), Windows(net), net.dimension
    if "redrawn" in given:
        system = dmft.sequential(net, epsilon)
        params = axes.at(np.zeros((1, len(axes.shape)), int))
        state = starts(params, np.zeros(1, int))
        layout = Coordinates(system, state)
        dimension = jax.eval_shape(system.beside(params).vector, state).shape[0]
    return Posed(
        system,
        axes,
        starts,
        layout,
        dimension,
        net.context,
        (),
        {},
        dmft.PARAMETERS,
        NETWORK,
        {
            **dmft.network_attributes(net),
            "start": build.describe_start(options, model),
        },
    )


def _own(study: SystemStudy, values: Mapping[str, Any]) -> Posed:
    spec, names = study.system, list(values)
    system = _system(spec, names)
    on_device = lambda table: jax.tree.map(jnp.asarray, table)
    axes = build.grid(values, on_device)
    starts = partial(_starts, spec.initial, jax.random.key(study.run.seed))
    index = np.zeros((1, len(axes.shape)), int)
    params = axes.at(index)
    state = starts(params, np.zeros(1, int))
    _check(spec, system, state, params)
    rows = _observables(study, system, state)
    study.require_named([*names, *(row.name for row in rows)])
    shown = _place(spec.shown or rows[0].name, rows, "system.shown")
    section = _section(spec.section, rows)
    parameters = Variables(*(_labelled(name, study.labels) for name in names))
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
    return Posed(
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
    reference, *others = spec.references
    named = code.load(reference)
    observe = code.function(others[0], names) if others else None
    if isinstance(named, System):
        if spec.flow is not None:
            raise ValueError(
                f"system.flow: {spec.name} is a System, which has its steps already."
            )
        system = _guarded(named, partial(code.Function, reference, parameters=names))
    else:
        system = System(code.function(reference, names))
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
    shape = tuple(initial.shape or np.broadcast_shapes(low.shape, high.shape))
    draw = lambda number: jax.random.uniform(
        jax.random.fold_in(key, number), shape, float, low, high
    )
    return jnp.moveaxis(jax.vmap(draw)(jnp.asarray(numbers)), 0, -1)


def _check(spec: SystemSpec, system: System, state: PyTree, params: PyTree) -> None:
    """Refuse a function that is no map of the state, or leaves the numbers at once.

    Raises:
        ValueError: with the name of the system.
    """
    try:
        system.check(state, params)
    except code.Refused:
        raise
    except ValueError as error:
        raise ValueError(f"{spec.name}: {error}") from error
    after = jax.tree.leaves(jax.jit(system.steps)(state, params))
    if any(np.isnan(x).any() for x in after):
        values = ", ".join(f"{n} = {float(x[0]):g}" for n, x in params.items())
        raise ValueError(f"{spec.name}: returns NaN for the initial state at {values}.")


def _observables(
    study: SystemStudy, system: System, state: PyTree
) -> tuple[Variable, ...]:
    """What is observed, labelled as the study says."""
    try:
        given = study.system.observables
        names = dynamics.observable_names(system, state, given, study.system.name)
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
    """Refuse parameters that have the name of another variable of the file.

    Raises:
        ValueError: naming the key.
    """
    rows = [row.name for row in variables]
    for name in names:
        if rows.count(name) > 1 or name in RESERVED:
            raise ValueError(
                f"parameters.{name}: files have a variable of this name; choose "
                "another one."
            )
