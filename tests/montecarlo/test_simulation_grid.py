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


FILE = dmft.load("poclopez-pe2")
NET = dmft.network(FILE.patterns, context=FILE.context)
GRID = {"beta": [0.7, 1.2], "gamma": FILE.gamma, "epsilon": FILE.epsilon}
STUDY = {
    "kind": "monte-carlo",
    "parameters": {"beta": GRID["beta"]},
    "run": {"start": "token", "steps": 5, "runs": 20, "n_spins": [300, 999], "seed": 3},
}


def start(params):
    return dmft.from_row(NET, params, 0)


def simulations(seed=3, grid=GRID, **changes):
    given = {"n_spins": [999, 300], "steps": 5, "runs": 20} | changes
    key = jax.random.key(seed)
    return montecarlo.simulations(key, NET, FILE.patterns, grid, start, **given)


def test_python_and_a_study_give_the_same_numbers(tmp_path):
    """And a theory from Python is compared with them."""
    path = tmp_path / "spins.h5"
    computed = simulations().run(path)
    layout.require_layout(computed, path)
    of_study = studies.run(studies.parse(STUDY))
    assert set(of_study.variables) == set(computed.variables)
    for name, values in of_study.variables.items():
        np.testing.assert_array_equal(computed[name], values, str(name))
    theory = dmft.trajectories(NET, GRID, start, steps=5, noise=FILE.patterns)
    verdict = comparison.compare(theory.compute(), computed).verdict
    assert verdict.sizes == {"beta": 2}


def test_a_point_of_a_list_is_simulated_as_a_value_of_beta_in_its_place(tmp_path):
    """The second point, with another gamma, and the noise of a second point."""
    columns = {"gamma": [90.0, FILE.gamma], "beta": [1.2, 1.2]}
    curve = dynamics.point_list(columns, epsilon=FILE.epsilon)
    path = tmp_path / "spins.h5"
    listed = simulations(grid=curve, entropy_production=True).run(path)
    layout.require_layout(storage.read(path), path)
    assert listed.A_mean.dims == ("n_spins", "index", "time", "pattern")
    assert listed.gamma.values.tolist() == columns["gamma"]
    scan = simulations(entropy_production=True).compute()
    assert set(scan.data_vars) == set(listed.data_vars)
    for name, values in scan.isel(beta=1).data_vars.items():
        np.testing.assert_array_equal(listed[name].isel(index=1), values, str(name))
    columns["gamma"][0] = 91.0
    other = dynamics.point_list(columns, epsilon=FILE.epsilon)
    with pytest.raises(storage.StorageError, match="holds another study"):
        simulations(grid=other, entropy_production=True).run(path)
    with pytest.raises(ValueError, match="is along a list of points"):
        comparison.compare(xr.Dataset(attrs={"kind": "trajectory"}), listed)


@pytest.mark.parametrize("redrawn", [None, 0.5])
def test_no_number_depends_on_how_many_blocks_a_call_has(redrawn):
    """The last of two calls is filled up."""
    grid = GRID | {"beta": [0.7, 1.0, 1.2]}
    grid |= {} if redrawn is None else {"redrawn": redrawn}
    few, many = (
        simulations(grid=grid, entropy_production=True, batch=batch).compute()
        for batch in (1, 2)
    )
    if runtime.has_fused():
        xr.testing.assert_identical(few, many)
    else:  # a spin that differs would be 1 / 999 of some number
        xr.testing.assert_allclose(few, many, rtol=0, atol=1e-13)


def test_other_simulations_are_refused_the_same_file(tmp_path):
    path = tmp_path / "spins.h5"
    simulations().run(path)
    written = path.stat().st_mtime_ns
    simulations(batch=1).run(path)  # no number depends on it
    assert path.stat().st_mtime_ns == written
    for other in (simulations(4), simulations(runs=21), simulations(stored=2)):
        with pytest.raises(storage.StorageError, match="holds another study"):
            other.run(path)


def test_entropy_production_is_an_average_of_every_run_of_a_file(tmp_path):
    """The same as of one simulation, in one round of blocks or two."""
    run = STUDY["run"] | {
        "entropy_production": True,
        "runs": 300,
        "transient": 1,
        "steps": 6,
    }
    dataset = studies.run(studies.parse(STUDY | {"run": run}))
    layout.require_layout(dataset, tmp_path)
    key = jax.random.key(3)
    params = dmft.parameters(GRID["beta"], FILE.gamma, FILE.epsilon)
    for i, n_spins in enumerate((300, 999)):
        alone = montecarlo.simulate(
            NET, FILE.patterns, params, start(params), n_spins=n_spins, runs=300,
            steps=6, transient=1, key=jax.random.fold_in(key, i),
            entropy_production=True,
        )  # fmt: skip
        np.testing.assert_array_equal(
            dataset.entropy_production_stationary_mean[i],
            alone.averages.entropy_production,
        )
    short = {"run": run | {"steps": 5}}
    with pytest.raises(ValueError, match="steps must exceed transient"):
        studies.run(studies.parse(STUDY | short))


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
