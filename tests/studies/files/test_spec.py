"""Study files: every mistake is one line that says what is allowed."""

import copy

import pytest
from hypothesis import given, settings, strategies as st

from statmech_attn import kinds, studies
from statmech_attn.studies.files import spec
from statmech_attn.studies.network import models


STUDY = {
    "kind": "bifurcation",
    "parameters": {"beta": {"start": 0.0, "stop": 3.0, "num": 5}},
}


def changed(**changes):
    tree = copy.deepcopy(STUDY)
    for path, value in changes.items():
        *tables, key = path.split("__")
        table = tree
        for name in tables:
            table = table.setdefault(name, {})
        table[key] = value
    return tree


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "bifurcatoin"}, "no kind 'bifurcatoin' .did you mean 'bifurcation'"),
        ({"run__stps": 3}, "run.stps: unknown key .did you mean 'steps'"),
        ({"run__steps": -3}, "run.steps: should be at least 1; got -3"),
        ({"run__steps": "x"}, "run.steps: should be a whole number; got 'x'"),
        ({"run__steps": 2.5}, "run.steps: should be a whole number; got 2.5"),
        ({"run__transient": -1}, "run.transient: should be at least 0; got -1"),
        ({"run__start": "toke"}, "run.start: should be 'checkpoint', 'token'"),
        ({"run__starts": 3}, 'starts > 1 needs start = "random"'),
        ({"run__exponents": "most"}, "run.exponents: should be 'all'; got 'most'"),
        ({"run": 3}, "run: should be a table; got 3"),
        (
            {"parameters__beta": float("nan")},
            "parameters.beta: .*finite number; got nan",
        ),
        ({"parameters__beta": [1.0, float("inf")]}, "parameters.beta.1: .*finite"),
        ({"parameters__beta": "1.2"}, "parameters.beta: should be a number"),
        ({"parameters__beta": {"start": 0.0, "stop": 1.0}}, "beta.num: is missing"),
        (
            {"parameters__beta": {"start": 0.0, "stop": 1.0, "number": 3}},
            "start, stop, num",
        ),
        ({"parameters__bta": 1.0}, "parameters.bta: unknown key .did you mean 'beta'"),
        ({"network__patterns": "cycle"}, "needs context, n_bits, n_patterns, seed"),
        ({"network__seed": 3}, "seed has no use with patterns = 'poclopez-pe2'"),
    ],
)
def test_mistakes_are_named_with_what_is_allowed(changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        studies.parse(changed(**changes), "mine.toml")
    assert str(caught.value).startswith("mine.toml: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network__patterns": "poclopez-2"}, "did you mean 'poclopez-pe2'"),
        ({"network__fractions": [0.5, 0.5, 0.5]}, "sum to one; got .* sum 1.5"),
        ({"parameters__beta": [1.0, 1.0]}, "parameters.beta: values must be distinct"),
        ({"parameters__beta": -1.0}, "beta must be >= 0; got -1"),
        ({"parameters__epsilon": 1.0}, r"epsilon must lie in \[0, 1\); got 1"),
        ({"run__start": "token", "run__row": 7}, r"row must lie in 0..2; got 7"),
        (
            {"parameters__gamma": [1.0, 2.0], "parameters__epsilon": [0.1, 0.2]},
            "at most two of beta, gamma and epsilon",
        ),
    ],
)
def test_impossible_models_are_named(changes, message):
    study = studies.parse(changed(**changes))
    with pytest.raises(ValueError, match=message):
        made = models.model(study.network)
        axes = models.axes(study.parameters, made.file)
        models.start(study.run, made, axes.points())


def test_only_beta_is_scanned_by_trajectories():
    tree = changed(kind="trajectory", parameters__gamma=[1.0, 2.0])
    with pytest.raises(ValueError, match="parameters.gamma: a trajectory study takes"):
        studies.run(studies.parse(tree))


def test_points_are_the_product_with_the_last_axis_fastest():
    tree = changed(parameters__beta=[1.0, 2.0], parameters__gamma=[5.0, 6.0, 7.0])
    study = studies.parse(tree)
    axes = models.axes(study.parameters, models.model(study.network).file)
    params = axes.points(repeat=2)
    assert axes.shape == (2, 3)
    assert params.beta.tolist() == [1.0] * 6 + [2.0] * 6
    assert params.gamma.tolist() == [5.0, 5.0, 6.0, 6.0, 7.0, 7.0] * 2
    assert set(params.epsilon.tolist()) == {0.02}


def test_overrides_change_the_study_and_its_stored_text(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(spec.dump(STUDY))
    study, text = studies.load(path, ["run.steps=500", "parameters.beta=[0.5, 1.5]"])
    assert study.run.steps == 500 and study.parameters.beta == [0.5, 1.5]
    again = tmp_path / "stored.toml"
    again.write_text(text)
    assert studies.load(again)[0] == study


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("run.steps", "write it as table.key=value"),
        ("run.steps.deep=1", "run.steps: should be a whole number"),
        ("kind.deep=1", "kind is a value, not a table"),
        ("run.stps=1", "did you mean 'steps'"),
    ],
)
def test_wrong_overrides_are_named(tmp_path, setting, message):
    path = tmp_path / "study.toml"
    path.write_text(spec.dump(STUDY))
    with pytest.raises(ValueError, match=message):
        studies.load(path, [setting])


def test_pattern_files_are_found_beside_the_study(tmp_path, published):
    patterns = (published / "poclopez_patterns.json").read_text()
    (tmp_path / "mine.json").write_text(patterns)
    path = tmp_path / "study.toml"
    path.write_text(spec.dump(changed(network__patterns="mine.json")))
    study, _ = studies.load(path)
    assert models.model(study.network).net.dimension == 12


PLAIN = st.one_of(
    st.integers(),
    st.floats(),
    st.booleans(),
    st.text(max_size=5),
    st.lists(st.floats(), max_size=2),
)
TREES = st.dictionaries(
    st.sampled_from(["kind", "network", "parameters", "run", "x"]),
    st.one_of(
        st.sampled_from(["bifurcation", "trajectory", "monte-carlo"]),
        PLAIN,
        st.dictionaries(
            st.sampled_from(
                ["beta", "gamma", "steps", "starts", "patterns", "n_spins"]
            ),
            st.one_of(PLAIN, st.dictionaries(st.text(max_size=4), PLAIN, max_size=3)),
            max_size=4,
        ),
    ),
    max_size=5,
)


@settings(max_examples=300, deadline=None)
@given(TREES)
def test_any_tree_is_a_study_or_a_one_line_error(tree):
    try:
        study = studies.parse(tree)
    except ValueError as error:
        assert str(error).startswith("study: ") and "\n" not in str(error)
    else:
        assert study.kind in kinds.studied()


def test_a_mistake_of_several_keys_has_no_empty_place():
    bounds = {"beta": {"start": 1.0, "stop": 1.5}}
    study = {"kind": "continuation", "parameters": bounds, "run": {"at": 2.0}}
    with pytest.raises(ValueError, match=r"^mine\.toml: run\.at must lie in the"):
        studies.parse(study, "mine.toml")
