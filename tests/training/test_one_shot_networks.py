"""Networks trained on one-shot tasks, on images drawn at random."""

from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr

from statmech_attn import bpkr, storage
from statmech_attn.scan.chunks.work import Chunk, Stopped
from statmech_attn.tasks import images
from statmech_attn.tasks.image_sets import ImageSets
from statmech_attn.tasks.one_shot import Setting
from statmech_attn.training import Minibatches, OneShotNetworks
from statmech_attn.training.one_shot_networks import network_of
from statmech_attn.training.transformer import outputs


SETTING = Setting(image_size=8, patch=4, channels=1)
STEPS = Minibatches(
    learning_rate=0.01, steps=50, block=20, batch=16, validation_batches=2
)
SIZES: dict[str, Any] = {"heads": (2, 2), "width": 6, "key_size": 5, "gain": 1.7}


def drawn(seed, classes=4):
    """Classes of one random image each, with noise."""
    random = np.random.default_rng(seed)
    one = random.uniform(size=(classes, 1, 8, 8))
    noisy = 0.9 * one + 0.1 * random.uniform(size=(classes, 4, 8, 8))
    names = tuple(f"{seed}/{number}" for number in range(classes))
    return images.ImageClasses(names, noisy.astype(np.float32))


SETS = ImageSets(
    SETTING, images.Split(*map(drawn, range(3))), {"others": (drawn(3, 2), drawn(3, 2))}
)


def trainings(sets):
    key, tasks = jax.random.split(jax.random.key(0))
    return OneShotNetworks(key, sets, tasks, STEPS, **SIZES, restarts=2, n_test=40)


@pytest.fixture(scope="module")
def networks():
    return trainings(SETS)


@pytest.fixture(scope="module")
def dataset(networks):
    return networks.compute()


def rows(networks, first, stop, tick=lambda points: None, folder=None):
    return networks.rows(Chunk(0, 0, first, stop), None, tick, folder)


@pytest.mark.slow
def test_a_file_keeps_networks_from_images_of_ones_own(networks, dataset, tmp_path):
    """Their weights answer as it says; it is not one of other images."""
    path = tmp_path / "networks.h5"
    stored = networks.run(path)
    xr.testing.assert_equal(stored, dataset)
    assert stored.test_set.values.tolist() == [*networks.images.tested]
    for number in (0, 1):
        transformer = network_of(stored.isel(restart=number))
        for place, (x, y) in enumerate(networks.tests(number).values()):
            right = bpkr.accuracy(outputs(transformer, x), y)
            assert stored.accuracy_sets[number, place].item() == right
    others = networks.images._replace(elsewhere={"others": (drawn(4, 2), drawn(4, 2))})
    with pytest.raises(storage.StorageError):
        trainings(others).run(path)


@pytest.mark.slow
def test_every_network_learns_from_tasks_of_its_own(networks, dataset, monkeypatch):
    """From the same weights: the loss before any step is that of the same tasks."""
    first = networks.start(0)
    monkeypatch.setattr(networks, "start", lambda number: first)
    loss, other = rows(networks, 1, 2)["loss"][0], dataset.loss.values[0]
    assert loss[0] == other[0] and not (loss == other)[1:].any()


@pytest.mark.slow
def test_a_training_goes_on_from_its_last_block(networks, dataset, tmp_path):
    ticks = []

    def stop_at_the_second(points):
        ticks.append(points)
        if len(ticks) == 2:
            raise Stopped

    with pytest.raises(Stopped):
        rows(networks, 1, 2, stop_at_the_second, tmp_path)
    resumed = rows(networks, 1, 2, ticks.append, tmp_path)
    assert ticks == [0.4, 0.4, 0.2, 0.8]  # at last what the stopped one has done
    for name, values in resumed.items():
        np.testing.assert_array_equal(values[0], dataset[name].values[1])


@pytest.mark.slow
def test_blocks_of_other_images_are_refused(networks, tmp_path, monkeypatch):
    rows(networks, 0, 1, folder=tmp_path)
    digests = dict(networks.images.digests, train="others")
    monkeypatch.setattr(type(networks.images), "digests", digests)
    with pytest.raises(storage.StorageError, match="blocks of another study"):
        rows(networks, 0, 1, folder=tmp_path)


@pytest.mark.slow
def test_a_network_that_diverges_leaves_no_numbers(networks, monkeypatch):
    grown = jax.tree.map(lambda w: 1e12 * w, networks.start(0))
    monkeypatch.setattr(networks, "start", lambda number: grown)
    arrays = rows(networks, 0, 1)
    assert np.isnan(arrays["readout"]).all() and np.isnan(arrays["accuracy_sets"]).all()
    assert (
        arrays["readout"].dtype == np.float32 and not networks.not_finite(arrays).any()
    )


@pytest.mark.slow
def test_a_pilot_forecasts_time_memory_and_size(networks):
    pilot = networks.pilot()
    assert 0 < pilot.seconds < 60 and 0 < pilot.memory < 2**26
    stored = sum(values.nbytes for values in rows(networks, 0, 1).values())
    assert pilot.stored == pytest.approx(stored, rel=0.2)
