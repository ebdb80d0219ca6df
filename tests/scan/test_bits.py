"""Bifurcation studies in chunks: no bit depends on the cuts, order or threads."""

import random

import numpy as np
import pytest

import statmech_attn.dynamics.diagrams.work as diagram_work
from statmech_attn import studies
from statmech_attn.batches import compilations
from statmech_attn.reporting import Silent
from statmech_attn.scan.chunks import chunk_computation
from statmech_attn.scan.chunks.results import Memory
from statmech_attn.scan.chunks.session import Session
from statmech_attn.scan.chunks.signals import Stop
from statmech_attn.scan.chunks.work import RAISED
from statmech_attn.scan.engines import local


RUN = {"transient": 40, "steps": 200, "exponents": 1, "max_doublings": 1}
RUN |= {"section_samples": 8, "strobe_samples": 4, "compiler": "xla"}
KINDS = {
    "grid": {"start": "token"},
    "several starts": {"start": "random", "starts": 2},
    "refined": {"start": "token", "refine": 2},
    "sweep": {"start": "continue-up"},
}


STUDY = {
    "kind": "bifurcation",
    "network": {
        "patterns": "cycle",
        "n_patterns": 3,
        "n_bits": 6,
        "context": 2,
        "seed": 1,
    },
    "parameters": {
        "beta": {"start": 1.2, "stop": 1.5, "num": 9},
        "gamma": [110.0, 120.0, 127.0],
        "epsilon": 0.02,
    },
}


@pytest.fixture(scope="module")
def compiled():
    """The compiled stages, which are the same for all kinds."""
    return studies.work(studies.parse({**STUDY, "run": RUN | KINDS["grid"]}), 8).scan


@pytest.fixture(
    scope="module",
    params=KINDS,
)
def work(request, compiled):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagram_work, "SWEEP_WORK", 3.2e4)  # four values in a round
        study = studies.parse({**STUDY, "run": RUN | KINDS[request.param]})
        made = studies.work(study, 8)
    made.scan = compiled
    return made


def arrays(session) -> list:
    """All rows of all rounds, whatever the cuts were."""
    rounds = sorted({chunk.round for chunk in session.chunks})
    names = sorted(session.store.read(session.chunks[0]).arrays)
    return [session.results.column(name, r) for r in rounds for name in names]


def shuffled(work, per_chunk: int, seed: int = 0, order=random.Random.shuffle):
    """Chunks one after the other, those of a round in any order."""
    with Session(work, Memory(), per_chunk, Silent(), Stop()) as session:
        while not session.finished:
            chunks = list(iter(lambda: session.next(wait=False), None))
            order(random.Random(seed), chunks)
            for chunk in chunks:
                found = chunk_computation.compute(
                    work, chunk, session.payload, lambda _: None, None
                )
                session.keep(chunk, *found)
            session.look()
    return session


@pytest.fixture(scope="module")
def whole(work):
    return shuffled(work, 10_000)


def same(some, others) -> bool:
    pairs = zip(some, others, strict=True)
    return all(x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("per_chunk", (2, 5))
def test_no_bit_depends_on_cuts_and_order(work, whole, per_chunk):
    assert same(arrays(shuffled(work, per_chunk, seed=per_chunk)), arrays(whole))


@pytest.mark.slow
@pytest.mark.parametrize("threads", (1, 3))
def test_no_bit_depends_on_the_number_of_threads(work, whole, threads):
    with Session(work, Memory(), 5, Silent(), Stop()) as session:
        local.compute(session, threads)
    assert session.finished
    assert same(arrays(session), arrays(whole))


@pytest.mark.slow
def test_the_number_of_compilations_does_not_depend_on_that_of_chunks(work):
    few = shuffled(work, 3)
    before = compilations.count()
    assert len(shuffled(work, 1).chunks) > 2 * len(few.chunks)
    made, read, *_ = compilations.count().since(before)
    assert made + read == 0


@pytest.mark.slow
def test_a_window_with_few_turns_of_the_clock_has_numbers(compiled):
    """The strobe of short runs is filled up with NaN, which is no failure."""
    run = RUN | KINDS["grid"] | {"strobe_samples": 4, "steps": 4}
    made = studies.work(studies.parse({**STUDY, "run": run | {"exponents": 0}}), 8)
    found = local.in_memory(made)
    assert np.isnan(found.strobe).any() and "failure" not in found


@pytest.mark.slow
def test_a_point_that_raises_changes_no_bit_of_its_neighbours(work, whole, monkeypatch):
    beta, gamma = (
        values[i] for values, i in zip(work.axes.values, (2, 0), strict=True)
    )
    ordinary = diagram_work.run

    def run(scan, some, tick):
        here = (some.params.beta == beta) & (some.params.gamma == gamma)
        if np.any(here):
            raise ArithmeticError("no such point")
        return ordinary(scan, some, tick)

    monkeypatch.setattr(diagram_work, "run", run)
    found = shuffled(work, 10_000)
    if work.diagram.refine:  # later rounds depend on the labels
        of_first = [chunk for chunk in found.chunks if chunk.round == 0]
        count = sum(chunk.size for chunk in of_first)
    else:
        count = len(found.results.failure())
    failed = found.results.failure()[:count]
    assert 0 < np.count_nonzero(failed) <= count / 3
    assert failed.max() == RAISED
    for name in found.store.read(found.chunks[0]).arrays:
        some, others = (
            session.results.column(name)[:count][failed == 0]
            for session in (found, whole)
        )
        assert some.tobytes() == others.tobytes(), name
    assert "no such point" in " ".join(found.results.reasons())
