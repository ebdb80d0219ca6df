"""Theory against simulation: agreement, exponents in N, and what must be noticed."""

import jax
import numpy as np
import pytest
import xarray as xr

from statmech_attn import dmft, montecarlo
from statmech_attn.comparison import compare, VERDICTS
from statmech_attn.dmft.network import network_digest
from statmech_attn.dmft.noise.fluctuations import linear_noise, OBSERVABLES


pytestmark = pytest.mark.slow


FILE = dmft.load("poclopez-pe2")
NET = dmft.network(FILE.patterns, context=FILE.context)
STEPS = 40


def identity(gamma):
    attrs = {"network": network_digest(NET), "start": "token 0"}
    return attrs, {"gamma": gamma, "epsilon": FILE.epsilon}


def theory(beta, *, gamma=FILE.gamma, steps=STEPS, shift=0.0):
    params = dmft.parameters(np.asarray(beta) + shift, gamma, FILE.epsilon)
    state = dmft.from_row(NET, params, 0)
    _, seen = dmft.trajectory(NET, params, state, steps=steps)
    noise = linear_noise(NET, FILE.patterns, params, state, steps=steps)
    std = noise.std
    place = lambda x: (("beta", "time", "pattern"), np.moveaxis(np.asarray(x), 2, 0))
    variables = {x: place(getattr(seen, x)) for x in OBSERVABLES}
    variables |= {f"{x}_noise_std": place(getattr(std, x)) for x in OBSERVABLES}
    variables["score_noise_std"] = (("beta", "time"), np.asarray(noise.score).T)
    attrs, coords = identity(gamma)
    coords |= {"beta": np.asarray(beta), "time": np.arange(steps)}
    return xr.Dataset(variables, coords | {"pattern": [1, 2, 3]}, attrs)


def simulation(beta, sizes, runs, *, gamma=FILE.gamma, steps=STEPS, method="collapsed"):
    attrs, coords = identity(gamma)
    found = montecarlo.simulations(
        jax.random.key(31),
        NET,
        FILE.patterns,
        {"beta": beta} | coords,
        lambda params: dmft.from_row(NET, params, 0),
        n_spins=sizes,
        runs=runs,
        steps=steps,
        method=method,
        transient=steps // 4,
    )
    return found.compute().assign_attrs(attrs)


@pytest.fixture(scope="module")
def weak():
    """Weak attention, where 1/N is small at sizes that are cheap: three sizes."""
    beta = [0.5, 1.27]
    sizes = [3000, 12_000, 48_000]
    simulated = simulation(beta, sizes, 40_000, gamma=2.0)
    return simulated, compare(theory(beta, gamma=2.0), simulated)


def verdicts(dataset):
    return [VERDICTS[i] for i in dataset.verdict.values]


def test_a_million_million_spins_follow_the_theory_to_a_millionth():
    beta = [0.5, 1.27]
    n_spins, runs = 999_999_999_999, 500
    simulated = simulation(beta, [n_spins], runs)
    predicted = theory(beta)
    result = compare(predicted, simulated)
    assert verdicts(result) == ["agrees"] * 2
    difference = abs(simulated.A_mean - predicted.A).isel(n_spins=0)
    chance = result.threshold * predicted.A_noise_std / np.sqrt(n_spins * runs)
    sharp = (chance < 1e-6).all("pattern")  # elsewhere noise alone may exceed 1e-6
    assert float(difference.where(sharp).max()) < 1e-6
    assert sharp.sel(beta=0.5).all()
    assert int(sharp.sel(beta=1.27).sum()) >= 8


def test_exponents_in_n(weak):
    """Spread N^-1/2 and bias N^-1; the next order, 1/N relative, is below 1e-3."""
    _, result = weak
    for name in ("A", "m_o_se"):
        spread, bias = result[f"{name}_spread_slope"], result[f"{name}_bias_slope"]
        assert (abs(spread + 0.5) < 4 * result[f"{name}_spread_slope_stderr"]).all()
        assert (abs(bias + 1) < 4 * result[f"{name}_bias_slope_stderr"]).any()
        seen = np.isfinite(bias)
        assert seen.any()
        assert (abs(bias + 1) < 4 * result[f"{name}_bias_slope_stderr"])[seen].all()
        assert float(result[f"{name}_bias_slope_stderr"].min()) < 0.2


def test_the_spread_of_the_scores_falls_as_one_over_root_n(weak):
    """Small in all of them: attention is weak, and the linear noise holds."""
    _, result = weak
    scaled = result.score_spread * np.sqrt(result.n_spins)
    assert scaled.dims == ("n_spins", "beta", "time")
    np.testing.assert_allclose(np.ptp(scaled.values, axis=0), 0, atol=1e-12)
    assert 0 < float(result.score_spread.max()) < 0.1


def test_bias_is_told_from_disagreement(weak):
    """At 40 000 runs the O(1/N) bias is many standard errors, and is seen to vanish."""
    _, result = weak
    assert set(verdicts(result)) <= {"agrees", "bias_only"}
    assert "bias_only" in verdicts(result)
    assert float(result.largest_z.max()) > float(result.threshold)
    assert (result.largest_limit_z < result.limit_threshold).all()


def test_spread_agrees_with_linear_noise(weak):
    _, result = weak
    largest = result.sel(n_spins=48_000)
    # Relative corrections of order gamma^2 / N = 1e-4 against a threshold of 0.02.
    for name in OBSERVABLES:
        assert float(abs(largest[f"{name}_spread_z"]).max()) < 5.5


def test_stationary_averages_agree(weak):
    """One-quarter of the 40 steps is left out; the orbit is at rest by then."""
    _, result = weak
    largest = result.sel(n_spins=48_000)
    assert float(abs(largest.A_stationary_mean_difference).max()) < 1e-3
    assert set(result.A_stationary_mean_z.dims) == {"n_spins", "beta", "pattern"}


@pytest.mark.parametrize("shift", [1e-3, -1e-3])
def test_a_theory_with_a_wrong_beta_is_noticed(weak, shift):
    simulated, _ = weak
    result = compare(theory([0.5, 1.27], gamma=2.0, shift=shift), simulated)
    assert verdicts(result) == ["differs", "differs"]


def test_single_spins_follow_the_theory():
    simulated = simulation([0.5, 1.27], [3000, 30_000], 2000, gamma=2.0, method="spins")
    result = compare(theory([0.5, 1.27], gamma=2.0), simulated)
    assert set(verdicts(result)) <= {"agrees", "bias_only"}


def test_steps_past_the_horizon_are_not_compared():
    beta, sizes = [0.5, 1.27], [3000, 3 * 10**9]
    predicted = theory(beta)
    simulated = simulation(beta, sizes, 200)
    compared = compare(predicted, simulated).compared
    reach = compared.sum("time").values[:, 1]
    assert reach[0] < reach[1] <= STEPS
    exponents = xr.DataArray([[-0.1, -1.0], [0.5, -1.0]], dims=("beta", "exponent"))
    shorter = compare(predicted.assign(lyapunov=exponents), simulated).compared
    np.testing.assert_array_equal(
        shorter.sum("time").values[:, 1],
        np.minimum(reach, np.ceil(np.log(np.array(sizes, float)))),
    )


def changed(dataset, **attrs):
    return dataset.assign_attrs(attrs)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t, s: (t, changed(s, network="x")), "network differs"),
        (lambda t, s: (t, changed(s, start="random")), "start differs"),
        (lambda t, s: (t.isel(beta=[0]), s), "beta = 1.27 is in the simulation"),
        (lambda t, s: (t, s.assign_coords(gamma=3.0)), "gamma differs"),
        (lambda t, s: (t.drop_vars("epsilon"), s), "'epsilon' is missing"),
        (lambda t, s: (t.expand_dims(gamma=[2.0]), s), "select one gamma"),
        (lambda t, s: (s, s), "got monte-carlo and monte-carlo"),
        (lambda t, s: (t, t), "simulation: no variable 'A_mean'"),
        (lambda t, s: (t, changed(s, runs=1)), "at least 2 runs"),
        (lambda t, s: (t.isel(pattern=[0]), s), "got 1 and 3 patterns"),
    ],
)
def test_files_that_do_not_match_are_refused(weak, spoil, message):
    with pytest.raises(ValueError, match=message):
        compare(*spoil(theory([0.5, 1.27], gamma=2.0), weak[0]))
