"""Responses along beta: the numbers of one call, reasons, and files of a study."""

import numpy as np
import pytest
from typer.testing import CliRunner

from statmech_attn import dmft, storage, studies
from statmech_attn.cli.main import app


FREQUENCIES = [0.0, 0.3, 1.0]
STUDY = {
    "kind": "response",
    "parameters": {"beta": [1.0, 1.2, 1.28]},
    "run": {"frequencies": FREQUENCIES, "longest": 16, "transient": 20_000},
}


@pytest.fixture(scope="module")
def responses():
    """At rest at two values of beta, in chaos at a third."""
    return studies.run(studies.parse(STUDY))


@pytest.mark.slow
def test_a_study_has_the_numbers_of_the_function(responses):
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters([1.0, 1.2], file.gamma, file.epsilon)
    start = dmft.from_checkpoint(net, params, file)
    result = dmft.response(net, params, start, frequencies=FREQUENCIES, longest=16)
    moved = lambda x: np.moveaxis(x, -1, 0)
    of = lambda name: responses[name].values[:2]
    np.testing.assert_allclose(of("spectrum"), moved(result.spectrum), rtol=1e-9)
    chi = of("susceptibility_real") + 1j * of("susceptibility_imag")
    np.testing.assert_allclose(chi, moved(result.susceptibility), rtol=1e-9)
    assert of("period").tolist() == [4, 4]
    assert responses.spectrum.dims == ("beta", "frequency", "observable", "pattern")
    assert float(responses.gamma) == file.gamma


def test_a_point_without_a_response_says_why(responses):
    assert responses.failure.values.tolist()[:2] == [0, 0]
    assert responses.failure.values[2] != 0
    (reason,) = np.atleast_1d(responses.attrs["failure_reasons"])
    assert "linear response needs a fixed point or a cycle" in reason


def test_a_file_tells_of_its_orbits(tmp_path):
    study, path = tmp_path / "study.toml", tmp_path / "response.h5"
    study.write_text(storage.toml.dumps(STUDY))
    result = CliRunner().invoke(app, ["run", str(study), "--output", str(path)])
    assert result.exit_code == 0, result.output
    assert "1 of 3 points have no numbers" in result.output
    assert "ω of most noise" in result.output


def test_a_pattern_that_there_is_not_is_refused():
    study = STUDY | {"run": {"pattern": 3}}
    with pytest.raises(ValueError, match=r"pattern must lie in 0\.\.2; got 3"):
        studies.run(studies.parse(study))
