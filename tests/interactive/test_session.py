"""What a notebook does: set up, run a study, draw, describe and save its result."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import statmech_attn
from statmech_attn import storage
from statmech_attn.interactive import session


@pytest.fixture(scope="module")
def result(logistic_study, tmp_path_factory):
    """A scan of the logistic map, refined once."""
    study = storage.toml.loads(logistic_study.STUDY)
    study["run"]["refine"] = 1
    folder = tmp_path_factory.mktemp("notebook")
    logistic_study.write(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return statmech_attn.run(study)


def test_a_result_draws_itself_in_a_notebook(result):
    pictures = result.statmech.plot()
    assert list(pictures) == ["bifurcation"]
    assert pictures._repr_html_().count("data:image/png;base64,") == 1


def test_a_result_says_what_it_is(result, monkeypatch):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert result.attrs["kind"] == "bifurcation"
    assert json.loads(result.attrs["keys"]) == {"seed": 0}
    text = result.statmech.describe()
    assert "largest λ_1 (nat/step)" in repr(text)
    assert "white-space: pre-wrap" in text._repr_html_() and "\x1b" not in text


def test_a_notebook_shows_figures_that_pyplot_does_not_know(monkeypatch):
    shown = {}
    png = SimpleNamespace(for_type_by_name=lambda *names: shown.update([names[1:]]))
    formatter = SimpleNamespace(formatters={"image/png": png})
    shell = SimpleNamespace(display_formatter=formatter)
    IPython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", IPython)
    statmech_attn.setup()
    assert shown["Figure"](Figure()).startswith(b"\x89PNG")


def test_arrays_in_a_study_are_lists():
    study = {"kind": "trajectory", "run": {"steps": np.int64(5)}}
    listed = study | {"parameters": {"beta": [1.2, 1.4]}}
    study |= {"parameters": {"beta": np.array([1.2, 1.4])}}
    assert session._checked(study) == session._checked(listed)


def test_a_point_of_a_result_is_explained(result):
    assert "nearest" not in result.statmech.explain(a=3.2)
    told = result.statmech.explain(a=3.21)
    assert repr(told).startswith(
        "a = 3.2 (nearest to 3.21), periodic: the orbit recurs after 2 steps"
    )


def test_a_result_is_saved_with_its_study(result, tmp_path):
    path = tmp_path / "scan.h5"
    result.statmech.save(path)
    again = storage.read(path)
    assert again.drop_attrs(deep=False).equals(result.drop_attrs(deep=False))
    told = storage.info(path)
    assert told.started == result.attrs["started"] and told.keys == {"seed": 0}
    assert len(again.attrs["history"].splitlines()) == 2  # computed, then saved
    result.statmech.save(path)  # the same study may replace itself


def test_a_refined_result_is_gridded_and_tabulated(result):
    grid, table = result.statmech.grid(), result.statmech.table("phase", "lyapunov")
    assert np.allclose(grid.a, np.linspace(3.2, 4.0, 9))
    stored = grid.a[grid.computed.values]
    assert np.array_equal(grid.phase.sel(a=stored), result.phase.sel(a=stored))
    assert 5 < len(stored) == result.sizes["a"] < 9
    assert list(table) == ["level", "a", "phase", "lyapunov_1"]
    assert table.phase.tolist()[0] == "periodic" and len(table) == len(stored)


def test_a_study_is_a_path_too(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text('kind = "trajectory"\nparameters.beta = 1.4\nrun.steps = 10\n')
    assert statmech_attn.run(path, progress=False).A.shape == (1, 10, 3)
    with pytest.raises(ValueError, match="dictionary or a checked study; got float"):
        statmech_attn.run(1.4)  # type: ignore[arg-type]


def test_without_double_precision_it_says_what_to_call():
    code = (
        "import statmech_attn\n"
        "statmech_attn.run({'kind': 'trajectory', 'parameters': {'beta': 1.4}})"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"JAX_ENABLE_X64": "0"},
        capture_output=True,
        text=True,
    )
    assert "call statmech_attn.setup()" in ended.stderr.splitlines()[-1]


def test_data_sets_of_others_say_what_they_lack():
    with pytest.raises(ValueError, match="no pictures of kind None"):
        xr.Dataset().statmech.plot()


@pytest.mark.slow
def test_a_session_imports_xarray_when_it_needs_it():
    """And data sets have the accessor from then on, whoever imports it."""
    code = """
import sys
import statmech_attn
statmech_attn.setup()
statmech_attn.setup()
late = {"xarray", "pandas", "matplotlib"}
assert not late & set(sys.modules), late & set(sys.modules)
import xarray
assert "matplotlib" not in sys.modules
print(xarray.Dataset().statmech.save.__name__)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["save"]
