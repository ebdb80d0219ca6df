"""A study's network with its parameters and initial states.

What computes takes a `StudiedSystem`, and does not ask where it is from.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, PyTree

from statmech_attn import dmft
from statmech_attn.dynamics import (
    Coordinates,
    diagrams,
    System,
)
from statmech_attn.labels import Variable, Variables
from statmech_attn.studies.network import models
from statmech_attn.studies.network.tables import DmftStudy
from statmech_attn.studies.tables import ListedStudy


NETWORK = Variables(
    diagrams.variables(
        (*dmft.PARAMETERS, diagrams.INDEX),
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


class StudiedSystem(NamedTuple):
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
    """Refuse two scanned parameters."""
    if len(axes.names) > 1:
        raise ValueError(
            f"parameters.{axes.names[1]}: a {kind} study scans one parameter; give one "
            "number."
        )
    return axes


def of_network(study: DmftStudy) -> StudiedSystem:
    """The network of a study."""
    model, options = models.model(study.network), study.run
    net = model.net
    points = study.points if isinstance(study, ListedStudy) else None
    axes = models.axes(study.parameters, model.file, points)  # type: ignore[arg-type]
    values = {**axes.fixed, **axes.scanned, **axes.columns}
    epsilon = float(np.max(values["epsilon"]))
    starts = lambda params, numbers: models.starts(options, model, params, numbers)
    system, layout, dimension = dmft.system(net, epsilon), Windows(net), net.dimension
    if "redrawn" in values:
        system = dmft.sequential(net, epsilon)
        params = axes.at(np.zeros((1, len(axes.shape)), int))
        state = starts(params, np.zeros(1, int))
        layout = Coordinates(system, state)
        dimension = jax.eval_shape(system.beside(params).vector, state).shape[0]
    return StudiedSystem(
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
            "start": models.describe_start(options, model),
        },
    )
