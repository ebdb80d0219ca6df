"""Spins at bifurcations over N: the law, its exponents, power, refusals, and files."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gammaln
from typer.testing import CliRunner

from statmech_attn import dmft, montecarlo, storage, studies
from statmech_attn.cli.main import app
from statmech_attn.dynamics.continuation import find_cycle, follow_cycle, Problem
from statmech_attn.statistics import threshold


RUN = {"distances": [-1.0, 0.0, 1.0], "runs": 64, "samples": 40, "transient": 2000}
STUDY = {
    "kind": "finite-size",
    "network": {"patterns": "little.json"},
    "parameters": {"beta": {"start": 0.5, "stop": 1.5}},
    "run": RUN | {"bifurcation": "period_doubling", "n_spins": [16, 300]},
}


def first_law(net, epsilon, gamma, x, start, end):
    parameters = {"beta": start, "gamma": gamma, "epsilon": epsilon}
    d = net.dimension
    problem = Problem(dmft.strobe(net, epsilon), jnp.zeros(d), parameters, "beta")
    cycle, bounds = find_cycle(problem, x, start), sorted((start, end))
    branch = follow_cycle(
        problem, cycle.x, start, direction=np.sign(end - start), within=tuple(bounds)
    )
    special = next(point for point in branch if point.special).special[0]
    return dmft.critical_fluctuations(problem, special)


@cache
def little(sign=-1):
    """One pattern, one token, W^v = +-W^o: x -> +-tanh(beta x)."""
    signs = np.array([1.0, sign, 1.0, 1.0]).reshape(4, 1, 1)
    patterns = dmft.site_classes(signs)
    net = dmft.network(patterns, context=1)
    law = first_law(net, 0.0, 1.0, jnp.zeros(1), 0.5, 1.5)
    return net, patterns, law, {"gamma": 1.0, "epsilon": 0.0}


@cache
def spinodal():
    """One pattern, one token, and a code that pulls the other way."""
    patterns = dmft.site_classes(np.ones((4, 1, 1)), positional=np.ones((4, 1, 1)))
    net = dmft.network(patterns, context=1)
    law = first_law(net, 0.1, 1.0, jnp.ones(1), 3.0, 1.0)
    return net, patterns, law, {"gamma": 1.0, "epsilon": 0.1}


def spins(model, seed=0, law=None, **how):
    net, patterns, own, parameters = model
    names = {"runs", "samples", "duration", "warmup", "horizon"} & how.keys()
    sampling = montecarlo.CriticalSampling(**{name: how.pop(name) for name in names})
    return montecarlo.FiniteSizes(
        jax.random.key(seed),
        net,
        patterns,
        law or own,
        sampling,
        **parameters,
        **how,
    )


@pytest.mark.slow
@pytest.mark.parametrize("sign", [-1, 1])
def test_spins_have_the_law_and_its_exponents(sign):
    """Mean squares and densities at 10^4 to 10^5 spins; corrections are N^-1/2."""
    sizes = [10**4, 4 * 10**4, 16 * 10**4]
    how = {"distances": [-1.0, 0.0, 1.0], "runs": 64, "samples": 60}
    found = spins(little(sign), n_spins=sizes, **how).compute()
    often = found.density_theory > 0.05
    z = ((found.density - found.density_theory) / found.density_stderr).where(often)
    z = np.append(found.mean_square_z, z.values[often.values])
    assert np.abs(z).max() < threshold(z.size, 64)
    off = (found.exponent - found.exponent_theory) / found.exponent_stderr
    assert np.abs(off).max() < threshold(2) and found.exponent_stderr[0] < 0.01
    assert found.exponent_theory.values.tolist() == [-0.25, -0.5]
    scaled = found.scaled_mean_square.sel(distance=0).values
    line = np.interp(0.0, found.curve_beta, found.curve_theory)
    assert line == pytest.approx(0.676 * 1.5**0.5, rel=1e-3)  # (D / a)^(1/2)
    assert scaled == pytest.approx(np.full(3, line), rel=0.15)


def exact_mean_square(beta, n):
    """Of P(x) ~ binomial(N, k) cosh(beta x)^N (Peretto), x = 2 k / N - 1."""
    k = np.arange(n + 1)
    x = 2 * k / n - 1
    log = -gammaln(k + 1) - gammaln(n - k + 1) + n * np.log(np.cosh(beta * x))
    weight = np.exp(log - log.max())
    return (weight * x**2).sum() / weight.sum()


def test_few_spins_have_the_exact_law_that_is_not_the_theory():
    """Peretto's law of Little's model at 10^3 spins, where the theory is 5 % off."""
    how = {"distances": [0.0], "runs": 64, "samples": 1200, "duration": 60.0}
    found = spins(little(), n_spins=[1000], **how).compute()
    off = found.mean_square.item() - exact_mean_square(1.0, 1000)
    assert abs(off) < threshold(1) * found.mean_square_stderr.item()


@pytest.mark.parametrize("control", [-1.0, 0.0, 1.0])
def test_the_exact_law_of_littles_model_tends_to_the_theory(control):
    """Corrections are of order N^-1/2, which two sizes remove up to 1/N."""
    law = little()[2]
    assert law.kind == "period_doubling"
    assert (law.coefficient, law.diffusion) == pytest.approx((1 / 3, 1 / 2), rel=1e-9)
    ratios = []
    for n in (10**4, 4 * 10**4):
        beta = 1 + control * law.rounding(n)
        ratios.append(float(law.mean_square(beta, n)) / exact_mean_square(beta, n))
    assert abs(ratios[1] - 1) < 0.02
    assert abs(2 * ratios[1] - ratios[0] - 1) < 1e-3


def test_the_law_of_a_network_is_stored_and_refuses_few_spins():
    law = little()[2]
    assert "period_doubling" in repr(law) and "diffusion" in law._repr_html_()
    stored, least = law.to_dataset(), law.least_spins
    assert stored.overlap_re.dims == ("token", "pattern")
    assert float(stored.least_spins) == least
    assert law.overlap == pytest.approx(1, rel=1e-9)
    assert law.holds(law.value, np.array([0.9, 1]) * least).tolist() == [False, True]
    with pytest.raises(ValueError, match=f"from {least:.3g} spins on"):
        law.mean_square(law.value, 0.9 * least)
    law.mean_square(law.value, least)


def test_twice_the_diffusion_is_seen():
    law = little()[2]
    wrong = replace(law, diffusion=2 * law.diffusion)
    how = {"n_spins": [10**5], "distances": [0.0], "runs": 64, "samples": 60}
    found = spins(little(), law=wrong, **how).compute()
    assert float(found.mean_square_z[0, 0]) < -threshold(1, 64)


def test_passages_of_a_fold_take_the_time_of_the_law():
    """Corrections fall like N^(-1/3); at 10^5 spins they are 2 %, errors 6 %."""
    how = {"distances": [-0.5, 0.0, 0.5], "runs": 150}
    found = spins(spinodal(), n_spins=[10**4, 10**5], **how).compute()
    assert found.attrs["bifurcation"] == "fold" and found.scaled_beta[-1] < 0
    z = found.passage_time_z.values[1:]
    assert np.abs(z).max() < threshold(z.size, 150)
    assert found.exponent_theory.values == pytest.approx([1 / 3, -2 / 3])
    off = (found.exponent - found.exponent_theory) / found.exponent_stderr
    assert np.abs(off).max() < threshold(2) and found.exponent_stderr[0] < 0.06


def test_states_that_stay_are_no_passages():
    """A run that has not passed within the horizon is no time, and it is said."""
    how = {"n_spins": [10**4], "distances": [0.0], "runs": 150, "horizon": 1.0}
    with pytest.raises(
        ValueError, match="of 150 runs.*have not passed the fold after 1"
    ):
        spins(spinodal(), **how).compute()


def test_no_bit_depends_on_the_chunks(tmp_path):
    """Nor on whether a file was there; another key has other numbers."""
    how = {"distances": [0.0, 1.0], "runs": 64, "samples": 10}
    how |= {"duration": 2.0, "warmup": 1.0}
    points = lambda seed=0: spins(little(), seed, n_spins=[1000], **how)
    whole, path = points().compute(), tmp_path / "points.h5"
    cut = points().run(path, points_per_chunk=1)
    assert cut.drop_attrs().identical(whole.drop_attrs())
    again = points().run(path)
    np.testing.assert_array_equal(again.density, whole.density)
    other = points(1).compute()
    assert (other.mean_square != whole.mean_square).all()


def test_outside_the_limits_there_is_no_theory():
    """With a number of spins that is too small at a distance, or everywhere."""
    law = little()[2]
    n = int(2 * law.least_spins)
    how = {"distances": [0.0, 4.0], "runs": 64, "samples": 20}
    found = spins(little(), n_spins=[n], **how).compute()
    assert (
        np.isfinite(found.mean_square).all() and np.isfinite(found.curve_theory).all()
    )
    assert np.isnan(found.mean_square_theory.values).tolist() == [[False, True]]
    assert np.isnan(found.exponent).all()
    with pytest.raises(ValueError, match=f"must reach {law.least_spins:.6g}, from"):
        spins(little(), n_spins=[int(law.least_spins) - 1])


def test_what_makes_no_sense_is_refused():
    net, patterns, law, parameters = little()
    for words, how in {
        "hold 0, the bifurcation": {"distances": [1.0]},
        "runs must be at least 2": {"runs": 1},
        "sizes must be at least 1": {"n_spins": []},
    }.items():
        with pytest.raises(ValueError, match=words):
            spins(little(), **{"n_spins": [10**4]} | how)
    with pytest.raises(ValueError, match="transcritical"):
        spins(little(), law=replace(law, kind="transcritical"), n_spins=[10**4])
    file = dmft.load("poclopez-pe2")
    other = dmft.network(file.patterns, context=4), file.patterns, law, parameters
    with pytest.raises(ValueError, match="law is of 1 coordinates; the network has 12"):
        spins(other, n_spins=[9999])
    halves = dmft.site_classes(patterns.semantic * [1.0, -1.0])
    two = dmft.network(halves, context=1), halves, law, parameters
    with pytest.raises(ValueError, match="the nearest is 20002"):
        spins(two, n_spins=[20_001])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the patterns of Little's model."""
    folder, (_, patterns, _, parameters) = tmp_path_factory.mktemp("little"), little()
    file = dmft.PatternFile(patterns, context=1, checkpoint=None, **parameters)
    dmft.save(folder / "little.json", file)
    return folder


def test_a_file_tells_of_the_bifurcation_that_its_study_found(folder, tmp_path):
    study, path = folder / "study.toml", tmp_path / "finite_size.h5"
    study.write_text(storage.toml.dumps(STUDY))
    result = CliRunner().invoke(app, ["run", str(study), "--output", str(path)])
    assert result.exit_code == 0, result.output
    for words in ("period_doubling at beta = 1;", "holds there from N = 17 on"):
        assert words in result.output, result.output
    found = storage.read(path)
    assert found.mean_square.dims == ("n_spins", "distance")
    assert np.isnan(found.mean_square_theory.values).tolist() == [
        [True] * 3,
        [False] * 3,
    ]
    net, patterns, law, parameters = little()
    points = montecarlo.FiniteSizes(
        jax.random.key(0),
        net,
        patterns,
        replace(law, value=found.attrs["beta_c"]),
        montecarlo.CriticalSampling(runs=64, samples=40),
        **parameters,
        **{name: STUDY["run"][name] for name in ("n_spins", "distances")},
    )
    row = points.row(1, lambda share: None, None)
    assert row["mean_square"] == pytest.approx(float(found.mean_square[0, 1]), rel=1e-2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bifurcation": "fold"}, "no fold of number 1 on the branch.*period_doubling"),
        ({"number": 2}, "no period_doubling of number 2"),
        ({"n_spins": [16]}, "must reach 17, from"),
        ({"distances": [1.0]}, "distances must hold 0"),
    ],
)
def test_a_study_without_a_bifurcation_is_refused(folder, changes, words):
    with pytest.raises(ValueError, match=words):
        study = studies.parse(STUDY | {"run": STUDY["run"] | changes})
        studies.work(study.beside(folder))


def test_a_study_follows_cycles_in_beta_alone():
    for parameters, words in (
        ({"beta": 1.2, "gamma": {"start": 100.0, "stop": 130.0}}, "parameters.beta"),
        ({"beta": {"start": 1.2, "stop": 1.25}, "redrawn": 0.5}, "redrawn: unknown"),
    ):
        with pytest.raises(ValueError, match=words):
            studies.parse(STUDY | {"parameters": parameters})
