"""Patterns growing with N: what a comparison of theory and spins finds."""

import jax
import numpy as np
import pytest
import xarray as xr

from statmech_attn import comparison, dmft, montecarlo, storage
from statmech_attn.dmft import extensive


PATTERNS = dmft.site_classes(np.ones((4, 1, 1)))
NET = dmft.network(PATTERNS, context=2)
CYCLE = extensive.cycle()
PARAMETERS = {"alpha": [0.1, 0.3], "beta": 4.0, "gamma": 2.0}


def theory(**changes):
    recall = extensive.SolvedRecall(steps=3)
    points = extensive.OrderParameters(NET, CYCLE, recall, **PARAMETERS | changes)
    return points.compute()


@pytest.fixture(scope="module")
def solved():
    return theory()


@pytest.fixture(scope="module")
def sampled():
    recall, key = montecarlo.SampledRecall(steps=3, samples=3), jax.random.key(5)
    return montecarlo.ExtensiveSamples(
        NET, PATTERNS, CYCLE, recall, n_spins=[100, 50], **PARAMETERS, key=key
    ).compute()


@pytest.mark.slow
def test_theory_and_spins_are_compared_from_their_files(solved, sampled, tmp_path):
    for name, dataset in (("theory", solved), ("spins", sampled)):
        study = f'kind = "{dataset.kind}"'
        storage.write(tmp_path / f"{name}.h5", dataset, study=study)
    back = [storage.read(tmp_path / f"{name}.h5") for name in ("theory", "spins")]
    # An error of the theory that is as large as that of the samples.
    back[0] = back[0].assign(m_o_se_error=back[0].m_o_se_error + 0.05)
    found = comparison.compare(*back)
    assert found.observable.values.tolist() == ["m_o_se", "A", "weights", "C", "S"]
    assert found.largest_z.dims == ("observable", "n_spins", "alpha")
    large = sampled.sel(n_spins=100)
    m, stderr = large.m_o_se_mean - solved.m_o_se, large.m_o_se_stderr
    z = abs(m / np.hypot(stderr, back[0].m_o_se_error)).where(stderr > 1e-9)
    z = z.max(["time", "pattern"])
    np.testing.assert_allclose(found.largest_z.sel(n_spins=100, observable="m_o_se"), z)
    with pytest.raises(ValueError, match="alpha = 0.3 is in the simulation but not"):
        comparison.compare(solved.sel(alpha=[0.1]), sampled)
    with pytest.raises(ValueError, match="ensemble differs: theory has cycle"):
        comparison.compare(solved, sampled.assign_attrs(ensemble="independent"))


def measured(solved, shift=0.0, bias=0.0, exponent=-0.5, last=1.0):
    """A simulation of made numbers: three N, twenty samples.

    The last token has `last` times the spread and the bias of others.
    """
    N = np.array([100, 400, 1600])
    rng = np.random.default_rng(3)
    m = solved.m_o_se.values
    column = lambda x: x.reshape(-1, *(1,) * m.ndim)
    token = np.where(solved.time == solved.time[-1], last, 1.0)[:, None]
    spread = column((N / 100.0) ** exponent / 20) * token * np.ones((3, *m.shape))
    noise = rng.normal(size=(20, 3, *m.shape))
    noise = (noise - noise.mean(0)) / noise.std(0, ddof=1) + rng.normal(
        size=noise.shape[1:]
    ) / np.sqrt(20)
    samples = m + shift + bias * token / column(N) + noise * spread
    over = ("n_spins", *solved.m_o_se.dims)
    data = {
        "m_o_se_samples": (("sample", *over), samples),
        "m_o_se_mean": (over, samples.mean(0)),
        "m_o_se_spread": (over, spread),
        "m_o_se_stderr": (over, spread / np.sqrt(20)),
    }
    coordinates = {"n_spins": N} | {n: solved[n] for n in ("alpha", "beta")}
    coordinates |= {n: solved[n] for n in ("gamma", "epsilon")}
    attributes = {"kind": "extensive-simulation", "samples": 20, "runs": 1}
    attributes = solved.attrs | attributes
    return xr.Dataset(data, coordinates, attributes)


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({}, "agrees"),
        ({"bias": 50.0}, "bias_only"),
        ({"shift": 0.2}, "differs"),
        ({"exponent": -1.0}, "spread_differs"),
    ],
)
def test_verdicts_say_what_was_put_in(solved, given, verdict):
    found = comparison.compare(solved, measured(solved, **given))
    words = found.verdict.attrs["flag_meanings"].split()
    assert [words[code] for code in found.verdict.values] == [verdict] * 2
    slope = given.get("exponent", -0.5)
    assert np.allclose(found.spread_slope, slope)
    if "bias" in given:
        assert np.allclose(found.bias_slope, -1, atol=0.2)


def test_the_bias_of_a_single_n_is_no_error_of_the_theory(solved):
    """The last token spreads by 0.23, 0.115, 0.058: it counts at the largest N alone.

    There its mean is off by 0.07, five standard errors, which falls like 1/N.
    """
    found = comparison.compare(solved, measured(solved, bias=24.0, last=4.6))
    words = {comparison.VERDICTS[code] for code in found.verdict.values}
    assert words == {"bias_only"}


def test_a_spread_that_one_sample_makes_has_no_exponent(solved):
    """One of twenty samples of the smallest N loses the pattern.

    The spread there is 3.6 times that of the others; with the errors of Gaussian
    samples, 16 %, the exponent would be -0.97(8).
    """
    spins = measured(solved)
    lost = (spins["sample"] == 4) & (spins.n_spins == 100)
    samples = spins.m_o_se_samples - xr.where(lost, 0.8, 0.0)
    spins["m_o_se_samples"] = samples.transpose(*spins.m_o_se_samples.dims)
    spread = spins.m_o_se_samples.std("sample", ddof=1)
    spins = spins.assign(m_o_se_mean=spins.m_o_se_samples.mean("sample"))
    spins = spins.assign(m_o_se_spread=spread, m_o_se_stderr=spread / np.sqrt(20))
    found = comparison.compare(solved, spins)
    assert (abs(found.spread_slope + 0.5) < 3 * found.spread_slope_stderr).all()
    words = {comparison.VERDICTS[code] for code in found.verdict.values}
    assert not words & {"spread_differs", "differs"}


def test_without_samples_or_where_nothing_is_seen_there_is_no_agreement(solved):
    words = lambda found: {comparison.VERDICTS[code] for code in found.verdict.values}
    blind = measured(solved).drop_vars("m_o_se_samples")
    assert words(comparison.compare(solved, blind)) == {"cannot_tell"}
    flat = solved.assign({n: 0 * solved[n] for n in solved if "_by_" in str(n)})
    found = comparison.compare(flat, measured(solved))
    assert words(found) == {"cannot_tell"}
    assert np.isinf(found.smallest_error_all).all()


def test_two_times_are_summed_like_overlaps(solved):
    """C of every sample off by what alpha (1 + 0.2) makes, the overlaps by nothing.

    Deviations of 20 samples are 0.2 of that shift and independent, so that the error of
    alpha is measured to less than 0.2 of itself.  C(t, t) = 1 is not summed.
    """
    spins, rng = measured(solved), np.random.default_rng(6)
    shift = 0.2 * solved.C_by_alpha
    column = xr.DataArray([0.1, 0.05, 0.025], dims="n_spins")
    noise = rng.normal(size=(20, 3, *solved.C.shape))
    scale = abs(shift).where(solved.time != solved.time_2, 0.0)
    noise = xr.DataArray(noise, dims=("sample", "n_spins", *solved.C.dims))
    spins["C_samples"] = solved.C + shift + 2 * column * noise * scale
    for name, values in (("mean", "mean"), ("spread", "std")):
        spins[f"C_{name}"] = getattr(spins.C_samples, values)("sample")
    spins["C_stderr"] = spins.C_spread / np.sqrt(20)
    found = comparison.compare(solved, spins)
    assert found.summed.values.tolist() == ["overlaps", "C"]
    overlaps, C = (found.sel(parameter="alpha", summed=x) for x in ("overlaps", "C"))
    error, stderr = (float(C[f"relative_error_all{x}"]) for x in ("", "_stderr"))
    assert abs(error + 0.2) < 4 * stderr < 0.2
    assert abs(error) > float(C.relative_error_all_threshold) * stderr
    assert abs(overlaps.relative_error_all) < 4 * overlaps.relative_error_all_stderr
    assert {comparison.VERDICTS[c] for c in found.verdict.values} == {"differs"}


def test_a_wrong_alpha_is_found_and_measured(solved):
    """The theory of alpha (1 + error) under the name of alpha, to second order."""
    error = 0.05
    off = theory(alpha=[0.1 * (1 + error), 0.3 * (1 + error)])
    wrong = off.assign_coords(alpha=solved.alpha)
    spins = measured(solved)
    spins["m_o_se_samples"] = (
        solved.m_o_se + (spins.m_o_se_samples - solved.m_o_se) / 20
    )
    found = comparison.compare(wrong, spins)
    assert {comparison.VERDICTS[c] for c in found.verdict.values} == {"differs"}
    alpha = found.sel(parameter="alpha", summed="overlaps")
    distance = float(alpha.relative_error_all) - error
    assert abs(distance) < 4 * float(alpha.relative_error_all_stderr) + error**2
    assert float(alpha.smallest_error_all) < error
