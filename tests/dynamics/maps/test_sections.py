"""Sections of flows and maps against closed forms, published values and identities."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics import (
    catalogue,
    classify,
    continuation,
    driven_flow,
    find_attractors,
    flow,
    per_unit_time,
    PHASES,
    returns,
    section,
    System,
)
from statmech_attn.dynamics.attractors.basins import DIVERGED
from statmech_attn.dynamics.maps.sections import (
    AT_REST,
    NOT_BACK,
    NOT_FINITE,
    TANGENTIAL,
)


def van_der_pol(u):
    """With the integral of the divergence 1 - x^2 as a third coordinate."""
    x, y, _ = u
    return jnp.stack([y, (1 - x**2) * y - x, 1 - x**2])


def turning(u):
    """Harmonic oscillation; one turn takes 2 pi."""
    return jnp.stack([-u[1], u[0]])


@pytest.mark.slow
def test_multiplier_of_the_van_der_pol_cycle_is_the_integrated_divergence():
    """Liouville: exp of the integral over the cycle, and the formula for DP."""
    cycle = section(flow(van_der_pol, time=1.0, substeps=20), (0, 0.0))
    x = returns(cycle, jnp.array([0.0, 1.0, 0.0]), samples=12).points[-1]
    start = x.at[2].set(0.0)
    orbit = returns(cycle, start, samples=2)
    assert orbit.points[1, 1] == pytest.approx(float(start[1]), abs=1e-11)
    assert (orbit.points[:, 0] == 0).all()
    derivative = jax.jit(jax.jacfwd(cycle.step))(start)
    # The error of the closed cycle and of the solver at this step.
    assert (derivative[0] == 0).all()
    multiplier = float(jnp.exp(orbit.points[0, 2]))
    assert derivative[1, 1] == pytest.approx(multiplier, abs=1e-11)
    period = float(orbit.times[0])
    along = jax.jacfwd(flow(van_der_pol, time=period, substeps=400).step)(start)
    f, n = van_der_pol(start), jnp.array([1.0, 0.0, 0.0])
    projected = along - jnp.outer(f, n @ along) / (n @ f)
    assert np.allclose(derivative, projected, rtol=0, atol=1e-11)


def rossler(u, p):
    x, y, z = u
    return jnp.stack([-y - z, x + 0.2 * y, 0.2 + z * (x - p["c"])])


@pytest.mark.slow
def test_a_cycle_of_a_flow_is_continued_to_where_it_doubles():
    """There the time map over its period has the multipliers -1 and, along it, 1."""
    plane = section(flow(rossler, time=1.0, substeps=20), (1, 0.0))
    start, c = jnp.array([1.0, 1.0, 0.0]), {"c": jnp.array(2.5)}
    near = returns(plane, start, c, samples=1, transient=100).points[-1]
    problem = continuation.Problem(plane, near, {"c": 2.5}, "c")
    branch = continuation.follow_cycle(problem, near, 2.5, within=(2.4, 3.0)).run()
    (doubling,) = branch.special
    assert doubling.kind == "period_doubling"
    assert doubling.form and doubling.form.criticality == "supercritical"
    c = {"c": jnp.array(doubling.value)}
    orbit = returns(plane, jnp.asarray(doubling.x), c, samples=1)
    assert np.allclose(orbit.points[0], doubling.x, rtol=0, atol=1e-9)
    period = flow(rossler, time=float(orbit.times[0]), substeps=200)
    along = jax.jacfwd(period.step)(orbit.points[0], c)
    multipliers = np.sort(np.linalg.eigvals(along).real)
    assert np.allclose(multipliers, [-1, 0, 1], rtol=0, atol=1e-6)


@pytest.mark.slow
def test_rossler_doubles_its_period_into_chaos_of_the_published_rate():
    """a = b = 0.2, y = 0 upwards; 0.0714 nats per unit time (Sprott 2003)."""
    plane = section(flow(rossler, time=1.0, substeps=20), (1, 0.0))
    c = {"c": jnp.array([2.5, 3.5, 4.0, 5.7])}
    start = jnp.array([1.0, 1.0, 0.0])
    verdict = jax.vmap(
        lambda p: classify(
            plane, start, p, steps=12_800, transient=400, tail=300, exponents=1
        )
    )(c)
    assert [PHASES[i] for i in verdict.phase] == [
        "fixed",
        "periodic",
        "periodic",
        "chaotic",
    ]
    assert verdict.period.tolist() == [1, 2, 4, 0]
    of_chaos = jax.tree.map(lambda x: x[-1], verdict)
    times = returns(plane, of_chaos.state, {"c": jnp.array(5.7)}, samples=4000)
    rate = per_unit_time(of_chaos.spectrum, times.mean, times.stderr)
    assert float(times.stderr) > 0
    assert rate.stderr[0] > of_chaos.spectrum.stderr[0] / times.mean
    error = np.hypot(float(rate.stderr[0]), 1e-4)
    assert abs(float(rate.exponents[0]) - 0.0714) < 3 * error
    assert error < 1e-3


@pytest.mark.slow
def test_section_in_the_phase_of_a_drive_is_the_stroboscopic_map():
    """Damped pendulum with drive cos(2 t/3), its phase a coordinate that turns."""

    def pendulum(t, u):
        return jnp.stack([u[1], -0.5 * u[1] - jnp.sin(u[0]) + 0.9 * jnp.cos(2 * t / 3)])

    def with_phase(u):
        return jnp.append(pendulum(1.5 * u[2], u[:2]), 2 / 3)

    period = 3 * np.pi
    strobe = driven_flow(pendulum, period=period, substeps=200, phase=1.5 * 0.5)
    turn = section(flow(with_phase, time=period, substeps=200), (2, 0.5), angles=(2,))
    state = jnp.array([0.3, -0.2])
    orbit = returns(turn, jnp.append(state, 0.5), samples=5)
    assert np.allclose(orbit.times, period, rtol=1e-13)
    for point in orbit.points:
        state = strobe.step(state)
        # Steps of both begin at the same times but for rounding.
        assert np.allclose(point, [*state, 0.5], rtol=0, atol=1e-10)
    one = jax.jacfwd(strobe.step)(jnp.array([0.3, -0.2]))
    other = jax.jacfwd(turn.step)(jnp.array([0.3, -0.2, 0.5]))
    assert np.allclose(other[:2, :2], one, rtol=0, atol=1e-10)
    backwards = flow(lambda u: -with_phase(u), time=period, substeps=200)
    before = section(backwards, (2, 0.5), angles=(2,), direction="down")
    back = before.step(turn.step(jnp.array([0.3, -0.2, 0.5])))
    assert np.allclose(back, [0.3, -0.2, 0.5], rtol=0, atol=1e-9)


@pytest.mark.slow
def test_a_limit_cycle_of_a_flow_is_told_from_a_torus():
    """Turns in a unit of time are one over the time of a return."""
    field = lambda u: van_der_pol(jnp.append(u, 0.0))[:2]
    seen = flow(field, time=1.0, substeps=20)
    start = jnp.array([0.0, 2.0])
    verdict = classify(seen, start, steps=2000, transient=100, exponents=2)
    assert PHASES[int(verdict.phase)] == "quasiperiodic"
    said = "1 of 2 exponents zero, and one always is along an orbit of a flow: a limit"
    assert said in verdict.explain() and "section has its period" in verdict.explain()
    cycle = section(seen, (0, 0.0))
    on_it = classify(cycle, start, steps=500, transient=30, exponents=1)
    assert PHASES[int(on_it.phase)] == "fixed"
    period = returns(cycle, on_it.state, samples=4).mean
    clockwise = 1 - verdict.rotation_number
    assert float(period * clockwise) == pytest.approx(1, abs=1e-8)
    two = eqx.tree_at(lambda v: v.evidence.zeros, verdict, jnp.array(2))
    assert "a torus; dynamics.section shows a closed curve of it" in two.explain()
    one = eqx.tree_at(lambda v: v.spectrum, verdict, on_it.spectrum)
    assert "a limit cycle or torus; dynamics.section tells which" in one.explain()
    assert "dynamics.section" not in on_it.explain()


def test_running_pendulum_is_back_when_its_angle_is_an_angle():
    """theta' = v, v' = 1 - v: after the transient one turn takes 2 pi."""
    start = jnp.array([0.3, 1.0])
    running = flow(lambda u: jnp.stack([u[1], 1 - u[1]]), time=1.0, substeps=10)
    turn = section(running, (0, 0.3), angles=(0,))
    after = turn.first_return(start)
    assert float(after.time) == pytest.approx(2 * np.pi, rel=1e-13)
    assert float(after.state[0]) == 0.3
    assert float(after.state[1]) == pytest.approx(1.0, abs=1e-13)


def test_running_pendulum_is_back_where_a_function_of_its_angle_vanishes():
    """An angle is brought back after a return, whatever the section is."""
    start = jnp.array([0.3, 1.0])
    running = flow(lambda u: jnp.stack([u[1], 1 - u[1]]), time=1.0, substeps=10)
    free = section(running, lambda u: jnp.sin(u[0] - 0.3), angles=(0,))
    assert np.allclose(free.step(start), start, atol=1e-13)


@pytest.mark.slow
def test_the_third_derivative_of_a_return_is_that_of_its_closed_form():
    """Normal forms take it: angle' = v, w' = w come back with w exp(2 pi / v)."""
    speed = flow(lambda u: jnp.stack([u[1], 0.0, u[2]]), time=1.0, substeps=20)
    turn = section(speed, (0, 0.3), angles=(0,))
    third = lambda f: jax.jit(jax.jacfwd(jax.jacfwd(jax.jacfwd(f))))
    found = third(lambda v: turn.step(jnp.stack([0.3, v, 1.0]))[2])(6.0)
    expected = third(lambda v: jnp.exp(2 * jnp.pi / v))(6.0)
    assert found == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.slow
def test_torus_of_a_flow_is_a_closed_curve_of_its_frequency_ratio():
    """Two oscillators whose amplitudes return at rate 2: golden ratio of turns."""

    def oscillator(x, y, speed):
        growth = 1 - x**2 - y**2
        return growth * x - speed * y, growth * y + speed * x

    def torus(u):
        return jnp.stack(
            [*oscillator(u[0], u[1], 1.0), *oscillator(u[2], u[3], catalogue.GOLDEN)]
        )

    start = jnp.array([1.0, 0.0, 0.5, 0.1])
    curve = section(flow(torus, time=1.0, substeps=10), (1, 0.0))
    verdict = classify(curve, start, steps=2000, transient=50, tail=1000)
    assert PHASES[int(verdict.phase)] == "quasiperiodic"
    assert float(verdict.rotation_number) == pytest.approx(
        1 - catalogue.GOLDEN, abs=1e-9
    )
    assert np.allclose(verdict.spectrum.exponents[1:3], -4 * np.pi, rtol=1e-6)
    assert np.isneginf(verdict.spectrum.exponents[3])


@pytest.mark.slow
def test_orbits_that_do_not_come_back_have_a_code():
    """A state at rest on the section, one on its way there, and one that explodes."""
    inwards = flow(lambda u: jnp.stack([-u[0], -u[1] + 1.0]), time=1.0, substeps=10)
    plane = section(inwards, (1, 1.0), longest=20.0)
    for start, code in (([0.0, 1.0], AT_REST), ([1.0, 0.5], NOT_BACK)):
        stuck = returns(plane, jnp.array(start), samples=2)
        assert stuck.result.tolist() == [code, NOT_FINITE]
        assert np.isnan(stuck.points).all() and np.isnan(stuck.mean)
    wild = flow(lambda u: jnp.stack([u[0] ** 2, u[1]]), time=1.0, substeps=10)
    lost = returns(section(wild, (1, -1.0)), jnp.array([1.0, 1.0]), samples=1)
    assert lost.result.tolist() == [NOT_FINITE]


@pytest.mark.slow
def test_an_equilibrium_on_a_section_is_no_cycle_of_returns():
    """Orbits that spiral around it return after half a turn at any distance, and
    Newton's method comes to it."""
    spiral = lambda u, p: jnp.stack([p["a"] * u[0] - u[1], u[0] + p["a"] * u[1]])
    around = section(flow(spiral, time=1.0, substeps=9), (1, 0.0), direction="both")
    rest = around.first_return(jnp.zeros(2), {"a": jnp.array(0.1)})
    assert int(rest.result) == AT_REST and np.isnan(rest.state).all()
    returning = continuation.Problem(around, jnp.zeros(2), {"a": 0.1}, "a")
    found = continuation.find_cycle(returning, jnp.array([0.3, 0.0]), 0.1)
    assert not found.converged and np.isnan(found.multipliers).all()
    assert "no return" in repr(found)


def test_a_section_that_is_touched_is_told_from_one_that_is_crossed():
    """x = (t - 1)^3 stands still on its way up."""
    cubic = flow(lambda u: jnp.stack([3 * (u[1] - 1) ** 2, 1.0]), time=1.0, substeps=9)
    still = section(cubic, (0, 0.0)).first_return(jnp.array([-1.0, 0.0]))
    assert int(still.result) == TANGENTIAL and np.isnan(still.state).all()


@pytest.mark.slow
def test_sections_that_orbits_lie_on_or_beside_are_not_crossed():
    """x^2 + y^2 is kept."""
    circle, start = flow(turning, time=1.0, substeps=10), jnp.array([1.0, 0.0])
    kept = section(circle, lambda u: u @ u - 1, longest=50.0).first_return(start)
    assert int(kept.result) in (TANGENTIAL, NOT_BACK)
    beside = section(circle, (0, 1.001), longest=50.0).first_return(start)
    assert int(beside.result) == NOT_BACK


@pytest.mark.slow
def test_planes_and_functions_are_the_same_section_in_either_direction():
    """A turn is 2 pi, half a turn from one side of a tilted plane to the other."""
    circle, start = flow(turning, time=1.0, substeps=20), jnp.array([1.0, 0.0])
    normal = np.array([0.6, 0.8])
    up, down, both = (
        returns(section(circle, (normal, 0.5), direction=way), start, samples=4)
        for way in ("up", "down", "both")
    )
    for crossings in (up, down, both):
        assert np.allclose(crossings.points @ normal, 0.5, rtol=0, atol=1e-14)
    assert np.allclose([up.times[1:], down.times[1:]], 2 * np.pi, rtol=1e-12)
    assert np.allclose(both.times[2:] + both.times[1:-1], 2 * np.pi, rtol=1e-12)
    assert np.allclose(both.points[:2], [down.points[0], up.points[0]], atol=1e-12)
    early = up.points[0] - 1e-9 * normal
    after = section(circle, (normal, 0.5)).first_return(early)
    assert np.allclose(after.state, up.points[0])
    assert float(after.time) == pytest.approx(2 * np.pi, abs=1e-8)
    same = returns(section(circle, lambda u: normal @ u - 0.5), start, samples=4)
    assert np.allclose(same.points, up.points, rtol=0, atol=1e-13)


@pytest.mark.slow
def test_first_returns_of_a_map_take_as_many_steps_as_it_says():
    """A turn by 0.3 crosses y = 0 upwards in 3 or 4 steps, 10 steps for 3 turns."""
    angle = 0.6 * np.pi
    turn = jnp.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    rotation = System(lambda u: turn @ u, unit="token")
    upwards = section(rotation, (1, 0.0))
    start = jnp.array([np.cos(0.1), np.sin(0.1)])
    orbit = returns(upwards, start, samples=30)
    assert orbit.times[:3].tolist() == [4, 3, 3]
    assert float(orbit.mean) == pytest.approx(10 / 3) and orbit.unit == "token"
    derivative = jax.jacfwd(upwards.step)(start)
    assert np.allclose(derivative, jnp.linalg.matrix_power(turn, 4), atol=1e-14)
    verdict = classify(upwards, start, steps=300, transient=0, tail=300)
    assert int(verdict.evidence.recurrence_period) == 3
    never = returns(section(rotation, (1, 2.0), longest=9), start, samples=1)
    assert never.result.tolist() == [NOT_BACK]


@pytest.mark.slow
def test_basins_on_a_section_are_those_of_the_two_wells():
    """x'' + x'/2 - x + x^3 = 0 driven weakly: one cycle in each well, apart in x."""

    def duffing(u):
        force = u[0] - u[0] ** 3 - 0.5 * u[1] + 0.1 * jnp.cos(u[2])
        return jnp.stack([u[1], force, 1.0])

    turn = section(flow(duffing, time=1.0, substeps=10), (2, 0.0), angles=(2,))
    starts = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.9, 0.1, 0.0]])
    wells = find_attractors(turn, starts)
    assert len(wells.counts) == 2 and wells.label[0] == wells.label[2] != wells.label[1]
    never = section(flow(duffing, time=1.0, substeps=10), (0, 3.0), longest=20.0)
    assert find_attractors(never, starts).label.tolist() == 3 * [DIVERGED]


CIRCLE = flow(turning, time=1.0, substeps=10)
LEFT: Any = "left"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: section(CIRCLE, (1, 0.0), direction=LEFT),
            "direction must be 'up', 'down' or 'both'; got 'left'",
        ),
        (lambda: section(CIRCLE, (1, 0.0), longest=0.0), "longest must be above 0"),
        (
            lambda: section(System(lambda x: x, drive_period=2), (0, 0.0)),
            "system of one state without a drive",
        ),
        (
            lambda: section(System(lambda x: x), (0, 0.0), angles=(0,)),
            "angles are those of a flow",
        ),
        (
            lambda: section(driven_flow(turning, period=1.0, substeps=2), (0, 0.0)),
            "make the phase a coordinate of a flow",
        ),
        (
            lambda: section(CIRCLE, (2, 0.0)).step(jnp.ones(2)),
            "where must name a coordinate in 0..1; got 2",
        ),
        (
            lambda: section(CIRCLE, (np.ones(3), 0.0)).step(jnp.ones(2)),
            r"where must hold a normal of 2 numbers, as the state has; got \[3\]",
        ),
        (
            lambda: section(CIRCLE, (np.zeros(2), 0.0)),
            "where must hold a normal that is not zero; got",
        ),
        (
            lambda: section(CIRCLE, lambda u: u).step(jnp.ones(2)),
            r"where must return one number for a state; got float64\[2\]",
        ),
        (
            lambda: section(CIRCLE, (0, 0.0), angles=(2,)).step(jnp.ones(2)),
            r"angles must be in 0..1; got \[2\]",
        ),
        (
            lambda: returns(CIRCLE, jnp.ones(2), samples=3),
            "returns takes a section: what dynamics.section returns",
        ),
    ],
)
def test_sections_that_cannot_be_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
