"""Where starts go and when: systems whose basins and lifetimes are known on paper."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binomtest

from statmech_attn.batches import lanes, rng
from statmech_attn.dynamics import (
    arrival_rate,
    find_attractors,
    Search,
    settle,
    System,
    wilson,
)
from statmech_attn.dynamics.attractors import settled_orbits
from statmech_attn.dynamics.attractors.basins import STABILITY
from statmech_attn.dynamics.attractors.orbit_follower import Follower
from statmech_attn.dynamics.attractors.settled_orbits import (
    CYCLE,
    follow_with,
    IRREGULAR,
    KIND_DIVERGED,
    left_to_go,
    REGULAR,
)


SHORT = Search(8_000, record=256)
CHANCE = 1e-3  # of a false alarm, divided by the number of comparisons of a test


def assert_shares(counts, n, shares):
    for count, share in zip(counts, shares, strict=True):
        assert binomtest(int(count), n, share).pvalue > CHANCE / len(shares)


def uniform(seed, low, high, n, d=None):
    shape = (n,) if d is None else (n, d)
    return rng.uniform(jax.random.key(seed), shape, low, high)


def cubic(x):
    """Fixed points at -1 and 1, boundary at 0; monotone for |x| < 2.6."""
    return x + 0.05 * (x - x**3)


def test_starts_beyond_the_fixed_point_of_the_quadratic_map_diverge():
    """x^2 - 1: bounded for |x| < (1 + sqrt 5)/2, where the cycle 0, -1 attracts."""
    found = find_attractors(lambda x: x**2 - 1, uniform(3, -3, 3, 2000))
    bounded = (1 + np.sqrt(5)) / 2 / 3
    assert found.period.tolist() == [2]
    assert_shares(
        [found.counts[0], np.sum(found.label == -2)], 2000, [bounded, 1 - bounded]
    )
    assert (found.orbits.kind[found.label == -2] == KIND_DIVERGED).all()


@pytest.mark.slow
def test_two_chaotic_attractors_are_told_apart():
    """x' = 2.5 x - x^3: its values on (0, sqrt 2.5) stay there, and so do the odd
    images; every start beyond is in neither half of the box."""
    starts = uniform(5, -0.5, 1.5, 400)
    found = find_attractors(lambda x: 2.5 * x - x**3, starts, search=Search(20_000))
    assert found.kind.tolist() == [IRREGULAR, IRREGULAR]
    assert not found.transient.any()
    assert (found.points[0] > 0).all() and (found.points[1] < 0).all()
    np.testing.assert_array_equal(found.label, np.where(starts > 0, 0, 1))


def driven(state):
    """x' = x/2 + [clock = 0], clock of period 3; and a sign of its own kept forever."""
    x, sign, clock = state
    return x / 2 + (clock == 0) * sign, sign, (clock + 1) % 3


def test_a_shared_clock_sets_the_phase_of_comparison():
    x = np.random.default_rng(7).uniform(-2, 2, 8)
    starts = (x, np.where(np.arange(8) < 2, 1.0, -1.0), 0)
    found = find_attractors(System(driven, drive_period=3), starts, search=SHORT)
    assert found.counts.tolist() == [6, 2] and found.period.tolist() == [3, 3]


def test_phase_lags_by_whole_drive_periods_are_one_attractor():
    """Period 6 under a clock of 2: three phases at the clock's zero, one cycle."""

    def turns(state):
        place, clock = state
        return (place + 1) % 6 + 0.0, (clock + 1) % 2

    driven = System(turns, drive_period=2)
    even = find_attractors(driven, (jnp.array([0.0, 2.0, 4.0]), 0))
    assert even.counts.tolist() == [3] and even.period.tolist() == [6]
    odd = find_attractors(driven, (jnp.array([0.0, 1.0, 2.0]), 0))
    assert odd.counts.tolist() == [2, 1]


@pytest.mark.slow
def test_lifetimes_before_a_cycle_are_those_of_the_stored_orbit():
    """Period 3 at r = 3.8285 after chaotic transients of up to hundreds of steps."""
    x0 = np.asarray(uniform(8, 0, 1, 64))
    system = System(lambda x: 3.8285 * x * (1 - x))
    follower = Follower(system, Search(20_000, record=64), x0)
    orbits = follow_with(follower, x0)
    state, records = x0, [x0[None]]
    for _ in range(60):
        after, record = np.empty(64), np.empty((64, 64))
        for who, x, look in follower.look(state, None, np.arange(64)):
            after[who], record[:, who] = x, look.record[:, 0]
        state = after
        records.append(record)
    long = np.concatenate(records)
    place = (np.arange(len(long)) - len(long)) % 3
    outside = np.abs(long - long[-3:][place]) > 1e-3 * (1 + long[-3:].max())
    expected = [np.flatnonzero(row)[-1] + 1 if row.any() else 0 for row in outside.T]
    assert (orbits.kind == CYCLE).all() and orbits.exact.all()
    np.testing.assert_array_equal(orbits.lifetime, expected)
    assert max(expected) > 2 * 64  # some cross several looks


@pytest.mark.slow
def test_lifetimes_are_exact_where_rounding_depends_on_the_width(monkeypatch):
    """Chaos of 150 coordinates, mixed by a matrix and a sum, until the sum passes 19.

    Then all fall to 0 by halves.  The orbit is stored as it was computed first.
    """
    rng = np.random.default_rng(0)
    mix = jnp.asarray(2.5 * rng.normal(size=(150, 150)) / np.sqrt(150))
    starts = rng.normal(size=(150, 64)).T, np.zeros(64)

    def step(state):
        x, off = state
        off = jnp.maximum(off, (jnp.sum(x[:50]) > 19.0) * 1.0)
        chaos = jnp.tanh(mix @ x + jnp.sum(x) / 150)
        return jnp.where(off > 0, 0.5 * x, chaos), off

    stored = [[] for _ in range(64)]
    add = settled_orbits.Windows.add

    def store(self, lanes, part, record, place):
        for i, lane in enumerate(lanes):
            stored[lane].append(np.array(record[:, :150, i]))
        add(self, lanes, part, record, place)

    monkeypatch.setattr(settled_orbits.Windows, "add", store)
    search = Search(2_000, record=256)
    orbits = settle(step, starts, search=search)
    arrived = np.flatnonzero(orbits.ended & orbits.exact & (orbits.lifetime > 0))
    assert 16 < arrived.size
    for lane in arrived:
        outside = np.abs(np.concatenate(stored[lane])).max(axis=1) > 2e-3  # off is 1
        assert orbits.lifetime[lane] == np.flatnonzero(outside)[-1] + 2


@pytest.mark.slow
@pytest.mark.parametrize(("memory", "exact"), [(400, True), (4, False)])
def test_slow_arrival_is_found_by_walking_back_or_says_so(memory, exact):
    """x' = 0.999 x: inside 1e-3 after ln(x0/1e-3)/0.0010005 steps, at rest later."""
    x0 = np.array([0.5, 0.02])
    search = Search(40_000, record=64, memory=memory)
    orbits = settle(lambda x: 0.999 * x, x0, search=search)
    expected = np.ceil(np.log(x0 / (1e-3)) / -np.log(0.999))
    assert orbits.exact.tolist() == [exact] * 2
    if exact:
        assert np.abs(orbits.lifetime - expected).max() <= 1
    else:
        assert (orbits.lifetime > expected).all()


def test_an_alternating_approach_is_not_the_doubled_cycle():
    """A cycle of 3 places, with x' = -0.99 x beside it: it recurs after 6 before 3."""
    step = lambda z: jnp.stack([-0.99 * z[0], (z[1] + 1) % 3])
    starts = np.array([[0.7, 0.0], [-0.3, 1.0], [1e-3, 2.0]])
    orbits = settle(step, starts, search=Search(20_000, record=64))
    assert orbits.period.tolist() == [3, 3, 3]
    s = np.arange(1024)
    record = (1e-7 * (-0.99) ** s)[:, None]
    amplitude = 1e-7 * 0.99 ** (1024 - 340)
    assert left_to_go(record, 2) == pytest.approx(amplitude, rel=0.05)


@pytest.mark.parametrize("record", [64, 66])
def test_the_longest_cycle_of_a_look_is_a_cycle(record):
    """q = record // 3 places, with x' = 0.5 x + cos beside them."""
    q = record // 3
    step = lambda z: jnp.stack(
        [0.5 * z[0] + jnp.cos(2 * jnp.pi * z[1] / q), (z[1] + 1) % q]
    )
    orbits = settle(step, np.array([[0.3, 1.0]]), search=Search(record=record))
    assert orbits.period.tolist() == [q] and orbits.exact.all()
    decay = (1e-3 * 0.5 ** (np.arange(record) / q))[:, None]
    assert left_to_go(decay, q) == pytest.approx(decay[record - 3 * q, 0], rel=2e-3)


@pytest.mark.slow
def test_order_company_and_width_of_batches_change_nothing(monkeypatch):
    starts = np.asarray(uniform(9, -2, 2, 60, 2))
    henon = lambda z: jnp.stack([1 - 1.4 * z[0] ** 2 + z[1], 0.3 * z[0]])
    found = find_attractors(henon, starts, search=SHORT)
    order = np.random.default_rng(0).permutation(60)
    again = find_attractors(henon, starts[order], search=SHORT)
    monkeypatch.setattr(lanes, "CPU_LANES", 16)
    few = find_attractors(henon, starts[:20], search=SHORT)
    np.testing.assert_array_equal(again.counts, found.counts)
    np.testing.assert_array_equal(again.label, found.label[order])
    for one, other in (
        (again.orbits.points, found.orbits.points[order]),
        (few.orbits.points, found.orbits.points[:20]),
    ):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(few.orbits.lifetime, found.orbits.lifetime[:20])
    assert 0 < np.sum(found.label == -2) < 60


def test_sets_of_equal_count_are_ordered_by_where_they_lie():
    starts = np.array([0.5, -0.4, 0.2, -1.2])
    one, other = (find_attractors(cubic, x) for x in (starts, -starts))
    np.testing.assert_array_equal(one.points[:, 0] < 0, other.points[:, 0] < 0)
    np.testing.assert_array_equal(one.label, 1 - other.label)


def leaking(s):
    """Tent map of slope s; of s > 2 the part beyond 1 falls onto the fixed point 2."""
    return lambda x: jnp.where(x > 1, 1 + x / 2, s * jnp.minimum(x, 1 - x))


def test_a_chaotic_set_that_orbits_left_is_a_transient():
    """Slope 2.0002: the others stay for more than 6000 steps; for 2, or infinity."""
    beyond = lambda x, far: jnp.where(far > 0, 2 * x, 1 + x / 2)
    step = lambda x, far: jnp.where(
        x > 1, beyond(x, far), 2.0002 * jnp.minimum(x, 1 - x)
    )
    starts, search = uniform(10, 0, 1, 200), Search(6_000, record=256)
    rests, found = (
        find_attractors(step, starts, far, search=search) for far in (0.0, 1.0)
    )
    assert sorted(rests.period.tolist()) == [0, 1]
    np.testing.assert_array_equal(rests.transient, rests.period == 0)
    assert not rests.orbits.ended[rests.label == np.argmax(rests.transient)].any()
    assert found.transient.tolist() == [True] and found.period.tolist() == [0]
    gone = found.label == -2
    assert gone.sum() == 200 - found.counts[0] > 20
    first = found.orbits.lifetime <= 256
    assert np.isnan(found.orbits.before[gone & first]).all()
    # The others need 40 of 256 steps to grow that large: some began a look before.
    before = np.abs(found.orbits.before[gone & ~first]).max(axis=(1, 2))
    assert np.mean(before <= 1.0002) > 0.7


@pytest.mark.slow
def test_starts_on_another_chaotic_set_do_not_slow_the_escape():
    """Beside an open tent map (rate ln 1.01), a closed one that nobody leaves."""
    one, other = leaking(2.02), leaking(1.99)
    step = lambda z: jnp.where(
        z[1] > 0, jnp.stack([one(z[0]), z[1]]), jnp.stack([other(z[0]), z[1]])
    )
    x = np.random.default_rng(3).uniform(0, 1, 400)
    starts = np.stack([x, np.where(np.arange(400) < 200, 5.0, -5.0)], axis=1)
    found = find_attractors(step, starts, search=Search(20_000, record=256))
    rate = arrival_rate(found)
    assert abs(rate.rate - np.log(1.01)) < 4 * rate.stderr
    assert abs(rate.constancy) <= 2 and found.inexact == 0


@pytest.mark.slow
def test_what_has_no_rate_is_given_none():
    """x' = 0.9 x needs ln(1000 x) / 0.105 steps; x' = 0.999 x more than are kept."""
    x = 10 ** np.random.default_rng(4).uniform(-2, 3, 200)
    none = arrival_rate(find_attractors(lambda x: 0.9 * x, x))
    assert np.isnan(none.rate) and abs(none.constancy) > 2
    short = Search(40_000, record=64, memory=4)
    late = find_attractors(lambda x: 0.999 * x, np.clip(x, 0.01, 1), search=short)
    assert np.isnan(arrival_rate(late).rate) and late.inexact == 200
    gone = find_attractors(lambda x: 2 * x, x, search=Search(1000, record=64))
    assert np.isnan(arrival_rate(gone).rate)


@pytest.mark.slow
def test_a_few_upper_bounds_are_no_events():
    """Of 400 exponential lifetimes 5 per cent are said to be known too late."""
    x = np.random.default_rng(5).uniform(0, 1, 400)
    found = find_attractors(leaking(2.02), x, search=Search(20_000, record=256))
    exact, lifetime = np.arange(400) >= 20, found.orbits.lifetime.copy()
    lifetime[:20] = 100_000
    some = found._replace(orbits=found.orbits._replace(exact=exact, lifetime=lifetime))
    rate = arrival_rate(some)
    assert some.inexact == 20 and rate.events <= 380
    assert abs(rate.rate - np.log(1.01)) < 4 * rate.stderr


def test_saddles_on_an_invariant_plane_are_unstable():
    """Three wells side by side are left along z, which no start on the plane shows."""

    def wells(s):
        force = jnp.stack([s[0] - s[0] ** 3, -s[1], 0.5 * s[2] - s[2] ** 3])
        return s + 0.1 * force

    starts = np.random.default_rng(0).standard_normal((20, 3))
    off = find_attractors(wells, starts)
    assert STABILITY[off.stability].tolist() == ["stable"] * 4
    starts[:, 2] = 0
    on = find_attractors(wells, starts)
    assert STABILITY[on.stability].tolist() == ["unstable"] * 2
    assert "unstable" in repr(on)


@pytest.mark.parametrize("r", (1.5, 4.0))
def test_a_fixed_point_is_unstable_where_its_slope_says_so(r):
    """Exactly at rest in 1 - 1/r, of slope 2 - r; r = 4 is chaotic beside it."""
    logistic = lambda x, r: r * x * (1 - x)
    rest = find_attractors(logistic, np.array([1 - 1 / r]), r, search=SHORT)
    assert rest.period.tolist() == [1]
    assert STABILITY[rest.stability].tolist() == ["stable" if r < 3 else "unstable"]


@pytest.mark.slow
@pytest.mark.parametrize("share", (0.3, 0.26, 0.22, 0.18))
def test_synchronous_chaos_is_stable_where_what_is_beside_it_decays(share):
    """Two skew tent maps, coupled: a difference grows by lambda + ln|1 - 2 share|.

    Beyond this blowout orbits burst away from x = y and come back for most of the time.
    """
    top = 0.37
    tent = lambda x: jnp.where(x < top, x / top, (1 - x) / (1 - top))
    step = lambda z, share: tent((1 - share) * z + share * z[::-1])
    x = np.random.default_rng(71).uniform(0.1, 0.9, 12)
    found = find_attractors(step, np.stack([x, x], axis=1), share)
    growth = -top * np.log(top) - (1 - top) * np.log(1 - top) + np.log(1 - 2 * share)
    assert found.kind.tolist() == [IRREGULAR]
    verdict = STABILITY[found.stability].tolist()
    assert verdict == ["stable" if growth < 0 else "unstable"]


@pytest.mark.slow
def test_a_circle_turned_by_nearly_a_resonance_is_one_set():
    """In 103 steps an orbit moves on by few turns: 1024 points lie on short arcs."""
    angle = 2 * np.pi * (10 - 3e-4) / 103
    turn = jnp.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    step = lambda z: (1 + 0.2 * (1 - (z**2).sum())) * (turn @ z)
    found = find_attractors(step, np.random.default_rng(5).standard_normal((12, 2)))
    assert found.kind.tolist() == [REGULAR] and found.counts.tolist() == [12]


@pytest.mark.parametrize(("record", "sets"), ((128, 1), (256, 2)))
def test_circles_are_one_where_their_points_are_as_far_apart(record, sets):
    """Radii 1 and 3/2; halves of a look have 64 points of a circle, or 128."""

    def step(z):
        radius, angle = jnp.hypot(z[0], z[1]), jnp.arctan2(z[1], z[0])
        radius = 1.25 + jnp.tanh(8 * radius - 10) / (4 * jnp.tanh(2.0))
        angle += jnp.pi * (np.sqrt(5) - 1)
        return radius * jnp.stack([jnp.cos(angle), jnp.sin(angle)])

    found = find_attractors(
        step, uniform(8, 0.6, 1.4, 8, 2), search=Search(4000, record=record)
    )
    radii = np.linalg.norm(found.points, axis=2).mean(axis=1)
    assert found.counts.size == sets
    assert ((found.merged_within * radii > 0.5) == (sets == 1)).all()


def test_a_chaotic_attractor_is_stable():
    henon = lambda z: jnp.stack([1 - 1.4 * z[0] ** 2 + z[1], 0.3 * z[0]])
    starts = np.array([[0.1, 0.1], [5.0, 5.0]])
    chaos, none = (
        find_attractors(henon, x, search=SHORT) for x in (starts, starts[1:])
    )
    assert STABILITY[chaos.stability].tolist() == ["stable"]
    assert not len(none.to_dataset().stability)


def test_a_spiral_that_still_moves_is_not_an_attractor():
    """Amplitude down by a factor e in the run: neither a cycle nor a torus."""

    def spiral(z):
        turned = jnp.stack([0.8 * z[0] - 0.6 * z[1], 0.6 * z[0] + 0.8 * z[1]])
        return (1 - 1e-4) * turned

    found = find_attractors(
        spiral, np.array([[1.0, 0.0], [0.5, 0.5]]), search=Search(10_000, record=256)
    )
    assert found.counts.size == 0 and found.label.tolist() == [-1, -1]


def test_nan_and_infinity_are_diverged_with_their_time():
    step = lambda x: jnp.where(x > 10, jnp.nan, x + 1)
    found = find_attractors(step, np.array([0.5, 9.5]))
    assert found.label.tolist() == [-2, -2] and found.counts.size == 0
    assert found.orbits.lifetime.tolist() == [11, 2]


def test_wilson_interval_covers_as_often_as_it_says():
    """One standard error: 68.3 % of the time, over the shares and numbers in use."""
    rng = np.random.default_rng(1)
    for share, n in ((0.5, 88), (0.1, 400)):
        low, high = wilson(rng.binomial(n, share, 20_000), n)
        assert np.mean((low <= share) & (share <= high)) == pytest.approx(
            0.683, abs=0.05
        )


@pytest.mark.parametrize(
    ("step", "starts", "options", "message"),
    [
        (lambda x: x[:1], np.ones((4, 2)), {}, "step must return a state like the one"),
        (lambda x: None, np.ones(4), {}, "got nothing from float64"),
        (
            lambda s: (0.5 * s[0], (s[1] + (s[0] > 0)) % 3),
            (np.ones(4), 0),
            {},
            "step must not let what all starts share",
        ),
        (
            System(lambda x: x, lambda x: ()),
            np.ones(4),
            {},
            "observe must return at least one number",
        ),
        (
            System(lambda x: x, lambda x: x[0], batched=True),
            np.ones(4),
            {},
            "observe must return at least one number",
        ),
        (lambda x: x, np.float64(1.0), {}, "starts must be arrays with the starts on"),
        (
            lambda x: x,
            (np.ones(3), np.ones(4)),
            {},
            r"as many in each; got float64\[3\], float64\[4\]. One",
        ),
        (lambda x: x, np.arange(4), {}, "no floating-point coordinates"),
    ],
)
def test_what_makes_no_sense_is_one_clear_line(step, starts, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        find_attractors(step, starts, **options)
    assert "\n" not in str(caught.value)
