"""Flows through the same calls: per unit time, driven, sampled, aligned."""

from dataclasses import fields, replace

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft
from statmech_attn.dynamics import (
    catalogue,
    driven_flow,
    flow,
    flow_spectrum,
    gali,
    lyapunov_spectrum,
    per_unit_time,
)


def spiral(x):
    return jnp.stack([-0.1 * x[0] - x[1], x[0] - 0.1 * x[1]])


@pytest.mark.slow
def test_a_linear_flow_has_its_rates_per_unit_time_at_any_interval():
    """The real parts of the eigenvalues, on average over a turn and at every step."""
    for interval in (0.25, 0.5):
        found = flow_spectrum(
            spiral, jnp.array([1.0, 0.0]), time=64.0, interval=interval
        )
        assert np.allclose(found.exponents, -0.1, atol=1e-9)
        assert np.allclose(found.weighted, -0.1, atol=1e-9)
        assert np.allclose(found.blocks, -0.1, atol=1e-9)
        assert int(found.steps) == 64 / interval


@pytest.mark.slow
def test_spectrum_of_a_time_map_divided_by_its_time_is_that_of_the_flow():
    start, interval = jnp.array([1.0, 1.0, 20.0]), 0.25
    step = flow(catalogue.lorenz, time=interval, substeps=10)
    by_hand = lyapunov_spectrum(step, start, steps=400, transient=40)
    found = flow_spectrum(catalogue.lorenz, start, time=100.0, transient=10.0)
    assert np.allclose(found.exponents, by_hand.exponents / interval, atol=1e-12)
    assert np.allclose(found.stderr, by_hand.stderr / interval, atol=1e-12)
    # The divergence of the field is -(10 + 1 + 8/3).
    assert float(found.exponents.sum()) == pytest.approx(-41 / 3, abs=1e-6)


@pytest.mark.slow
def test_strobe_of_a_driven_oscillator_rests_on_its_response():
    """x'' + x'/2 + x = cos(2 t): response known, multipliers e^(-pi/4) in modulus."""
    field = lambda t, u: jnp.stack([u[1], -0.5 * u[1] - u[0] + jnp.cos(2 * t)])
    step = driven_flow(field, period=np.pi, substeps=20, phase=0.3)
    x = jnp.array([1.0, 0.0])
    for _ in range(60):
        x = step.step(x)
    amplitude = 1 / (1 - 4 + 0.5 * 2j)
    response = amplitude * np.exp(2j * 0.3)
    assert np.allclose(x, [response.real, (2j * response).real], atol=1e-7)
    found = lyapunov_spectrum(step, x, steps=320)
    rates = per_unit_time(found, np.pi)
    assert np.allclose(rates.weighted, -0.25, atol=1e-6)


@pytest.mark.slow
def test_henon_heiles_torus_has_the_powers_of_two_degrees_of_freedom():
    """GALI_2 stays, GALI_3 ~ t^-2, GALI_4 ~ t^-4 (Skokos et al. 2007)."""
    step = flow(catalogue.henon_heiles, time=1.0, substeps=5)
    start = catalogue.henon_heiles_start(0.55, 0.0)
    found = gali(step, start, order=4, samples=300)
    assert np.allclose(found.power(0.3), [0, -2, -4], atol=0.25)


def decayed():
    decay = flow(lambda x: -x, time=0.5, substeps=10)
    return lyapunov_spectrum(decay, jnp.array([1.0]), steps=256)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: flow(spiral, time=0.0, substeps=1),
            "time must be above 0",
        ),
        (
            lambda: flow(spiral, time=np.nan, substeps=1),
            "time must be a finite",
        ),
        (
            lambda: flow(spiral, time=1.0, substeps=0),
            "substeps must be at least 1; got 0",
        ),
        (
            lambda: driven_flow(lambda t, x: x, period=-1.0, substeps=2),
            "must be above 0; got -1",
        ),
        (
            lambda: flow_spectrum(spiral, jnp.ones(2), time=-1.0),
            "time must be above 0; got -1",
        ),
        (
            lambda: flow_spectrum(spiral, jnp.ones(2), time=np.inf),
            "time must be a finite number; got inf",
        ),
        (
            lambda: flow_spectrum(spiral, jnp.ones(2), time=1.0, transient=np.inf),
            "transient must be a finite number; got inf",
        ),
        (lambda: per_unit_time(None, 1.0), "spectrum must be of the type Spectrum"),
        (lambda: per_unit_time(decayed(), np.inf), "interval must be a finite number"),
        (lambda: per_unit_time(decayed(), 0.0), "interval must be above 0; got 0"),
        (
            lambda: flow_spectrum(lambda x: -x[:1], jnp.array([1.0, 2.0]), time=40.0),
            r"field must return .* it takes; got float64\[1\] from float64\[2\]",
        ),
    ],
)
def test_bad_times_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_strobed_system_keeps_what_is_not_of_a_single_step():
    system = flow(lambda x: -x, time=1.0, substeps=4)
    rate = lambda state, parameters, steps: (jnp.full(16, 0.3), 0.1 * steps)
    system = replace(system, rank=-1, observe=jnp.sin, entropy_production=rate)
    strobed = system.strobed(3)
    of_a_step = {"step", "tangent", "unit", "entropy_production", "first_return"}
    for field in fields(system):
        same = getattr(strobed, field.name) is getattr(system, field.name)
        assert same or field.name in of_a_step, field.name
    blocks, weighted = strobed.entropy_production(None, None, 5)
    assert float(blocks[0]) == pytest.approx(3 * 0.3)  # of three steps
    assert float(weighted) == pytest.approx(3 * 0.1 * 15)  # a block is of 15 of them


def test_the_continuous_limit_is_known_to_be_a_flow():
    patterns = dmft.site_classes(np.ones((4, 1, 1)))
    limit = dmft.continuous(dmft.network(patterns, context=1), window=0.0)
    assert limit.flow is not None and not limit.flow.driven
