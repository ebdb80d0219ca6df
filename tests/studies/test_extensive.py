"""Studies of patterns growing with N: what they compute, compare and refuse."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest
import xarray as xr

from statmech_attn import comparison, dmft, montecarlo, storage, studies
from statmech_attn.dmft import extensive
from statmech_attn.scan import in_memory
from statmech_attn.scan.work import Chunk
from statmech_attn.studies.extensive import (
    CapacityWork,
    described,
    ExtensiveSimulationWork,
    ExtensiveWork,
)


NETWORK = {"patterns": "cycle", "n_patterns": 1, "n_bits": 0, "context": 2, "seed": 0}
THEORY = {
    "kind": "extensive",
    "network": NETWORK,
    "parameters": {"alpha": [0.1, 0.3], "beta": 4.0, "gamma": 2.0, "epsilon": 0.0},
    "run": {"steps": 3},
}
SPINS = THEORY | {
    "kind": "extensive-simulation",
    "run": {"steps": 3, "n_spins": [100, 50], "samples": 3, "seed": 5},
}
CAPACITY = {
    "kind": "capacity",
    "network": NETWORK,
    "parameters": {"beta": [2.0, np.inf]},
    "run": {"contexts": [1]},
}


def theory(**changes):
    return ExtensiveWork(studies.parse(THEORY | changes))


def spins(**changes):
    return ExtensiveSimulationWork(studies.parse(SPINS | changes))


def capacity(**changes):
    return CapacityWork(studies.parse(CAPACITY | changes))


@pytest.fixture(scope="module")
def solved():
    return in_memory(theory())


@pytest.fixture(scope="module")
def sampled():
    return in_memory(spins())


def posed(alpha):
    one = dmft.site_classes(np.ones((4, 1, 1)))
    net = dmft.network(one, context=2)
    given = {"alpha": alpha, "beta": 4.0, "gamma": 2.0}
    return extensive.loaded_network(net, extensive.cycle(), **given), one


def test_a_study_is_the_trajectory_of_its_problem(solved):
    problem, _ = posed(0.3)
    found = extensive.closed(problem, [1.0], steps=3)
    at_load = solved.sel(alpha=0.3)
    for field in ("m_o_se", "A", "weights", "C", "S", "G", "Gamma", "noise"):
        by_hand, error = (getattr(part, field) for part in (found.value, found.error))
        name = "self_interaction" if field == "Gamma" else field
        assert np.allclose(at_load[name], by_hand, rtol=0, atol=1e-12)
        assert np.allclose(at_load[f"{name}_error"], error, rtol=0, atol=1e-12)
    assert np.allclose(at_load.noise_std**2, np.diagonal(at_load.noise))
    assert solved.C.dims == ("alpha", "time", "time_2")
    assert solved.positive.all() and (solved.jitter < 1e-6).all()
    assert solved.attrs["ensemble"] == "cycle" and solved.attrs["method"] == "closed"


def test_samples_do_not_depend_on_the_chunk(sampled):
    rows = spins().rows(Chunk(0, 0, 6, 12), None, lambda _: None, None)
    m = rows["m_o_se_samples"].reshape(2, 3, 4, 1)
    large = sampled.sel(n_spins=100)
    assert sampled.n_spins.values.tolist() == [50, 100]
    np.testing.assert_array_equal(large.m_o_se_mean, m.mean(1))
    np.testing.assert_array_equal(large.m_o_se_spread, m.std(1, ddof=1))
    assert np.allclose(large.m_o_se_stderr * np.sqrt(3), large.m_o_se_spread)
    assert len(np.unique(rows["S_samples"][:, 0, 0])) == 6


def test_a_point_fails_with_one_of_its_samples():
    """Sample 1 of the second load at the smallest N is lost."""

    class Lossy(ExtensiveSimulationWork):
        def row(self, number, *rest):
            lost = np.nan if number == 4 else 0.0
            return {n: x + lost for n, x in super().row(number, *rest).items()}

    found = in_memory(Lossy(studies.parse(SPINS)))
    assert found.failure.dims == ("n_spins", "alpha")
    assert found.failure.values.tolist() == [[0, 1], [0, 0]]
    assert np.isnan(found.m_o_se_mean).any(["time", "pattern"]).sum() == 1


def test_a_sample_is_that_of_the_library():
    problem, one = posed(0.1)
    key = jax.random.key(5)
    for place in (0, 0, 2):
        key = jax.random.fold_in(key, place)
    plan = montecarlo.extensive_plan(problem, one, [1.0], n_spins=50, steps=3)
    rows = spins().rows(Chunk(0, 0, 2, 3), None, lambda _: None, None)
    assert np.allclose(rows["C_samples"][0], plan.sample(key).C, atol=1e-6)


def test_theory_and_spins_are_compared_from_their_files(solved, sampled, tmp_path):
    for name, dataset, study in (
        ("theory", solved, THEORY),
        ("spins", sampled, SPINS),
    ):
        storage.write(tmp_path / f"{name}.h5", dataset, study=studies.dump(study))
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
    with pytest.raises(ValueError, match="ensemble differs: theory has 'cycle'"):
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


def test_derivatives_are_those_of_the_theory(solved):
    """A step of 1 %, with an error of its square times the third derivative."""
    above, below = (posed(0.3 * np.exp(h))[0] for h in (0.01, -0.01))
    ends = [extensive.closed(x, [1.0], steps=3).value.m_o_se for x in (above, below)]
    by_hand = np.asarray(ends[0] - ends[1]) / 0.02
    found = solved.m_o_se_by_alpha.sel(alpha=0.3)
    np.testing.assert_allclose(found, by_hand, rtol=0, atol=1e-3 * abs(by_hand).max())
    assert np.isnan(solved.m_o_se_by_epsilon).all()


@pytest.mark.parametrize("error", [0.05, -0.05])
def test_a_wrong_alpha_is_found_and_measured(solved, error):
    """The theory of alpha (1 + error) under the name of alpha, to second order."""
    off = in_memory(
        theory(**with_parameters(alpha=[0.1 * (1 + error), 0.3 * (1 + error)]))
    )
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
    assert float(alpha.smallest_error_all) < abs(error)


@pytest.mark.slow
def test_capacity_of_a_sequence_as_a_study():
    found = in_memory(capacity())
    assert found.capacity.dims == ("context", "beta")
    assert float(found.capacity[0, 1]) == pytest.approx(0.26906, abs=1e-5)
    assert float(found.capacity[0, 0]) < float(found.capacity[0, 1])
    assert (found.capacity_error < 1e-8).all()


@pytest.mark.slow
def test_capacity_of_moving_recall_as_a_study():
    parameters = {"parameters": {"beta": np.inf}}
    recall = in_memory(capacity(**parameters, **with_run(CAPACITY, moving=True)))
    assert recall.capacity.item() == pytest.approx(0.26906, abs=1e-5)
    assert 0 < recall.noise_multiplier.item() < 1


@pytest.mark.slow
def test_a_study_of_identical_patterns_is_sampled():
    run = {"steps": 2, "error": 0.02, "seed": 1}
    made = theory(ensemble={"patterns": "identical"}, run=run)
    found = in_memory(made)
    assert found.attrs["method"] == "sampled" and found.reached.all()
    assert (found.trajectories == 2**17).all()
    assert 0 < found.m_o_se_error.max() < 0.02
    assert made.pilot().memory > theory().pilot().memory


def test_no_retrieval_is_said_and_the_point_is_left_out(monkeypatch):
    def lost(*_, **__):
        raise extensive.NoRetrieval("no pattern is retrieved")

    monkeypatch.setattr(extensive, "capacity", lost)
    with pytest.raises(RuntimeError, match="no pattern is retrieved down to alpha"):
        capacity().rows(Chunk(0, 0, 0, 1), None, lambda _: None, None)


@pytest.mark.parametrize(
    ("context", "changes", "error", "asked"),
    [
        (1, {}, 0.001, [(0, False)]),
        (3, {}, 0.021, [(16, False), (8, True)]),
        (3, {"lags": 4}, 0.021, [(4, False), (2, True)]),
        (3, {"lags": 3}, 0.021, [(3, False), (6, True)]),
        (3, {"lags": 2}, 0.021, [(2, False), (4, True)]),
    ],
)
def test_the_error_of_a_capacity_has_that_of_lags_and_of_the_rule(
    monkeypatch, context, changes, error, asked
):
    """The end of retrieval is put at 0.25, and 0.02 away by other lags.

    Half as many, or twice where half would be fewer than the window has: with as many
    lags the error would be that of the rule alone.
    """
    calls = []

    def fold(work, C, values, lags, coarse=False):
        calls.append((lags, coarse))
        value, overlap = 0.23 if coarse else 0.25, np.array([0.1, -0.8])
        return SimpleNamespace(value=value, error=0.001, overlap=overlap, noise=0.5)

    monkeypatch.setattr(CapacityWork, "_fold", fold)
    work = capacity(**with_run(CAPACITY, contexts=[context], **changes))
    rows = work.rows(Chunk(0, 0, 0, 1), None, lambda _: None, None)
    assert rows["capacity"] == [0.25] and rows["retrieved_overlap"] == [0.8]
    assert rows["capacity_error"] == pytest.approx([error])
    assert calls == asked


def with_parameters(**changes):
    return {"parameters": THEORY["parameters"] | changes}


def with_run(study, **changes):
    return {"run": study["run"] | changes}


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda: theory(**with_parameters(alpha=-0.1)), "alpha must be >= 0; got -0.1"),
        (
            lambda: theory(ensemble={"patterns": "correlated", "ov": 1, "oq": 1}),
            "correlations ov = 1, .* cannot be those of",
        ),
        (
            lambda: theory(ensemble={"patterns": "cycle", "ov": 0.5}),
            "ov has no use with patterns = 'cycle'",
        ),
        (lambda: theory(ensemble={"patterns": "correlated", "ov": 2.0}), "ensemble.ov"),
        (lambda: theory(**with_run(THEORY, steps=10**6)), "1000000 steps take"),
        (
            lambda: theory(**with_run(THEORY, row=1)),
            "run.row: must be below the number",
        ),
        (lambda: theory(**with_parameters(beta=-1.0)), "parameters.beta"),
        (lambda: theory(**with_parameters(beta=float("nan"))), "parameters.beta"),
        (lambda: theory(**with_run(THEORY, error=0.0)), "run.error"),
        (
            lambda: spins(**with_run(SPINS, n_spins=[102])),
            "alpha N must be a whole number; got 10.2",
        ),
        (lambda: spins(**with_run(SPINS, samples=1)), "run.samples"),
        (
            lambda: capacity(ensemble={"patterns": "identical"}),
            "stationary states are known for cycle",
        ),
        (
            lambda: capacity(**with_run(CAPACITY, at_rest=True)),
            "at rest patterns must be identical",
        ),
        (
            lambda: capacity(**with_run(CAPACITY, at_rest=True, moving=True)),
            "at_rest and moving exclude each other",
        ),
        (
            lambda: capacity(
                ensemble={"patterns": "independent"}, **with_run(CAPACITY, moving=True)
            ),
            "recall moves along the patterns of cycle",
        ),
        (
            lambda: capacity(**with_run(CAPACITY, contexts=[2, 2])),
            "run.contexts: values must be distinct",
        ),
        (
            lambda: capacity(**with_run(CAPACITY, contexts=[4], lags=2)),
            "lags must be at least C - 1 = 3; got 2",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(mistake, words):
    with pytest.raises(ValueError, match=words) as caught:
        mistake()
    assert "\n" not in str(caught.value)


def test_a_start_without_overlap_is_refused_before_anything_is_computed():
    with pytest.raises(ValueError, match="start has no overlap with any condensed"):
        theory(**with_run(THEORY, overlap=0.0))


def test_ensembles_are_told_apart_by_their_words():
    every = [extensive.cycle(), extensive.identical(), extensive.independent()]
    every += [extensive.correlated(ov=0.5), extensive.correlated(oq=0.5)]
    assert len({described(ensemble) for ensemble in every}) == 5
