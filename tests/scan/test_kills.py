"""Processes that are killed, stopped, or many at once lose nothing that was done."""

import random
import signal
import time

import numpy as np
import pytest

from statmech_attn import storage


def same_bits(one, other) -> bool:
    one, other = storage.read(one), storage.read(other)
    return one.drop_attrs().equals(other.drop_attrs()) and all(
        one[name].values.tobytes() == other[name].values.tobytes() for name in one
    )


@pytest.fixture
def whole(server, study, tmp_path):
    """The result of a run that nothing happened to."""
    path = tmp_path / "whole.h5"
    server.start("run", study(**KEYS), "-o", path).wait(0)
    return path


def left_over(folder):
    """Everything but results, studies and whole chunk folders."""
    return [
        p for p in folder.rglob("*") if p.suffix in (".part", ".claim", ".removed")
    ] + list(folder.rglob("workers/*"))


KEYS = {"points": 60, "seconds": 0.01}


def kill_often(server, words, output, kills: int, seed: int):
    """Kill a run again and again, at moments of a whole run; returns the last one."""
    moments = random.Random(seed)
    begun = time.monotonic()
    server.start(*words).wait()
    length = time.monotonic() - begun
    output.unlink()
    killed = 0
    while killed < kills:
        run = server.start(*words)
        time.sleep(moments.uniform(0, length))
        run.kill().wait()
        killed += run.code == -signal.SIGKILL
        output.unlink(missing_ok=True)
    return server.start(*words).wait()


def test_50_kills_of_a_scan_and_its_merge_change_no_bit(
    server, study, tmp_path, whole
):
    output = tmp_path / "folder with blanks" / "out [1].h5"
    words = ["run", study(**KEYS), "-o", output, "--chunk", "3"]
    last = kill_often(server, words, output, kills=50, seed=1)
    assert last.code == 0, last.said
    assert same_bits(output, whole)
    assert left_over(tmp_path) == []
    assert [p.name for p in output.parent.iterdir()] == [output.name]
