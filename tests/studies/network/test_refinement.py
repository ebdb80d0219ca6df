"""Refined scans have the numbers of the whole fine grid, at the points they compute."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from statmech_attn import storage, studies
from statmech_attn.cli import app
from statmech_attn.dynamics import PHASES
from statmech_attn.dynamics.diagrams.refinement import on_grid
from statmech_attn.scan.engines import local
from statmech_attn.scan.forecast import forecast


pytestmark = pytest.mark.slow


RUN = {
    "transient": 600,
    "steps": 1024,
    "exponents": 2,
    "max_doublings": 1,
    "section_samples": 4,
    "strobe_samples": 3,
    "start": "random",
    "seed": 3,
    "confirm": {"starts": 0},
    "compiler": "xla",
}


def plane(n_beta, n_gamma, **run):
    parameters = {
        "beta": {"start": 1.1, "stop": 1.6, "num": n_beta},
        "gamma": {"start": 60.0, "stop": 140.0, "num": n_gamma},
    }
    tree = {"kind": "bifurcation", "parameters": parameters, "run": RUN | run}
    return studies.run(studies.parse(tree))


@pytest.fixture(scope="module")
def whole():
    return plane(17, 9, starts=2)


@pytest.fixture(scope="module")
def refined():
    return plane(5, 3, starts=2, refine=2)


@pytest.mark.one_generator
def test_computed_points_are_those_of_the_whole_grid_to_the_last_bit(whole, refined):
    at = (refined.beta_index.values, refined.gamma_index.values)
    assert refined.sizes["point"] < whole.phase[..., 0].size
    for axis, index in zip(("beta", "gamma"), at, strict=True):
        np.testing.assert_array_equal(refined[f"{axis}_grid"], whole[axis])
        np.testing.assert_array_equal(refined[axis], whole[axis].values[index])
    assert set(refined.data_vars) == set(whole.data_vars)
    # A doubt compares a point with its neighbours that were computed.
    doubt = ["doubtful", "transient_probability"]
    for name, variable in whole.drop_vars(doubt).data_vars.items():
        np.testing.assert_array_equal(refined[name].values, variable.values[at], name)


def test_neighbours_that_differ_on_the_finest_grid_are_both_computed(refined):
    grid = on_grid(refined)
    assert int(grid.computed.sum()) == refined.sizes["point"]
    at = (refined.beta_index.values, refined.gamma_index.values)
    np.testing.assert_array_equal(grid.lyapunov.values[at], refined.lyapunov)
    assert grid.phase.attrs == refined.phase.attrs
    # A phase that was filled in is never wrong about a computed neighbour.
    for axis in ("beta", "gamma"):
        one, other = (grid.isel({axis: s}) for s in (slice(1, None), slice(-1)))
        differ = (one.phase.values != other.phase.values).any(axis=-1)
        both = one.computed.values & other.computed.values
        assert differ.any() and (both | ~differ).all()
    assert {"fixed", "chaotic"} <= {PHASES[i] for i in np.unique(grid.phase)}


def test_refined_files_keep_their_shape_on_disk(refined, tmp_path, single_precision):
    storage.write(tmp_path / "refined.h5", refined, study='kind = "bifurcation"')
    back = storage.read(tmp_path / "refined.h5")
    assert back.phase.dims == ("point", "start") and back.attrs["refine"] == 2
    np.testing.assert_array_equal(on_grid(back).phase, on_grid(refined).phase)
    output = tmp_path / "gridded.h5"
    command = ["grid", str(tmp_path / "refined.h5"), "--output", str(output)]
    assert CliRunner().invoke(app, command).exit_code == 0
    gridded = storage.read(output)
    assert gridded.phase.dims == ("beta", "gamma", "start")
    assert gridded.attrs["dtype"] == "float64"  # of the command
    table = back.set_index(point=["beta", "gamma"])
    assert int(table.phase.sel(beta=1.1, gamma=140.0)[0]) == PHASES.index("fixed")


@pytest.mark.parametrize(
    ("parameters", "run", "message"),
    [
        ({"beta": 1.3}, {"refine": 1}, "run.refine: needs at least two values of beta"),
        ({"beta": [1.3, 1.2, 1.4]}, {"refine": 1}, "two values of beta, in order"),
        (
            {
                "beta": {"start": 1.0, "stop": 2.0, "num": 2000},
                "gamma": [1.0, 2.0, 3.0],
            },
            {"refine": 9},
            "run.refine: 9 levels make a finest grid of 1049076225 points, more than",
        ),
        (
            {"beta": [1.0, 2.0]},
            {"refine": -1},
            "run.refine: should be at least 0; got -1",
        ),
        ({"beta": [1.0, 2.0]}, {"refine": 11}, "run.refine: .* at most 10; got 11"),
        ({"beta": [1.0, 2.0]}, {"refine": 1.5}, "run.refine: .* whole number; got 1.5"),
        (
            {"beta": [1.0, 2.0]},
            {"refine": 1, "start": "continue-up"},
            "refine needs points that do not depend on their neighbours; start = 'cont",
        ),
        (
            {"beta": [1.0, 2.0]},
            {"refine": 1, "exponents": 0},
            "refine compares phases, which need exponents > 0",
        ),
    ],
)
def test_impossible_refinements_are_refused_in_one_line(parameters, run, message):
    tree = {"kind": "bifurcation", "parameters": parameters, "run": run}
    with pytest.raises(ValueError, match=message) as caught:
        studies.run(studies.parse(tree))
    assert "\n" not in str(caught.value)


def test_the_most_that_can_be_computed_is_announced_first():
    beta = {"start": 1.1, "stop": 1.4, "num": 5}
    run = RUN | {"refine": 2, "steps": 64, "max_doublings": 0}
    tree = {"kind": "bifurcation", "parameters": {"beta": beta}, "run": run}
    text = forecast(studies.work(studies.parse(tree)), local.engine(2), None).text()
    about = re.match(r"5 points \(refined to about (\d+), at most 17\) in ", text)
    assert about and 5 <= int(about[1]) <= 17
