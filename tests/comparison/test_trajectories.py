"""Spreads against linear noise: what counts, and what a verdict rests on."""

import io

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from statmech_attn import layout, plotting
from statmech_attn.cli.texts.summary import print_summary
from statmech_attn.comparison import compare, least_spins, VERDICTS
from statmech_attn.comparison.trajectories import smallest_spread
from statmech_attn.plotting.network.comparison import differences_in_time


SIZES, RUNS, STEPS = np.array([10**4, 10**6, 10**8, 10**10]), 1000, 20
SIGMA = 0.01  # spread at N = 1
ATTRIBUTES = {"network": "one", "start": "token 0", "method": "collapsed"}
COORDINATES = {"beta": [1.0, 2.0], "time": np.arange(STEPS), "pattern": [1, 2]}


def files(exponent=-0.5, saturated=False):
    """Means that agree within 0.3 standard errors, and spreads SIGMA N^exponent.

    A saturated token at step 0 fluctuates by 1e-12 / sqrt(N); its sampled spread is the
    rounding of doubles where that is larger.
    """
    shape = (2, STEPS, 2)
    sigma = np.full(shape, SIGMA)
    sigma[:, 0] = 1e-12 if saturated else SIGMA
    spread = np.stack([sigma * float(n) ** exponent for n in SIZES])
    spread[:, :, 0] = np.hypot(spread[:, :, 0], 1e-16)
    theory, simulation = {}, {}
    for name in ("A", "m_o_se"):
        theory[name] = ("beta", "time", "pattern"), np.zeros(shape)
        theory[f"{name}_noise_std"] = ("beta", "time", "pattern"), sigma
        over = ("n_spins", "beta", "time", "pattern")
        simulation[f"{name}_mean"] = over, 0.3 * spread / np.sqrt(RUNS)
        simulation[f"{name}_spread"] = over, spread
        simulation[f"{name}_stderr"] = over, spread / np.sqrt(RUNS)
        for part in ("mean", "square"):
            simulation[f"{name}_stationary_{part}"] = (
                ("n_spins", "beta", "pattern", "all_runs"),
                np.zeros((len(SIZES), 2, 2, 32)),
            )
    same = {"gamma": 2.0, "epsilon": 0.0}
    return (
        xr.Dataset(theory, COORDINATES | same, ATTRIBUTES),
        xr.Dataset(
            simulation,
            COORDINATES | same | {"n_spins": SIZES},
            ATTRIBUTES | {"runs": RUNS, "transient": 0},
        ),
    )


def verdicts(dataset):
    return {VERDICTS[code] for code in dataset.verdict.values}


def printed(dataset):
    print_summary(dataset, Console(file=(text := io.StringIO()), width=100))
    return text.getvalue()


def test_a_spread_below_the_rounding_of_doubles_is_not_compared():
    result = compare(*files(saturated=True))
    np.testing.assert_allclose(result.A_spread_slope, -0.5, atol=1e-12)
    # 1e-12 / sqrt(N) lies above 5e-15 at N = 10^4 only.
    known = result.A_spread_ratio.notnull().isel(time=0).all(["beta", "pattern"])
    assert known.values.tolist() == [True, False, False, False]
    assert verdicts(result) == {"agrees"}


def test_rounding_raises_the_smallest_spread_by_less_than_its_sampling_error():
    spread = smallest_spread(RUNS)
    raised = np.hypot(spread, 1e-15) / spread - 1
    assert raised == pytest.approx(1 / np.sqrt(2 * (RUNS - 1)), rel=0.05)


@pytest.mark.parametrize("exponent", [-0.47, -0.53])
def test_a_spread_that_falls_with_another_power_is_no_agreement(exponent):
    result = compare(*files(exponent))
    np.testing.assert_allclose(result.A_spread_slope, exponent, atol=1e-9)
    assert (result.largest_slope_z > result.slope_threshold).all()
    assert verdicts(result) == {"spread_differs"}


def test_an_exponent_within_its_error_is_agreement():
    error = float(compare(*files()).A_spread_slope_stderr[0])
    assert verdicts(compare(*files(-0.5 + 3 * error))) == {"agrees"}
    assert verdicts(compare(*files(-0.5 + 5 * error))) == {"spread_differs"}


def test_one_n_is_compared_without_an_exponent():
    theory, simulation = files()
    result = compare(theory, simulation.isel(n_spins=[1]))
    assert np.isnan(result.A_spread_slope).all() and np.isnan(result.A_bias_slope).all()
    assert verdicts(result) == {"agrees"}
    assert "1  agrees" in printed(result)
    assert len(plotting.agreement(result).axes) == 3


def with_rates(theory, simulation, differ_by=0.0):
    """Entropy production 0.3 of the map, and of spins with a bias of 3/N in 32 runs."""
    rng = np.random.default_rng(0)
    tokens = 0.3 + 1e-6 * rng.normal(size=(2, STEPS))
    runs = 0.3 + differ_by + 1e-6 * rng.normal(size=(len(SIZES), 2, 32))
    runs += 3 / SIZES[:, None, None]
    over = ("n_spins", "beta", "all_runs")
    return (
        theory.assign(entropy_production=(("beta", "time"), tokens)),
        simulation.assign(entropy_production_stationary_mean=(over, runs)),
    )


def test_entropy_production_agrees_but_for_a_bias_like_one_over_n():
    result = compare(*with_rates(*files()))
    codes = result.entropy_production_verdict.values
    assert {VERDICTS[code] for code in codes} == {"bias_only"}
    assert (abs(result.entropy_production_z[0]) > 100).all()
    error = result.entropy_production_bias_slope_stderr
    assert (abs(result.entropy_production_bias_slope + 1) < 4 * error).all()
    assert (error < 0.02).all()  # 6 % at 10^6 spins, over ln 100
    assert verdicts(result) == {"agrees"}
    layout.require_layout(result, "compared")


@pytest.mark.parametrize("differ_by", [3e-6, -3e-6])
def test_entropy_production_that_differs_at_infinite_n_is_told(differ_by):
    """Ten errors of 3e-7; the verdict on overlaps is another."""
    result = compare(*with_rates(*files(), differ_by))
    assert (abs(result.entropy_production_limit_z) > 5).all()
    told = printed(result).partition("entropy production of map and spins")[2]
    assert told.count("differs") == 2
    assert verdicts(result) == {"agrees"}


def test_entropy_production_that_one_file_lacks_is_not_compared():
    theory, simulation = with_rates(*files())
    for pair in ((theory, files()[1]), (files()[0], simulation)):
        assert not any("entropy" in name for name in compare(*pair))


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (("monte-carlo", "trajectory"), "got monte-carlo and trajectory"),
        (("trajectory", "posterior"), "got trajectory and posterior"),
        (("trajectory", "monte-carlo", "monte-carlo"), "monte-carlo, monte-carlo"),
        (("order-parameter",), "got order-parameter and no other file"),
        (("bifurcation", "basins"), "got bifurcation and basins"),
    ],
)
def test_files_of_other_kinds_are_refused_by_their_kinds(kinds, words):
    files = [xr.Dataset(attrs={"kind": kind}) for kind in kinds]
    with pytest.raises(ValueError, match=words):
        compare(*files)


def test_the_smallest_visible_error_is_that_of_the_sharpest_mean():
    """One mean of slope 2; one by gamma of 1e-9, which is rounding; others of none."""
    theory, simulation = files()
    slope = np.zeros((2, STEPS, 2))
    slope[:, 3, 0], slope[:, 4, 0] = 2.0, 1e-9
    dims = ("beta", "time", "pattern")
    by = {
        f"{x}_by_{p}": (dims, 0 * slope)
        for x in ("A", "m_o_se")
        for p in ("beta", "gamma", "epsilon")
    }
    by |= {"A_by_gamma": (dims, np.where(slope == 1e-9, slope, 0.0))}
    seen = compare(theory.assign(by | {"A_by_beta": (dims, slope)}), simulation)
    stderr = seen.A_limit_stderr.values[:, 3, 0]
    expected = (float(seen.limit_threshold) + 1.2815515655) * stderr / 2
    np.testing.assert_allclose(seen.smallest_error[:, 0], expected, rtol=1e-9)
    assert np.isinf(seen.smallest_error[:, 1:]).all()
    assert verdicts(seen) == {"agrees"}
    blind = compare(theory.assign(by), simulation)
    assert verdicts(blind) == {"cannot_tell"}


def growing(score, overlap=SIGMA, gamma=2.0):
    """Theory whose spreads at N = 1 are those of one step each, and its simulation."""
    theory, simulation = files()
    score = np.resize(np.asarray(score, float), STEPS)
    theory = theory.assign(
        score_noise_std=(("beta", "time"), np.stack([score, 2 * score]))
    )
    theory["m_o_se_noise_std"] += overlap - SIGMA
    return tuple(x.assign_coords(gamma=gamma) for x in (theory, simulation))


def test_the_linear_regime_is_that_of_the_scores_and_of_the_overlaps():
    """N = (score / 0.3)^2 or (overlap / 0.1)^2, of the largest so far."""
    theory, simulation = growing([3.0, 30.0, 6.0], overlap=5.0)
    least = least_spins(theory)
    np.testing.assert_allclose(least[0, :3], [2500, 10_000, 10_000])
    np.testing.assert_allclose(least[1, :3], [2500, 40_000, 40_000])
    # Without the scores, their bound gamma sqrt(2 M) sigma with M = 2: 4 sigma.
    bound = least_spins(theory.drop_vars("score_noise_std"))
    np.testing.assert_allclose(bound, (20 / 0.3) ** 2)
    result = compare(theory, simulation)
    expected = SIZES[:, None, None] >= result.least_spins.values
    np.testing.assert_array_equal(result.linear, expected)


def test_a_network_of_ones_own_is_compared_or_told_which_n_would_do():
    """Its bound of the scores is 800 times their spread."""
    theory, simulation = growing([3.0], gamma=120.0)
    exact = compare(theory, simulation)
    assert exact.judged.all() and verdicts(exact) == {"agrees"}
    assert "the spread of the attention scores, γ included, stays" in printed(exact)
    nothing = compare(*growing([3e5, 6e5]))
    assert verdicts(nothing) == {"nothing_compared"}
    said = printed(nothing)
    assert "beta = 1: nothing is compared; the first token would be from N = 1e+12" in (
        said
    )
    assert "consistent with chance" not in said and "4e+12" in said
    bounded = printed(compare(theory.drop_vars("score_noise_std"), simulation))
    assert "at most γ √(2M) times" in bounded


def test_steps_of_one_n_do_not_decide_where_they_may_be_biased():
    """From step 5 on the largest N alone counts: with and without a difference."""
    theory, simulation = growing(np.where(np.arange(STEPS) < 5, 3.0, 1e4))
    largest = dict(n_spins=-1, time=slice(5, None))
    alike = compare(theory, simulation)
    assert verdicts(alike) == {"agrees"} and alike.judged.all()
    simulation["A_mean"][largest] += 10 * simulation.A_stderr[largest]
    biased = compare(theory, simulation)
    assert verdicts(biased) == {"agrees"}
    assert biased.judged.sum("time").values.tolist() == [5, 5]
    said = printed(biased)
    assert "5 of 20" in said and "from token 6 to 20 one N alone" in said
    headings = [
        axis.get_title(loc="left") for axis in differences_in_time(biased, sizes=4).axes
    ]
    assert sum("agrees (5 of 20 tokens)" in words for words in headings) == 2
    alone = compare(theory, simulation.isel(n_spins=[-1]))
    assert verdicts(alone) == {"one_n_cannot_tell"}
    assert not alone.judged.any("time").isel(beta=0)


def test_an_n_that_is_not_drawn_is_named():
    theory, simulation = growing([31.0])  # 10 678 spins at beta = 1, 42 711 at 2
    figure = plotting.agreement(compare(theory, simulation))
    assert "not shown: $N = 10^{4}$" in figure.get_supxlabel()
    figure = differences_in_time(compare(theory, simulation), sizes=3)
    assert "not shown: $N = 10^{10}$" in figure.get_supxlabel()
