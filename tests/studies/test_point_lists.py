"""Studies of lists of points: numbers of ordinary scans, and what is refused."""

import numpy as np
import pytest

from statmech_attn import plotting, scan, storage, studies
from statmech_attn.storage import StorageError
from statmech_attn.studies.files import spec


MAP = 'def step(x, p):\n    return p["a"] * x - p["b"] * x**3 + p["c"]\n'
CURVE = "# a, b\n0.9,1.0\n1.3,0.5\n1.3,1.0\n"
SYSTEM = {
    "kind": "bifurcation",
    "points": "curve.csv",
    "system": {"function": "cubic.py:step", "initial": 0.3},
    "parameters": {"c": 0.01},
    "run": {
        "transient": 200,
        "steps": 512,  # as of tests/logistic_study.py, whose verdicts it shares
        "extend": False,
        "confirm": {"starts": 0},
        "compiler": "llvm",
    },
}
BASINS = SYSTEM | {
    "kind": "basins",
    "system": {"function": "cubic.py:step", "initial": {"low": -0.9, "high": 0.9}},
    "run": {"transient": 100, "horizon": 2000, "steps": 200, "starts": 8},
}
NETWORK = {
    "kind": "bifurcation",
    "points": "curve.csv",
    "parameters": {"epsilon": 0.1},
    "run": SYSTEM["run"] | {"exponents": 1, "entropy_production": False},
}


@pytest.fixture
def study_of(tmp_path):
    """Write a study with its list and its map, and check it."""

    def load(tree, curve=CURVE):
        (tmp_path / "cubic.py").write_text(MAP)
        (tmp_path / "curve.csv").write_text(curve)
        (tmp_path / "study.toml").write_text(spec.dump(tree))
        return studies.load(tmp_path / "study.toml")[0]

    return load


def ordinary(tree, **parameters):
    """The same study with parameters in the place of the list."""
    rest = {name: x for name, x in tree.items() if name != "points"}
    return rest | {"parameters": tree["parameters"] | parameters}


def compute(study):
    return scan.in_memory(studies.work(study))


def assert_same(listed, line, place, name):
    """A point of a list has all numbers of that point of a scan of a parameter."""
    assert float(listed[name][place]) == float(line[name][0])
    point, same = listed.isel(index=place), line.isel({name: 0})
    for variable in set(line) & set(listed) - {"attractor"}:
        np.testing.assert_array_equal(point[variable], same[variable], str(variable))


def test_points_of_a_system_are_those_of_an_ordinary_scan(study_of):
    listed = compute(study_of(SYSTEM))
    assert listed.b.values.tolist() == [1.0, 0.5, 1.0]
    assert listed.b.attrs["long_name"] == "b" and float(listed.c) == 0.01
    line = compute(study_of(ordinary(SYSTEM, a=[1.3, 0.9], b=0.5)))
    assert_same(listed, line, 1, "a")


@pytest.mark.slow
def test_basins_along_a_list_are_those_of_an_ordinary_scan(study_of):
    """By flow as well: a state is followed with the parameters of the next point."""
    tree = BASINS | {"run": BASINS["run"] | {"matching": "flow"}}
    listed = compute(study_of(tree))
    assert listed["count"].dims == ("index", "slot") and listed.b.dims == ("index",)
    line = compute(study_of(ordinary(BASINS, a=[1.3, 0.9, 1.1], b=0.5)))
    assert_same(listed, line, 1, "a")
    # Both attractors of the second point go on to the third, which has the same two.
    assert listed.attractor.values.tolist() == [[0, -1], [0, 1], [0, 1]]
    figures = dict(plotting.pictures(line))
    assert [*figures] == ["basins", "lifetimes"]
    assert figures["basins"].axes[-1].get_xlabel() == "$a$"


def test_a_list_that_has_changed_is_another_study(study_of, tmp_path):
    tree = SYSTEM | {"run": SYSTEM["run"] | {"exponents": 0}}
    study_of(tree)
    file = tmp_path / "scan.h5"
    studies.produce(tmp_path / "study.toml", file)
    assert "curve.csv" in storage.read(file).attrs["inputs"]
    study_of(tree, CURVE + "1.4,1.0\n")
    with pytest.raises(StorageError, match="another curve.csv"):
        studies.produce(tmp_path / "study.toml", file)


@pytest.mark.parametrize(
    ("tree", "curve", "words"),
    [
        (NETWORK, "beta,delta\n1,2\n", "points: delta is no parameter; there are beta"),
        (NETWORK, "beta,epsilon\n1,2\n", "points: epsilon is one number as well"),
        (NETWORK, "gamma\n90\n", "parameters.beta: is missing"),
        (NETWORK, "beta\nnan\n", "curve.csv, line 2: must hold finite numbers of beta"),
        (NETWORK, "", "curve.csv: the first line must hold names"),
        (ordinary(NETWORK), CURVE, "parameters.beta: is missing; give it, or a list"),
        (ordinary(SYSTEM) | {"parameters": {}}, CURVE, "parameters: should hold"),
        (SYSTEM, "a\n1\n", "asks for 'b', which is not in"),
        (
            SYSTEM | {"parameters": {"c": [0.1, 0.2]}},
            CURVE,
            "parameters.c: must be one",
        ),
        (SYSTEM, "a,b,phase\n1,1,1\n", "files have a variable of this name"),
    ],
)
def test_lists_and_parameters_that_do_not_fit_are_refused_in_one_line(
    study_of, tree, curve, words
):
    with pytest.raises(ValueError, match=words) as error:
        studies.work(study_of(tree, curve))
    assert "\n" not in str(error.value)


def test_a_list_that_is_not_there_is_refused(study_of, tmp_path):
    study = study_of(SYSTEM)
    (tmp_path / "curve.csv").unlink()
    with pytest.raises(OSError, match=r"curve\.csv"):
        study.inputs()
