"""Lists of points as grids: the same points as in an ordinary scan, bit for bit."""

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.batches import memory
from statmech_attn.dynamics import (
    diagram,
    diagrams,
    point_list,
    trajectories,
)
from statmech_attn.dynamics.diagrams import Confirm, explain, Plan, point_lists


PLAN = Plan(transient=500, steps=1000, exponents=2, max_doublings=0)
CURVE = {
    "a": [0.2, 1.0, 1.4, 1.0],
    "b": [0.3, 0.2, 0.3, 0.3],
    "c": [1.0, 1.1, 0.9, 1.0],
}
NEIGHBOURS = ("doubtful", "transient_probability")  # say something of several points


def henon(x, p):
    return jnp.stack([1 - p["a"] * x[0] ** 2 + p["c"] * x[1], p["b"] * x[0]])


def scan(grid, **how):
    return diagram(henon, grid, jnp.full(2, 0.1), PLAN, confirm=Confirm(0), **how)


@pytest.fixture(scope="module")
def along():
    return scan(point_list(CURVE))


def test_points_of_a_list_are_those_of_ordinary_scans_bit_for_bit(along):
    for i in (1, 2):
        point, grid = along.isel(index=i), {n: x[i] for n, x in CURVE.items()}
        assert {name: float(point[name]) for name in CURVE} == grid
        one = scan(grid | {"c": [CURVE["c"][i], 1.0]}).isel(c=0)
        for name in set(one) - set(NEIGHBOURS):
            np.testing.assert_array_equal(point[name].values, one[name].values, name)


def test_a_list_is_refined_along_the_line_through_its_points():
    """Midpoints lie on straight lines."""
    finer = scan(point_list({"a": [0.2, 0.6], "b": [0.3, 0.2]}, c=1.0), refine=1)
    assert finer.index.values.tolist() == [0.0, 0.5, 1.0]
    np.testing.assert_allclose(finer.a, [0.2, 0.4, 0.6], rtol=1e-15)
    np.testing.assert_allclose(finer.b, [0.3, 0.25, 0.2], rtol=1e-15)
    gridded = diagrams.on_grid(finer)
    assert gridded.computed.all()
    np.testing.assert_array_equal(gridded.b, finer.b)


@pytest.mark.slow
def test_a_list_is_swept_along_the_line_through_its_points():
    """A sweep goes through the list in its order."""
    table = np.array([(0.2, 0.3), (1.4, 0.3)], [("a", float), ("b", float)])
    down, up = (
        scan(point_list(points, c=1.0), sweep=way)
        for points, way in ((table, "down"), (table[::-1], "up"))
    )
    np.testing.assert_array_equal(down.strobe.values[::-1], up.strobe.values)
    same = diagrams.compare_sweeps(up, up.assign_attrs(direction="down"))
    assert not same.differ.any() and same.a.values.tolist() == [1.4, 0.2]
    with pytest.raises(ValueError, match="different values of a"):
        diagrams.compare_sweeps(up, down)


def test_a_point_of_a_list_is_explained_by_its_parameters_or_its_number(along):
    nearest = str(explain(along, a=1.0, b=0.29, c=1.0))
    assert nearest.replace(" (nearest to 0.29)", "") == explain(along, index=3)
    assert str(explain(along, index=3)).startswith("a = 1, b = 0.3, c = 1, ")
    with pytest.raises(ValueError, match="takes a value of a and of b and of c; got a"):
        explain(along, a=1.0)


@pytest.mark.slow
def test_orbits_are_along_a_list_as_along_a_parameter():
    curve, line = point_list(CURVE), {"a": CURVE["a"][2:3], "b": 0.3, "c": 0.9}
    listed, one = (
        trajectories(henon, grid, jnp.full(2, 0.1), steps=5).compute()
        for grid in (curve, line)
    )
    np.testing.assert_array_equal(listed.observed[2], one.observed[0])
    assert listed.c.values.tolist() == CURVE["c"] and listed.c.dims == ("index",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "a,b\n1,2\n1,x\n",
            "curve.csv, line 3: must hold finite numbers of a, b; got",
        ),
        ("a,b\n1,nan\n", "line 2: must hold finite numbers of a, b; got '1,nan'"),
        ("a,a\n1,2\n", "the first line must hold names of parameters, each once"),
        ("1,2\n3,4\n", "must hold names of parameters, each once; got '1, 2'"),
        ("a,b\n" + "1" * 200_000, "line 2: must hold finite numbers of a, b"),
        (
            "a,b\n1,2\n \n3,-inf\n",
            "line 4: must hold finite numbers of a, b; got '3",
        ),
        ("a,b\n1_2,3\n", "line 2: must hold finite numbers of a, b; got '1_2,3'"),
        ("a,b\n1,2\n\n\u0661,3\n", "line 4: must hold finite numbers of a, b"),
        ("a,b\n1,2\n1,2,3\n4,5\n", "line 3: must hold finite numbers of a, b"),
        ('a,b\n1,"2\n', "line 2: must hold finite numbers of a, b"),
        ('a,"b\n1,2\n', "the first line must hold names of parameters, each once"),
        ("a,b\n", "a has no finite number"),
        ("a,c\n1,2\n", "c is one number as well"),
        ("index\n1\n", "index is the number in the list already"),
    ],
)
def test_a_file_that_is_no_list_is_refused_in_one_line(tmp_path, text, words):
    file = tmp_path / "curve.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=words) as error:
        point_list(file, c=1.0)
    assert "\n" not in str(error.value)


def test_files_as_savetxt_and_others_write_them_are_read(tmp_path):
    file = tmp_path / "curve.csv"
    np.savetxt(file, [[1 / 3, 0.1], [0.2, 0.3]], delimiter=",", header="a,b")
    assert point_list(file).columns["a"].tolist() == [1 / 3, 0.2]
    file.write_text('\ufeff"a", "b"\r\n1, 2\r\n\r\n3,4', encoding="utf-8")
    assert point_list(file).columns["b"].tolist() == [2.0, 4.0]
    file.write_text('"a","b"\n"1","2"\n \n"3e0",4\n')
    assert point_list(file).columns["a"].tolist() == [1.0, 3.0]
    file.write_bytes(b"a\n\xff")
    with pytest.raises(ValueError, match="curve.csv: is no text file"):
        point_list(file)


def test_a_list_that_does_not_fit_is_refused_before_it_is_read(tmp_path, monkeypatch):
    (tmp_path / "curve.csv").write_text("a,b\n" + "1,2\n" * 1000)
    monkeypatch.setattr(memory, "available_memory", lambda: 40_000)
    monkeypatch.setattr(point_lists.np, "loadtxt", lambda *_, **__: 1 / 0)
    with pytest.raises(ValueError, match="curve.csv: its 2003 numbers take 0.0458 MiB"):
        point_list(tmp_path / "curve.csv")


@pytest.mark.parametrize(
    ("points", "fixed", "words"),
    [
        (
            {"a": [1.0], "b": [1.0, 2.0]},
            {},
            r"by name; got {'a': \(1,\), 'b'",
        ),
        ({"a": 1.0}, {}, "lists of one length"),
        ({}, {}, "got none"),
        (np.ones((2, 2)), {}, "by name; got none"),
        ({"a": [0.0, np.inf]}, {}, "a has no finite number at point 1"),
        ({"a": [1.0]}, {"c": [1.0, 2.0]}, "c must be a finite number"),
    ],
)
def test_what_is_no_list_of_points_is_refused(points, fixed, words):
    with pytest.raises(ValueError, match=words):
        point_list(points, **fixed)
