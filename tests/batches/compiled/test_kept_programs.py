"""Programs that other processes load: those that were compiled, and whole."""

import time

import jax
import numpy as np
import pytest

from statmech_attn.batches import Origin
from statmech_attn.batches.compiled.kept_programs import FOLDER, kept


@pytest.fixture
def store(tmp_path):
    """An empty store of programs for one test."""
    name = "jax_compilation_cache_dir"
    before = getattr(jax.config, name)
    jax.config.update(name, str(tmp_path))
    yield tmp_path / FOLDER
    jax.config.update(name, before)


def test_a_stored_program_is_loaded_and_a_damaged_one_is_made_anew(store):
    new = float(time.time_ns())  # in no program that XLA's own store has
    x, lowered = np.arange(3.0), []

    def shifted(x):
        return x + new

    def lower():
        lowered.append(shifted)
        return jax.jit(shifted).lower(x)

    def images():
        program = kept(Origin(("trace",), ("machine",)), shifted, (x,), lower)
        return np.asarray(program(x)).tolist()

    expected = (x + new).tolist()
    assert images() == expected and len(lowered) == 1
    assert images() == expected and len(lowered) == 1
    program = max(store.iterdir(), key=lambda entry: entry.stat().st_size)
    program.write_bytes(program.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="is damaged"):
        assert images() == expected and len(lowered) == 2
