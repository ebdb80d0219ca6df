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


def test_a_study_gives_the_numbers_of_the_library_and_names_its_heads(study):
    result = studies.run(studies.load(study)[0])
    given = arrays.load(study.parent / "arrays.npz")
    problem = bpkr.Problem(
        given.xi, given.Y, heads=given.heads, width=20, temperature=0.01
    )
    U = problem.solve().U[0]
    np.testing.assert_allclose(result.U_1.values[0], U, rtol=1e-9)
    assert result.attention_head.values.tolist() == list(given.names)


def test_the_content_of_the_file_is_part_of_the_study(study):
    before = studies.load(study)[0].inputs()
    with np.load(study.parent / "arrays.npz") as file:
        np.savez(study.parent / "arrays.npz", **(dict(file) | {"Y": -file["Y"]}))
    assert studies.load(study)[0].inputs() != before


def test_an_example_is_never_replaced(study):
    again = study.with_name("again.toml")
    result = CliRunner().invoke(app, ["new", "arrays", "--output", str(again)])
    assert result.exit_code and not again.exists()
