"""Scripts of figures draw from the results that they find, and say what they lack."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from script import Script, usable

from statmech_attn import storage, studies
from statmech_attn.training import RESULTS


ROOT = Path(__file__).resolve().parents[2]
TRAINING, THEORY = "simulations/one_shot_training.toml", "analysis/theory.toml"
STUDY = """
kind = "order-parameter"

[task]
name = "one-shot"
trained = "elsewhere.h5"

[network]
width = 10
temperature = 0.5
"""
SIZES = """
[one_shot_training]
smoke = []
laptop = ["run.steps=1000"]

[theory]
laptop = ["task.n_train=20"]
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    """Scripts, studies and sizes, without results; no images at hand."""
    monkeypatch.delenv("STATMECH_ATTN_DATA", raising=False)
    return fill(tmp_path / "checkout")


def fill(root: Path) -> Path:
    for name in ("paper_figs", "simulations", "analysis"):
        (root / name).mkdir(parents=True)
    shutil.copy(ROOT / TRAINING, root / TRAINING)
    (root / THEORY).write_text(STUDY)
    (root / "paper_figs" / "sizes.toml").write_text(SIZES)
    return root


def script(root: Path, *arguments: str, kept: bool = True) -> Script:
    return Script(str(root / "paper_figs" / "one.py"), "Words.", arguments, kept=kept)


def write(root: Path, name: str, path: str, settings, *, value=1.0, **attributes):
    """A result of a study as a run leaves it."""
    _, text = studies.load(root / path, settings)
    about = {"long_name": "accuracy", "units": "1", "symbol": "a"}
    dataset = xr.Dataset({"accuracy": ((), value, about)}, attrs=attributes)
    file = root / "paper_figs" / "results" / name
    file.parent.mkdir(exist_ok=True)
    storage.write(
        file,
        dataset,
        study=text,
        keys={},
        started=storage.now(),
        elapsed=0.0,
        overwrite=True,
    )
    return file


def write_both(root: Path) -> None:
    """Results of a training, and of the theory of its third network."""
    trained = write(root, "one_shot_training-laptop.h5", TRAINING, ["run.steps=1000"])
    settings = [
        "task.n_train=20",
        'task.trained="../paper_figs/results/one_shot_training-laptop.h5"',
        "task.restart=2",
    ]
    study, _ = studies.load(root / THEORY, settings)
    assert study.inputs().keys() == {trained.name}
    write(
        root,
        "theory-2-laptop.h5",
        THEORY,
        settings,
        value=2.0,
        inputs=json.dumps(study.inputs()),
    )


def test_kept_results_are_drawn_from_without_images(checkout):
    write_both(checkout)
    here = script(checkout)
    assert here.study(TRAINING).accuracy == 1.0
    assert here.of_trained(THEORY, TRAINING, restart=2).accuracy == 2.0


def test_kept_results_hold_in_any_checkout(checkout, tmp_path):
    write_both(checkout)
    moved = tmp_path / "deeper" / "moved"
    moved.parent.mkdir()
    checkout.rename(moved)
    assert script(moved).of_trained(THEORY, TRAINING, restart=2).accuracy == 2.0


@pytest.mark.parametrize(
    "arguments, kept, folder",
    [
        ([], True, "checkout/paper_figs/results"),
        (["--out", "figures"], True, "checkout/paper_figs/results"),
        (["--data", "mine"], True, "mine"),
        (["--smoke", "--out", "figures"], True, "figures"),
        (["--out", "figures"], False, "figures"),
    ],
)
def test_results_are_kept_at_laptop_size_only(
    checkout, tmp_path, monkeypatch, arguments, kept, folder
):
    monkeypatch.chdir(tmp_path)
    here = script(checkout, *arguments, kept=kept)
    assert here.data.resolve() == tmp_path / folder
    assert here.out == Path("figures" if "--out" in arguments else "results")


def test_missing_results_need_images_and_say_where_they_are_from(checkout):
    with pytest.raises(SystemExit) as stopped:
        script(checkout).study(TRAINING)
    (line,) = str(stopped.value).splitlines()
    assert TRAINING in line and "STATMECH_ATTN_DATA" in line


def test_results_of_a_changed_study_are_not_drawn(checkout):
    write_both(checkout)
    sizes = checkout / "paper_figs" / "sizes.toml"
    sizes.write_text(SIZES.replace("steps=1000", "steps=2000"))
    with pytest.raises(SystemExit) as stopped:
        script(checkout).study(TRAINING)
    (line,) = str(stopped.value).splitlines()
    assert "run.steps" in line and "--overwrite" in line


def test_results_of_other_networks_are_not_drawn(checkout):
    write_both(checkout)
    write(
        checkout, "one_shot_training-laptop.h5", TRAINING, ["run.steps=1000"], value=3.0
    )
    with pytest.raises(SystemExit) as stopped:
        script(checkout).of_trained(THEORY, TRAINING, restart=2)
    (line,) = str(stopped.value).splitlines()
    assert "one_shot_training-laptop.h5" in line and "--overwrite" in line


def test_trainings_without_an_answer_are_left_out():
    ends = ["step limit reached", "diverged", "vanished", "step limit reached"]
    codes = [*map(RESULTS.index, ends), -1]  # the last was not computed
    found = xr.Dataset(
        {"training_result": ("restart", codes)}, {"restart": np.arange(5)}
    )
    assert usable(found) == [0, 3]
    with pytest.raises(SystemExit, match="run.gain"):
        usable(found.isel(restart=[1, 2, 4]))


def test_a_kept_result_is_read_whatever_its_study_says_today(checkout):
    path = write(checkout, "theory-laptop.h5", THEORY, ["task.n_train=20"], value=0.25)
    study = checkout / THEORY
    study.write_text(study.read_text() + "variances = [1.0, 1.0, 1.0]\n")
    assert float(script(checkout).kept(THEORY).accuracy) == 0.25
    path.unlink()
    with pytest.raises(SystemExit, match="theory.toml: "):
        script(checkout).kept(THEORY)
