"""Widths of batches: which are compiled, when, and by whom."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from statmech_attn.batches.compiled import programs


@pytest.fixture
def stage(monkeypatch):
    """Full batches of 136, whose time is known; a narrower width pays at once."""
    monkeypatch.setattr(programs, "workers", lambda: 1)
    stage = programs.Stage(lambda x: x + 1, lambda width: (np.zeros(width),), 136)
    stage.program(136).seconds = 10.0
    return stage


@pytest.mark.one_generator
def test_a_narrow_width_is_compiled_once_it_would_have_paid(stage):
    assert stage.width(5, 1000.0) == 136  # nothing is known about its time
    stage.measured(136, 136, 1000.0, seconds=6.0)
    # A batch of 8 would save 5.4 of these 6 seconds; two of them pay for 10.
    assert stage.width(5, 1000.0) == 136
    assert stage.width(5, 1000.0) == 8
    assert stage.width(136, 1000.0) == 136
    assert stage(8, np.zeros(8)).shape == (8,)


@pytest.mark.one_generator
def test_widths_that_threads_compile_at_the_same_time_are_all_there(stage, monkeypatch):
    """One thread is still at a width when another begins and, if it can, ends one."""
    begun, other, compiled = threading.Event(), threading.Event(), []
    compile = programs.Compiled

    def slow(function, example, **options):
        compiled.append(len(example))
        if len(example) == 8:
            begun.set()
            other.wait(0.5)
        program = compile(function, example, **options)
        if len(example) == 32:
            other.set()
        return program

    monkeypatch.setattr(programs, "Compiled", slow)
    stage.measured(136, 136, 1000.0, seconds=1e6)
    with ThreadPoolExecutor(8) as pool:
        eight = [pool.submit(stage.width, 5, 1000.0)]
        assert begun.wait(10)
        wider = [pool.submit(stage.width, 20, 1000.0) for _ in range(4)]
        eight += [pool.submit(stage.width, 5, 1000.0) for _ in range(3)]
        widths = {call.result() for call in (*eight, *wider)}
    assert eight[0].result() == 8 and widths <= {8, 32, 136}
    for width in widths:
        assert stage(width, np.zeros(width)).shape == (width,)
    assert sorted(compiled) == [8, 32]
