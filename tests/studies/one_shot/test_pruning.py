"""Studies of pruning: scores, drops and curves of trained networks."""

import copy
import importlib.util
import io
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from statmech_attn import bpkr, plotting, storage, studies, training
from statmech_attn.batches import rng
from statmech_attn.bpkr import pruning
from statmech_attn.bpkr.grids.pruned_networks import EXACT_LAW, ORDERS, RANDOM_ORDERS
from statmech_attn.cli.texts.summary import print_summary
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
SCORED = ("saddle", "trained", "magnitude")
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
def test_a_file_holds_every_network(found, learned, tmp_path):
    sets, head, paths = ("test_set",), ("attention_head",), ("path_1", "path_1_pair")
    for name, dims in {
        "U_1": paths,
        "accuracy_sets": sets,
        "accuracy_sets_stderr": sets,
        "accuracy_pruned": head + sets,
        "accuracy_pruned_stderr": head + sets,
        "accuracy_drop_stderr": head + sets,
    }.items():
        assert found[name].dims == ("restart", *dims)
        assert np.isfinite(learned[name].values).all()
        assert found[name].attrs["long_name"]
    assert found.U_1_exact_stderr.dims == ("restart", *paths)
    assert found.accuracy_cumulative.dims == ("restart", "order", "n_pruned", *sets)
    assert found.accuracy_cumulative.shape == (3, 5, 3, 3)
    assert found.test_set.values.tolist() == SETS
    assert found.order.values.tolist() == list(ORDERS)
    assert found.attention_head.values.tolist() == ["1.1", "1.2", "2.1", "2.2"]
    assert found.failure.values.tolist() == [0, 2, 0]
    assert "training 1 learned nothing" in found.attrs["failure_reasons"][0]
    storage.write(tmp_path / "found.h5", found, study=studies.dump(STUDY))
    again = storage.read(tmp_path / "found.h5")
    print_summary(again, Console(file=(shown := io.StringIO()), width=100))
    assert "1 of 3 points have no numbers" in shown.getvalue()
    assert "exact-law" not in shown.getvalue()  # it has no numbers
    again.attrs["task"] = again.attrs["task"].replace(
        '"split"', '"characters": 15, "split"'
    )
    names = {path.name for path in plotting.draw(again, tmp_path)}
    assert names >= {"pruned_heads.png", "pruning_ranks.png", "cumulative_pruning.pdf"}


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


@slow
def test_scores_are_those_of_their_origins(source, learned):
    made = source.attended(2)
    problem = bpkr.Problem(*made.data, heads=HEADS, width=6, temperature=0.5)
    saddle = problem.solve()
    assert np.abs(learned.U_1[1] - saddle.U[0]).max() < 1e-8
    weights = training.value_weights(source.trained.transformers[2])
    expected = {
        "saddle": scored(saddle),
        "trained": scored(bpkr.order_parameters(weights)[0][0]),
        "magnitude": pruning.head_magnitudes(weights),
    }
    for order, scores in expected.items():
        stored = learned.pruning_score.sel(order=order)[1]
        assert np.abs(stored - scores).max() < 1e-8
    assert np.isnan(learned.pruning_score.sel(order="random")).all()
    assert len({tuple(np.round(scores, 6)) for scores in expected.values()}) == 3


def scored(U):
    return np.concatenate(bpkr.head_scores(U, HEADS))


@slow
def test_drops_have_the_error_of_a_paired_difference(source, learned):
    """From the tasks that only the network with the head, or without it, knows."""
    for row, number in enumerate([0, 2]):
        network = source.trained.transformers[number]
        for i, (x, y) in enumerate(source.drawn(number).tests.values()):
            right = lambda t: np.asarray(jnp.sign(OUTPUTS(t, x)) == y)
            one, full = learned.isel(restart=row, test_set=i), right(network)
            base = full.mean()
            assert one.accuracy_sets_stderr == pytest.approx(
                math.sqrt(base * (1 - base) / 40 + 1 / 80**2) / (1 + 1 / 40)
            )
            for h, head in enumerate(EACH):
                pruned = right(without(network, *head))
                lost, gained = int((full & ~pruned).sum()), int((pruned & ~full).sum())
                drop = (lost - gained) / 40
                error = math.sqrt(((lost + gained) / 40 - drop**2) / 39)
                error = error or 1 / 82  # of a share of 0
                assert one.accuracy_drop[h] == pytest.approx(drop, abs=1e-12)
                assert one.accuracy_drop_stderr[h] == pytest.approx(error, abs=1e-12)


@slow
def test_curves_begin_with_all_heads_and_then_lack_the_one_of_lowest_score(learned):
    for order in SCORED:
        curves = learned.accuracy_cumulative.sel(order=order)
        assert (curves.isel(n_pruned=0) == learned.accuracy_sets).all()
        lowest = learned.pruning_score.sel(order=order).argmin("attention_head")
        pruned = learned.accuracy_pruned.isel(attention_head=lowest)
        assert (curves.isel(n_pruned=1) == pruned).all()
        ranks = np.argsort(learned.pruning_score.sel(order=order).values, axis=1)
        emptied = (ranks[:, :2] // 2).sum(axis=1) != 1
        assert (np.isnan(curves.isel(n_pruned=2)).all("test_set") == emptied).all()
        binomial = np.sqrt(curves * (1 - curves) / 40 + 1 / 80**2) / (1 + 1 / 40)
        error = learned.accuracy_cumulative_stderr.sel(order=order)
        assert np.allclose(error, binomial, atol=1e-15, equal_nan=True)


@slow
def test_the_random_curve_is_the_mean_of_its_orders(source, learned):
    orders = pruning.random_orders(rng.key_for(KEY, RANDOM_ORDERS, 2), HEADS, 3)
    first = learned.accuracy_pruned[1].isel(attention_head=orders[:, 0])
    curve = learned.accuracy_cumulative[1].sel(order="random", n_pruned=1)
    error = learned.accuracy_cumulative_stderr[1].sel(order="random", n_pruned=1)
    assert np.abs(curve - first.mean("attention_head")).max() < 1e-14
    spread = first.std("attention_head", ddof=1) / np.sqrt(3)
    assert np.abs(error - spread).max() < 1e-14


@slow
def test_rank_correlations_are_of_each_network_and_on_average(learned, found):
    for row in range(2):
        for order in SCORED:
            for t in range(len(SETS)):
                scores = learned.pruning_score[row].sel(order=order).values
                drops = learned.accuracy_drop[row, :, t].values
                expected = pruning.rank_correlation(scores, drops)
                stored = float(learned.rank_correlation[row, :, t].sel(order=order))
                assert stored == expected or np.isnan([stored, expected]).all()
    values = learned.rank_correlation.values
    mean, error = values.mean(axis=0), np.abs(values[0] - values[1]) / 2
    both = np.isfinite(mean)
    assert both.sum() > 6
    assert np.abs(found.rank_correlation_mean.values - mean)[both].max() < 1e-14
    assert np.abs(found.rank_correlation_mean_stderr.values - error)[both].max() < 1e-14


@slow
def test_a_network_does_not_depend_on_the_others_of_its_chunk(work, found):
    alone = work.rows(Chunk(1, 0, 2, 3), None, lambda points: None, None)
    for name, rows in alone.items():
        assert np.array_equal(rows[0], found[name].values[2], equal_nan=True)


@slow
def test_without_the_exact_law_its_rows_are_empty(learned):
    for name in ("U_1_exact", "U_1_exact_stderr", "divergences"):
        assert np.isnan(learned[name]).all()
    for name in ("pruning_score", "accuracy_cumulative", "rank_correlation"):
        assert np.isnan(learned[name].sel(order="exact-law")).all()


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
