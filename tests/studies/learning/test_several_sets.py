"""Studies of arrays with several test sets say of each what they say of it alone."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from statmech_attn import plotting, storage, studies
from statmech_attn.bpkr.grids import chosen_temperature as choice
from statmech_attn.studies.learning import selection
from statmech_attn.studies.learning.tasks import learning


RESULTS = Path(__file__).resolve().parents[3] / "paper_figs" / "results"
NETWORKS = "[network]\nwidth = [4, 40]\ntemperature = [0.1, 1.0]\n"
NETWORK = "[network]\nwidth = 4\ntemperature = 0.1\n"
SIZES = {"test": 12, "shifted": 20, "validation": 9}
OF_SETS = {"accuracy_sets", "accuracy_gain", "accuracy_chosen", "chosen_temperature"}


@pytest.fixture(scope="module")
def files(made_arrays, tmp_path_factory):
    """Files by name: all sets, all but the validation set, and each set alone."""
    folder, arrays = tmp_path_factory.mktemp("sets"), made_arrays.drawn()
    contents = {
        "every": arrays,
        "unchosen": {k: x for k, x in arrays.items() if "validation" not in k},
        "test": made_arrays.first_alone(arrays),
        "shifted": made_arrays.alone(arrays, "shifted"),
        "validation": made_arrays.alone(arrays, "validation"),
    }
    for name, content in contents.items():
        made_arrays.write(folder / f"{name}.npz", content)
    return folder


@pytest.fixture(scope="module")
def study(files):
    """Write a study of one of the files."""

    def written(kind, name, network=NETWORKS, run=""):
        path = files / f"{kind}-{name}.toml"
        task = f'[task]\nname = "arrays"\nfile = "{name}.npz"\n'
        path.write_text(f'kind = "{kind}"\n{task}{network}[run]\n{run}\n')
        return path

    return written


@pytest.fixture(scope="module")
def ran(study):
    """What a study of one of the files finds, computed once."""
    known = {}

    def found(kind, name, network=NETWORKS, run=""):
        if (kind, name) not in known:
            path = study(kind, name, network, run)
            known[kind, name] = studies.produce(path, path.with_suffix(".h5"))
        return known[kind, name]

    return found


def binomial(accuracy, count):
    variance = accuracy * (1 - accuracy) / count + 1 / (2 * count) ** 2
    return np.sqrt(variance) / (1 + 1 / count)


def test_sets_of_other_sizes_have_their_own_means_and_errors():
    """By hand, at two temperatures; 9 stands where a set has no example."""
    right = np.array(
        [[[1, 1, 0, 1], [1, 0, 9, 9]], [[1, 0, 0, 0], [1, 1, 9, 9]]], float
    )
    right[right == 9] = np.nan
    limit = np.roll(right, 1, axis=0)
    sets, choices = {"test": 4, "validation": 2}, {"validation": "validation"}
    choices["published"] = "test"
    found = choice.variables(right[None], limit, [0.1, 1.0], sets, choices)
    values = {name: value for name, (_, value) in found.items()}
    accuracy = np.array([[0.75, 0.5], [0.25, 1.0]])
    np.testing.assert_array_equal(values["accuracy_sets"][0], accuracy)
    errors = binomial(accuracy, np.array([4, 2]))
    np.testing.assert_allclose(values["accuracy_sets_stderr"][0], errors, rtol=1e-14)
    np.testing.assert_array_equal(values["chosen_temperature"][0], [1.0, 0.1])
    np.testing.assert_array_equal(values["chosen_temperature_gp"], [0.1, 1.0])
    chosen = [[0.25, 1.0], [0.75, 0.5]]
    np.testing.assert_array_equal(values["accuracy_chosen"][0], chosen)
    np.testing.assert_array_equal(values["accuracy_gain"], np.zeros((1, 2, 2)))
    assert values["chosen_at_end"].all() and values["chosen_at_end_gp"].all()
    turned = np.stack([1 - right[:, 0], right[:, 1]], 1)  # labels of the test set
    again = choice.variables(turned[None], limit, [0.1, 1.0], sets, choices)
    before, after = (x["chosen_temperature"][1][0] for x in (found, again))
    assert before[0] == after[0] and before[1] != after[1]
    between = np.concatenate([0 * right, right[:1]])  # of three, the middle one is best
    best = between[[0, 2, 1]]
    inside = choice.variables(best[None], best, [0.1, 0.5, 1.0], sets, choices)
    assert not inside["chosen_at_end"][1].any()
    unknown = choice.variables(
        np.full((1, 2, 2, 4), np.nan), limit, [0.1, 1.0], sets, choices
    )
    assert np.isnan(unknown["accuracy_sets"][1]).all()
    assert np.isnan(unknown["chosen_temperature"][1]).all()


def test_which_sets_choose_is_said_by_the_task(study):
    """And nothing is said of sets where there is one."""
    made = {
        n: learning(studies.load(study("order-parameter", n))[0].task)
        for n in ("every", "unchosen", "test")
    }
    by = {"validation": "validation", "published": "test"}
    assert dict(made["every"].choices) == by and made["every"].counts == [12, 20, 9]
    assert dict(made["unchosen"].choices) == {"published": "test"}
    assert not made["test"].sets and made["test"].counts == [12]


@pytest.mark.slow
def test_accuracies_of_order_parameters_are_those_of_each_set_alone(ran):
    """Bit for bit, with the errors of its own number of examples."""
    every = ran("order-parameter", "every")
    assert every.test_set.values.tolist() == ["test", "shifted", "validation"]
    assert every.choice.values.tolist() == ["validation", "published"]
    right, limit = {}, {}
    for name, count in SIZES.items():
        alone = ran("order-parameter", name)
        assert not OF_SETS & set(alone) and "test_set" not in alone
        of_set = every.sel(test_set=name)
        np.testing.assert_array_equal(of_set.accuracy_sets, alone.accuracy)
        np.testing.assert_array_equal(of_set.accuracy_sets_gp, alone.accuracy_gp)
        error = binomial(alone.accuracy.values, count)
        np.testing.assert_allclose(of_set.accuracy_sets_stderr, error, rtol=1e-14)
        np.testing.assert_array_equal(every.U_1, alone.U_1)
        right[name] = np.sign(alone.predictor_mean) == alone.y_test
        limit[name] = alone.accuracy_gp
    np.testing.assert_array_equal(every.accuracy, every.accuracy_sets[..., 0])
    for by, name in {"validation": "validation", "published": "test"}.items():
        accuracy = right[name].mean("test")
        best = every.temperature[accuracy.argmax("temperature").values]
        chosen = every.sel(choice=by)
        np.testing.assert_array_equal(chosen.chosen_temperature, best)
        at_limit = every.temperature[int(limit[name].argmax("temperature"))]
        for other in SIZES:
            there = right[other].mean("test").sel(temperature=chosen.chosen_temperature)
            gain = there - limit[other].sel(temperature=at_limit)
            np.testing.assert_allclose(
                chosen.accuracy_gain.sel(test_set=other), gain, atol=1e-15
            )


@pytest.mark.slow
def test_accuracies_of_the_exact_law_are_those_of_each_set_alone(ran):
    run = "draws = 20\nwarmup = 20\nchains = 2"
    every = ran("posterior", "every", NETWORK, run)
    for name, count in SIZES.items():
        alone = ran("posterior", name, NETWORK, run)
        assert "accuracy_sets" not in alone
        of_set = every.sel(test_set=name)
        np.testing.assert_array_equal(of_set.accuracy_sets, alone.accuracy)
        error = binomial(alone.accuracy.values, count)
        np.testing.assert_allclose(of_set.accuracy_sets_stderr, error, rtol=1e-14)
    assert "test_sets" in dict(plotting.pictures(every))


@pytest.mark.slow
def test_accuracies_of_sampled_weights_are_those_of_each_set_alone(study):
    sampling = 'method = "weights"\ndraws = 20\nwarmup = 20\nchains = 2\nblock = 10'
    every, alone = (
        studies.run(studies.load(study("posterior", name, NETWORK, sampling))[0])
        for name in ("every", "shifted")
    )
    of_sets = every.accuracy_sets.sel(test_set="shifted")
    np.testing.assert_array_equal(of_sets, alone.accuracy)
    np.testing.assert_array_equal(every.accuracy_sets[..., 0], every.accuracy)


@pytest.mark.slow
def test_what_pruning_costs_on_a_set_is_that_of_this_set_alone(ran):
    """Scores and orders as well."""
    run = "random_orders = 3"
    every = ran("pruning", "every", NETWORK, run)
    for name in SIZES:
        alone = ran("pruning", name, NETWORK, run)
        assert alone.test_set.values.tolist() == ["test"]
        of_set = every.sel(test_set=name)
        for variable, values in alone.squeeze("test_set").items():
            np.testing.assert_array_equal(of_set[variable], values, str(variable))
    figures = dict(plotting.pictures(every))
    panels = figures["cumulative_pruning"].axes
    assert [axis.get_title() for axis in panels] == [*SIZES]


@pytest.mark.parametrize("share", (None, 0.25))
def test_model_selection_validates_on_the_validation_set(study, share):
    """Unless a share of the training examples is asked for."""
    run = "" if share is None else f"validation = {share}"
    loaded, _ = studies.load(study("model-selection", "every", run=run))
    task, asked = learning(loaded.task), selection.work(loaded).given
    held_out = len(asked["Y"])
    if share is None:
        xi, Y = task.sets["validation"]
        np.testing.assert_array_equal(asked["xi"][:held_out], xi)
        np.testing.assert_array_equal(asked["Y"], Y)
        np.testing.assert_array_equal(asked["problem"].xi, task.xi)
    else:
        assert held_out == 4 and len(asked["problem"].Y) == 12
    np.testing.assert_array_equal(asked["xi"][held_out:], task.xi_test)


@pytest.mark.slow
def test_other_kinds_know_the_first_set_alone(ran):
    """What they find is what they find without further sets."""
    for kind, run in (
        ("learning-curve", "examples = [8, 16]"),
        ("training", "learning_rate = 0.01\nsteps = 20\nblock = 10"),
    ):
        every, first = (ran(kind, n, NETWORK, run) for n in ("every", "test"))
        xr.testing.assert_identical(
            every.drop_attrs(deep=False), first.drop_attrs(deep=False)
        )


def test_the_kept_theory_of_images_has_its_pictures_as_before():
    """By the task that it is of, and not by its several test sets."""
    kept = storage.read(RESULTS / "one_shot_theory-0-laptop.h5")
    functions = plotting.names(kept)
    assert functions["accuracy"] == "one_shot_accuracy"
    assert "test_sets" not in functions
