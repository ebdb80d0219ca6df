"""Scans of any function: its numbers, labels and failures, in memory and in a file."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from statmech_attn import scan, storage
from statmech_attn.dynamics import covariant_vectors, lyapunov_spectrum, point_list
from statmech_attn.dynamics.exponents.covariant_vectors import ALONG, SHARES
from statmech_attn.labels import Variable
from statmech_attn.reporting import Silent
from statmech_attn.scan.chunks.results import Memory
from statmech_attn.scan.chunks.session import Session
from statmech_attn.scan.engines import local


STATE = jnp.array([0.1, 0.2])
WINDOW = {"steps": 400, "transient": 400}
GRID = {"a": [1.0, 1.4, 3.0], "b": 0.3}
LABELS = Variable("square", "", "square", "m", "s"), Variable("root", "part", "root")


def henon(x, p):
    return jnp.stack([1 - p["a"] * x[0] ** 2 + x[1], p["b"] * x[0]])


def vectors_at(p):
    return covariant_vectors(henon, STATE, p, **WINDOW)


def along(grid, function=vectors_at):
    return scan.over(
        function,
        grid,
        kind="covariant-diagram",
        keep={row.name for row in ALONG},
        numbers=["covariant_exponent"],
        empty={"split": -1},
    )


def squares(p, number=0):
    if p["x"] == 2:
        raise ValueError("two has none.")
    return {"square": p["x"] ** 2 * p["c"], "root": [p["x"] ** 0.5, number]}


def of_numbers(function=squares, **how):
    return scan.over(function, {"x": [1.0, 2.0, 4.0], "c": 3}, variables=LABELS, **how)


@pytest.fixture(scope="module")
def along_a():
    """A cycle, chaos, and orbits that diverge."""
    return along(GRID)


@pytest.fixture(scope="module")
def angles(along_a):
    return along_a.compute()


def test_a_value_has_the_numbers_of_its_orbit(angles):
    chaos = vectors_at({"a": 1.4, "b": 0.3})
    row = angles.sel(a=1.4)
    np.testing.assert_array_equal(row.covariant_exponent, chaos.exponents)
    np.testing.assert_array_equal(row.covariant_exponent_stderr, chaos.stderr)
    assert row.smallest_angle == chaos.angles.min() and row.split == 1
    for share, quantile in zip(SHARES, row.angle_quantile.values, strict=True):
        # Within one of the 400 angles.
        assert abs(np.mean(chaos.angles < quantile) - share) <= 1 / 400
    power = row.tangency_exponent, row.tangency_exponent_stderr
    assert power == chaos.tangency()


def test_a_cycle_has_exponents_and_no_angle(angles):
    cycle = angles.sel(a=1.0)
    assert cycle.split == 0 and (cycle.covariant_exponent < 0).all()
    # The map contracts areas by b at every step.
    assert float(cycle.covariant_exponent.sum()) == pytest.approx(np.log(0.3))
    assert np.isnan(cycle.smallest_angle) and np.isnan(cycle.angle_quantile).all()


def test_a_value_whose_orbit_diverges_has_no_numbers_and_says_why(angles):
    lost = angles.sel(a=3.0)
    assert np.isnan(lost.covariant_exponent).all() and lost.split == -1
    assert angles.failure.values.tolist() == [0, 0, 2]
    assert angles.failure_reasons == [
        "no vector has a direction: the orbit diverges. (1 points)"
    ]


def test_a_scan_has_the_labels_of_its_results(angles):
    whole = vectors_at({"a": 1.4, "b": 0.3}).to_dataset()
    assert (
        angles.attrs.items()
        >= {
            **{"kind": "covariant-diagram", "parameter": "a"},
            **{"system": "henon", "unit": "step"},
        }.items()
    )
    for name in {row.name for row in ALONG} - {"failure", "share"}:
        assert angles[name].dims == ("a", *whole[name].dims)
        expected = xr.Variable((), 0, whole[name].attrs)
        assert xr.Variable((), 0, angles[name].attrs).identical(expected)
    assert angles.share.values.tolist() == list(SHARES)
    assert "state" not in angles and float(angles.b) == 0.3
    assert angles.b.attrs["long_name"] == "parameter b"


def test_a_file_holds_what_is_computed_in_memory(along_a, angles, tmp_path):
    stored = along_a.run(tmp_path / "angles.h5", points_per_chunk=1)
    for name in ("covariant_exponent", "angle_quantile", "split", "b", "share"):
        np.testing.assert_array_equal(stored[name], angles[name])


def test_a_list_of_points_stands_for_a_grid(angles):
    listed = along(point_list({"a": [1.4, 1.0], "b": [0.3, 0.3]})).compute()
    expected = angles.covariant_exponent.sel(a=[1.4, 1.0])
    np.testing.assert_array_equal(listed.covariant_exponent, expected)
    assert listed.a.dims == ("index",) and listed.a.values.tolist() == [1.4, 1.0]
    assert listed.index.attrs["long_name"] == "point of the list"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"exponents": 3}, "exponents must lie in 1..2"),
        ({"split": 2}, "split must lie in 1..1"),
        ({"steps": 0}, "steps"),
        ({"transient": -1}, "transient"),
    ],
)
def test_what_the_function_refuses_is_told_in_one_line(changes, words):
    refused = lambda p: covariant_vectors(henon, STATE, p, **WINDOW | changes)
    with pytest.raises(ValueError, match=f"^no point could be computed: .*{words}.*$"):
        along({"a": [1.0, 1.4], "b": 0.3}, refused).compute()


@pytest.mark.parametrize(
    "values", [[], [1.0, 1.0], [[1.0]], [np.nan], np.ones((2,) * 5)]
)
def test_grids_that_make_no_sense_are_refused(values):
    with pytest.raises(
        ValueError, match="^x must be a number or a list of distinct.*$"
    ):
        scan.over(squares, {"x": values})


def test_a_dictionary_of_numbers_is_labelled_by_a_table():
    numbers = of_numbers(coordinates={"part": [0, 1]}).compute()
    np.testing.assert_array_equal(numbers.square, [3.0, np.nan, 48.0])
    np.testing.assert_array_equal(numbers.root[::2], [[1.0, 0.0], [2.0, 2.0]])
    assert numbers.square.attrs["units"] == "m" and int(numbers.c) == 3
    assert numbers.failure_reasons == ["two has none. (1 points)"]


@pytest.mark.parametrize("result", [1.0, {"cube": 1.0}])
def test_what_nobody_labels_is_refused_in_one_line(result):
    words = r"^function must return a result .*; got (float|\['cube'\])\.$"
    with pytest.raises(TypeError, match=words):
        of_numbers(lambda p: result).compute()


def test_every_point_is_computed_once():
    numbers, error = [], Variable("y", "", "y", parts="_error")
    function = lambda p, number: numbers.append(number) or {"y": 1.0, "y_error": 0.1}
    scan.over(function, {"x": [1.0, 2.0, 3.0]}, variables=[error]).compute()
    assert sorted(numbers) == [0, 1, 2]


def test_a_batch_has_the_numbers_of_its_points():
    spectrum = jax.vmap(lambda p: lyapunov_spectrum(henon, STATE, p, **WINDOW))
    grid = {"a": [1.0, 1.2, 1.4], "b": 0.3}
    batch = scan.over(spectrum, grid, batch=2).compute()
    assert batch.lyapunov.dims == ("a", "exponent")
    for first, values in ((0, [1.0, 1.2]), (2, [1.4, 1.4])):
        expected = spectrum({"a": np.array(values), "b": np.full(2, 0.3)}).exponents
        np.testing.assert_array_equal(
            batch.lyapunov[first : first + 2], expected[: 3 - first]
        )


def test_a_process_that_has_computed_no_point_knows_the_labels(along_a, angles):
    stop = scan.signals.Stop()
    with Session(along_a, Memory(), 3, Silent(), stop) as session:
        local.compute(session, 1)
    xr.testing.assert_identical(
        along(GRID).assemble(session.results).dataset.drop_vars("failure"),
        angles.drop_vars("failure"),
    )


def test_another_function_is_refused_in_one_line(tmp_path):
    path = tmp_path / "squares.h5"
    first = of_numbers(lambda p: squares(p)).run(path)
    again = of_numbers(lambda p: squares(p)).run(path)
    np.testing.assert_array_equal(first.square, again.square)
    with pytest.raises(storage.StorageError, match=r"^[^\n]*function[^\n]*$"):
        of_numbers(lambda p: {**squares(p), "square": 0.0}).run(path)
    with pytest.raises(storage.StorageError, match=r"^[^\n]*given.number: [^\n]*$"):
        of_numbers(jax.tree_util.Partial(squares, number=1)).run(path)


def test_a_run_that_was_broken_off_goes_on(tmp_path):
    """Points of whole chunks are not computed again."""

    def square(p, number):
        with (tmp_path / f"{number}").open("a") as calls:
            calls.write(".")
        if number == 2 and (tmp_path / "2").read_text() == ".":
            raise KeyboardInterrupt
        return {"square": p["x"] ** 2}

    table, path = LABELS[:1], tmp_path / "squares.h5"
    begin = lambda: scan.over(square, {"x": [1.0, 2.0, 3.0]}, variables=table).run(
        path, points_per_chunk=1, engine=local.engine(1)
    )
    with pytest.raises(KeyboardInterrupt):
        begin()
    assert not path.exists() and begin().square.values.tolist() == [1.0, 4.0, 9.0]
    assert [(tmp_path / f"{n}").read_text() for n in range(3)] == [".", ".", ".."]
