"""What a user tries first: it works, or says in one line what to do."""

import inspect
import pathlib

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import statmech_attn
from statmech_attn import bpkr, dmft, dynamics, plotting
from statmech_attn.bpkr.attention import attention_weights
from statmech_attn.bpkr.grids import training_sets
from statmech_attn.cli import app
from statmech_attn.dynamics.continuation import Problem


ROOT = pathlib.Path(__file__).resolve().parents[1]
STATE, PAIR = jnp.array(0.3), jnp.array([0.3, 0.2])
HEADS = [np.zeros((2, 3, 3)), np.ones((2, 3, 3))]
TOKENS = jnp.ones((2, 3, 5))
plain = inspect.unwrap  # as users call it: the check of shapes is of the tests alone
UNIFORM = bpkr.attention_arrays([np.full((1, 2, 5, 5), 1 / 5)])


def growth(x, r):
    return r * x * (1 - x)


def alone(x):
    return 3.2 * x * (1 - x)


def by_name(x, p):
    return p["r"] * x * (1 - x)


def swapped(p, x):
    return p["r"] * x * (1 - x)


def classify(*given, **options):
    return dynamics.classify(*given, **{"steps": 2000, "max_doublings": 0} | options)


def problem(**changes):
    heads = bpkr.heads_from_products(HEADS)
    xi = bpkr.attentioned_inputs(TOKENS, heads, readout="last")
    posed = {"heads": heads, "width": 10, "temperature": 0.1} | changes
    return bpkr.Problem(posed.pop("xi", xi), posed.pop("Y", [1, -1]), **posed)


MISTAKES = {
    "a map of two arguments without parameters": (
        lambda: classify(growth, STATE),
        "step takes parameters: give them after the state",
    ),
    "its exponents": (
        lambda: dynamics.lyapunov_spectrum(growth, STATE, steps=100),
        "step takes parameters: give them after the state",
    ),
    "its attractors": (
        lambda: dynamics.find_attractors(growth, PAIR),
        "step takes parameters: give them after the state",
    ),
    "a map of one argument with parameters": (
        lambda: classify(alone, STATE, jnp.array(3.2)),
        "must take the state and the parameters, f(x, p)",
    ),
    "a map of one argument to continue": (
        lambda: Problem(alone, STATE, {"r": 3.0}, "r"),
        "must take the state and the parameters, f(x, p)",
    ),
    "parameters before the state": (
        lambda: classify(swapped, STATE, {"r": 3.2}),
        "takes the state first, then the parameters",
    ),
    "a parameter that there is not": (
        lambda: Problem(growth, STATE, {"r": 3.0}, "q"),
        "free must be one of ['r']; got 'q'",
    ),
    "a float32 state": (
        lambda: classify(alone, jnp.array(0.3, jnp.float32)),
        "state must be float64; got float32: make it after statmech_attn.setup()",
    ),
    "a float32 template": (
        lambda: Problem(growth, jnp.array(0.3, jnp.float32), {"r": 3.0}, "r"),
        "template must be float64 arrays; got ['float32']",
    ),
    "a whole number as state": (
        lambda: classify(alone, 1),
        "state has no floating-point coordinates",
    ),
    "another shape": (
        lambda: classify(lambda x: jnp.stack([x, x]), STATE),
        "like the one it takes; got float64[2] from float64[]",
    ),
    "a list for an array": (
        lambda: classify(lambda x: [x[0], x[1]], PAIR),
        "got float64[], float64[] from float64[2]",
    ),
    "nothing returned": (
        lambda: classify(lambda x: None, STATE),
        "got nothing from float64[]",
    ),
    "NumPy inside": (
        lambda: classify(lambda x: np.array([x[1], x[0]]), PAIR),
        "use jax.numpy, not numpy",
    ),
    "a condition on a value": (
        lambda: classify(lambda x: x if x > 0 else -x, STATE),
        "jnp.where, not if",
    ),
    "no function": (
        lambda: dynamics.lyapunov_spectrum(3.0, STATE, steps=16),  # type: ignore
        "system must be a function or of the type System; got 3.0",
    ),
    "one start for many": (
        lambda: dynamics.find_attractors(alone, STATE),
        "starts must be arrays with the starts on their first axis",
    ),
    "too many exponents": (
        lambda: classify(alone, STATE, exponents=2),
        "exponents must lie in 1..1; got 2",
    ),
    "a number for heads per layer": (
        lambda: inspect.unwrap(bpkr.head_counts)(4),  # tests check its type before
        "the number of heads of every layer, each a whole number >= 1, such as (2, 2)",
    ),
    "heads that are no whole numbers": (
        lambda: problem(heads=(2, 2.5)),
        "the number of heads of every layer, each a whole number >= 1, such as (2, 2)",
    ),
    "tokens for attentioned inputs": (
        lambda: problem(xi=TOKENS),
        "(bpkr.attentioned_inputs makes them of tokens); got (2, 3, 5)",
    ),
    "labels of other examples": (
        lambda: problem(Y=[1.0, -1.0, 1.0]),
        "Y must have shape (2,) or (2, K)",
    ),
    "no temperature": (
        lambda: problem(temperature=None),
        "temperature must be an array of real numbers; got None",
    ),
    "scores of a matrix without heads": (
        lambda: bpkr.head_scores(np.eye(4)),
        "give the heads per layer beside U, such as (2, 2), or a solution",
    ),
    "order parameters of another width": (
        lambda: problem(width=20).theory(problem().solve()),
        "solution must be of this problem, and is of one with other widths",
    ),
    "words for labels": (
        lambda: problem(Y=["cat", "dog"]),
        "Y must be an array of real numbers; got ['cat', 'dog']",
    ),
    "a readout that there is not": (
        lambda: bpkr.attentioned_inputs(
            TOKENS, bpkr.heads_from_products(HEADS), readout="cls"
        ),
        'readout must be "first", "last", "mean" or a token below 5; got \'cls\'',
    ),
    "a list for a grid": (
        lambda: dynamics.diagram(growth, [3.2, 3.3], STATE),  # type: ignore
        "grid must be a dictionary or of the type Axes; got [3.2, 3.3]",
    ),
    "nothing to scan": (
        lambda: dynamics.diagram(growth, {"r": 3.2}, STATE),
        "grid must hold one or two parameters with several values; got 0",
    ),
    "a parameter that the grid lacks": (
        lambda: dynamics.diagram(by_name, {"a": [1.0, 1.1]}, STATE),
        "step asks for the parameter 'r', which is not given",
    ),
    "a list for a state": (
        lambda: classify(by_name, [0.3], {"r": 3.2}),
        "step must get its state and parameters as arrays, not lists",
    ),
    "a text for a state": (
        lambda: classify(alone, "0.3"),
        "state must be a tree of finite real numbers; got '0.3'",
    ),
    "half a step": (
        lambda: dynamics.lyapunov_spectrum(alone, STATE, steps=20.5),  # type: ignore
        "steps must be a whole number; got 20.5",
    ),
    "a picture of another file": (
        lambda: plotting.bifurcation_diagram(xr.Dataset(attrs={"kind": "training"})),
        "this picture shows a scan of kind bifurcation or diagram; got training",
    ),
    "a preset that there is not": (
        lambda: dmft.load("poclopez-pe3"),
        "no preset 'poclopez-pe3'; did you mean",
    ),
    "complex labels": (
        lambda: problem(Y=[1j, -1j]),
        "Y must be an array of real numbers; got ",
    ),
    "complex attention": (
        lambda: bpkr.attention_arrays([np.full((1, 2, 3, 3), 1 / 3 + 1j)]),
        "attention: layer 1 must hold real numbers; got complex ones",
    ),
    "complex tokens": (
        lambda: plain(bpkr.attended)(TOKENS + 1j, UNIFORM),
        "x must hold real numbers; got complex ones",
    ),
    "attention that nobody checked": (
        lambda: bpkr.attended(TOKENS, np.ones((1, 2, 5, 5))),
        "attention must be of the type Attention; got",
    ),
    "a truth value for a token": (
        lambda: plain(bpkr.attended)(TOKENS, UNIFORM, readout=True),
        'readout must be "first", "last", "mean" or a token below 5; got True',
    ),
    "half a token": (
        lambda: plain(attention_weights.readout_weights)(2.5, TOKENS),
        'readout must be "first", "last", "mean" or a token below 5; got 2.5',
    ),
    "a number for the sizes of a curve": (
        lambda: plain(training_sets.checked_sizes)(2, 10),
        "examples must be distinct whole numbers of training examples, at least 1; got",
    ),
    "a number for a study": (
        lambda: statmech_attn.run(3),  # type: ignore[arg-type]
        "must be the path of a study file, a dictionary or a checked study; got int",
    ),
    "a misspelt kind": (
        lambda: statmech_attn.run({"kind": "bifurcaton"}),
        "no kind 'bifurcaton' (did you mean 'bifurcation'?)",
    ),
    "a misspelt package": (
        lambda: statmech_attn.dynamcs,  # type: ignore[attr-defined]
        "has no attribute 'dynamcs'",
    ),
}


@pytest.mark.parametrize(("call", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_answered_in_one_line(call, message):
    with pytest.raises((ValueError, AttributeError)) as refused:
        call()
    assert message in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def refused(*words) -> str:
    """The line that a command answers."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 1, done.output
    return " ".join(done.stderr.split())


COMMANDS = {
    "a key without its table": (
        ("run", "{study}", "-o", "{file}", "--set", "steps=3"),
        "steps: unknown key (did you mean 'run.steps'?)",
    ),
    "a study that there is not": (
        ("run", "absent.toml", "-o", "{file}"),
        "absent.toml: no such file",
    ),
    "an output that is the study": (
        ("run", "{study}", "-o", "{study}", "--overwrite"),
        "is read to make this result; choose another output",
    ),
    "a kind that there is not": (
        ("new", "bifurcaton"),
        "no kind 'bifurcaton' (did you mean 'bifurcation'?)",
    ),
    "a folder of data that there is not": (
        ("run", "{study}", "-o", "{file}", "--data", "absent"),
        "--data: there is no folder absent; statmech-attn download makes it",
    ),
    "a size that is none": (
        ("figure", "{result}", "-o", "{folder}", "--size", "large"),
        "--size must be single, double, or inches such as 5 or 5x3.5; got 'large'",
    ),
    "a picture that there is not": (
        ("figure", "{result}", "-o", "{folder}", "--only", "lyapunov"),
        "--only lyapunov: no such picture",
    ),
    "a comparison of other kinds": (
        ("compare", "{result}", "{result}", "-o", "{file}"),
        "compare takes a file of kind trajectory",
    ),
}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A study that nobody runs, a kept result, and places for what is written."""
    folder = tmp_path_factory.mktemp("mistakes")
    study = folder / "study.toml"
    study.write_text('kind = "trajectory"\n[parameters]\nbeta = 1.0\n')
    kept = ROOT / "paper_figs/results/pe5_continuation-laptop.h5"
    return {"study": study, "result": kept, "file": folder / "a.h5", "folder": folder}


@pytest.mark.parametrize(("words", "message"), COMMANDS.values(), ids=COMMANDS)
def test_a_mistaken_command_is_answered_in_one_line(words, message, places):
    answer = refused(*(word.format(**places) for word in words))
    assert message in answer and "Traceback" not in answer


def test_what_users_write_works():
    """States and parameters as numbers, lists and NumPy arrays; heads by matrices."""
    exponent = lambda *given: dynamics.lyapunov_spectrum(*given, steps=16).exponents[0]
    listed = lambda x, p: [growth(x[0], p[0])]
    found = exponent(alone, 0.3), exponent(growth, np.array(0.3), 3.2)
    assert found[0] == found[1] == exponent(listed, [0.3], [3.2])
    assert problem().heads == problem(heads=HEADS).heads == (2, 2)
    solution = problem().solve()
    theory, xi = problem().theory(solution), problem().xi
    assert np.array_equal(theory.mean(xi), problem().theory(solution.U).mean(xi))
    assert np.array_equal(theory.predict(xi).mean, solution.predict(xi).mean)
    assert "order parameter U_1" in repr(theory)
    assert [len(scores) for scores in bpkr.head_scores(solution)] == [2, 2]
