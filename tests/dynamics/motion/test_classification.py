"""Verdicts on systems whose kind is known, and on what usually misleads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dynamics
from statmech_attn.batches import rng
from statmech_attn.dynamics import (
    classify,
    flow,
    PHASES,
    System,
)


GOLDEN = (np.sqrt(5) - 1) / 2


def phases_of(found):
    return [PHASES[int(i)] for i in np.atleast_1d(found.phase)]


def logistic_classes(r, x0=0.3, **options):
    at = lambda r: classify(lambda x: r * x * (1 - x), jnp.array(x0), **options)
    return jax.vmap(at)(jnp.asarray(r))


@pytest.mark.slow
def test_logistic_map_through_its_phases():
    r = [2.5, 2.0, 3.2, 1 + np.sqrt(5), 3.5, 3.83, 3.6, 3.9, 4.0, 3.0]
    found = logistic_classes(r)
    expected = ["fixed"] * 2 + ["periodic"] * 4 + ["chaotic"] * 3
    assert phases_of(found)[:-1] == expected
    assert found.period.tolist()[:-1] == [1, 1, 2, 2, 4, 3, 0, 0, 0]
    # r = 3 is marginal: algebraic decay must not read as chaos, torus or cycle.
    assert phases_of(found)[-1] == "undetermined"
    assert not bool(found.settled[-1])


@pytest.mark.slow
def test_henon_and_cat_are_chaotic_and_coupled_maps_hyperchaotic():
    henon = classify(
        lambda z: jnp.stack([1 - 1.4 * z[0] ** 2 + z[1], 0.3 * z[0]]),
        jnp.array([0.1, 0.2]),
    )
    assert phases_of(henon) == ["chaotic"] and int(henon.evidence.positive) == 1

    def coupled(z, e=0.1):
        f = 4 * z * (1 - z)
        return (1 - e) * f + e * f[::-1]

    both = classify(coupled, jnp.array([0.3, 0.31]))
    assert phases_of(both) == ["hyperchaotic"] and int(both.evidence.positive) == 2
    assert "standard errors, as 2 exponents are, over the window" in both.explain()


@pytest.mark.slow
def test_rossler_flow_is_chaotic():
    """The exponent along the orbit is zero, and not a second one of chaos."""
    field = lambda x: jnp.stack(
        [-x[1] - x[2], x[0] + 0.2 * x[1], 0.2 + x[2] * (x[0] - 5.7)]
    )
    step = flow(field, time=1.5, substeps=30)
    found = classify(step, jnp.array([1.0, 1.0, 0.0]), steps=6000, exponents=2)
    rate, error = found.spectrum.exponents / 1.5, found.spectrum.stderr / 1.5
    assert phases_of(found) == ["chaotic"]
    assert abs(rate[0] - 0.0714) < 4 * error[0]
    assert abs(rate[1]) < 4 * error[1] + 1e-4


def delayed(a):
    return lambda z: jnp.stack([a * z[0] * (1 - z[1]), z[0]])


@pytest.mark.slow
def test_delayed_logistic_map_goes_through_neimark_sacker():
    """Fixed below a = 2; above it a torus whose rotation number tends to 1/6."""
    at = lambda a: classify(delayed(a), jnp.array([0.4, 0.5]))
    found = jax.vmap(at)(jnp.array([1.9, 2.0005, 2.01, 2.27]))
    assert phases_of(found) == ["fixed", "quasiperiodic", "quasiperiodic", "chaotic"]
    # x* = 1 - 1/a; multipliers solve m^2 - m + (a - 1) = 0.
    assert float(found.spectrum.exponents[0, 0]) == pytest.approx(
        np.log(0.9) / 2, abs=1e-3
    )
    assert found.evidence.zeros[1:3].tolist() == [1, 1]
    near, far = 1 / 6 - np.asarray(found.rotation_number[1:3])
    assert 0 < near < far < 0.002


@pytest.mark.slow
def test_spiralling_out_to_a_torus_is_not_weak_chaos():
    """Just above the bifurcation the orbit grows at a positive rate for very long."""
    z0 = jnp.array([1 - 1 / 2.0001, 1 - 1 / 2.0001]) + 1e-5
    at = lambda doublings: classify(
        delayed(2.0001), z0, steps=20_000, transient=0, max_doublings=doublings
    )
    early, late = at(0), at(6)
    # Multipliers of modulus sqrt(a - 1): a growth of 5e-5 a step.
    assert float(early.spectrum.exponents[0]) == pytest.approx(5e-5, rel=0.2)
    assert phases_of(early) == ["undetermined"]
    assert phases_of(late) == ["quasiperiodic"]


def forced(sigma):
    def step(state):
        x, theta = state
        moved = 2 * sigma * jnp.tanh(x) * jnp.cos(2 * jnp.pi * theta)
        return moved, (theta + GOLDEN) % 1.0

    return step


@pytest.mark.slow
def test_strange_nonchaotic_attractor_is_not_called_a_torus():
    observe = lambda s: jnp.stack([s[0], jnp.cos(2 * jnp.pi * s[1])])
    at = lambda sigma: classify(
        System(forced(sigma), observe), (jnp.array(0.5), jnp.array(0.1))
    )
    found = jax.vmap(at)(jnp.array([0.5, 1.5]))
    assert phases_of(found) == ["quasiperiodic", "undetermined"]
    assert float(found.rotation_number[0]) == pytest.approx(1 - GOLDEN, abs=1e-7)
    strange = jax.tree.map(lambda x: x[1], found)
    assert np.abs(strange.spectrum.weighted[0]) < 2e-5
    assert "strange nonchaotic" in strange.explain()


@pytest.mark.slow
def test_a_rotation_number_has_an_error_and_an_orientation():
    """Seen in the plane it is that of the lift; seen as one number, up to its sign."""
    twist = lambda x, p: x + p["omega"] - 0.8 / (2 * jnp.pi) * jnp.sin(2 * jnp.pi * x)
    plane = lambda x: jnp.stack([jnp.cos(2 * jnp.pi * x), jnp.sin(2 * jnp.pi * x)])
    omega = {"omega": jnp.array([0.15, 0.37, 0.62, 0.83])}
    exact = dynamics.rotation_number(twist, 0.1, omega, steps=100_000)
    assert float(exact.error.max()) < 1e-12

    def seen(observe):
        turn = System(lambda x, p: twist(x, p) % 1.0, observe)
        at = lambda p: classify(turn, jnp.array(0.1), p, steps=4000, transient=500)
        return jax.vmap(at)(omega)

    both, one = seen(plane), seen(lambda x: plane(x)[:1])
    for found, oriented in ((both, True), (one, False)):
        assert phases_of(found) == ["quasiperiodic"] * 4
        assert np.all(found.evidence.oriented == oriented)
    folded = np.minimum(exact.number, 1 - exact.number)
    rounding = 1e-12  # of 3072 angles, each to 1e-16 of a turn, and their weights
    for found, true in ((both, exact.number), (one, folded)):
        off = np.abs(found.rotation_number - true)
        assert np.all(off <= found.rotation_error + rounding), off
        assert np.all(found.rotation_error < 1e-5)
    assert "its rotation number is" in both.explain()[0]
    assert "ρ or 1 - ρ" in one.explain()[0]


def rotated(z, kept):
    """A rotation that keeps this share of the amplitude, beside what is conserved."""
    c, s = np.cos(2 * np.pi * GOLDEN), np.sin(2 * np.pi * GOLDEN)
    turned = jnp.stack([c * z[0] - s * z[1], s * z[0] + c * z[1]])
    return jnp.append(kept * turned, z[2:])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("conserved", "dimension"),
    [
        pytest.param(lambda z: z[2], 3, id="coordinate"),
        pytest.param(lambda z: -3e7 * (z[0] ** 2 + z[1] ** 2), 2, id="energy"),
        pytest.param(lambda z: 1e11 + 0 * z[0], 2, id="huge"),
    ],
)
def test_what_is_conserved_costs_nothing_and_decides_nothing(conserved, dimension):
    """A rotation seen by a conserved quantity and one coordinate, or by two of them."""
    seen = (lambda z: z[:2], lambda z: jnp.append(z[:1], conserved(z)))
    start = jnp.array([0.6, 0.1, 0.7])[:dimension]
    alone, beside = (classify(System(rotated, see), start, 1.0) for see in seen)
    assert phases_of(beside) == phases_of(alone) == ["quasiperiodic"]
    assert int(beside.spectrum.steps) == int(alone.spectrum.steps) == 20_000
    # What is left is the rounding of averages of the conserved quantity.
    assert float(beside.evidence.digits) > 5 and float(beside.evidence.drift) < 1
    # A decay that has not ended is not hidden by the size of what is constant.
    options = dict(steps=2000, transient=15_000, max_doublings=0)
    for see in seen:
        found = classify(System(rotated, see), start, 0.9995, **options)
        assert int(found.evidence.recurrence_period) == 0


def spiral(rate):
    """z -> (1 + rate) R(1) z."""
    c, s = np.cos(1.0), np.sin(1.0)
    return lambda z: (1 + rate) * jnp.stack([c * z[0] - s * z[1], s * z[0] + c * z[1]])


@pytest.mark.parametrize("rate", [-1e-6, pytest.param(1e-6, marks=pytest.mark.slow)])
def test_an_exponent_beyond_its_error_is_not_zero_however_small(rate):
    """ln(1 + rate) is far below `zero`, and known to 1e-10."""
    found = classify(spiral(rate), jnp.array([1.0, 0.0]), max_doublings=0)
    assert found.spectrum.exponents == pytest.approx(np.log1p(rate), abs=1e-10)
    assert int(found.evidence.zeros) == 0
    assert int(found.evidence.positive) == (2 if rate > 0 else 0)
    assert phases_of(found) == ["undetermined"]
    said = "no exponent is positive or zero" if rate < 0 else "say regular"
    assert said in found.explain()
    # All volumes shrink to a point, or grow without bound.
    np.testing.assert_equal(
        float(found.spectrum.kaplan_yorke), 0.0 if rate < 0 else np.nan
    )


@pytest.mark.slow
@pytest.mark.parametrize("r", [1 + np.sqrt(6), 3.5699456718, 3.569945671870944])
def test_a_marginal_map_of_an_interval_has_no_torus(r):
    """A doubling, and the end of the cascade: zero exponents that fall off like 1/n."""
    found = logistic_classes([r])
    assert phases_of(found) == ["undetermined"]
    assert "marginal" in found.explain()[0]


@pytest.mark.slow
def test_shear_between_tori_is_not_marginal():
    """The two exponents of an area-preserving map fall off like 1/n, not their sum."""

    def step(z):
        p = z[0] + 0.3 * jnp.sin(z[1])
        return jnp.stack([p, (z[1] + p) % (2 * jnp.pi)])

    see = lambda z: jnp.stack([z[0], jnp.cos(z[1]), jnp.sin(z[1])])
    found = classify(System(step, see), jnp.array([2 * np.pi * GOLDEN, 1.0]))
    assert phases_of(found) == ["quasiperiodic"] and int(found.evidence.zeros) == 2
    leading = np.abs(found.spectrum.weighted[0]) * found.spectrum.steps
    assert leading > 0.5  # alone it would look marginal


@pytest.mark.slow
def test_external_clock_adds_no_exponent_and_sets_the_period():
    """x' = x/2 + [clock = 0]: fixed under the clock, period 3 in steps."""

    def step(state):
        x, clock = state
        return x / 2 + (clock == 0), (clock + 1) % 3

    found = classify(System(step, drive_period=3), (jnp.array(0.1), jnp.array(0)))
    assert phases_of(found) == ["fixed"] and int(found.period) == 3
    assert found.spectrum.exponents.shape == (1,)
    assert float(found.spectrum.exponents[0]) == pytest.approx(-np.log(2), abs=1e-12)


def test_escape_to_infinity_is_diverged():
    step = lambda z: jnp.stack([1 - 2.0 * z[0] ** 2 + z[1], 0.3 * z[0]])
    found = classify(step, jnp.array([0.1, 0.2]))
    assert phases_of(found) == ["diverged"] and int(found.period) == 0


@pytest.mark.slow
def test_a_finite_orbit_with_a_broken_jacobian_is_undetermined():
    """d/dx of sqrt(max(x - 2, 0)) below 2 is 0 * inf: no exponent, hence no cycle."""
    rooted = lambda x: 3.2 * x * (1 - x) + jnp.sqrt(jnp.maximum(x - 2, 0.0))
    options = dict(steps=2000, max_doublings=0)
    found = classify(rooted, jnp.array(0.3), **options)
    assert phases_of(found) == ["undetermined"]
    assert "leading exponents are not resolved" in found.explain()


def slow_escape(z):
    """Chaos on [0, 1) that leaks through a small hole to a fixed point."""
    x, out = z
    chaotic = jnp.where(x < 0.5, 2 * x, 2 - 2 * x) * 0.9999999
    leaves = (x > 0.3) & (x < 0.3 + 2e-4)
    gone = (out > 0.5) | leaves
    return jnp.where(gone, 0.5 * x, chaotic), jnp.where(gone, 1.0, 0.0)


@pytest.mark.slow
def test_a_chaotic_transient_is_followed_until_it_ends():
    """Lifetimes of about 5000 steps: a fixed burn-in would report either phase."""
    starts = rng.uniform(jax.random.key(3), (12,))
    options = dict(steps=4000, transient=0, exponents=1, tail=300)
    settle = jax.vmap(
        lambda x: classify(slow_escape, (x, jnp.array(0.0)), max_doublings=5, **options)
    )(starts)
    cut = jax.vmap(
        lambda x: classify(slow_escape, (x, jnp.array(0.0)), max_doublings=0, **options)
    )(starts)
    # What is still chaotic at the end of its window is chaos as far as can be seen;
    # what left during the window must be neither: it was extended, or says so.
    for verdict, first in zip(phases_of(settle), phases_of(cut), strict=True):
        assert verdict in ("fixed", "chaotic")
        assert first in ("fixed", "chaotic", "transient", "undetermined")
    # A cycle is never reported with the exponents of the chaos before it.
    resting = np.array(phases_of(settle)) == "fixed"
    assert (settle.spectrum.exponents[resting, 0] < 0).all()
    mixed = [f for f in phases_of(cut) if f in ("transient", "undetermined")]
    assert mixed, "no start left the chaotic set inside its first window"
    for verdict, first in zip(phases_of(settle), phases_of(cut), strict=True):
        if first in ("transient", "undetermined"):
            assert verdict == "fixed"


def test_too_short_a_tail_is_refused():
    with pytest.raises(
        ValueError, match="tail must be at least 30 drive periods; got 50"
    ):
        classify(System(lambda x: x / 2, drive_period=4), jnp.array(0.1), tail=50)
