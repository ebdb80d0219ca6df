"""Order parameters over a grid: those of the solver, refused and kept like points."""

import jax
import numpy as np
import pytest

from statmech_attn import dmft
from statmech_attn.dmft import extensive
from statmech_attn.dmft.extensive.grids import order_parameters
from statmech_attn.dmft.extensive.loaded_network import two_time_bytes
from statmech_attn.storage import StorageError


NET = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=2)
BETA, GAMMA = 4.0, 2.0


def theory(
    *, ensemble=extensive.cycle(), key=None, alpha=(0.1, 0.3), steps=3, **recall
):
    options = extensive.SolvedRecall(steps=steps, **recall)
    return extensive.OrderParameters(
        NET, ensemble, options, alpha=alpha, beta=BETA, gamma=GAMMA, key=key
    )


def closed(alpha):
    problem = extensive.loaded_network(
        NET, extensive.cycle(), alpha=alpha, beta=BETA, gamma=GAMMA
    )
    return extensive.closed(problem, [1.0], steps=3)


@pytest.fixture(scope="module")
def solved():
    return theory().compute()


def test_a_point_is_the_trajectory_of_its_problem(solved):
    trajectory, at_load = closed(0.3), solved.sel(alpha=0.3)
    for field in ("m_o_se", "A", "weights", "C", "S", "G", "Gamma", "noise"):
        value, error = (getattr(x, field) for x in (trajectory.value, trajectory.error))
        name = "self_interaction" if field == "Gamma" else field
        assert np.allclose(at_load[name], value, rtol=0, atol=1e-12)
        assert np.allclose(at_load[f"{name}_error"], error, rtol=0, atol=1e-12)
    assert np.allclose(at_load.noise_std**2, np.diagonal(at_load.noise))
    assert solved.C.dims == ("alpha", "time", "time_2")
    assert solved.positive.all() and (solved.jitter < 1e-6).all()
    assert solved.attrs["ensemble"] == "cycle" and solved.attrs["method"] == "closed"


def test_derivatives_are_those_of_the_theory(solved):
    """A step of 1 %, with an error of its square times the third derivative."""
    ends = [closed(0.3 * np.exp(h)).value.m_o_se for h in (0.01, -0.01)]
    slope = np.asarray(ends[0] - ends[1]) / 0.02
    by_alpha = solved.m_o_se_by_alpha.sel(alpha=0.3)
    np.testing.assert_allclose(by_alpha, slope, rtol=0, atol=1e-3 * abs(slope).max())
    assert np.isnan(solved.m_o_se_by_epsilon).all()


def test_a_parameter_that_is_zero_is_not_solved_beside(monkeypatch):
    """A point, and either side of alpha, beta and gamma: epsilon is zero."""
    counted = []
    solve = order_parameters.solve
    count = lambda *problem, **how: counted.append(problem) or solve(*problem, **how)
    monkeypatch.setattr(order_parameters, "solve", count)
    theory(alpha=0.3).compute()
    assert len(counted) == 1 + 2 * 3


def test_a_single_number_is_no_axis_and_gives_the_same(solved):
    alone = theory(alpha=0.3, two_times=False).compute()
    assert alone.m_o_se.dims == ("time", "pattern") and float(alone.alpha) == 0.3
    np.testing.assert_array_equal(alone.m_o_se, solved.m_o_se.sel(alpha=0.3))
    assert "C" not in alone and "C_by_alpha" not in alone


@pytest.mark.slow
def test_a_file_is_that_of_its_points(tmp_path, solved):
    """Also where a parameter is infinite; other options are another file."""
    path = tmp_path / "theory.h5"
    first, again = theory().run(path), theory().run(path)
    np.testing.assert_array_equal(first.m_o_se, solved.m_o_se)
    assert again.attrs["started"] == first.attrs["started"]
    with pytest.raises(StorageError, match="recall"):
        theory(overlap=0.9).run(path)
    cold = extensive.OrderParameters(NET, extensive.cycle(), alpha=0.1, beta=np.inf)
    assert cold.identity()["axes"]["beta"] == [np.inf]


@pytest.mark.slow
def test_identical_patterns_are_sampled():
    key = jax.random.key(1)
    sampled = theory(ensemble=extensive.identical(), key=key, steps=2, error=0.02)
    dataset = sampled.compute()
    assert dataset.attrs["method"] == "sampled" and dataset.reached.all()
    assert (dataset.trajectories == 2**17).all()
    assert 0 < dataset.m_o_se_error.max() < 0.02
    assert sampled.pilot().memory > theory().pilot().memory


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda: theory(alpha=-0.1), "alpha must be >= 0; got -0.1"),
        (lambda: theory(steps=10**6), "1000000 steps take"),
        (
            lambda: theory(steps=3000, alpha=np.linspace(0, 1, 50)),
            "needs .* GiB of mem",
        ),
        (lambda: theory(trajectories=2**16), "trajectories must be at least 131072"),
        (lambda: theory(overlap=0.0), "start has no overlap with any condensed"),
        (lambda: theory(ensemble=extensive.identical()), "give a JAX key"),
    ],
)
def test_bad_input_is_refused_in_one_line(mistake, words):
    with pytest.raises(ValueError, match=words) as caught:
        mistake()
    assert "\n" not in str(caught.value)


def test_arrays_of_two_times_are_counted_in_memory():
    assert two_time_bytes(1999) == 960_000_000
