"""Systems of the package and of its examples are made of operations that have a rule.

Step, tangent, observables and what is displayed of each are traced; what has no rule is
listed with the reason, so that a new operation is seen where it comes from.
"""

import inspect
import pathlib

import jax
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

from statmech_attn import dmft, studies
from statmech_attn.dmft import extensive
from statmech_attn.dynamics import catalogue, driven_flow, flow, section, System
from statmech_attn.dynamics.exponents import frames
from statmech_attn.studies.systems.studied_system import of_system


rules = pytest.importorskip("statmech_attn.native.rules", exc_type=ImportError)
ROOT = pathlib.Path(__file__).resolve().parents[2]
LANES = 8


def names(jaxpr):
    """Names of the operations of a program, and of those that it calls."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inner in jaxprs_in_params(equation.params):
            yield from names(inner)


def without_rule(system, state, parameters):
    """Operations of a system of some lanes that native programs do not have."""
    system = system if isinstance(system, System) else System(system)

    def function(state, parameters):
        map = system.beside(parameters)
        dimension = map.vector(state).shape[0]
        lifted, frame = frames.start_frame(map, state, min(2, dimension))
        seen = system.seen(state), system.shown(state, parameters)
        return frames.turn(map, lifted, frame, 4), system.steps(state, parameters), seen

    closed = jax.make_jaxpr(function)(state, parameters)
    return set(names(closed.jaxpr)) - set(rules.RULES)


def side_by_side(tree):
    """Shapes of one state, or point of parameters, in every lane; clocks are shared."""

    def lanes(x):
        x = np.asarray(x)
        beside = (LANES,) if np.issubdtype(x.dtype, np.inexact) else ()
        return jax.ShapeDtypeStruct((*x.shape, *beside), x.dtype)

    return jax.tree.map(lanes, tree)


def network(name):
    """A network of a preset, its numbers, and a state."""
    file = dmft.load(name)
    net = dmft.network(file.patterns, context=file.context)
    numbers = {"beta": 1.3, "gamma": file.gamma, "epsilon": file.epsilon}
    return net, numbers, dmft.from_row(net, dmft.parameters(**numbers), 0)


@pytest.mark.parametrize("name", ["poclopez-pe2", "random-c32"])
def test_networks_are_made_of_known_operations(name):
    net, numbers, start = network(name)
    point = side_by_side((start, dmft.parameters(**numbers)))
    assert without_rule(dmft.system(net), *point) == set()


def redrawn():
    net, numbers, _ = network("poclopez-pe2")
    params = dmft.parameters(**numbers, redrawn=0.5)
    return dmft.sequential(net), dmft.from_row(net, params, 0), params


def once_in_a_period():
    net, numbers, start = network("poclopez-pe2")
    point = dmft.strobe_point(net, dmft.parameters(**numbers), start)
    return dmft.strobe(net, numbers["epsilon"]), point, numbers


def growing_patterns():
    net, numbers, _ = network("poclopez-pe2")
    ensemble, given = extensive.independent(), numbers | {"alpha": 0.01}
    start = extensive.system_start(net, ensemble, given, memory=2 * net.context)
    return extensive.system(net, ensemble), start, given


@pytest.mark.parametrize(
    "made",
    [redrawn, once_in_a_period, pytest.param(growing_patterns, marks=pytest.mark.slow)],
)
def test_other_theories_of_a_network_too(made):
    system, state, params = made()
    assert without_rule(system, *side_by_side((state, params))) == set()


MAPS = {
    "logistic": catalogue.at(catalogue.logistic, r=3.7),
    "skew_tent": catalogue.skew_tent,
    "tent": catalogue.at(catalogue.tent, slope=1.5),
    "gauss": catalogue.gauss,
    "cat": catalogue.cat,
    "henon": catalogue.henon,
    "lozi": catalogue.lozi,
    "ikeda": catalogue.ikeda,
    "delayed_logistic": catalogue.at(catalogue.delayed_logistic, a=2.2),
    "tinkerbell": catalogue.tinkerbell,
    "burgers": catalogue.burgers,
    "holmes": catalogue.holmes,
    "kaplan_yorke": catalogue.kaplan_yorke,
    "standard": catalogue.standard,
    "coupled_logistic": catalogue.coupled_logistic,
    "forced": catalogue.at(catalogue.forced, sigma=1.2),
}
OF_A_NUMBER = {"logistic", "skew_tent", "tent", "gauss"}
FIELDS = {
    "lorenz": 3,
    "rossler": 3,
    "hyper_rossler": 4,
    "quadratic_jerk": 3,
    "halvorsen": 3,
    "lorenz_96": 6,
    "henon_heiles": 4,
}
DRIVEN = {"ueda": 2, "duffing": 2}


@pytest.mark.parametrize("name", MAPS)
def test_maps_of_the_reference_table_are_made_of_known_operations(name):
    state = np.array(0.3 if name in OF_A_NUMBER else [0.1, 0.2])
    assert without_rule(MAPS[name], side_by_side(state), None) == set()


@pytest.mark.parametrize("name", [*FIELDS, *DRIVEN])
def test_flows_of_the_reference_table_too(name):
    field, state = (
        getattr(catalogue, name),
        np.linspace(0.1, 0.5, (FIELDS | DRIVEN)[name]),
    )
    if name == "lorenz":
        system = flow(field, time=0.1, substeps=2)
    elif name in FIELDS:
        system = field  # what a solver adds to it are the operations of all flows
    else:
        system = driven_flow(field, period=2 * np.pi, substeps=2)
    assert without_rule(system, side_by_side(state), None) == set()


def test_returns_to_a_section_too():
    """Which end at another step in every lane."""
    plane = section(flow(catalogue.rossler, time=0.1, substeps=2), (1, 0.0))
    assert without_rule(plane, side_by_side(np.ones(3)), None) == set()


@pytest.mark.parametrize("window", [0.0, 4.0])
def test_of_a_network_in_continuous_time_too(window):
    net, numbers, _ = network("poclopez-pe2")
    state = net.output[0]
    if window:
        state = dmft.history(lambda age: net.output[0], window=window)
    given = {name: numbers[name] for name in ("beta", "gamma")}
    system = dmft.continuous(net, window=window)
    assert without_rule(system, *side_by_side((state, given))) == set()


def test_parameters_may_be_made_in_the_map():
    net, numbers, start = network("poclopez-pe2")
    inner = dmft.system(net)
    rest = {name: numbers[name] for name in ("gamma", "epsilon")}
    made = lambda p: dmft.parameters(p["beta"], **rest)
    step = lambda state, p: inner.step(state, made(p))
    program = jax.make_jaxpr(step)(start, {"beta": 1.3})
    assert set(names(program.jaxpr)) <= set(rules.RULES)


def test_every_system_of_the_reference_table_is_looked_at():
    public = inspect.getmembers(catalogue, inspect.isfunction)
    others = {"at", "henon_heiles_start"}  # no systems
    names = {name for name, _ in public if name[0] != "_"}
    assert names == {*MAPS, *FIELDS, *DRIVEN, *others}


SHIPPED = sorted((ROOT / "simulations" / "systems").glob("*.toml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_systems_are_made_of_known_operations(path):
    study, _ = studies.load(path)
    values = study.parameters.items()
    studied = of_system(study, {name: getattr(x, "start", x) for name, x in values})
    params = studied.axes.at(np.zeros((LANES, len(studied.axes.shape)), int))
    state = studied.starts(params, np.zeros(LANES, int))
    assert without_rule(studied.system, state, params) == set()
