"""Entropy production of sampled spins, against the map and against reversibility."""

import jax
import numpy as np
import pytest

from statmech_attn import dmft, montecarlo


def published(beta, **changes):
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(beta, file.gamma, file.epsilon, **changes)
    return file, net, params, dmft.from_checkpoint(net, params, file)


@pytest.fixture(scope="module")
def both():
    """At rest and in chaos: the rates of the map and of spins.

    At rest nearly all of it is bias, 6e-4 at the smallest N over 1e-6 of the map.
    """
    file, net, params, start = published(np.array([1.2, 1.4]))
    start = dmft.advance(net, params, start, 4000)
    theory = dmft.entropy_production(net, params, start, steps=80_000)
    how = dict(n_spins=[30_000, 300_000, 3_000_000], runs=16, steps=2000)
    given = net, file.patterns, params, start
    sampled = montecarlo.entropy_production(
        *given, **how, transient=500, key=jax.random.key(0)
    )
    return theory, sampled


def test_spins_have_the_rate_of_the_map_and_a_bias_like_one_over_n(both):
    compared = montecarlo.compare_entropy_production(*both)
    theory, _ = both
    assert (abs(compared.limit_z) < compared.threshold).all()
    assert (compared.limit_stderr < [1e-6, 0.01 * theory.mean[1]]).all()
    assert (compared.z[:, 0] > 10).all()  # the bias at rest is seen at every N
    assert abs(compared.exponent[0] + 1) < 3 * compared.exponent_stderr[0] < 0.1
    assert np.isnan(compared.exponent[1])


def test_a_rate_that_is_off_by_a_tenth_is_seen(both):
    theory, sampled = both
    wrong = theory.__class__(1.1 * theory.mean, *list(vars(theory).values())[1:])
    compared = montecarlo.compare_entropy_production(wrong, sampled)
    assert abs(compared.limit_z[1]) > 4 * compared.threshold


@pytest.mark.parametrize("n_spins", [1000, 1_000_000])
def test_symmetric_networks_of_one_slot_have_no_arrow(n_spins):
    """Little's dynamics is reversible at every N, in an orbit that moves."""
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (4, 2, 8))
    signs[0] = signs[1]
    patterns = dmft.site_classes(signs)
    net = dmft.network(patterns, context=1)
    params = dmft.parameters(1.5, 2.0, 0.0)
    start = dmft.from_row(net, params, 0)
    how = dict(n_spins=[n_spins], runs=64, steps=2000, transient=200)
    sampled = montecarlo.entropy_production(
        net, patterns, params, start, **how, key=jax.random.key(0)
    )
    assert 0 < sampled.stderr[0] < 1e-5
    assert abs(sampled.mean[0]) < 3.5 * sampled.stderr[0]


def test_counts_and_single_spins_have_the_same_law():
    file, net, params, start = published(np.array([1.2, 1.4]))
    given = net, file.patterns, params, start
    how = dict(n_spins=[3000], runs=32, steps=500, transient=100)
    collapsed, spins = (
        montecarlo.entropy_production(
            *given, **how, method=method, key=jax.random.key(i)
        )
        for i, method in enumerate(("collapsed", "spins"))
    )
    error = np.hypot(collapsed.stderr, spins.stderr)
    assert (error < np.array([0.15, 0.01]) * collapsed.mean).all()
    assert (abs(collapsed.mean - spins.mean) < 3.5 * error).all()


def test_copied_spins_have_the_rate_of_their_map():
    file, net, params, start = published(1.4, redrawn=0.5)
    theory = dmft.entropy_production(net, params, start, steps=40_000, transient=2000)
    how = dict(n_spins=[3_000_000], runs=16, steps=2000, transient=1000)
    sampled = montecarlo.entropy_production(
        net, file.patterns, params, start, **how, key=jax.random.key(0)
    )
    (z,) = montecarlo.compare_entropy_production(theory, sampled).z
    assert abs(z) < 3.5 and sampled.stderr[0] < 0.05 * theory.mean


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"runs": 1}, "runs"),
        ({"steps": 0}, "steps"),
        ({"n_spins": []}, "n_spins"),
        ({"n_spins": [100]}, "multiple of 3"),
    ],
)
def test_arguments_out_of_range_are_named(changes, named):
    file, net, params, start = published(1.0)
    given = dict(n_spins=[300], runs=2, steps=4) | changes
    with pytest.raises(ValueError, match=named):
        montecarlo.entropy_production(
            net, file.patterns, params, start, **given, key=jax.random.key(0)
        )


def test_rates_of_other_points_are_refused(both):
    _, sampled = both
    _, net, params, start = published(1.2)
    theory = dmft.entropy_production(net, params, start, steps=64)
    with pytest.raises(ValueError, match="batch shape"):
        montecarlo.compare_entropy_production(theory, sampled)
