"""The law of lifetimes, and transients of a map whose lifetimes are known."""

import math
import re
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from statmech_attn.dynamics import PHASES, System
from statmech_attn.dynamics.diagrams import (
    axes_of,
    Confirm,
    Diagram,
    diagram_work,
    Plan,
    Points,
    Scan,
    variables,
)
from statmech_attn.dynamics.diagrams.confirmation.doubtful_verdicts import (
    edges,
    follow_until_change,
    LOOKS,
)
from statmech_attn.dynamics.diagrams.confirmation.lifetimes import (
    at_risk,
    DOUBT,
    lasts,
    left_late,
    still_transient,
)
from statmech_attn.dynamics.diagrams.diagram import diagram
from statmech_attn.dynamics.diagrams.stages import batch_times
from statmech_attn.dynamics.diagrams.stages.batch_times import Times
from statmech_attn.labels import Variable
from statmech_attn.reporting import Silent
from statmech_attn.scan import in_memory


FIXED, CHAOS, TRANSIENT = (
    PHASES.index(name) for name in ("fixed", "chaotic", "transient")
)
SINK = np.log(0.1)
SLOPE = Variable("s", "", "slope", "1", "s")


def tent(x, p):
    """The tent map with slope s, whose orbits beyond [0, 1] go to -1.

    Its exponent is ln s.  Beyond s = 2 an orbit stays in [0, 1] with the chance 2 / s
    at each step: its density is uniform, and a gap of width 1 - 2 / s maps outside.
    """
    inside = (x >= 0) & (x <= 1)
    return jnp.where(inside, p["s"] * jnp.minimum(x, 1 - x), -1 + 0.1 * (x + 1))


def slope(lifetime):
    """With this mean lifetime, ln(s / 2) = 1 / lifetime."""
    return 2 * np.exp(1 / np.asarray(lifetime))


def on_a_line(*rows):
    """Probabilities of (phase, exponent, time, left) of points side by side."""
    phase, exponent, time, left = np.array(rows, float).T
    said = np.stack([phase, exponent, np.zeros(len(rows))])
    pairs = edges(np.arange(len(rows))[:, None])
    return still_transient(said, pairs, np.full(len(rows), 100.0), time, left)


@pytest.mark.parametrize("exits", (1, 2, 8, 50))
def test_the_chance_to_last_allows_for_the_error_of_the_lifetime(exits):
    """With e exits in T steps, (1 + t/T)^-e of a further lifetime is uniform."""
    noise = np.random.default_rng(exits)
    risk = noise.exponential(3000.0, (4000, exits)).sum(axis=1)
    chance = lasts(noise.exponential(3000.0, 4000), risk, exits)
    assert stats.kstest(chance, "uniform").pvalue > 1e-3 / 4
    naive = np.exp(-noise.exponential(3000.0, 4000) * exits / risk)
    if exits < 8:
        assert stats.kstest(naive, "uniform").pvalue < 1e-6


def test_every_chaotic_row_has_a_probability_that_falls_along_its_run():
    left, stays = (TRANSIENT, 0.1, 300.0, 2), (CHAOS, 0.1, 900.0, 0)
    chance = on_a_line(left, *[stays] * 9)
    # Never below the share of such transients among all rows.
    expected = np.maximum((1 + 3.0 * np.arange(10)) ** -2, 4.0**-2 / 10)
    np.testing.assert_allclose(chance, expected)
    # Lifetimes grow towards a crisis: the next row tells more than a quicker one.
    quick = (TRANSIENT, 0.1, 30.0, 4)
    chance = on_a_line(quick, left, stays)
    np.testing.assert_allclose(chance, [1, 1, 4.0**-2])


def test_the_most_dangerous_neighbourhood_counts():
    quick, slow = (TRANSIENT, 0.1, 10.0, 4), (TRANSIENT, 0.1, 3000.0, 1)
    stays = (CHAOS, 0.1, 1000.0, 0)
    chance = on_a_line(quick, stays, stays, slow)
    np.testing.assert_allclose(chance, [1, 0.6, 0.75, 1])


def test_what_fell_within_the_scan_counts_once_with_its_horizon():
    chance = on_a_line((FIXED, -1.0, 5e9, 0), (CHAOS, 0.1, 300.0, 0))
    assert np.isnan(chance[0]) and chance[1] == pytest.approx(0.25)


def test_rows_away_from_all_that_left_take_the_lifetimes_of_the_scan():
    apart = (PHASES.index("undetermined"), 0.0, 0.0, 0)
    left, stays = (TRANSIENT, 0.1, 400.0, 1), (CHAOS, 0.1, 1200.0, 0)
    said, pairs = np.zeros((3, 5)), np.array([[0, 1], [3, 4]])
    said[0] = TRANSIENT, CHAOS, CHAOS, CHAOS, CHAOS
    time = np.array([400.0, *[1200.0] * 4])
    chance = still_transient(said, pairs, time, time, np.array([1, 0, 0, 0, 0]))
    np.testing.assert_allclose(chance, [1, 0.25, *[0.25 / 5] * 3])
    assert np.isnan(on_a_line(*[stays] * 3)).all()  # no orbit has left
    assert np.isnan(on_a_line(left, apart)[1])


def test_the_likeliest_transients_are_followed_further():
    """The least of them without which the others have the mean that is asked for."""
    chance = np.random.default_rng(3).uniform(0, 0.04, 500)
    chance[:3] = np.nan, 0.2, DOUBT
    risk = at_risk(chance, 0.002)
    others, least = chance[~risk][1:], chance[risk].min()
    assert others.mean() <= 0.002 < np.append(others, least).mean()
    assert others.max() < least and risk[1:3].all() and not risk[0]
    # Of equals all, or none.
    assert at_risk(np.full(5, 0.003), 0.002).all()
    assert not at_risk(np.full(5, 0.001), 0.002).any()


def test_of_lifetimes_spread_over_decades_as_many_leave_in_each():
    """Lifetimes with one density in ln t: the share ln 16 / ln(16 longest / t)."""
    decades = 8 * np.log(10)
    lifetime = np.exp(np.random.default_rng(4).uniform(0, decades, 20_000))
    for time in (1e4, 1e6):
        left = lifetime < time
        late = left_late(np.minimum(lifetime, time), left)[~left][0]
        expected = np.log(16) / (decades - np.log(time / 16))
        error = np.sqrt(expected * (1 - expected) / (lifetime > time / 16).sum())
        assert abs(late - expected) < 4 * error


def scan_of(slopes, plan, count):
    params = {"s": np.repeat(np.asarray(slopes, float), count)}
    starts = np.random.default_rng(7).uniform(0.1, 0.9, len(params["s"]))
    points = Points(params, starts)
    return Scan(System(tent), plan, points, 64), points


@pytest.mark.slow
def test_watched_orbits_leave_as_the_law_says():
    """Their number and their time at risk are those of exponential lifetimes."""
    plan = Plan(transient=0, steps=256, exponents=1, section_samples=1, on=0, tail=96)
    lifetime, horizon, count = 6000.0, 12_000, 512
    scan, points = scan_of([slope(lifetime)], plan, count)
    said = np.tile([[CHAOS], [np.log(slope(lifetime))], [0.0]], (1, count))
    seen = follow_until_change(scan, points, said, horizon, lambda steps: None)
    ends = np.array([0, *(look * horizon for look in LOOKS)])
    stays = np.exp(-ends / lifetime)
    share = -np.diff(stays)
    middle = (ends[1:] + ends[:-1]) / 2
    expected = share @ middle + stays[-1] * horizon
    spread = np.sqrt(share @ middle**2 + stays[-1] * horizon**2 - expected**2)
    left = count - seen.stayed.sum()
    error = np.sqrt(count * stays[-1] * (1 - stays[-1]))
    assert abs(left - count * (1 - stays[-1])) < 4 * error
    assert abs(seen.time.mean() - expected) < 4 * spread / np.sqrt(count)
    phase, period, exponent, _ = seen.settled[:, ~seen.stayed]
    assert (phase == FIXED).all() and (period == 1).all()
    np.testing.assert_allclose(exponent, SINK, atol=1e-6)


@pytest.fixture(scope="module")
def crisis():
    """Chaos for good at s < 2, transients beyond it, of 6e4 down to 700 steps.

    The scan has 4000 steps with its tail: many a transient beside chaos outlives it.
    """
    lasting = np.linspace(1.93, 1.99, 4)
    lifetimes = np.geomspace(6e4, 700, 12)
    grid = {"s": [*lasting, *slope(lifetimes)]}
    plan = Plan(
        transient=500,
        steps=500,
        exponents=1,
        section_samples=1,
        strobe_samples=1,
        on=0,
    )
    ask = lambda **how: diagram(System(tent), grid, jnp.array(0.3), plan, **how)
    return ask(confirm=Confirm(0)), ask(), lifetimes


@pytest.mark.slow
def test_transients_of_a_map_are_found_and_say_where_they_go(crisis):
    plain, longer, lifetimes = crisis
    hidden = (plain.phase[4:] == CHAOS).values
    assert hidden.sum() >= 4  # neighbours of one another
    assert plain.doubtful[4:][hidden].all()
    found = longer.isel(s=slice(4, None))
    assert (found.phase[hidden] == TRANSIENT).all()
    assert (found.final_phase == FIXED).all() and (found.final_period == 1).all()
    np.testing.assert_allclose(found.final_lyapunov, SINK, atol=1e-6)
    gone = found.isel(s=np.flatnonzero(hidden))
    assert (gone.final_starts == 4 - gone.confirmed).all()
    # The exponent of the row is that of the transient.
    np.testing.assert_allclose(gone.lyapunov[:, 0], np.log(gone.s), atol=1e-9)


def test_chaos_beside_what_left_is_followed_further_and_kept():
    """Two slopes below the crisis; beyond it orbits leave after 300 steps."""
    plan = Plan(transient=0, steps=256, exponents=1, on=0)
    grid = {"s": [1.95, 1.97, *slope([300.0])]}
    plain, longer = (
        diagram(System(tent), grid, jnp.array(0.3), plan, **how)
        for how in ({"confirm": Confirm(0)}, {})
    )
    assert "confirmed" not in plain and "final_phase" not in plain
    chance = plain.transient_probability.values
    assert (chance[(plain.phase == CHAOS).values] > 0).all()
    for name in ("lyapunov", "section", "strobe", "period"):
        assert np.array_equal(plain[name], longer[name], equal_nan=True)
    before, kept = (scan.isel(s=slice(2)) for scan in (plain, longer))
    assert (before.phase == CHAOS).all()
    assert (kept.phase == CHAOS).all() and (kept.confirmed == 4).all()
    chance = kept.transient_probability.values
    assert (np.diff(chance) >= 0).all() and (chance[:3] < 0.05).all()
    assert (kept.doubtful.values == (chance >= 0.05)).all()
    assert (kept.final_phase == CHAOS).all() and (kept.final_starts == -1).all()
    np.testing.assert_array_equal(kept.final_lyapunov, kept.lyapunov[:, 0])
    assert longer.phase[2] == FIXED and longer.confirmed[2] == -1
    assert (longer.horizon > plain.horizon).values.tolist() == [True, True, False]


PLAN = Plan(
    transient=500,
    steps=1000,
    exponents=1,
    section_samples=1,
    strobe_samples=1,
    on=0,
    tail=96,
)


@pytest.mark.slow
def test_coexisting_attractors_are_no_transients():
    """Every other row begins at the fixed point beside the chaos of all rows."""
    slopes = np.linspace(1.9, 1.99, 8)
    start = lambda p: jnp.where(jnp.isin(p["s"], slopes[::2]), -1.0, 0.3)
    scan = diagram(System(tent), {"s": slopes}, start, PLAN)
    assert (scan.phase[::2] == FIXED).all() and (scan.phase[1::2] == CHAOS).all()
    assert (scan.confirmed[1::2] == 4).all() and (scan.confirmed[::2] == -1).all()
    assert (scan.final_starts == -1).all() and not scan.doubtful.any()


@pytest.mark.slow
def test_calm_stretches_are_no_other_attractor():
    """Intermittent chaos just before the cycle of three of the logistic map.

    Short windows in calm stretches have another exponent by more than six errors.
    """
    logistic = System(lambda x, p: p["r"] * x * (1 - x))
    cycle = 1 + 8**0.5
    before = cycle - 3e-5 * np.linspace(1, 2, 12)
    scan = diagram(logistic, {"r": [*before, cycle + 1e-6]}, jnp.array(0.3), PLAN)
    assert (scan.phase[:12] == CHAOS).all() and (scan.confirmed[:12] == 4).all()
    assert PHASES[int(scan.phase[12])] == "periodic" and int(scan.period[12]) == 3


@pytest.mark.slow
def test_what_leaves_after_a_fixed_time_is_followed_to_its_end():
    """A count of steps lets the orbit go after 100 000.

    No look from where the scan ended, the longest 72 000 steps, would see it.
    """

    def step(state, p):
        x, count = state
        gone = count > 100_000
        return jnp.where(gone, -1 + 0.1 * (x + 1), tent(x, p)), count + 1

    grid = {"s": [1.95, 1.97, *slope([300.0])]}
    start = lambda p: (0.3 + 0 * p["s"], jnp.array(0))
    ask = lambda **how: diagram(System(step), grid, start, PLAN, **how)
    scan = ask(confirm=Confirm(2, 1e-6))
    assert scan.phase.values.tolist() == [TRANSIENT, TRANSIENT, FIXED]
    assert (scan.confirmed[:2] == 0).all() and (scan.final_starts[:2] == 2).all()
    short = ask(confirm=Confirm(2, 1e-6, horizon=72_000))
    assert short.phase.values.tolist() == [CHAOS, CHAOS, FIXED]
    assert (short.horizon[:2] - scan.horizon[:2] == 72_000).all()
    assert scan.attrs["confirm_horizon"] == 96 * 1500


class Heard(Silent):
    """Keeps the notes of a run."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


@pytest.mark.slow
def test_the_second_look_is_forecast_at_most_and_then_as_it_is():
    start = lambda p, numbers: 0 * p["s"] + 0.3
    axes = axes_of({"s": [1.9, 1.95, 1.97, *slope([1e5, 300])]})
    posed = Diagram(System(tent), axes, start, PLAN, variables([SLOPE], unit="step"))
    work, heard = diagram_work(posed), Heard()
    pilot = work.pilot()
    assert pilot.more > pilot.later > pilot.seconds and "run again" in pilot.without
    scan = in_memory(work, heard)
    asked = int((scan.confirmed >= 0).sum())
    assert asked == 4
    again = r"(\d+) doubtful points are run again from 4 perturbed states each, for "
    rounds = [re.search(again + r"(\d+) steps", note) for note in heard.notes]
    assert rounds[0] and [int(x) for x in rounds[0].groups()] == [asked, 18_000]
    assert "18000 steps at most: about" in heard.notes[0]
    steps = sum(4 * int(found[1]) * int(found[2]) for found in rounds if found)
    most = work.longest(Times(0.0, step=1.0), axes.shape[0]) * work.scan.lanes
    assert len(rounds) > 2 and 4 * 18_000 * asked < steps <= most
    points, lanes = axes.shape[0], work.scan.lanes
    for phases, chaotic in (([CHAOS, CHAOS], 0), ([CHAOS, FIXED], points / 2)):
        sample: Any = SimpleNamespace(phase=np.array(phases))
        expected = work.expected_again(Times(0.0, step=1.0, verdicts=sample), points)
        assert expected == math.ceil(4 * chaotic / lanes) * posed.again.horizon
    assert posed._replace(confirm=Confirm(0)).again is None


@pytest.mark.slow
def test_windows_of_a_pilot_are_short_where_steps_are_slow(monkeypatch):
    """A run of 20 000 steps of a block of 32 coordinates had a pilot of a minute."""
    start = lambda p, numbers: 0 * p["s"] + 0.3
    axes = axes_of({"s": [1.9, 1.95]})
    posed = Diagram(System(tent), axes, start, PLAN, variables([SLOPE], unit="step"))
    work, asked = diagram_work(posed), []
    timed = batch_times._timed
    keep = lambda scan, points, turns: asked.append(turns) or timed(scan, points, turns)
    monkeypatch.setattr(batch_times, "_timed", keep)
    for patience in (1e6, 0.0):
        monkeypatch.setattr(batch_times, "TIMED_SECONDS", patience)
        assert work.pilot().seconds > 0
    short, long, *slow = asked
    assert long > 2 * short and slow == [short, 2 * short]
