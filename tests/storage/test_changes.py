"""What has changed between two studies or two machines is said in readable lines."""

import json

import jax
import numpy as np
import pytest
import xarray as xr

from statmech_attn import storage
from statmech_attn.storage import changes, machine, toml


STUDY = """
kind = "bifurcation"
[run]
steps = 500
[parameters]
beta = {start = 1.2, stop = 1.3, num = 11}
gamma = [1.0, 2.0, 3.0]
"""


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("500", "1000", "run.steps: 500 -> 1000"),
        ("num = 11", "num = 21", "parameters.beta.num: 11 -> 21"),
        ("steps = 500", "steps = 500\nextend = true", "run.extend: absent -> true"),
        ("steps = 500", "", "run.steps: 500 -> absent"),
        ("500", "500.5", "run.steps: 500 -> 500.5"),
        ("500", '"500"', 'run.steps: 500 -> "500"'),
        ("2.0", "2.5", "parameters.gamma[1]: 2 -> 2.5"),
        ("[1.0, 2.0, 3.0]", "[1]", "parameters.gamma: [1, 2, 3] -> [1]"),
        ("[1.0, 2.0, 3.0]", str([0.1] * 99), "gamma: [1, 2, 3] -> 99 values"),
        ("500", '500\n"a.b" = "c\\nd"', 'run."a.b": absent -> "c\\nd"'),
        ('"bifurcation"', f'"{"x" * 99}"', f'kind: "bifurcation" -> "{"x" * 38}…'),
        ("500", "1", "run.steps: 500 -> 1"),
        ("[run]", "[other]", "other: absent -> {steps = 500}"),
    ],
)
def test_a_changed_key_of_a_study_is_named_with_both_values(old, new, line):
    found = storage.study_differences(STUDY, STUDY.replace(old, new))
    assert [x for x in found if x.endswith(line)], found
    assert all("\n" not in x for x in found)


def test_one_and_true_are_different_and_nan_is_itself():
    assert storage.study_differences("a = 1", "a = true") == ["a: 1 -> true"]
    assert storage.study_differences("a = nan", "a = nan  # not a number") == []


@pytest.mark.parametrize("same", [STUDY, STUDY.replace("500", "500.0 # exactly")])
def test_the_same_study_has_no_differences(same):
    assert storage.study_differences(STUDY, same) == []


def test_a_taken_output_is_refused_with_the_first_three_differences(tmp_path):
    x = xr.Dataset({"x": ((), 1.0, {"long_name": "x", "units": "1", "symbol": "x"})})
    storage.write(tmp_path / "a.h5", x, study=STUDY)
    other = STUDY.replace("500", "1000")
    with pytest.raises(storage.StorageError, match=r"\(run\.steps: 500 -> 1000\)"):
        storage.check_output(tmp_path / "a.h5", study=other)
    other += "delta = 1\nepsilon = 2\nzeta = 3\n"
    with pytest.raises(storage.StorageError, match=r"; and 1 more\)") as raised:
        storage.check_output(tmp_path / "a.h5", study=other)
    assert str(raised.value).count(" -> ") == 3


def test_differences_of_environments_name_what_came_and_went():
    old = {"jax": "0.10.2", "libc": "glibc 2.36", "n_devices": "1"}
    new = {"jax": "0.11.0", "n_devices": "1", "driver": "12.9"}
    assert storage.differences(old, new) == [
        "jax: 0.10.2 -> 0.11.0",
        "libc: glibc 2.36 -> absent",
        "driver: absent -> 12.9",
    ]


def test_the_environment_says_what_may_change_the_last_bit(monkeypatch, tmp_path):
    monkeypatch.setenv("XLA_FLAGS", "--flag")
    monkeypatch.delenv("NPROC", raising=False)
    found = storage.environment()
    assert found["jax"] == jax.__version__
    assert found["numpy"] == np.__version__
    assert found["dtype"] == "float64"
    assert found["XLA_FLAGS"] == "--flag"
    assert int(found["cpu_threads"]) >= 1
    assert "NPROC" not in found  # absent, not empty
    x = xr.Dataset({"x": ((), 1.0, {"long_name": "x", "units": "1", "symbol": "x"})})
    storage.write(tmp_path / "a.h5", x, study=STUDY)
    assert storage.info(tmp_path / "a.h5").environment == found
    assert json.loads(storage.read(tmp_path / "a.h5").attrs["environment"]) == found


AMD = "model name\t: AMD EPYC\ncpu family\t: 26\nmodel\t\t: 2\nflags\t: avx fpu fma\n"
ARM = "CPU implementer\t: 0x41\nCPU part\t: 0xd40\nFeatures\t: fp sve asimd\n"


@pytest.mark.parametrize(
    ("text", "model", "instructions"),
    [
        (AMD, "AMD EPYC (family 26, model 2)", "avx fma"),
        (ARM, "(implementer 0x41, part 0xd40)", "asimd sve"),
        ("", None, None),
    ],
    ids=("AMD", "ARM", "unknown"),
)
def test_the_processor_is_described_or_absent(
    monkeypatch, tmp_path, text, model, instructions
):
    (tmp_path / "cpuinfo").write_text(text)
    monkeypatch.setattr(machine, "DESCRIPTION", tmp_path / "cpuinfo")
    monkeypatch.setattr(machine.platform, "processor", lambda: "")
    monkeypatch.setattr(machine.platform, "system", lambda: "Linux")
    assert machine.cpu_model.__wrapped__() == model
    assert machine._cpu_instructions.__wrapped__() == instructions


def test_one_line_has_the_first_three_changes_and_the_number_of_the_others():
    said = changes.in_one_line(["a: 1 -> 2", "b: 3 -> 4", "c: 5 -> 6", "d: 7 -> 8"])
    assert said == "a: 1 -> 2; b: 3 -> 4; c: 5 -> 6; and 1 more"
    value = {"start": 0.5, "names": ["a", "b"]}
    assert toml.inline(value) == '{ start = 0.5, names = ["a", "b"] }'
