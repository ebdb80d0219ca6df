"""Studies of training: networks of every width, temperature and restart."""

import copy

import jax
import numpy as np
import pytest

from statmech_attn import studies
from statmech_attn.batches import compilations
from statmech_attn.montecarlo import weight_space
from statmech_attn.scan.chunks.work import Chunk, Stopped
from statmech_attn.training.results import RESULTS


STUDY = {
    "kind": "training",
    "task": {"n_train": 10, "n_test": 20, "length": 6, "features": 8},
    "network": {"width": [4, 30], "temperature": [0.01, 0.1]},
    "run": {"learning_rate": 0.02, "steps": 200, "block": 50, "restarts": 2},
}


def changed(**run):
    tree = copy.deepcopy(STUDY)
    tree["run"] |= run
    return tree


def rows(work, first, stop, tick=lambda points: None, folder=None):
    return work.rows(Chunk(0, 0, first, stop), None, tick, folder)


@pytest.fixture(scope="module")
def work():
    return studies.work(studies.parse(STUDY))


@pytest.fixture(scope="module")
def found():
    return studies.run(studies.parse(STUDY))


@pytest.mark.slow
def test_the_start_is_the_prior_of_the_sampled_posterior(found):
    """Key of the point, losses of `weight_space` at its draw."""
    problem = studies.work(studies.parse(STUDY)).problem
    posterior = weight_space.posterior(
        problem.at(width=30, temperature=0.01), reduced=False
    )
    z = posterior.draw_prior(jax.random.fold_in(jax.random.key(0), 5))
    data, prior = posterior.loss_terms(z)
    first = found.sel(width=30, temperature=0.01).isel(restart=1, step=0)
    assert float(first.loss_data) == pytest.approx(float(data), rel=1e-12)
    assert float(first.loss_prior) == pytest.approx(float(prior), rel=1e-12)


@pytest.mark.slow
def test_networks_do_not_depend_on_the_chunk_and_one_width_compiles_once(found):
    work = studies.work(studies.parse(STUDY))
    part = rows(work, 3, 6)  # of two widths
    before = compilations.count()
    rows(work, 0, 1)
    rows(work, 6, 8)
    assert compilations.count().since(before).compiled == 0
    for name, values in part.items():
        expected = found[name].values.reshape(8, *values.shape[1:])[3:6]
        np.testing.assert_array_equal(values, expected)


@pytest.mark.slow
def test_a_training_goes_on_from_its_last_block(work, found, tmp_path):
    ticks = []

    def stop_at_the_third(points):
        ticks.append(points)
        if len(ticks) == 3:
            raise Stopped

    with pytest.raises(Stopped):
        rows(work, 5, 6, stop_at_the_third, tmp_path)
    assert len(list(tmp_path.rglob("draws-*"))) == 3
    resumed = rows(work, 5, 6, ticks.append, tmp_path)
    # The block that was left to do, and what the first run has told of the network.
    assert ticks == [0.25] * 4 + [0.75]
    for name, values in resumed.items():
        np.testing.assert_array_equal(values[0], found[name].values[1, 0, 1])


@pytest.mark.slow
def test_a_descent_that_diverges_is_told_and_leaves_no_numbers():
    work = studies.work(studies.parse(changed(optimiser="gd", learning_rate=10.0)))
    arrays = rows(work, 0, 1)
    assert RESULTS[arrays["training_result"][0]] == "diverged"
    assert np.isnan(arrays["U_1"]).all() and np.isnan(arrays["accuracy"]).all()
    assert not work.not_finite(arrays).any()


@pytest.mark.slow
def test_a_pilot_forecasts_time_and_memory(work):
    pilot = work.pilot()
    assert 0 < pilot.seconds < 60
    # Two matrices of 30 x 30 in the second layer, and what the optimiser keeps of them.
    assert 8 * 3 * 2 * 30**2 < pilot.memory < 2**24
    arrays = rows(work, 0, 1).values()
    assert pilot.stored == sum(8 * values.size for values in arrays)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"learning_rate": 0}, "run.learning_rate: should be above 0"),
        ({"steps": 205}, "block of 10; got 205 and 50"),
        ({"optimiser": "lbfgs"}, "run.optimiser: should be 'adam' or 'gd'"),
        ({"rate": 1}, "run.rate: unknown key"),
    ],
)
def test_mistakes_are_named_with_what_is_allowed(run, message):
    with pytest.raises(ValueError, match=message):
        studies.parse(changed(**run))
