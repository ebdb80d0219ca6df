"""Theory on the heads of a trained network: what the studies hold, on made images."""

import copy
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from statmech_attn import bpkr, plotting, storage, studies
from statmech_attn.batches import rng
from statmech_attn.bpkr.grids import chosen_temperature as choice, saddle_points
from statmech_attn.cli.texts.summary import print_summary
from statmech_attn.cli.texts.tables import with_error
from statmech_attn.scan.engines.local import in_memory
from statmech_attn.studies.learning import tasks
from statmech_attn.studies.one_shot import examples as one_shot_studies
from statmech_attn.studies.one_shot.examples import CHOICES
from statmech_attn.studies.one_shot.trained import load_trained
from statmech_attn.tasks import images, one_shot
from statmech_attn.training import attention_heads, DIVERGED, VANISHED


SETTING = one_shot.Setting(image_size=16, patch=8, channels=1)
WIDE = 1e7
SETS = ["omniglot", "omniglot-validation", "fashion-mnist", "mnist"]


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory, made_images):
    """Made images, found as the user's would be."""
    folder = tmp_path_factory.mktemp("data")
    made_images.write_omniglot(folder, side=SETTING.image_size)
    made_images.write_digits(folder, side=SETTING.image_size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATMECH_ATTN_DATA", str(folder))
        yield folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory, made_trained):
    """Five networks, of which the first and the last can be used."""
    path = tmp_path_factory.mktemp("trained") / "trained.h5"
    networks = [made_trained.drawn_network(SETTING, seed) for seed in range(5)]
    codes = [0, DIVERGED, VANISHED, -1, 0]
    return made_trained.write_trained(path, networks, SETTING, codes)


def tree(trained, /, **changes):
    return {
        "kind": "order-parameter",
        "task": {
            "name": "one-shot",
            "trained": str(trained),
            "n_train": 120,
            "n_test": 60,
        }
        | changes,
        "network": {"width": [5, WIDE], "temperature": [0.05, 0.3, 3.0]},
    }


@pytest.fixture(scope="module")
def work(trained):
    return studies.work(studies.parse(tree(trained)))


@pytest.fixture(scope="module")
def found(work):
    return in_memory(work)


def posed(made, temperature):
    """The problem of a study, at any width: it is asked at given U_1 alone."""
    return bpkr.Problem(*made.data, heads=made.heads, width=1, temperature=temperature)


@pytest.mark.slow
def test_accuracies_are_those_of_the_theory_on_sets_drawn_again(found, trained):
    made = tasks.learning(studies.parse(tree(trained)).task)
    assert list(found.test_set.values) == list(made.sets) == SETS
    for width in (5, WIDE):
        for temperature in (0.05, 3.0):
            here = found.sel(width=width, temperature=temperature)
            theory = posed(made, temperature).theory(here.U_1.values)
            for name, (xi, y) in made.sets.items():
                f = np.asarray(theory.predict(xi).mean)
                right = np.mean(np.sign(f) == np.asarray(y))
                assert float(here.accuracy_sets.sel(test_set=name)) == right
            assert float(here.accuracy) == float(here.accuracy_sets[0])


@pytest.mark.slow
def test_networks_much_wider_than_the_examples_are_as_accurate_as_the_gp(found):
    """U - 1 = O(P / N) = 1e-5: no sign of f changes."""
    wide = found.sel(width=WIDE)
    np.testing.assert_allclose(wide.U_1[0], np.eye(4), atol=1e-4)
    np.testing.assert_array_equal(wide.accuracy_sets, found.accuracy_sets_gp)
    np.testing.assert_array_equal(wide.accuracy_chosen, found.accuracy_chosen_gp)
    assert not np.array_equal(found.U_1.sel(width=5)[0].round(2), np.eye(4))


@pytest.mark.slow
def test_chosen_temperatures_have_the_highest_accuracy_of_their_choice(found):
    assert float(found.accuracy_sets.std("temperature").max()) > 0
    sets = {"validation": "omniglot-validation", "published": "omniglot"}
    for by, name in sets.items():
        accuracy = found.accuracy_sets.sel(test_set=name)
        best = found.accuracy_chosen.sel(choice=by, test_set=name)
        np.testing.assert_array_equal(best, accuracy.max("temperature"))
        chosen = found.chosen_temperature.sel(choice=by)
        for width in found.width:
            there = found.accuracy_sets.sel(
                width=width, temperature=chosen.sel(width=width)
            )
            own = found.accuracy_chosen.sel(width=width, choice=by)
            np.testing.assert_array_equal(own, there)
        lower = accuracy.where(found.temperature < chosen)
        assert not (lower >= best).any()


@pytest.mark.slow
def test_no_test_label_enters_the_choice_on_validation_classes(found, work):
    """With all test labels turned round only the published choice may change."""
    made = work.task
    xi, y = made.sets["omniglot"]
    turned = made._replace(Y_test=-y, sets=made.sets | {"omniglot": (xi, -y)})
    other = copy.copy(work)
    other.task, other._last = turned, (-1, {})
    turned = in_memory(other)
    for name in ("chosen_temperature", "chosen_temperature_gp"):
        before, after = found[name], turned[name]
        np.testing.assert_array_equal(
            after.sel(choice="validation"), before.sel(choice="validation")
        )
    np.testing.assert_allclose(
        turned.accuracy_sets[..., 0], 1 - found.accuracy_sets[..., 0], atol=1e-12
    )
    here = turned.accuracy_chosen.sel(choice="published", test_set="omniglot")
    np.testing.assert_allclose(
        here, 1 - found.accuracy_sets[..., 0].min("temperature"), atol=1e-12
    )


def test_a_choice_skips_temperatures_without_numbers():
    right = np.full((2, 2, 2, 5), np.nan)
    right[0, 1] = [[1, 0, 1, 0, 1], [1, 1, 1, 1, 0]]
    temperatures, answers = choice.choose(
        right, [0.1, 1.0], dict.fromkeys(SETS[:2], right.shape[-1]), CHOICES
    )
    np.testing.assert_array_equal(temperatures, [[1.0, 1.0], [np.nan, np.nan]])
    np.testing.assert_array_equal(answers[0], [right[0, 1]] * 2)
    assert np.isnan(answers[1]).all()


@pytest.mark.slow
def test_errors_of_accuracies_are_binomial(found):
    a = found.accuracy_sets
    binomial = lambda a: np.sqrt(a * (1 - a) / 60 + 1 / 120**2) / (1 + 1 / 60)
    np.testing.assert_allclose(found.accuracy_sets_stderr, binomial(a))
    a = found.accuracy_chosen_gp
    error = found.accuracy_chosen_gp_stderr
    np.testing.assert_allclose(error, binomial(a))


@pytest.mark.slow
def test_the_gain_over_the_limit_has_the_error_of_a_paired_difference(work, found):
    """From the counts of examples that one of both alone answers rightly."""
    wide = found.sel(width=WIDE)
    assert (wide.accuracy_gain == 0).all()
    np.testing.assert_allclose(wide.accuracy_gain_stderr, 1 / 122)  # of a share of 0
    made, here = work.task, found.sel(width=5, choice="validation")
    T, T_gp = here.chosen_temperature, here.chosen_temperature_gp
    U = here.U_1.sel(temperature=T).values
    network = posed(made, float(T)).theory(U)
    limit = posed(made, float(T_gp)).theory(np.eye(4))
    for name, (xi, y) in made.sets.items():
        a, b = (np.sign(t.predict(xi).mean) == y for t in (network, limit))
        gained, lost = int((a & ~b).sum()), int((b & ~a).sum())
        gain = (gained - lost) / 60
        error = np.sqrt(((gained + lost) / 60 - gain**2) / 59) or 1 / 122
        own = here.sel(test_set=name)
        assert float(own.accuracy_gain) == pytest.approx(gain, abs=1e-12)
        assert float(own.accuracy_gain_stderr) == pytest.approx(error, abs=1e-12)
    assert float(here.accuracy_gain_stderr.min()) > 0


@pytest.mark.slow
def test_every_set_shows_classes_of_its_own_part_only(data, trained, monkeypatch):
    """Tokens less positions and symbols are patches of images of the right classes."""
    drawn = drawn_sets(trained, monkeypatch)
    parts = images.split(images.omniglot(data, size=16), "small")
    shown = {"train": parts.train, SETS[0]: parts.test, SETS[1]: parts.validation}
    for name, classes in shown.items():
        x = (drawn.train if name == "train" else drawn.tests[name]).x
        assert largest_distance(x, classes) < 1e-5
        for other, others in shown.items():
            assert other == name or largest_distance(x, others) > 1


@pytest.mark.slow
def test_the_chosen_network_attends_tasks_of_its_own(trained, made_trained):
    """With its own heads, and not the tasks of the first one."""
    task = studies.parse(tree(trained, restart=4)).task
    made = tasks.learning(task)
    source = one_shot_studies.source(task, load_trained(trained))
    own, first = (
        [drawn.train, *drawn.tests.values()] for drawn in map(source.drawn, (4, 0))
    )
    heads = attention_heads(made_trained.drawn_network(SETTING, 4))
    attend = jax.jit(partial(bpkr.attentioned_inputs, readout="mean"))
    found = [made.data, *made.sets.values()]
    for (x, y), (xi, labels) in zip(own, found, strict=True):
        np.testing.assert_allclose(xi, attend(x, heads), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(labels, y)
    for one, other in zip(own, first, strict=True):
        assert not np.array_equal(one.x, other.x)


def drawn_sets(trained, monkeypatch):
    """The examples before the heads attend them."""
    kept = []
    draw = one_shot_studies.Source.drawn
    monkeypatch.setattr(
        one_shot_studies.Source, "drawn", lambda *a: kept.append(draw(*a)) or kept[0]
    )
    tasks.learning(studies.parse(tree(trained)).task)
    return kept[0]


def largest_distance(x, classes) -> float:
    """Of an image in an example to the closest image of some classes."""
    codes = one_shot.codes(SETTING)
    tokens = np.swapaxes(x, 1, 2) - codes.positions
    bank = one_shot.patches(classes.images, SETTING)
    bank = bank.reshape(-1, SETTING.patches * SETTING.n_inputs).astype(float)
    seen = np.asarray(tokens).reshape(len(x), 3, 1, SETTING.patches, -1)
    seen = (seen - codes.symbols[:, None]).reshape(-1, 3, bank.shape[1])
    squares = (seen**2).sum(-1)[..., None] + (bank**2).sum(-1) - 2 * seen @ bank.T
    return float(np.sqrt(np.maximum(squares, 0).min((1, 2)).max() / bank.shape[1]))


@pytest.mark.slow
def test_sets_are_the_same_whichever_others_are_drawn(work, trained):
    less = tasks.learning(studies.parse(tree(trained, elsewhere=["mnist"])).task)
    assert list(less.sets) == [*SETS[:2], "mnist"]
    for name in SETS[:2]:
        np.testing.assert_array_equal(less.sets[name][0], work.task.sets[name][0])
    np.testing.assert_array_equal(less.xi, work.task.xi)


@pytest.mark.slow
def test_sets_have_keys_of_their_own(trained, monkeypatch):
    """Other classes, but the same choices, would have the same symbols."""
    keys = []
    for name in ("draw", "draw_elsewhere"):
        draw = getattr(one_shot, name)

        def told(key, *given, draw=draw, **sizes):
            keys.append(tuple(jax.random.key_data(key).tolist()))
            return draw(key, *given, **sizes)

        monkeypatch.setattr(one_shot, name, told)
    networks = load_trained(trained)
    for seed in (0, 1):
        task = studies.parse(tree(trained, seed=seed)).task
        found = one_shot_studies.source(task, networks).drawn(0)
        assert len(keys) == (1 + len(found.tests)) * (1 + seed)
    assert len(set(keys)) == 10


def test_attentioned_inputs_do_not_depend_on_how_many_are_in_memory(
    made_trained, monkeypatch
):
    heads = attention_heads(made_trained.drawn_network(SETTING, 0))
    x = rng.normal(jax.random.key(1), (7, SETTING.n_inputs, 6))
    monkeypatch.setattr(one_shot_studies, "BATCH", 3)
    found = jax.jit(one_shot_studies.attentioned.__wrapped__)(x, heads)
    whole = bpkr.attentioned_inputs(x, heads, readout="mean")
    np.testing.assert_allclose(found, whole, rtol=1e-12, atol=1e-12)
    assert float(jnp.abs(whole[..., 0] - whole[..., 3]).max()) > 0.01


@pytest.mark.slow
def test_widths_below_the_number_of_paths_are_marked(found, work):
    paths = found.sizes["path_1"]
    np.testing.assert_array_equal(found.outside_support, found.width < paths)
    grid = work.grid._replace(widths=[paths - 1.0, paths])
    assert saddle_points.singular_laws(work.task, grid) == [True, False]


@pytest.mark.slow
def test_choices_at_an_end_of_the_grid_are_marked(found):
    """Against the file's own grid; the middle one of three temperatures is inside."""
    ends = [found.temperature.min(), found.temperature.max()]
    for ending in ("", "_gp"):
        at_end = found[f"chosen_temperature{ending}"].isin(ends)
        np.testing.assert_array_equal(found[f"chosen_at_end{ending}"], at_end)
        assert at_end.any()
    right = np.zeros((1, 3, 2, 4))
    right[:, 1] = 1  # the middle one of three temperatures answers all
    variables = choice.variables(
        right,
        right[0],
        [0.1, 0.5, 1.0],
        dict.fromkeys(SETS[:2], right.shape[-1]),
        CHOICES,
    )
    for ending in ("", "_gp"):
        dims, marked = variables[f"chosen_at_end{ending}"]
        assert "choice" in dims and not np.any(marked)


@pytest.mark.slow
def test_no_more_overlaps_are_kept_than_ranks(found, work):
    assert found.sizes["rank"] == 50 and found.sizes["example"] == 120
    theory = posed(work.task, 0.05).theory(found.U_1[0, 0].values)
    kept = theory.overlap()[:50]
    np.testing.assert_allclose(found.kernel_overlap[0, 0], kept, atol=1e-6)


@pytest.mark.slow
def test_predictors_can_be_left_out_and_nothing_else_changes(found, trained):
    study = tree(trained) | {"run": {"predictors": False}}
    study["network"] = {"width": 5, "temperature": [0.05, 0.3, 3.0]}
    less = studies.run(studies.parse(study))
    missing = set(found.data_vars) - set(less.data_vars)
    predictors = "predictor_mean", "predictor_variance"
    endings = "", "_by_temperature", "_by_width"
    assert missing == {name + ending for name in predictors for ending in endings}
    for name in ("accuracy", "accuracy_sets", "chosen_temperature", "U_1"):
        np.testing.assert_array_equal(less[name][0], found[name][0])
    assert "accuracy_gp_pair" not in found


@pytest.mark.slow
def test_the_summary_and_the_figure_show_what_there_is(found):
    console = Console(record=True, width=120)
    print_summary(found, console)
    text = console.export_text()
    assert text.count("validation") >= 3 and text.count("published") == 3
    gain = found.sel(width=5, choice="validation").isel(test_set=0)
    assert with_error(gain.accuracy_gain, gain.accuracy_gain_stderr) in text
    figure = plotting.accuracy_against_width(found.isel(temperature=0))
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert lines["GP"].get_ydata()[0] == float(found.accuracy_gp[0])


@pytest.mark.slow
def test_a_file_says_what_it_was_made_of(found, trained):
    study = studies.parse(tree(trained))
    (name,) = (name for name in study.inputs() if "/" not in name)
    assert name == "trained.h5" and len(study.inputs()[name]) == 64
    folders = {name.split("/")[0] for name in study.inputs() if "/" in name}
    assert folders == {"omniglot", "fashion_mnist", "mnist"}
    for part in ("images_sha256", "attention_sha256", '"split": "small"'):
        assert part in found.attrs["task"]
    moved = tree("../trained.h5")
    assert studies.parse(moved).beside(trained.parent / "x").inputs() == study.inputs()


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"restart": 1}, r"no training 1 .* it diverged; choose one of \[0, 4\]"),
        ({"restart": 2}, r"no training 2 .* it vanished; choose one of \[0, 4\]"),
        ({"restart": 3}, r"no training 3 .* it was not computed; choose one"),
        ({"restart": 5}, r"no training 5 .* there is none; choose one of \[0, 4\]"),
        ({"n_test": 61}, "task.n_test: .*multiple of 2"),
        ({"n_train": 0}, "task.n_train: should be at least 2"),
        ({"elsewhere": ["mnist"] * 2}, "task.elsewhere: names must be distinct"),
        ({"elsewhere": ["cifar"]}, "task.elsewhere.*mnist"),
        ({"preset": "four-paths"}, "task.preset: unknown key"),
        ({"trained": "nowhere.h5"}, "nowhere.h5"),
    ],
)
def test_impossible_tasks_are_refused_in_one_line(trained, task, message):
    with pytest.raises((ValueError, OSError), match=message) as caught:
        tasks.learning(studies.parse(tree(trained, **task)).task)
    assert "\n" not in str(caught.value)


def test_a_file_of_another_kind_is_no_training(tmp_path):
    study = studies.parse({"kind": "trajectory", "parameters": {"beta": 1.4}})
    path = tmp_path / "other.h5"
    storage.write(path, studies.run(study), study='kind = "trajectory"\n')
    with pytest.raises(ValueError, match="need the training of one-shot networks"):
        tasks.learning(studies.parse(tree(path)).task)


@pytest.mark.slow
@pytest.mark.parametrize(
    "run", [{"method": "order-parameter"}, {"method": "weights", "block": 10}]
)
def test_posteriors_answer_every_set(trained, run):
    """A set of the test set's inputs with turned labels has the rest as accuracy."""
    pytest.importorskip("numpyro")
    study = tree(trained, n_train=20) | {
        "kind": "posterior",
        "network": {"width": 3, "temperature": 0.5},
        "run": {"draws": 10, "warmup": 10, "chains": 2, "stored": 10} | run,
    }
    work = studies.work(studies.parse(study))
    sets = dict(work.task.sets)
    xi, y = sets["omniglot"]
    sets["mnist"] = xi, -y
    work.task = work.task._replace(sets=sets)
    found = in_memory(work)
    assert list(found.test_set.values) == SETS
    right = found.accuracy_sets.values[0]
    assert right[0] == float(found.accuracy[0])
    assert right[3] == pytest.approx(1 - right[0], abs=1e-12)
    error = found.accuracy_sets_stderr[0]
    wilson = np.sqrt(right * (1 - right) / 60 + 1 / 120**2) / (1 + 1 / 60)
    np.testing.assert_allclose(error, wilson)
    if run["method"] == "order-parameter":
        np.testing.assert_array_equal(right, of_draws(found, work.task))


def of_draws(found, made) -> list[float]:
    """Accuracies of the mean over all stored draws of the predictor given U_1."""
    draws = found.U_1_draws[0].values.reshape(-1, 4, 4)
    problem = posed(made, 0.5)
    theories = [problem.theory(U) for U in draws]
    return [
        bpkr.accuracy(sum(t.predict(xi).mean for t in theories), y)
        for xi, y in made.sets.values()
    ]
