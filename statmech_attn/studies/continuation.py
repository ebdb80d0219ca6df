"""Continuation studies: the bifurcation diagram of a network's cycles, or a system's.

A state is simulated at one value of the free parameter; what is followed from there is
a `dynamics.continuation.DiagramPlan`.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from statmech_attn import dmft
from statmech_attn.dmft import network_digest
from statmech_attn.dynamics import continuation
from statmech_attn.dynamics.continuation import diagram_variables, Turns, turns_of
from statmech_attn.labels import Variable
from statmech_attn.studies import build, posed
from statmech_attn.studies.dmft_tables import ContinuationStudy
from statmech_attn.studies.system_tables import SystemContinuationStudy
from statmech_attn.studies.tables import Interval


SHOWN = Variable("strobe", "", "m_o_se_1", "1", "m^{o,SE}_1")
VARIABLES, WHERE_COPIED = (
    diagram_variables(build.PARAMETERS, unit="token", state=words, shown=SHOWN)
    for words in (
        "attention window of a point of the cycle at clock 0, A",
        "newest class means and older overlaps at clock 0, x",
    )
)
Study = ContinuationStudy | SystemContinuationStudy


class Source(NamedTuple):
    """Whose cycles are followed, as `DiagramPlan` takes it, and its variables."""

    system: Turns
    x: Any
    values: dict[str, float]
    variables: Any
    about: dict[str, Any]


def work(study: Study) -> continuation.DiagramPlan:
    """The bifurcation diagram that a study asks for.

    Raises:
        ValueError: an impossible setting.
    """
    ((free, bounds),) = study.free.items()
    of_system = isinstance(study, SystemContinuationStudy)
    source = _of_system(study) if of_system else _of_network(study)
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


def _of_network(study: ContinuationStudy) -> Source:
    """The stroboscopic map of a network."""
    model, options = build.model(study.network), study.run
    net = model.net
    values = build.defaults(dict(study.parameters), model.file)
    values |= study.begin
    for name, bounds in study.ranges.items():
        _check_interval(name, bounds)
    ends = [study.ranges["epsilon"].stop] if "epsilon" in study.ranges else []
    epsilon = max([values["epsilon"], *ends])  # whether the drive acts anywhere
    if "redrawn" in values:
        template = _at_clock_zero(net, *_settled(options, model, values, 0))
        turns = turns_of(dmft.sequential(net, epsilon), template)
    else:
        tokens = dmft.clock_period(net, epsilon)
        shown = partial(_strobe, net, tokens)
        turns = Turns(dmft.strobe(net, epsilon), tokens, shown)
    return Source(
        turns,
        partial(_simulated, options, model, values),
        values,
        WHERE_COPIED if "redrawn" in values else VARIABLES,
        {
            "start": build.describe_start(options, model),
            "network": network_digest(net),
            "context": net.context,
        },
    )


def _check_interval(name: str, bounds: Interval) -> None:
    """Both ends must be possible values of the parameter."""
    ends = np.array([bounds.start, bounds.stop])
    dmft.parameters(**({"beta": 0.0, "gamma": 0.0, "epsilon": 0.0} | {name: ends}))


def _simulated(options, made: build.Model, values):
    """The coordinates of the state at clock 0 after the transient."""
    params, state = _settled(options, made, values, options.transient)
    if params.redrawn is None:
        return dmft.strobe_point(made.net, params, state)
    state = _at_clock_zero(made.net, params, state)
    return dmft.sequential(made.net).at(params).vector(state)


def _settled(options, made: build.Model, values, transient: int):
    """Parameters, and the state after the transient, with a full window."""
    params = dmft.parameters(**{n: np.array([v]) for n, v in values.items()})
    state = build.start(options, made, params)
    steps = max(transient, made.net.context)
    return _one((params, dmft.advance(made.net, params, state, steps)))


def _at_clock_zero(net: dmft.Network, params: dmft.Parameters, state: dmft.State):
    return dmft.advance(net, params, state, -state.clock % net.context)


def _one(tree):
    """The first point of a tree of points."""
    return jax.tree.map(lambda a: a[..., 0] if a.ndim else a, tree)


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


def _of_system(study: SystemContinuationStudy) -> Source:
    """The map of a system of one's own."""
    given = {n: x for n, x in study.parameters.items() if isinstance(x, float)}
    values = {n: (given | study.begin)[n] for n in study.parameters}
    problem = posed.pose(study, values)
    system, shown = problem.system, problem.section["value"]
    params = problem.axes.points()
    start = problem.starts(params, np.zeros(1, int))

    def simulated():
        period = system.drive_period
        steps = -(-study.run.transient // period) * period
        state = problem.layout.advance(params, start, steps)
        return problem.layout.array(params, state)[:, 0]

    return Source(
        turns_of(system, _one(start), shown),
        simulated,
        values,
        diagram_variables(
            problem.parameters,
            unit=system.unit,
            state=continuation.POINT_OF_CYCLE,
            shown=problem.observables[shown],
        ),
        dict(problem.attributes),
    )
