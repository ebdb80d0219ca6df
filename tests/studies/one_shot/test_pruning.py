"""Studies of pruning: scores, drops and curves of trained networks."""

import copy
import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr, studies, training
from statmech_attn.batches import rng
from statmech_attn.bpkr.grids.pruned_networks import EXACT_LAW, ORDERS
from statmech_attn.scan.chunks.work import Chunk
from statmech_attn.studies import load_trained
from statmech_attn.studies.one_shot import examples
from statmech_attn.tasks.one_shot import Setting
from statmech_attn.training.results import RUNNING
from statmech_attn.training.transformer import outputs


slow = pytest.mark.slow  # a saddle point of its own takes long to compile

KEY = jax.random.key(0)
HEADS, SETS = (2, 2), ["omniglot", "omniglot-validation", "mnist"]
STUDY = {
    "kind": "pruning",
    "task": {
        "name": "one-shot",
        "trained": "trained.h5",
        "n_train": 12,
        "n_test": 40,
        "elsewhere": ["mnist"],
    },
    "network": {"width": 6, "temperature": 0.5},
    "run": {"exact": False, "random_orders": 3},
}
SETTING = Setting(image_size=16, patch=8, channels=1)
EACH = [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.fixture(scope="module")
def folder(made_trained, made_images, tmp_path_factory):
    """Images, and three networks of which the second learned nothing."""
    folder = tmp_path_factory.mktemp("pruning")
    made_images.write_digits(made_images.write_omniglot(folder, side=16), side=16)
    networks = [made_trained.drawn_network(SETTING, n) for n in range(3)]
    codes = [RUNNING, training.VANISHED, RUNNING]
    made_trained.write_trained(folder / "trained.h5", networks, SETTING, codes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATMECH_ATTN_DATA", str(folder))
        yield folder


def study(folder, **run):
    tree = copy.deepcopy(STUDY)
    tree["run"] |= run
    return studies.parse(tree).beside(folder)


@pytest.fixture(scope="module")
def work(folder):
    return studies.work(study(folder))


@pytest.fixture(scope="module")
def source(folder):
    """Networks, and what their examples are drawn from."""
    table = study(folder).task
    return examples.source(table, load_trained(table.trained))


@pytest.fixture(scope="module")
def found(folder):
    return studies.run(study(folder))


@pytest.fixture(scope="module")
def learned(found):
    return found.isel(restart=[0, 2])


@slow
def test_accuracies_are_those_of_networks_that_never_had_the_heads(source, learned):
    """Against the trained network itself, in single precision and without paths."""
    for row, number in enumerate([0, 2]):
        network = source.trained.transformers[number]
        for i, (x, y) in enumerate(source.drawn(number).tests.values()):
            right = lambda t: np.mean(np.asarray(jnp.sign(OUTPUTS(t, x)) == y))
            one = learned.isel(restart=row, test_set=i)
            assert float(one.accuracy_sets) == right(network)
            for head, pruned in zip(EACH, one.accuracy_pruned.values, strict=True):
                assert pruned == right(without(network, *head))


OUTPUTS = jax.jit(outputs)


def without(network, layer, head):
    """The network with one head of a layer taken out."""
    left = np.array([1 - head])
    taken = [
        tuple(part[left] if l == layer else part for l, part in enumerate(parts))
        for parts in (network.queries, network.keys, network.V)
    ]
    queries, keys, V = taken
    return network._replace(queries=queries, keys=keys, V=V)


def scored(U):
    return np.concatenate(bpkr.head_scores(U, HEADS))


@slow
def test_a_network_does_not_depend_on_the_others_of_its_chunk(work, found):
    alone = work.rows(Chunk(1, 0, 2, 3), None, lambda points: None, None)
    for name, rows in alone.items():
        assert np.array_equal(rows[0], found[name].values[2], equal_nan=True)


@slow
def test_scores_of_the_exact_law_are_those_of_its_mean(folder, source):
    """With the key of the network; the width is below its four paths."""
    tree = {"exact": True, "draws": 40, "warmup": 40, "chains": 2}
    narrow = study(folder, **tree)
    narrow = narrow.model_copy(
        update={"network": narrow.network.model_copy(update={"width": 3})}
    )
    work = studies.work(narrow)
    row = work.rows(Chunk(0, 0, 2, 3), None, lambda points: None, None)
    made = source.attended(2)
    problem = bpkr.Problem(*made.data, heads=HEADS, width=3, temperature=0.5)
    key = rng.key_for(KEY, EXACT_LAW, 2)
    drawn = problem.posterior(key, draws=40, warmup=40, chains=2)
    U, *_ = drawn.summary
    for name, expected in (("", U.mean), ("_stderr", U.stderr), ("_n_eff", U.n_eff)):
        assert np.array_equal(row[f"U_1_exact{name}"][0], expected)
    scores = row["pruning_score"][0, ORDERS.index("exact-law")]
    assert np.abs(scores - scored(jnp.asarray(U.mean))).max() < 1e-12
    curve = row["accuracy_cumulative"][0, ORDERS.index("exact-law")]
    assert (curve[0] == row["accuracy_sets"][0]).all()
    assert row["divergences"][0] == drawn.divergences


def test_the_file_of_the_networks_is_an_input(folder):
    found = study(folder).inputs()
    assert {len(digest) for digest in found.values()} == {64}
    assert [name for name in found if "/" not in name] == ["trained.h5"]
    assert {name.split("/")[0] for name in found if "/" in name} == {
        "omniglot",
        "mnist",
    }


def test_impossible_studies_are_refused(folder, made_trained, monkeypatch):
    with pytest.raises(ValueError, match="task.restart: unknown key"):
        studies.parse(STUDY | {"task": STUDY["task"] | {"restart": 1}})
    with pytest.raises(ValueError, match="run.random_orders: should be at least 2"):
        studies.parse(STUDY | {"run": {"random_orders": 1}})
    networks = [made_trained.drawn_network(SETTING, 0)]
    path = folder / "none.h5"
    made_trained.write_trained(path, networks, SETTING, [training.VANISHED])
    task = STUDY["task"] | {"trained": str(path)}
    with pytest.raises(ValueError, match="no network has learned anything"):
        studies.work(studies.parse(STUDY | {"task": task}))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="the exact law needs numpyro: pip install"):
        studies.work(study(folder, exact=True))
