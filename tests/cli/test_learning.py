"""Learning on the command line: theory, two posteriors, their comparison."""

import os
import signal
import time

import numpy as np
import pytest

from statmech_attn import storage
from statmech_attn.cli.terminal.progress import Lines


pytestmark = pytest.mark.slow


TASK = """
[task]
n_train = 10
n_test = 20
length = 6
features = 8
[network]
width = [6]
temperature = 0.5
[run]
"""
# So many draws that an error of 10 % of T would show, without which none agrees.
SAMPLING = "draws = 1000\nwarmup = 200\nchains = 3\nstored = 50\n"
STUDIES = {
    "saddle": f'kind = "order-parameter"\n{TASK}',
    "exact": f'kind = "posterior"\n{TASK}{SAMPLING}evidence = true\n',
    "weights": f'kind = "posterior"\n{TASK}{SAMPLING}method = "weights"\nblock = 100\n',
}


@pytest.fixture(scope="module")
def folder(call, tmp_path_factory):
    """The three files of one task, made by the command line."""
    folder = tmp_path_factory.mktemp("learning")
    for name, text in STUDIES.items():
        (folder / f"{name}.toml").write_text(text)
        output = call(
            "run", folder / f"{name}.toml", "-o", folder / f"{name}.h5"
        ).output
        assert {"saddle": "converged"}.get(name, "R-hat") in output
    return folder


@pytest.mark.parametrize("name", ("exact", "weights"))
def test_posterior_files_hold_means_with_errors_and_draws(folder, name):
    found = storage.read(folder / f"{name}.h5")
    assert found.U_1_draws.shape == (1, 3, 50, 4, 4)
    for U in ("U_1", "U_2", "U_a"):
        # Standard error, spread and effective number belong together.
        expected = found[f"{U}_std"] / np.sqrt(found[f"{U}_n_eff"])
        np.testing.assert_allclose(found[f"{U}_stderr"], expected)
    assert not list(folder.glob("*.chunks"))
    assert {"divergences", "bfmi", "head_score", "accuracy_stderr"} <= set(found)
    assert ("log_evidence_stderr" in found) == (name == "exact")


@pytest.mark.statistical
def test_exact_law_and_weights_are_one_posterior(call, folder):
    """Two independent samplers of one law; the threshold is 1 in 1000 for all."""
    files = [folder / f"{name}.h5" for name in STUDIES]
    output = call("compare", *files, "-o", folder / "agreement.h5").output
    assert "exact" in output and "reference" in output
    found = storage.read(folder / "agreement.h5").sel(estimate="weights")
    assert found.verdict.attrs["flag_meanings"].split()[0] == "agrees"
    assert (found.verdict.values == 0).all(), found.largest_z.values


def test_an_interrupted_run_goes_on_to_the_same_numbers(
    call, folder, tmp_path, monkeypatch
):
    output, chunks = tmp_path / "again.h5", tmp_path / "again.h5.chunks"
    advance, steps = Lines.advance, []

    def interrupt_after_two_blocks(self, work):
        steps.append(work)
        if len(steps) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)  # until the main thread has seen it
        advance(self, work)

    with monkeypatch.context() as patched:
        patched.setattr(Lines, "advance", interrupt_after_two_blocks)
        stopped = call("run", folder / "weights.toml", "-o", output, code=130)
    assert "the same command goes on" in stopped.output.replace("\n", " ")
    assert list(chunks.rglob("state-*.h5")) and not output.exists()
    assert not list(chunks.glob("chunk-*.h5"))
    call("run", folder / "weights.toml", "-o", output)
    again, once = storage.read(output), storage.read(folder / "weights.h5")
    assert again.drop_attrs().equals(once.drop_attrs())
    assert not chunks.exists()


def test_files_of_other_tasks_are_refused(call, folder, tmp_path):
    study, other = folder / "saddle.toml", tmp_path / "other.h5"
    call("run", study, "-o", other, "--set", "task.seed=5")
    words = ("compare", other, folder / "exact.h5", "-o", tmp_path / "c.h5")
    assert "task differs" in call(*words, code=1).output
    words = ("compare", folder / "saddle.h5", "-o", tmp_path / "c.h5")
    assert "Missing argument" in call(*words, code=2).output
