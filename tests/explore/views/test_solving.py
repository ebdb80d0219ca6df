"""Saddle points between the stored ones are those of a study that has them."""

import threading

import numpy as np
import pytest

from statmech_attn import storage, studies
from statmech_attn.explore.result_files.cancellation import Cancelled
from statmech_attn.explore.result_files.files import File
from statmech_attn.explore.result_files.stored_study import Uncomputable
from statmech_attn.explore.views.sheets import PictureView
from statmech_attn.explore.views.solving import Solving


STUDY = """
kind = "order-parameter"
[task]
name = "hidden-markov"
preset = "two-paths"
n_train = 10
n_test = 20
[network]
width = [10, 100]
temperature = [0.1, 1.0]
[run]
corrections = false
"""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def solving(tmp_path_factory):
    folder = tmp_path_factory.mktemp("solving")
    (folder / "saddle.toml").write_text(STUDY)
    studies.produce(folder / "saddle.toml", folder / "saddle.h5")
    file = File(folder / "saddle.h5")
    yield Solving(file)
    file.close()


@pytest.mark.parametrize("width, temperature", ((10.0, 0.1), (100.0, 1.0)))
def test_a_stored_point_is_solved_to_its_last_bit(solving, width, temperature):
    stored = storage.read(solving.file.path).sel(width=width, temperature=temperature)
    point = solving.solved({"width": width, "temperature": temperature})
    for name in ("U_1", "accuracy", "head_score", "kernel_overlap"):
        assert np.array_equal(point[name], stored[name]), name


def test_a_point_between_is_that_of_a_study_that_has_it(solving, tmp_path):
    text = STUDY.replace("[10, 100]", "[10, 33, 100]").replace("[0.1,", "[0.1, 0.4,")
    (tmp_path / "finer.toml").write_text(text)
    finer = studies.produce(tmp_path / "finer.toml", tmp_path / "finer.h5")
    point = solving.solved({"width": 33.0, "temperature": 0.4})
    stored = finer.sel(width=33, temperature=0.4)
    assert np.array_equal(point.U_1, stored.U_1)
    assert float(point.accuracy) == float(stored.accuracy)


def test_a_point_between_is_drawn_where_it_belongs(solving):
    sheet = PictureView(solving.file)
    point = solving.solved({"width": 33.0, "temperature": 0.1})
    (panel,) = sheet.readable("accuracy", {"temperature": 0}, point)["panels"]
    (curve,) = [x["numbers"] for x in panel["marks"] if len(x["numbers"]) == 3]
    assert [x for x, _ in curve] == ["10", "33", "100"]
    assert float(curve[1][1]) == pytest.approx(float(point.accuracy), rel=1e-5)
    for name in ("order_parameters", "alignment", "head_scores"):
        assert sheet.readable(name, {}, point)["panels"][0]["marks"]


@pytest.mark.parametrize("width", (-1.0, 0.0, float("nan")))
def test_values_are_checked_as_those_of_a_study(solving, width):
    with pytest.raises(ValueError, match="width"):
        solving.solved({"width": width, "temperature": 0.1})
    with pytest.raises(ValueError, match="values should be of width"):
        solving.solved({"width": 10.0})


def test_a_later_question_of_a_page_ends_the_one_before(solving, monkeypatch):
    solved = solving.work.between

    def interrupted(*, tick, **values):
        solving.questions.begin(5)
        return solved(tick=tick, **values)

    monkeypatch.setattr(solving.work, "between", interrupted)
    with pytest.raises(Cancelled):
        solving.solved({"width": 50.0, "temperature": 0.1}, page=5)
    assert isinstance(solving.questions.begin(6), threading.Event)


def test_a_file_whose_study_is_of_no_theory_is_refused(solving, tmp_path):
    dataset = storage.read(solving.file.path)
    path = tmp_path / "other.h5"
    storage.write(path, dataset, study="kind = 1", kind="order-parameter")
    file = File(path)
    with pytest.raises(Uncomputable, match="Nothing can be computed"):
        Solving(file)
    file.close()
