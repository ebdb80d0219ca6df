"""A run that is cut off anywhere goes on from its blocks with the same numbers."""

import functools
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import storage
from statmech_attn.batches import rng
from statmech_attn.bpkr import Problem
from statmech_attn.montecarlo import weight_space
from statmech_attn.montecarlo.posterior_samples.weight_sampling import sample_weights
from statmech_attn.reporting import Silent
from statmech_attn.storage.writers.blocks import BlockFolder


STUDY = 'kind = "test"'


class Notes(Silent):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


class State(NamedTuple):
    """One leaf of each type that a sampler carries."""

    z: jax.Array
    step: jax.Array
    adapted: jax.Array
    key: jax.Array


def state_after(number):
    values = 0.1 * number + jnp.arange(6.0).reshape(2, 3) / 7
    keys = jax.random.split(jax.random.key(number), 2)
    return State(values, jnp.array([number, -1]), jnp.array([True, False]), keys)


def opened(folder, *, study=STUDY, run="run", report=None):
    report = report or Silent()
    return BlockFolder(folder, warmup=2, study=study, run=run, report=report)


def appended(folder, pieces):
    blocks = opened(folder)
    for number in range(1, pieces + 1):
        blocks.append(state_after(number), {"x": np.full((2, 3), float(number))})
    return blocks


@functools.cache
def content(pieces):
    """Of the files that `appended` leaves."""
    with tempfile.TemporaryDirectory() as folder:
        appended(pathlib.Path(folder), pieces)
        return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def filled(folder, pieces):
    """A folder as `appended` leaves an empty one."""
    for name, file in content(pieces).items():
        (folder / name).write_bytes(file)
    return opened(folder)


def same(first, second):
    keys = lambda a: jnp.issubdtype(getattr(a, "dtype", int), jax.dtypes.prng_key)
    plain = lambda a: np.asarray(jax.random.key_data(a) if keys(a) else a)
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(
        plain(a).dtype == plain(b).dtype and (plain(a) == plain(b)).all()
        for a, b in pairs
    )


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_blocks_give_back_what_was_stored(tmp_path):
    filled(tmp_path, 5)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"draws-0000{n}.h5" for n in (3, 4, 5)] + [
        f"state-0000{n}.h5" for n in (4, 5)
    ]
    found = opened(tmp_path)
    assert found.done == 5 and same(found.state(state_after(0)), state_after(5))
    assert [block["x"][0, 0] for block in found.draws()] == [3.0, 4.0, 5.0]


@pytest.mark.parametrize("name", ("draws-00005.h5", "state-00005.h5"))
def test_a_damaged_last_block_is_dropped_with_a_note(tmp_path, name):
    filled(tmp_path, 5)
    damage(tmp_path / name)
    report = Notes()
    found = opened(tmp_path, report=report)
    assert found.done == 4 and same(found.state(state_after(0)), state_after(4))
    assert len(report.notes) == 1 and "block 5 is damaged" in report.notes[0]
    found.append(state_after(5), {"x": np.full((2, 3), 5.0)})
    assert [block["x"][0, 0] for block in opened(tmp_path).draws()] == [3.0, 4.0, 5.0]


def test_a_kill_between_draws_and_state_loses_the_block_only(tmp_path):
    filled(tmp_path, 5)
    (tmp_path / "state-00005.h5").unlink()
    found = opened(tmp_path)
    assert found.done == 4 and same(found.state(state_after(0)), state_after(4))
    assert [block["x"][0, 0] for block in found.draws()] == [3.0, 4.0]


@pytest.mark.parametrize("harm", (damage, os.unlink))
def test_damage_that_no_state_precedes_begins_again_with_a_note(tmp_path, harm):
    filled(tmp_path, 5)
    harm(tmp_path / "draws-00003.h5")
    report = Notes()
    assert opened(tmp_path, report=report).done == 0
    assert len(report.notes) == 1 and "again from the first one" in report.notes[0]
    assert appended(tmp_path, 5).done == 5
    assert [block["x"][0, 0] for block in opened(tmp_path).draws()] == [3, 4, 5]


def test_a_second_kill_does_not_stop_the_healing(tmp_path):
    filled(tmp_path, 5)
    damage(tmp_path / "draws-00003.h5")
    appended(tmp_path, 1)
    again = opened(tmp_path)
    assert again.done == 1 and same(again.state(state_after(0)), state_after(1))


class Renamed(NamedTuple):
    """The state of another version."""

    position: jax.Array
    step: jax.Array
    adapted: jax.Array
    key: jax.Array


def test_states_of_another_version_are_computed_again_with_a_note(tmp_path):
    """Also where the run that begins again is killed on the way."""
    blocks = opened(tmp_path)
    for number in range(1, 6):
        blocks.append(Renamed(*state_after(number)), {"x": np.zeros((2, 3))})
    report = Notes()
    found = opened(tmp_path, report=report)
    assert same(found.state(state_after(0)), state_after(0)) and found.done == 0
    assert len(report.notes) == 1 and "another version" in report.notes[0]
    found.append(state_after(1), {})
    again = opened(tmp_path)
    assert same(again.state(state_after(0)), state_after(1)) and again.done == 1
    for number in range(2, 6):
        again.append(state_after(number), {"x": np.full((2, 3), float(number))})
    assert [block["x"][0, 0] for block in opened(tmp_path).draws()] == [3.0, 4.0, 5.0]


def test_damage_in_the_warm_up_begins_again(tmp_path):
    filled(tmp_path, 2)
    for path in tmp_path.iterdir():
        damage(path)
    assert opened(tmp_path).done == 0


@pytest.mark.parametrize("other", ({"study": 'kind = "other"'}, {"run": "other"}))
def test_blocks_of_another_run_are_refused_and_kept(tmp_path, other):
    filled(tmp_path, 3)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(storage.StorageError, match="another study") as caught:
        opened(tmp_path, **other)
    assert "\n" not in str(caught.value)
    assert sorted(tmp_path.iterdir()) == before


def test_two_processes_in_one_folder_lose_nothing_of_each_other(tmp_path):
    """One begins while the other has drawn a block and not yet stored its state."""
    first = filled(tmp_path, 5)
    first.append(state_after(6), {"x": np.full((2, 3), 6.0)})
    (tmp_path / "state-00006.h5").unlink()
    second = opened(tmp_path)
    assert second.done == 5
    first.append(state_after(7), {"x": np.full((2, 3), 7.0)})
    assert [block["x"][0, 0] for block in first.draws()] == [3.0, 4.0, 5.0, 6.0, 7.0]
    second.append(state_after(6), {"x": np.full((2, 3), 6.0)})
    second.append(state_after(7), {"x": np.full((2, 3), 7.0)})
    assert opened(tmp_path).done == 7


RUN = """
import sys, pathlib
import jax
jax.config.update("jax_enable_x64", True)
sys.path.insert(0, {here!r})
from test_blocks import sampled
sampled(pathlib.Path(sys.argv[1]))
"""
WARMUP, PIECES = 6, 6 + 10  # of warm-up; with those of draws


def sampled(folder, report=None):
    keys = jax.random.split(jax.random.key(0), 3)
    xi = rng.normal(keys[0], (3, 9, 2))
    Y = jnp.array([1.0, -2.0, 0.5])
    problem = Problem(xi, Y, heads=(2,), width=3, temperature=0.1)
    posterior = weight_space.posterior(problem)
    xi_test = rng.normal(keys[2], (2, 9, 2))
    return sample_weights(
        keys[1],
        posterior,
        method="weights",
        xi_test=xi_test,
        y_test=jnp.ones(2),
        draws=100,
        warmup=55,
        chains=2,
        block=10,
        folder=folder,
        study=STUDY,
        report=report or Silent(),
    )


def killed_after(folder, piece):
    """Run in another process, killed as soon as the piece is stored."""
    here = os.path.dirname(__file__)
    command = [sys.executable, "-c", RUN.format(here=here), str(folder)]
    with subprocess.Popen(command) as process:
        try:
            deadline = time.monotonic() + 120
            while not (folder / f"state-{piece:05d}.h5").exists():
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.002)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    return max(int(path.stem[-5:]) for path in folder.glob("state-*.h5"))


@pytest.fixture(scope="module")
def straight():
    return sampled(None)


@pytest.mark.slow
@pytest.mark.parametrize("piece", (2, WARMUP + 3))
def test_a_run_killed_anywhere_ends_with_the_same_numbers(tmp_path, piece, straight):
    """In the warm-up, and among the draws; to the last bit."""
    folder = tmp_path / "out.blocks"
    reached = killed_after(folder, piece)
    assert piece <= reached < (WARMUP if piece < WARMUP else PIECES)
    report = Notes()
    resumed = sampled(folder, report)
    assert any("continued after step" in note for note in report.notes)
    for name, one, other in zip(resumed._fields, resumed, straight, strict=True):
        assert same(one, other), name
    assert resumed.accuracy.shape == (2, 100) and len(resumed.U) == 1
