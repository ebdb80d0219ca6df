from dataclasses import replace

import jax
import numpy as np
import pytest

from statmech_attn import dmft, dynamics
from statmech_attn.batches import compilations, run_all, workers
from statmech_attn.dynamics import PHASES
from statmech_attn.dynamics.diagrams import (
    Plan,
    Points,
    run,
    Scan,
)


@pytest.fixture(scope="module")
def published():
    file = dmft.load("poclopez-pe2")
    return dmft.network(file.patterns, context=file.context), file


def points_at(published, betas):
    net, file = published
    params = dmft.parameters(betas, file.gamma, file.epsilon)
    return Points(params, dmft.from_checkpoint(net, params, file))


PLAN = Plan(transient=3000, steps=4000, exponents=3, max_doublings=3)


@pytest.fixture(scope="module", params=["xla", "llvm"])
def short_scan(request, published):
    """150 beta across the phases: two batches, the second one padded."""
    if request.param == "llvm":
        pytest.importorskip("llvmlite")
    plan = replace(PLAN, compiler=request.param)
    betas = np.concatenate([np.linspace(0, 3, 110), np.linspace(1.24, 1.28, 40)])
    points = points_at(published, betas)
    scan = Scan(dmft.system(published[0]), plan, points)
    return betas, points, scan, run(scan, points)


@pytest.mark.slow
def test_phases_of_the_published_network(short_scan):
    betas, _, _, outcome = short_scan
    names = np.array([PHASES[i] for i in outcome.verdicts.phase])
    period = np.asarray(outcome.verdicts.period)
    assert (names[betas < 1.24] == "fixed").all()
    assert (period[betas < 1.24] == 4).all()
    # The published figure: chaos around beta = 1.4 and cycles above 2.7.
    assert "chaotic" in names[(betas > 1.35) & (betas < 1.45)]
    assert (names[betas > 2.7] == "periodic").all()
    assert (period[betas > 2.7] == 24).all()
    assert "quasiperiodic" in names[(betas > 1.2433) & (betas < 1.2495)]
    assert set(period % 4) == {0}


@pytest.mark.slow
def test_periodic_points_have_the_exponents_of_their_cycles(short_scan):
    """One source for all of a point, errors of rounding, and the same phase."""
    betas, _, _, outcome = short_scan
    verdicts = outcome.verdicts
    cyclic = np.isin(verdicts.phase, (PHASES.index("fixed"), PHASES.index("periodic")))
    assert cyclic.sum() > 50
    assert (verdicts.source[:, ~cyclic] == 0).all()
    assert (verdicts.source[0, cyclic] == 1).mean() > 0.95
    of_cycle = (verdicts.source == 1) & np.isfinite(verdicts.exponents)
    assert np.median(verdicts.stderr[of_cycle]) < 1e-12
    # Only at beta = 0 does no token depend on those before.
    assert np.array_equal(np.isinf(verdicts.exponents).any(axis=0), betas == 0)
    assert np.array_equal(verdicts.exponents[of_cycle], verdicts.weighted[of_cycle])


@pytest.mark.slow
def test_every_verdict_has_its_horizon(short_scan):
    """Transient, alignment, windows and tails up to the verdict, doublings included."""
    _, _, scan, outcome = short_scan
    horizon, window = outcome.verdicts.horizon, outcome.verdicts.window
    aligned = 1000  # at least, of a window of 4000 tokens
    once = window == scan.window_steps(0)
    assert once.any() and (horizon[once] >= 3000 + aligned + 4000 + 3072).all()
    assert (horizon[once] < 3000 + 2 * aligned + 4100 + 3072).all()
    assert (horizon[~once] > horizon[once].max() + 8000).all()


@pytest.mark.slow
def test_longer_windows_are_progress_too(short_scan):
    """Told as they end, and at least what the same points would be in full batches."""
    _, points, scan, outcome = short_scan
    doubled = np.flatnonzero(outcome.verdicts.window > scan.window_steps(0))[:3]
    done = []
    run(scan, points.take(doubled), done.append)
    longest = outcome.verdicts.window[doubled] / scan.window_steps(0)
    longer = scan.window_work() * (2 * longest - 2).sum()
    assert sum(done) - scan.work_per_point() * len(doubled) >= longer * (1 - 1e-12)


@pytest.mark.slow
@pytest.mark.one_generator
@pytest.mark.parametrize(
    ("chosen", "lanes"), [([3, 60, 111, 128, 149, 20, 80], None), (range(45, 85), 8)]
)
def test_batch_width_and_company_change_no_bit(published, short_scan, chosen, lanes):
    """Of 8 lanes are batches into which the few points of an extension go."""
    _, points, scan, outcome = short_scan
    chosen = np.array(chosen)
    alone = points.take(chosen)
    small = Scan(dmft.system(published[0]), scan.plan, alone, lanes=lanes)
    assert small.lanes != scan.lanes
    again = run(small, alone)
    pairs = [(outcome.section, again.section), (outcome.strobe, again.strobe)]
    for one, other in pairs:
        assert np.array_equal(one[chosen], other, equal_nan=True)
    for one, other in zip(
        jax.tree.leaves(outcome.verdicts), jax.tree.leaves(again.verdicts), strict=True
    ):
        assert np.array_equal(one[..., chosen], other, equal_nan=True)


@pytest.mark.slow
def test_a_scan_point_is_what_the_general_functions_give(published, short_scan):
    """The lane pipeline against `classify` on one state, point by point."""
    betas, _, _, outcome = short_scan
    net, file = published
    for i in (10, 100):
        params = dmft.parameters(betas[i], file.gamma, file.epsilon)
        start = dmft.from_checkpoint(net, params, file)
        found = dynamics.classify(
            dmft.system(net), start, params, steps=4000, transient=3000, exponents=3
        )
        assert int(found.phase) == outcome.verdicts.phase[i]
        assert int(found.period) == outcome.verdicts.period[i]
        gap = found.spectrum.weighted - outcome.verdicts.weighted[:, i]
        assert np.abs(gap).max() < 1e-9


def test_section_samples_are_the_orbit_on_the_section(published):
    # A fixed point and a torus, from states on them: the way there is chaotic and would
    # blow up the rounding differences of two compiled programs.
    net, _ = published
    points = points_at(published, np.array([1.0, 1.262]))
    there = dmft.advance(net, points.params, points.starts, 20_000)
    points = points._replace(starts=there)
    plan = Plan(
        transient=1000,
        steps=3000,
        exponents=0,
        section_tolerance=0.01,
        section_samples=16,
        strobe_samples=5,
    )
    outcome = run(Scan(dmft.system(net), plan, points), points)
    state = dmft.advance(net, points.params, points.starts, 1000)
    at_zero = (int(state.clock) + np.arange(3000)) % 4 == 0
    _, seen = dmft.trajectory(net, points.params, state, steps=3000)
    m = np.asarray(seen.m_o_se)
    for i in range(2):
        on_section = m[np.abs(m[:, 1, i]) < 0.01, 0, i]
        assert outcome.section_count[i] == len(on_section)
        kept = min(16, len(on_section))
        assert np.allclose(outcome.section[i, :kept], on_section[:kept], atol=1e-9)
        assert np.isnan(outcome.section[i, kept:]).all()
        assert np.allclose(outcome.strobe[i], m[at_zero, 0, i][-5:], atol=1e-9)
    assert outcome.section_count.max() > 16


@pytest.mark.slow
def test_undetermined_points_are_extended_and_say_so(published):
    """At 1.2434, just past the first instability, the torus closes in slowly."""
    betas = np.array([1.2428, 1.4])
    points = points_at(published, betas)
    options = dict(transient=500, steps=2000, exponents=2)
    cut = run(
        Scan(dmft.system(published[0]), Plan(max_doublings=0, **options), points),
        points,
    )
    long = run(
        Scan(dmft.system(published[0]), Plan(max_doublings=6, **options), points),
        points,
    )
    assert PHASES[cut.verdicts.phase[0]] in ("undetermined", "transient")
    assert cut.verdicts.reasons[0] > 0
    assert PHASES[long.verdicts.phase[0]] == "fixed"
    assert long.verdicts.window[0] > cut.verdicts.window[0]
    assert long.verdicts.window[1] == cut.verdicts.window[1]


@pytest.mark.slow
def test_a_new_value_never_recompiles_and_progress_adds_up(published):
    on_host = lambda points: jax.tree.map(np.asarray, points)  # as studies have them
    few = on_host(points_at(published, np.linspace(0.1, 0.5, 8)))
    many = on_host(points_at(published, np.linspace(1.5, 2.5, 40)))
    plan = Plan(300, 1500, exponents=1, max_doublings=0, compiler="xla")
    before = compilations.count()
    scan = Scan(dmft.system(published[0]), plan, few)
    done = []
    run(scan, few, done.append)
    assert sum(done) == pytest.approx(scan.work_per_point() * 8, rel=1e-12)
    made = compilations.count()
    assert sum(made.since(before)[:2]) > 0  # less what other tests have compiled
    run(scan, many)
    assert compilations.count().since(made)[:2] == (0, 0)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_points():
    logistic = dynamics.System(lambda x, p: p["r"] * x * (1 - x))
    plan = Plan(transient=100, steps=256, exponents=1)
    r = np.linspace(3, 4, 5000)
    points = [Points({"r": some}, some / 8) for some in (r[: 136 * workers()], r)]
    few, many = (Scan(logistic, plan, some) for some in points)
    assert few.lanes == many.lanes
    assert few.working_memory() == many.working_memory() < 2**24


def test_jobs_are_told_to_stop_when_the_consumer_fails():
    told = []

    def job(item, stop):
        if item:
            told.append(stop.wait(20))
        return item

    with pytest.raises(RuntimeError, match="consumer"):
        for _ in run_all(job, range(50)):
            raise RuntimeError("consumer")
    # Jobs that had begun were told; those that had not were dropped.
    assert all(told) and len(told) <= 2 * workers()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"exponents": 13},
            "exponents must lie in 0..12, the .* state; got 13",
        ),
        ({"steps": 0}, "steps must be at least 1; got 0"),
        ({"transient": -1}, "transient must be at least 0; got -1"),
        ({"tail": 100}, "tail must be at least 120; got 100"),
    ],
)
def test_impossible_plans_are_refused(published, changes, message):
    with pytest.raises(ValueError, match=message):
        Scan(
            dmft.system(published[0]),
            replace(PLAN, **changes),
            points_at(published, [1.0]),
        )
