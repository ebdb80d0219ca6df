"""Trajectories and Monte Carlo in chunks: the same bits wherever the cuts are."""

import jax
import numpy as np
import pytest

from statmech_attn import dmft, studies
from statmech_attn.batches import runtime
from statmech_attn.montecarlo.finite_networks import run_blocks
from statmech_attn.reporting import Silent
from statmech_attn.scan.chunks.results import Memory
from statmech_attn.scan.chunks.session import Session
from statmech_attn.scan.chunks.signals import Stop
from statmech_attn.scan.chunks.work import Chunk, Stopped
from statmech_attn.scan.engines import local


TRAJECTORIES = {
    "kind": "trajectory",
    "parameters": {"beta": {"start": 0.5, "stop": 1.5, "num": 11}},
    "run": {"steps": 70, "transient": 9000, "noise": True},
}
SIMULATIONS = {
    "kind": "monte-carlo",
    "parameters": {"beta": [0.5, 1.2, 1.5]},
    "run": {
        "steps": 11,
        "transient": 5,
        "n_spins": [300, 900],
        "runs": 50,
        "stored": 20,
        "mean_field_transient": 100,
        "seed": 3,
    },
}


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch):
    """Several segments, blocks and stretches where a study is small."""
    monkeypatch.setattr(dmft.NetworkTrajectories, "segment", 32)
    monkeypatch.setattr(dmft.NetworkTrajectories, "noisy_segment", 32)
    monkeypatch.setattr(run_blocks, "SMALLEST", 16)
    monkeypatch.setattr(run_blocks, "STRETCH", {"collapsed": 2**7, "spins": 2**17})


class Told(Silent):
    """Adds up the progress."""

    def __init__(self) -> None:
        self.points = 0.0

    def advance(self, work: float) -> None:
        self.points += work


def computed(tree, points_per_chunk, batch=None):
    """The data set of a study cut so, and the points that its ticks told of."""
    work, told = studies.work(studies.parse(tree), batch), Told()
    with Session(work, Memory(), points_per_chunk, told, Stop()) as session:
        local.compute(session, local.engine(2).workers_for(work))
    return work.assemble(session.results).loaded(), told.points


def with_run(tree, **changes):
    return tree | {"run": tree["run"] | changes}


@pytest.mark.slow
def test_trajectories_do_not_depend_on_where_they_are_cut():
    whole, points = computed(TRAJECTORIES, 11, batch=8)
    assert points == pytest.approx(11)
    for size in (1, 3, 8):
        again, points = computed(TRAJECTORIES, size, batch=8)
        assert again.identical(whole) and points == pytest.approx(11), size


@pytest.mark.slow
def test_segments_of_a_trajectory_are_those_of_one_run():
    """The second segment goes on from the state and the noise of the first."""
    found, _ = computed(TRAJECTORIES, 11)
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(found.beta.values, file.gamma, file.epsilon)
    state = dmft.advance(net, params, dmft.from_checkpoint(net, params, file), 9000)
    _, seen = dmft.trajectory(net, params, state, steps=70)
    noise = dmft.linear_noise(net, file.patterns, params, state, steps=70)
    # From an attractor a rounding error grows by orders of magnitude in 70 steps.
    first = lambda x: np.moveaxis(np.asarray(x), 2, 0)
    np.testing.assert_allclose(found.A, first(seen.A), atol=1e-10)
    np.testing.assert_allclose(found.A_noise_std, first(noise.std.A), rtol=1e-6)
    np.testing.assert_allclose(found.score_noise_std, noise.score.T, rtol=1e-6)


@pytest.mark.parametrize(
    ("context", "count", "noise", "batch"),
    [
        (2, 11, True, 8),
        (2, 3, True, 8),
        (30, 11, True, 1),
        (30, 11, False, 16),
    ],
)
def test_with_noise_the_dimension_alone_decides_the_batch(context, count, noise, batch):
    tree = with_run(TRAJECTORIES, noise=noise) | {"network": {"context": context}}
    tree["parameters"] = {"beta": {"start": 0.5, "stop": 1.5, "num": count}}
    assert studies.work(studies.parse(tree)).batch == batch


@pytest.mark.slow
@pytest.mark.parametrize("method", ["collapsed", "spins"])
def test_simulations_do_not_depend_on_where_they_are_cut(method):
    tree = with_run(SIMULATIONS, method=method)
    whole, points = computed(tree, 1000, batch=4)
    assert points == pytest.approx(24)  # 2 N, 3 beta, 4 blocks of runs
    widths = [(3, 1)] if runtime.has_fused() else []
    for size, batch in ((1, 4), (5, 4), *widths):
        again, points = computed(tree, size, batch)
        assert again.identical(whole) and points == pytest.approx(24), (size, batch)


@pytest.mark.slow
def test_all_sizes_and_chunks_share_one_compiled_program(caplog):
    jax.clear_caches()
    work = studies.work(studies.parse(with_run(SIMULATIONS, stored=0)), 4)
    with jax.log_compiles():
        for first in range(0, 24, 6):
            work.rows(Chunk(0, 0, first, first + 6), None, lambda _: None, None)
    compiled = [
        record
        for record in caplog.records
        if record.getMessage().startswith("Finished XLA compilation of jit(_stretch)")
    ]
    assert len(compiled) == 1


@pytest.mark.parametrize("tree", [TRAJECTORIES, SIMULATIONS])
def test_a_chunk_is_dropped_at_a_tick(tree):
    work = studies.work(studies.parse(tree), 8)

    def tick(points: float) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        work.rows(Chunk(0, 0, 0, 4), None, tick, None)


def test_rows_without_numbers_are_named():
    work = studies.work(studies.parse(TRAJECTORIES), 8)
    rows = work.rows(Chunk(0, 0, 0, 3), None, lambda _: None, None)
    assert work.not_finite(rows).tolist() == [False] * 3
    rows["A"][1, 2] = np.nan
    assert work.not_finite(rows).tolist() == [False, True, False]


def test_runs_are_cut_by_the_study_alone():
    for total, size in ((2, 2), (50, 16), (100, 104), (10_000, 256), (10**7, 4096)):
        floor = 16 if total == 50 else 256
        run_blocks.SMALLEST = floor
        cut = run_blocks.layout(total, "collapsed", 300)
        assert cut.size == size
        assert sum(cut.number(np.arange(cut.blocks))) == total
    assert run_blocks.layout(1000, "spins", 10**9).size == 1
