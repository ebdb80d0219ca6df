"""Whoever looks at a chunk at the same time, one of them has it."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier

import pytest

from statmech_attn.scan.chunks.claims import Claims, owner_of


ROUNDS, CLAIMANTS = 150, 3
DEAD = "1-0123456789ab"


@pytest.fixture
def switching():
    """Threads that take turns as often as the interpreter allows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def bounded():
    """What takes longer than 10 s fails."""

    def late(*_):
        pytest.fail("still waiting after 10 s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def winners(folder: Path, paths: list[Path], tidy: bool) -> list[int]:
    """How many of those that begin together get each claim."""
    barrier = Barrier(CLAIMANTS)

    def work(number: int, claims: Claims) -> list[bool]:
        found = []
        for path in paths:
            barrier.wait()
            if tidy and number == 0:
                claims.clean()
            found.append(claims.take(path) or claims.take_over(path))
        return found

    with ExitStack() as left, ThreadPoolExecutor(CLAIMANTS) as pool:
        claims = [left.enter_context(Claims(folder)) for _ in range(CLAIMANTS)]
        got = list(pool.map(work, range(CLAIMANTS), claims))
        for path in paths:
            assert owner_of(path) in {c.name for c in claims}
    return [sum(each) for each in zip(*got, strict=True)]


@pytest.mark.parametrize("tidy", [False, True])
@pytest.mark.parametrize("left", [None, DEAD, ""])
def test_one_of_many_gets_a_claim(tmp_path, switching, left, tidy):
    paths = [tmp_path / f"chunk-{n:07d}.claim" for n in range(ROUNDS)]
    for path in paths:
        if left is not None:
            path.write_text(left)
    assert winners(tmp_path, paths, tidy) == [1] * ROUNDS


def test_an_heir_that_died_has_an_heir(tmp_path):
    path = tmp_path / "chunk-0000000.claim"
    path.write_text(DEAD)
    path.with_name(f"{path.name}.{DEAD}.part").write_text("2-0123456789ab")
    with Claims(tmp_path) as first, Claims(tmp_path) as second:
        assert first.take_over(path) and owner_of(path) == first.name
        assert not second.take(path) and not second.take_over(path)


def test_a_pipe_as_a_claim_is_nobodys(tmp_path, bounded):
    path = tmp_path / "chunk-0000000.claim"
    os.mkfifo(path)
    with Claims(tmp_path) as claims:
        assert claims.take_over(path) and owner_of(path) == claims.name


def test_of_a_pipe_as_a_worker_the_silence_tells(tmp_path, bounded, monkeypatch):
    with Claims(tmp_path) as claims:
        os.mkfifo(tmp_path / "workers" / DEAD)
        assert not claims.dead(DEAD)
        monkeypatch.setattr("statmech_attn.scan.chunks.claims.SILENCE", -1.0)
        assert claims.dead(DEAD)


def test_claims_without_hard_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "chunk-0000000.claim"
    with Claims(tmp_path) as first, Claims(tmp_path) as second:
        assert first.take(path) and not second.take(path)
        path.write_text(DEAD)
        assert second.take_over(path) and not first.take_over(path)
        assert owner_of(path) == second.name


def test_what_a_process_leaves_when_it_ends(tmp_path):
    with Claims(tmp_path) as claims:
        assert claims.take(tmp_path / "chunk-0000000.claim")
        claims.release(tmp_path / "chunk-0000000.claim")
    assert list(tmp_path.iterdir()) == [tmp_path / "workers"]
    assert not list((tmp_path / "workers").iterdir())
