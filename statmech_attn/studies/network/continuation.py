"""Continuation studies: the bifurcation diagram of the cycles of a network.

A state is simulated at one value of the free parameter; what is followed from there is
a `dynamics.continuation.DiagramPlan`.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree

from statmech_attn import dmft
from statmech_attn.dynamics import continuation
from statmech_attn.labels import Variable
from statmech_attn.studies.network import models
from statmech_attn.studies.network.continuation_table import ContinuationStudy, Followed
from statmech_attn.studies.tables import Interval


SHOWN = Variable("strobe", "", "m_o_se_1", "1", "m^{o,SE}_1")
VARIABLES, WHERE_COPIED = (
    continuation.diagram_variables(
        dmft.PARAMETERS, unit="token", state=words, shown=SHOWN
    )
    for words in (
        "attention window of a point of the cycle at clock 0, A",
        "newest class means and older overlaps at clock 0, x",
    )
)


class Source(NamedTuple):
    """Whose cycles are followed, as `DiagramPlan` takes it, and its variables."""

    system: continuation.Turns
    x: Any
    values: dict[str, float]
    variables: Any
    about: dict[str, Any]


def work(study: ContinuationStudy) -> continuation.DiagramPlan:
    """The bifurcation diagram that a study asks for."""
    return diagram(study, network_source(study))


def diagram(study: Followed, source: Source) -> continuation.DiagramPlan:
    """The bifurcation diagram of the cycles of any system."""
    ((free, bounds),) = study.free.items()
    start = f"{source.about['start']}, at {free} = {source.values[free]!r}"
    second: dict[str, Any] = {}
    if (curves := study.curves) is not None:
        second = {
            "second": curves.parameter,
            "second_within": (curves.start, curves.stop),
            "curve_points": curves.max_points,
        }
    return continuation.DiagramPlan(
        source.system,
        source.x,
        source.values,
        free=free,
        within=(bounds.start, bounds.stop),
        period=study.run.period,
        doublings=study.run.switch,
        settings=study.run.settings,
        variables=source.variables,
        about=source.about | {"start": start},
        **second,
    )


def network_source(study: Any) -> Source:
    """The stroboscopic map of a network, of a study that is `Followed`."""
    model, options = models.model(study.network), study.run
    net = model.net
    values = models.defaults(dict(study.parameters), model.file)
    values |= study.begin
    for name, bounds in study.ranges.items():
        _check_interval(name, bounds)
    ends = [study.ranges["epsilon"].stop] if "epsilon" in study.ranges else []
    epsilon = max([values["epsilon"], *ends])  # whether the drive acts anywhere
    if "redrawn" in values:
        template = _at_clock_zero(net, *_settled(options, model, values, 0))
        turns = continuation.turns_of(dmft.sequential(net, epsilon), template)
    else:
        tokens = dmft.clock_period(net, epsilon)
        shown = partial(_strobe, net, tokens)
        turns = continuation.Turns(dmft.strobe(net, epsilon), tokens, shown)
    return Source(
        turns,
        partial(_simulated, options, model, values),
        values,
        WHERE_COPIED if "redrawn" in values else VARIABLES,
        {
            "start": models.describe_start(options, model),
            **dmft.network_attributes(net),
        },
    )


def _check_interval(name: str, bounds: Interval) -> None:
    """Both ends must be possible values of the parameter."""
    ends = np.array([bounds.start, bounds.stop])
    dmft.parameters(**({"beta": 0.0, "gamma": 0.0, "epsilon": 0.0} | {name: ends}))


def _simulated(options, model: models.Model, values):
    """The coordinates of the state at clock 0 after the transient."""
    params, state = _settled(options, model, values, options.transient)
    if params.redrawn is None:
        return dmft.strobe_point(model.net, params, state)
    state = _at_clock_zero(model.net, params, state)
    return dmft.sequential(model.net).at(params).vector(state)


def _settled(options, model: models.Model, values, transient: int):
    """Parameters, and the state after the transient, with a full window."""
    params = dmft.parameters(**{n: np.array([v]) for n, v in values.items()})
    state = models.start(options, model, params)
    steps = max(transient, model.net.context)
    return first_point((params, dmft.advance(model.net, params, state, steps)))


def first_point(tree: PyTree) -> PyTree:
    """The first point of a tree of points."""
    return jax.tree.map(lambda a: a[..., 0] if a.ndim else a, tree)


def _at_clock_zero(net: dmft.Network, params: dmft.Parameters, state: dmft.State):
    return dmft.advance(net, params, state, -state.clock % net.context)


def _strobe(net: dmft.Network, tokens: int, x, values: dict, turns: int):
    """m^{o,SE}_1 of the tokens that cycles draw at clock 0, as a scan's strobe has."""
    windows = x.reshape(net.context, net.n_patterns, -1)
    return _strobed(net, dmft.Parameters(**values), windows, turns, tokens)


@partial(jax.jit, static_argnames=("turns", "tokens"))
def _strobed(net, params, windows, turns, tokens):
    def turn(state, _):
        _, observed = dmft.observe(net, params, state)
        return dmft.advance(net, params, state, tokens), observed.m_o_se[0]

    state = dmft.from_window(net, params, windows, 0)
    return jax.lax.scan(turn, state, None, length=turns)[1]
