"""`statmech-attn new` and the hints for keys in a wrong table."""

import numpy as np
import pytest

from statmech_attn import kinds, storage, studies
from statmech_attn.studies.files import spec


FAILED = {"result": [1, 2, 3], "reached": [0]}  # codes of variables of failed points


def test_a_template_is_written_once(call, tmp_path):
    file = tmp_path / "study.toml"
    call("new", "monte-carlo", "-o", file)
    study, _ = studies.load(file)
    assert study.kind == "monte-carlo"
    assert "already exists" in call("new", "basins", "-o", file, code=1).stderr
    assert call("new", "monte-carlo").stdout == file.read_text()


def test_a_template_of_a_system_comes_with_its_function(call, tmp_path):
    file = tmp_path / "study.toml"
    written = call("new", "trajectory", "--task", "system", "-o", file).output
    assert "my_model.py, an example to replace" in written.replace("\n", "")
    call("run", file, "--dry-run")
    other = tmp_path / "other.toml"
    assert "is kept" in call("new", "basins", "--task", "system", "-o", other).output


@pytest.mark.slow
def test_a_template_of_a_block_comes_with_its_weights(call, tmp_path):
    """Every kind; no code is named."""
    for kind in ("bifurcation", "continuation", "basins", "trajectory"):
        file = tmp_path / f"{kind}.toml"
        call("new", kind, "--task", "block", "-o", file)
        study, _ = studies.load(file)
        assert study.code() == [] and list(study.inputs()) == ["block.npz"]
    call("run", file, "--dry-run")
    assert "block" in call("new", "posterior", "--task", "block", code=1).stderr


def test_without_a_kind_all_are_listed(call):
    own, lines = [], call("new").output.splitlines()
    while "statmech-attn new" in lines[0]:
        own.append(lines.pop(0).split("new ")[1].split()[0])
    assert own == ["system", "block", "arrays"]
    assert [line.split(":")[0] for line in lines] == kinds.studied()
    for name in own:
        assert call("new", name).stdout.startswith("# ")


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("steps=3", "did you mean 'run.steps'?"),
        ("run.patterns=cycle", "did you mean 'network.patterns'?"),
        ("run.sed=3", "did you mean 'seed'?"),
        ("network.transiet=3", "did you mean 'run.transient'?"),
        ("seed=3", "did you mean 'network.seed' or 'run.seed'?"),
    ],
)
def test_a_key_in_a_wrong_table_is_placed(call, tmp_path, setting, hint):
    file = tmp_path / "study.toml"
    call("new", "trajectory", "-o", file)
    refused = call("run", file, "-o", tmp_path / "o.h5", "--set", setting, code=1)
    assert hint in refused.stderr


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Folder in which the template of one-shot training has run."""
    return tmp_path_factory.mktemp("one-shot")


TEMPLATES = sorted((m[:2] for m in spec.models()), key=lambda m: m[0] != "training")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "task"), TEMPLATES)
def test_a_template_runs_to_a_result_worth_looking_at(
    kind, task, call, tmp_path, request, monkeypatch
):
    """Within two minutes of two processors, compilation included.

    Those of one-shot tasks need images, and `trained.h5`, which the first one writes.
    """
    study, result, figures = (tmp_path / name for name in ("s.toml", "r.h5", "figures"))
    if task == "one-shot":
        images = request.getfixturevalue("image_data")
        monkeypatch.setenv("STATMECH_ATTN_DATA", str(images))
        folder = request.getfixturevalue("trained")
        study = folder / f"{kind}.toml"
        if kind == "training":
            result = folder / "trained.h5"
        elif not (folder / "trained.h5").exists():
            call("new", "training", "--task", task, "-o", folder / "first.toml")
            call("run", folder / "first.toml", "-o", folder / "trained.h5")
    call("new", kind, *(("--task", task) if task else ()), "-o", study)
    call("run", study, "--dry-run")
    call("run", study, "-o", result)
    call("figure", result, "-o", figures)
    assert any(figures.glob("*.png"))
    dataset = storage.read(result)
    numbers = [v for v in dataset.data_vars.values() if v.dtype.kind == "f"]
    finite = [v.values[np.isfinite(v.values)] for v in numbers]
    assert any(np.ptp(values) > 1e-6 for values in finite if values.size)
    for name, failed in FAILED.items():
        assert name not in dataset or not np.isin(dataset[name], failed).any()
