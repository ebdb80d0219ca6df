"""Studies of transformer blocks whose weights are in a file."""

import os
from functools import partial

import jax
import numpy as np
import pytest

from statmech_attn import dynamics, studies
from statmech_attn.studies.files import spec
from statmech_attn.studies.systems import studied_system
from statmech_attn.tasks import array_files


TOKENS, WIDTH = 3, 4


def layer(seed):
    normal = np.random.default_rng(seed).normal
    arrays = {name: normal(size=(2, 2, WIDTH)) for name in ("query", "key", "value")}
    return arrays | {
        "output": normal(size=(2, WIDTH, 2)),
        "up": normal(size=(5, WIDTH)),
        "down": normal(size=(WIDTH, 5)),
        "up_bias": normal(size=5),
        "mlp_gain": normal(size=WIDTH),
    }


INPUT = np.random.default_rng(9).normal(size=(TOKENS, WIDTH))
ONE = layer(0) | {"input": INPUT}
TWO = {f"{name}_{n}": array for n in (1, 2) for name, array in layer(n).items()}
STATE = np.random.default_rng(8).normal(size=(TOKENS, WIDTH))
STUDY = {
    "kind": "trajectory",
    "system": {"weights": "block.npz", "initial": STATE.tolist()},
    "parameters": {"scale": [0.5, 2.0], "temperature": 0.7},
    "run": {"steps": 4},
}


@pytest.fixture
def load(tmp_path):
    """A study with weights beside it."""

    def load(weights=ONE, system=STUDY["system"], **changes):
        np.savez(tmp_path / "block.npz", **weights)
        path = tmp_path / "study.toml"
        path.write_text(spec.dump(STUDY | {"system": system} | changes))
        return studies.load(path)[0]

    return load


def options(**block):
    return STUDY["system"] | {"block": block}


EXACT = partial(jax.nn.gelu, approximate=False)
CASES = {
    "one": (ONE, {}, {}, True),
    "two": (
        TWO,
        {"norm": "rms", "epsilon": 1e-6, "causal": True, "activation": "exact-gelu"},
        {"norm": dynamics.rms_norm, "causal": True, "activation": EXACT},
        True,
    ),
    "post": (
        TWO,
        {"post": True, "activation": "relu"},
        {"post": True, "activation": jax.nn.relu},
        False,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_step_is_that_of_the_block_in_python(load, case):
    weights, block, ours, closing = CASES[case]
    system = studied_system.of_system(load(weights, options(**block))).system
    norm = partial(
        ours.pop("norm", dynamics.layer_norm), epsilon=block.get("epsilon", 1e-5)
    )
    layers = [layer(n) for n in ((0,) if case == "one" else (1, 2))]
    stages = [
        stage
        for n, own in enumerate(layers)
        for stage in dynamics.transformer_block(own, norm=norm, prefix=f"{n} ", **ours)
    ]
    if case == "one":
        stages.insert(0, {"input": lambda h, p: INPUT})
    expected = dynamics.looped(stages, norm=norm if closing else None)
    p = {"scale": 1.5, "temperature": 0.7}
    np.testing.assert_allclose(
        system.step(STATE, p), expected.step(STATE, p), rtol=1e-12
    )


def test_a_study_iterates_the_block_at_every_scale(load):
    study = load()
    trajectory = studies.run(study)
    step = studied_system.of_system(study).system.step
    for number, scale in enumerate(STUDY["parameters"]["scale"]):
        h = STATE
        for observed in trajectory.observed.values[number]:
            np.testing.assert_allclose(observed, np.ravel(h), atol=1e-12)
            h = step(h, {"scale": scale, "temperature": 0.7})
    assert trajectory.attrs["system"] == "block.npz"


def test_the_content_of_the_weights_is_part_of_the_study(load):
    first = load()
    assert spec.parse(first.model_dump(exclude_none=True)) == first  # as it is stored
    assert first.code() == [] and [p.name for p in first.files()] == ["block.npz"]
    identity = first.identity()
    assert load().identity() == identity
    changed = load(ONE | {"input": INPUT + 1e-9}).identity()
    assert changed["inputs"]["block.npz"] != identity["inputs"]["block.npz"]
    assert changed | {"inputs": identity["inputs"]} == identity


class Harmful:
    """Pickled, it makes a folder when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_weights_run_no_code(load, tmp_path):
    harmful = np.array([Harmful(str(tmp_path / "harm"))], object)
    study = load(ONE | {"query": harmful})
    with pytest.raises(ValueError, match="query must be an array of real numbers"):
        studied_system.of_system(study)
    assert not (tmp_path / "harm").exists()


def missing(*names):
    return {name: array for name, array in ONE.items() if name not in names}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": missing("down")}, "block.npz: weights must be query, .* got "),
        ({"weights": {"input": INPUT}}, "block.npz: needs query, key, .* are input"),
        (
            {"weights": ONE | TWO},
            "block.npz: needs query, .* query_1, .* of several",
        ),
        (
            {"weights": ONE | {"input": INPUT[:2]}},
            r"input must have the shape of system.initial, \(3, 4\); got \(2, 4\)",
        ),
        ({"weights": ONE | {"up": np.full((5, 4), np.nan)}}, "up holds numbers that"),
        (
            {"system": STUDY["system"] | {"initial": 0.5}},
            r"system.initial must have the shape \(tokens, 4\), as of query; got \(\)",
        ),
        ({"parameters": {"beta": 1.0}}, "beta: a block of weights has scale and temp"),
        (
            {"system": STUDY["system"] | {"function": "maps.py:f"}},
            "system needs a function or weights, and not both",
        ),
        ({"system": {"initial": 0.0}}, "system needs a function or weights"),
        (
            {"system": {"function": "m.py:f", "initial": 0.0, "block": {"post": True}}},
            "system.block says how weights are used",
        ),
        (
            {"system": STUDY["system"] | {"flow": {"time": 1.0, "substeps": 1}}},
            "system.flow is of a function",
        ),
        (
            {"system": STUDY["system"] | {"observe": "norm"}},
            'system.observe: with weights, write it as "my_model.py:name"',
        ),
    ],
)
def test_blocks_that_cannot_be_looped_are_refused_in_one_line(load, changes, message):
    with pytest.raises(ValueError, match=message) as refused:
        studied_system.of_system(load(**changes))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["down", "input"])
def test_weights_of_a_wrong_shape_are_refused_before_they_are_read(
    load, monkeypatch, name
):
    study = load(ONE | {"input": INPUT, name: np.zeros((4, 4000))})
    monkeypatch.setattr(array_files.ArrayFile, "numbers", None)
    with pytest.raises(ValueError, match=f"{name} must have .*; got .*4, 4000"):
        studied_system.of_system(study)


def test_layers_of_different_width_are_refused(load):
    axes = {"output": 1, "down": 0}
    narrow = {
        f"{name}_2": np.take(array, range(3), axes.get(name, -1))
        for name, array in layer(2).items()
        if name != "up_bias"
    }
    with pytest.raises(ValueError, match=r"\(tokens, 3\), as of query_2; got"):
        studied_system.of_system(load(TWO | narrow))
