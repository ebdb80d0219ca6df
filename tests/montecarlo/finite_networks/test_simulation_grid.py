"""Simulations of several N and beta, from Python, in memory and in files that go on."""

import jax
import numpy as np
import pytest
import xarray as xr

from statmech_attn import (
    comparison,
    dmft,
    dynamics,
    layout,
    montecarlo,
    storage,
    studies,
)
from statmech_attn.batches import runtime
from statmech_attn.montecarlo.finite_networks import run_blocks


FILE = dmft.load("poclopez-pe2")
NET = dmft.network(FILE.patterns, context=FILE.context)
GRID = {"beta": [0.7, 1.2], "gamma": FILE.gamma, "epsilon": FILE.epsilon}
STUDY = {
    "kind": "monte-carlo",
    "parameters": {"beta": GRID["beta"]},
    "run": {
        "start": "token",
        "steps": 6,
        "runs": 20,
        "n_spins": [300, 999],
        "seed": 3,
        "entropy_production": True,
    },
}


def start(params):
    return dmft.from_row(NET, params, 0)


def simulations(seed=3, grid=GRID, **changes):
    given = {"n_spins": [999, 300], "steps": 6, "runs": 20} | changes
    given = {"entropy_production": True} | given
    key = jax.random.key(seed)
    return montecarlo.simulations(key, NET, FILE.patterns, grid, start, **given)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A file of simulations, and what it holds."""
    path = tmp_path_factory.mktemp("written") / "spins.h5"
    return path, simulations().run(path)


def test_python_and_a_study_give_the_same_numbers(written):
    path, computed = written
    layout.require_layout(computed, path)
    of_study = studies.run(studies.parse(STUDY))
    assert set(of_study.variables) == set(computed.variables)
    for name, values in of_study.variables.items():
        np.testing.assert_array_equal(computed[name], values, str(name))


@pytest.mark.slow
def test_a_theory_from_python_is_compared_with_them(written):
    theory = dmft.trajectories(NET, GRID, start, steps=6, noise=FILE.patterns)
    verdict = comparison.compare(theory.compute(), written[1]).verdict
    assert verdict.sizes == {"beta": 2}


@pytest.mark.slow
def test_a_point_of_a_list_is_simulated_as_a_value_of_beta_in_its_place(
    tmp_path, written
):
    """The second point, with another gamma, and the noise of a second point."""
    columns = {"gamma": [90.0, FILE.gamma], "beta": [1.2, 1.2]}
    curve = dynamics.point_list(columns, epsilon=FILE.epsilon)
    path = tmp_path / "spins.h5"
    listed = simulations(grid=curve).run(path)
    layout.require_layout(storage.read(path), path)
    assert listed.A_mean.dims == ("n_spins", "index", "time", "pattern")
    assert listed.gamma.values.tolist() == columns["gamma"]
    scan = written[1]
    assert set(scan.data_vars) == set(listed.data_vars)
    for name, values in scan.isel(beta=1).data_vars.items():
        np.testing.assert_array_equal(listed[name].isel(index=1), values, str(name))
    columns["gamma"][0] = 91.0
    other = dynamics.point_list(columns, epsilon=FILE.epsilon)
    with pytest.raises(storage.StorageError, match="holds another study"):
        simulations(grid=other).run(path)
    with pytest.raises(ValueError, match="is along a list of points"):
        comparison.compare(xr.Dataset(attrs={"kind": "trajectory"}), listed)


@pytest.mark.slow
@pytest.mark.parametrize("redrawn", [None, 0.5])
def test_no_number_depends_on_how_many_blocks_a_call_has(redrawn):
    """The last of two calls is filled up."""
    grid = GRID | {"beta": [0.7, 1.0, 1.2]}
    grid |= {} if redrawn is None else {"redrawn": redrawn}
    few, many = (simulations(grid=grid, batch=batch).compute() for batch in (1, 2))
    if runtime.has_fused():
        xr.testing.assert_identical(few, many)
    else:  # a spin that differs would be 1 / 999 of some number
        xr.testing.assert_allclose(few, many, rtol=0, atol=1e-13)


def test_other_simulations_are_refused_the_same_file(written):
    path, _ = written
    time = path.stat().st_mtime_ns
    simulations(batch=1).run(path)  # no number depends on it
    assert path.stat().st_mtime_ns == time
    for other in (simulations(4), simulations(runs=21), simulations(stored=2)):
        with pytest.raises(storage.StorageError, match="holds another study"):
            other.run(path)


@pytest.mark.slow
def test_entropy_production_is_an_average_of_every_run_of_a_file(tmp_path, monkeypatch):
    """As all numbers are, those of one simulation, in one round of blocks or two."""
    monkeypatch.setattr(run_blocks, "SMALLEST", 24)  # runs of a block
    run = STUDY["run"] | {"runs": 40, "transient": 1}
    dataset = studies.run(studies.parse(STUDY | {"run": run}))
    layout.require_layout(dataset, tmp_path)
    params = dmft.parameters(GRID["beta"], FILE.gamma, FILE.epsilon)
    points = params, start(params)
    for i, j in np.ndindex(2, 2):
        of_point = lambda x, j=j: np.asarray(x)[..., [j]] if x.ndim else x
        alone = montecarlo.simulate(
            NET,
            FILE.patterns,
            *jax.tree.map(of_point, points),
            n_spins=run["n_spins"][i],
            runs=40,
            steps=6,
            transient=1,
            key=jax.random.fold_in(jax.random.key(3), i),
            points=[j],
            entropy_production=True,
        )
        np.testing.assert_array_equal(
            dataset.entropy_production_stationary_mean[i, j],
            alone.averages.entropy_production[0],
        )
        for found, expected in (
            (dataset.A_mean, alone.mean.A[..., 0]),
            (dataset.m_q_spread, alone.spread.m_q[..., 0]),
            (dataset.m_k, alone.sample.m_k[None, ..., 0, 0]),
        ):
            np.testing.assert_allclose(found[i, j], expected, rtol=0, atol=1e-13)
    short = {"run": run | {"steps": 5}}
    with pytest.raises(ValueError, match="steps must exceed transient"):
        studies.run(studies.parse(STUDY | short))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_spins": []}, "n_spins must hold at least one"),
        ({"n_spins": [1000]}, "n_spins must be a multiple of 3"),
        ({"transient": 6}, "transient must lie in"),
        ({"method": "all"}, "method must be one of"),
    ],
)
def test_mistakes_are_one_line(changes, message):
    with pytest.raises(ValueError, match=message):
        simulations(**changes)
