"""Wrong arguments are refused in one line that names them, uncomputed."""

import importlib
import inspect
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, PyTree

from statmech_attn import bpkr, dmft, dynamics, statistics
from statmech_attn.arguments import as_annotated, checks
from statmech_attn.dynamics import continuation
from statmech_attn.options import Count, Gaps, Interval, Means, Numbers
from statmech_attn.tasks import hidden_markov
from statmech_attn.tasks.options import Task
from tests.arguments import offers


MODULES = (  # on faces, of which users call functions
    "dynamics.timeseries",
    "bpkr.pruning",
    "tasks.arrays",
    "tasks.hidden_markov",
    "tasks.image_sets",
    "tasks.images",
    "tasks.one_shot",
    "tasks.trained_arrays",
)
FACES = (
    "dmft",
    "dmft.extensive",
    "montecarlo",
    "dynamics",
    "dynamics.continuation",
    "dynamics.diagrams",
    "comparison",
    "training",
    "bpkr",
    "scan",
    "storage",
    "studies",
    "plotting",
    *MODULES,
)
OPEN = {  # arguments that may be anything, with the reason
    "scan.fingerprint: value": "everything has a fingerprint",
    "dynamics.point_list: points": "tables of many packages; its own words",
    "dynamics.diagrams.point_list: points": "likewise",
    "dynamics.diagrams.listed: columns": "likewise",
}


def arguments(face: str):
    """Name of every function of a face, and its arguments."""
    room, *module = face.split(".")
    package = importlib.import_module(f"statmech_attn.{room}")
    package = getattr(package, module[0]) if module else package
    for name in offers(package):
        offered = getattr(package, name)
        plain = inspect.unwrap(offered)
        if inspect.isfunction(plain) and not inspect.isclass(offered):
            for parameter in inspect.signature(plain).parameters.values():
                if parameter.kind not in (
                    parameter.VAR_POSITIONAL,
                    parameter.VAR_KEYWORD,
                ):
                    yield name, offered, parameter


def refused(function, name: str, value: Any) -> bool:
    try:
        as_annotated(function, [], {name: value})
    except ValueError as error:
        message = str(error)
        assert message.startswith(f"{name} must be ") and "\n" not in message
        return True
    return False


@pytest.mark.parametrize("face", FACES)
def test_every_argument_refuses_what_is_of_no_kind(face):
    """By its annotation: an object, a class of Python's, a complex number."""
    accepted = []
    for name, offered, parameter in arguments(face):
        function, where = offered.__wrapped__, f"{face}.{name}: {parameter.name}"
        if where not in OPEN and not refused(function, parameter.name, object()):
            accepted.append(where)
    assert not accepted


def pulse(x, p):
    return p["r"] * x * (1 - x)


def problem(**changes):
    parts = {"parameters": {"r": 2.5}, "free": "r"} | changes
    return continuation.Problem(pulse, jnp.zeros(1), **parts)


@pytest.fixture(scope="module")
def network():
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(1.4, file.gamma, file.epsilon)
    return net, params, dmft.from_checkpoint(net, params, file)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda n, p, s: dmft.parameters(None, 120.0, 0.02, 0.5), "beta must be"),
        (lambda n, p, s: dmft.parameters(1.2, None, 0.02, 0.5), "gamma must be"),
        (lambda n, p, s: dmft.parameters("1.2", 120.0, 0.02), "beta must be"),
        (lambda n, p, s: dmft.network(dmft.load("random-c32"), context=4), "patterns"),
        (lambda n, p, s: dmft.advance(n, p, s, -5), "steps must be at least 0"),
        (lambda n, p, s: dmft.trajectory(n, p, s, steps=2.5), "steps must be a whole"),
        (lambda n, p, s: dmft.from_window(n, p, 5 * np.ones((4, 3)), 0), "window must"),
        (lambda n, p, s: dmft.from_token(n, p, jnp.full(3, jnp.nan)), "means must be"),
        (lambda n, p, s: dmft.from_token(n, p, np.full(3, 5.0)), "means must be at"),
        (lambda n, p, s: dmft.system(n, 2.0), "epsilon must be below 1"),
        (lambda n, p, s: dmft.predictability_horizon("100", 0.1), "n_spins must be"),
    ],
)
def test_numbers_of_a_network_that_cannot_be_are_refused(network, call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call(*network)


def test_a_state_of_a_network_of_another_size_is_refused(network):
    _, params, state = network
    other = dmft.network(dmft.load("poclopez-pe2").patterns, context=5)
    with pytest.raises(ValueError, match="^state must be of the size 5 in C to fit"):
        dmft.step(other, params, state)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: statistics.share_error(50, 100), "share must be at most 1"),
        (lambda: statistics.share_error(0.5, -100), "n must be at least 1"),
        (
            lambda: hidden_markov.draw(jax.random.key(0), Task(), examples=4.0),
            "examples must be a whole number",
        ),
        (lambda: continuation.find_cycle(problem(), [0.6], 2.5, settings={}), "sett"),
        (lambda: problem(period=1.9), "period must be a whole number"),
        (lambda: problem(parameters=None), "parameters must be a dictionary"),
        (lambda: problem(parameters={"r": np.nan}), "parameters must be a dictionary"),
        (
            lambda: continuation.follow_cycle(problem(), [0.6], 2.5, within=(5, 6)),
            "within must be",
        ),
    ],
)
def test_what_gave_a_number_or_words_of_python_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Count, 0, "at least 1"),
        (Count | None, True, "a whole number"),
        (Numbers, {"x": 1}, "an array of real numbers"),
        (Numbers, [1.0, np.nan], "finite"),
        (Numbers, [], "an array that is not empty"),
        (Gaps, "x", "an array of real numbers"),
        (Means, [0.5, -1.1], "at least -1"),
        (Interval, (2.0, 2.0), r"\(low, high\) with low < high"),
        (Annotated[Numbers, "P K"], [1.0], r"an array of the shape \(P, K\)"),
        (Float[Array, "P K"], np.ones((2, 2, 2)), r"an array of the shape \(P, K\)"),
        (dict[str, Count], {"x": 0}, "a dictionary, .x. in it at least 1"),
        (tuple[Count, Count], (1,), "a sequence of 2"),
        (Annotated[tuple[Count, ...], "L"], [], "a sequence that is not empty"),
        (int, 2**63, "a whole number"),
        (PyTree, {"x": 1j}, "a tree of finite real numbers"),
        (Float[np.ndarray, " n+1"], np.ones(1), r"of the size 2 in n\+1, not 1"),
    ],
)
def test_each_kind_has_its_refusal(kind, value, message):
    def asked(it): ...

    asked.__annotations__["it"] = kind
    with pytest.raises(ValueError, match=f"^it must be {message}.*; got .*"):
        as_annotated(asked, [value], {})


def test_a_tree_that_may_be_left_out_may_be_empty():
    """Parameters of a map that has none are {} to many."""

    def asked(state: PyTree, parameters: PyTree = None): ...

    for nothing in (None, {}, ()):
        as_annotated(asked, [0.3, nothing], {})
    with pytest.raises(ValueError, match="^state must be a tree"):
        as_annotated(asked, [{}, {}], {})
    with pytest.raises(ValueError, match="^parameters must be a tree"):
        as_annotated(asked, [0.3, {"r": "x"}], {})


def test_what_may_be_unknown_or_infinite_passes():
    def asked(gaps: Gaps, interval: Interval): ...

    given = [np.array([1.0, np.nan]), (-np.inf, np.inf)]
    assert as_annotated(asked, given, {}) == (given, {})


def test_arrays_of_one_axis_have_one_size():
    def asked(x: Float[Array, "P N"], y: Annotated[Numbers, "P"]): ...

    with pytest.raises(
        ValueError, match="y must be of the size 2 in P to fit x, not 3"
    ):
        as_annotated(asked, [np.ones((2, 5)), np.ones(3)], {})


def test_an_axis_may_be_longer_than_another_by_a_number():
    def asked(heads: Annotated[Sequence[int], "L"], y: Annotated[Numbers, "L+1"]): ...

    as_annotated(asked, [(2, 3), np.ones(3)], {})
    with pytest.raises(ValueError, match=r"size 3 in L\+1 to fit heads, not 2"):
        as_annotated(asked, [(2, 3), np.ones(2)], {})


def test_lists_become_the_arrays_that_are_asked_for():
    def asked(x: Float[Array, " P"], axes: tuple[int, ...]): ...

    (x, axes), _ = as_annotated(asked, [[1, 2], [0]], {})
    assert isinstance(x, jax.Array) and axes == (0,)


@checks
def halved(x: Numbers):
    return x / 2


def test_what_jax_traces_passes():
    assert jax.jit(halved)(3.0) == 1.5
    assert jax.grad(halved)(3.0) == 0.5


@pytest.mark.parametrize("module", [bpkr, dynamics.timeseries])
def test_functions_that_use_a_face_are_sent_to_other_processes(module):
    cloudpickle = pytest.importorskip("cloudpickle")
    sent = cloudpickle.dumps(lambda: module)  # by value, as those of a notebook are
    assert cloudpickle.loads(sent)() is module


def test_a_checked_function_is_the_function_in_all_other_respects():
    step, plain = dmft.step, inspect.unwrap(dmft.step)
    assert pickle.loads(pickle.dumps(step)) is step
    assert inspect.signature(step) == inspect.signature(plain)
    assert step.__doc__ == plain.__doc__ and step.__module__ == plain.__module__
    assert callable(dmft.trajectory.lower)  # of what is compiled
    with pytest.raises(TypeError, match="multiple values for argument 'network'"):
        dmft.clock_period(1, network=2)


def test_a_section_may_be_a_function_of_the_state_alone():
    rotation = dynamics.flow(
        lambda u, p: p["w"] * jnp.stack([-u[1], u[0]]), time=1.0, substeps=10
    )
    state, turn = jnp.array([1.0, 0.0]), {"w": jnp.array(1.0)}
    of = lambda where: dynamics.section(rotation, where, direction="down")
    alone, both = of(lambda u: u[1]), of(lambda u, p: u[1])
    np.testing.assert_array_equal(alone.step(state, turn), both.step(state, turn))
    with pytest.raises(ValueError, match="^where must be a function of the state"):
        of(lambda u, p, t: u[1]).step(state, turn)


def test_the_field_of_a_driven_flow_takes_the_time_first():
    swapped = lambda u, p, t: jnp.stack([u[1], -u[0] + p["a"] * jnp.cos(t)])
    driven = dynamics.driven_flow(swapped, period=1.0, substeps=4)
    with pytest.raises(ValueError, match="takes the time first, .*f.t, x, parameters"):
        driven.step(jnp.zeros(2), {"a": jnp.array(0.1)})


@pytest.mark.slow
@pytest.mark.parametrize("face", FACES)
def test_examples_with_one_wrong_argument_end_in_one_line(face):
    program = Path(__file__).with_name("arguments.py")
    done = subprocess.run(
        [sys.executable, program, face], capture_output=True, text=True, check=True
    )
    assert not done.stdout


@pytest.mark.parametrize("face", FACES)
def test_what_an_argument_is_where_it_is_left_out_may_be_given(face):
    for name, function, parameter in arguments(face):
        if parameter.default is not parameter.empty:
            wrong = refused(function, parameter.name, parameter.default)
            assert not wrong, f"{name}: {parameter}"
