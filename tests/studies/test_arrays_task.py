"""Studies of a file of arrays: as in Python, with names of heads, known by content."""

import numpy as np
import pytest
from typer.testing import CliRunner

from statmech_attn import bpkr, studies
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
def test_a_study_gives_the_numbers_of_the_library_and_names_its_heads(study):
    result = studies.run(studies.load(study)[0])
    given = arrays.load(study.parent / "arrays.npz")
    problem = bpkr.Problem(
        given.xi, given.Y, heads=given.heads, width=20, temperature=0.01
    )
    U = problem.solve().U[0]
    np.testing.assert_allclose(result.U_1.values[0], U, rtol=1e-9)
    assert result.attention_head.values.tolist() == list(given.names)


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


def test_the_content_of_the_file_is_part_of_the_study(study):
    before = studies.load(study)[0].inputs()
    with np.load(study.parent / "arrays.npz") as file:
        np.savez(study.parent / "arrays.npz", **(dict(file) | {"Y": -file["Y"]}))
    assert studies.load(study)[0].inputs() != before


def test_an_example_is_never_replaced(study):
    again = study.with_name("again.toml")
    result = CliRunner().invoke(app, ["new", "arrays", "--output", str(again)])
    assert result.exit_code and not again.exists()
