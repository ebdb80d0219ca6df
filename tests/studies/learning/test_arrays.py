"""Studies of a file of arrays: as in Python, with names of heads, known by content."""

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

from statmech_attn import bpkr, plotting, studies
from statmech_attn.cli import app
from statmech_attn.tasks import arrays


@pytest.fixture
def study(tmp_path):
    """The template, with one width, and its example beside it."""
    path = tmp_path / "study.toml"
    result = CliRunner().invoke(app, ["new", "arrays", "--output", str(path)])
    assert result.exit_code == 0, result.output
    text = path.read_text().replace("width = [10, 100, 1000]", "width = 20")
    path.write_text(text.replace("#corrections = true", "corrections = false"))
    return path


@pytest.mark.slow
def test_skip_connections_are_the_first_heads_of_their_layers(study):
    """In names and axes; with corrections and the numbers of the library."""
    text = study.read_text().replace("corrections = false", "corrections = true")
    study.write_text(text.replace("#skip = 0.0", "skip = [0.7, 0.0]"))
    result = studies.run(studies.load(study)[0])
    given = arrays.load(study.parent / "arrays.npz", skip=(0.7, 0))
    problem = bpkr.Problem(
        given.xi,
        given.Y,
        heads=(2, 2),
        width=20,
        temperature=0.01,
        skip=(0.7, 0),
    )
    solution = problem.solve()
    np.testing.assert_allclose(result.U_1.values[0], solution.U[0], rtol=1e-9)
    names = ["skip 1", "content", "decisive", "chosen", "noise"]
    assert result.attention_head.values.tolist() == names == list(given.names)
    paths = bpkr.path_names((2, 2), (0.7, 0))
    assert result.path_1.values.tolist() == paths and paths[0] == "0-1"
    assert result.path_2.values.tolist() == ["1", "2"]
    scores = np.concatenate(solution.head_scores())
    np.testing.assert_allclose(result.head_score.values[0], scores, rtol=1e-8)
    floors = np.concatenate(solution.head_floors())
    np.testing.assert_allclose(result.head_score_floor.values[0], floors, rtol=1e-8)
    assert np.isfinite(result.accuracy_silenced).all()
    assert np.isfinite(result.U_1_corrected).all()
    # A pair of paths alone, by the regression of their kernels: c^2 is 1/2 for the
    # skip's path and 1/4 for the other, over their sum.
    chosen = [1, 4]  # 0-2 and 2-1; U_1 is diagonal in the limit
    x, test = (np.asarray(xi)[:, :, chosen] for xi in (given.xi, given.xi_test))
    U = np.array([0.7**2, 1.0]) * np.array([2, 1]) / 3 / x.shape[1]
    K = np.einsum("pia,qia,a->pq", x, x, U) + 0.01 * np.eye(len(x))
    f = np.einsum("pia,qia,a->pq", test, x, U) @ np.linalg.solve(K, given.Y)
    right = np.mean(np.sign(f) == given.Y_test)
    assert float(result.accuracy_gp_pair[1, 4]) == pytest.approx(right)


@pytest.fixture
def in_hdf5(study):
    """The same arrays in HDF5, named by the study."""
    with (
        np.load(study.parent / "arrays.npz") as arrays,
        h5py.File(study.parent / "arrays.h5", "w") as file,
    ):
        for name, values in arrays.items():
            texts = values.dtype.kind == "U"
            file[name] = values.astype(h5py.string_dtype()) if texts else values
    study.write_text(study.read_text().replace("arrays.npz", "arrays.h5"))
    return study


@pytest.mark.slow
def test_heads_of_arrays_are_scored_and_pruned_with_a_skip_among_them(in_hdf5):
    """The mean predictor without a path is that of order parameters and labels."""
    task = 'name = "arrays"\nfile = "arrays.h5"\nskip = [0.7, 0.0]\n'
    run = "[run]\nrandom_orders = 3\n"
    network = "[network]\nwidth = 20\ntemperature = 0.1\n"
    in_hdf5.write_text(f'kind = "pruning"\n[task]\n{task}{network}{run}')
    result = studies.run(studies.load(in_hdf5)[0])
    names = ["skip 1", "content", "decisive", "chosen", "noise"]
    assert result.attention_head.values.tolist() == names
    assert result.head_layer.values.tolist() == [1, 1, 1, 2, 2]
    assert result.test_set.values.tolist() == ["test"]
    given = arrays.load(in_hdf5.parent / "arrays.h5", skip=(0.7, 0))
    problem = bpkr.Problem(
        given.xi, given.Y, heads=(2, 2), width=20, temperature=0.1, skip=(0.7, 0)
    )
    solution = problem.solve()
    scores = result.pruning_score.sel(order="saddle")[0]
    np.testing.assert_allclose(
        scores, np.concatenate(solution.head_scores()), rtol=1e-7
    )
    floors = np.concatenate(solution.head_floors())
    np.testing.assert_allclose(result.head_score_floor[0], floors, rtol=1e-7)
    # f in closed form: K between test and training inputs, path by path.
    c = np.array([1 / np.sqrt(2)] * 2 + [1 / 2] * 4)  # the skip's paths come first
    x, test = np.asarray(given.xi) * c, np.asarray(given.xi_test) * c
    U, P = np.asarray(solution.U[0]), len(x)
    K = np.einsum("pia,ab,qib->pq", x, U, x) / x.shape[1]
    alpha = np.linalg.solve(K + 0.1 * np.eye(P), given.Y)
    f = np.einsum("pia,ab,qib,q->pa", test, U, x, alpha) / x.shape[1]
    right = lambda paths, factors=1.0: np.mean(
        np.sign((f * factors)[:, paths].sum(axis=1)) == np.asarray(given.Y_test)
    )
    pruned = result.accuracy_pruned[0, :, 0].values
    # Paths: skip-1, skip-2, content-1, content-2, decisive-1, decisive-2.
    assert result.accuracy_sets[0, 0] == right(range(6))
    assert pruned[0] == right([2, 3, 4, 5])  # without the skip of layer 1
    # One head of layer 1 less: the other one has 1 instead of 1/2 of its layer.
    more = np.array([1, 1, *[np.sqrt(2)] * 4])
    assert pruned[1] == right([0, 1, 4, 5], more)
    assert pruned[2] == right([0, 1, 2, 3], more)
    assert pruned[3] == right([1, 3, 5])
    curve = result.accuracy_cumulative[0, :, :, 0]
    assert np.isnan(curve.sel(order=["exact-law", "trained"])).all()
    assert np.isfinite(curve.sel(order="magnitude")[:2]).all()
    shown = [figure for _, figure in plotting.pictures(result)]
    assert len(shown) == 3


def test_the_content_of_the_file_is_part_of_the_study(study):
    before = studies.load(study)[0].inputs()
    with np.load(study.parent / "arrays.npz") as file:
        np.savez(study.parent / "arrays.npz", **(dict(file) | {"Y": -file["Y"]}))
    assert studies.load(study)[0].inputs() != before


def test_an_example_is_never_replaced(study):
    file, again = study.parent / "arrays.npz", study.with_name("again.toml")
    file.write_bytes(b"mine")
    given = ["new", "pruning", "--task", "arrays", "--output", str(again)]
    result = CliRunner().invoke(app, given)
    assert not result.exit_code and again.exists()
    assert "exists and is kept" in result.output and file.read_bytes() == b"mine"
