"""Studies of Bayesian learning: what they hold is what the library finds."""

import copy

import jax
import numpy as np
import pytest

from statmech_attn import bpkr, studies
from statmech_attn.bpkr.theory import saddle
from statmech_attn.studies.learning import tasks
from statmech_attn.tasks import hidden_markov


SMALL = {"n_train": 20, "n_test": 30, "length": 8, "features": 10, "seed": 3}
STUDY = {
    "kind": "order-parameter",
    "task": SMALL,
    "network": {"width": [100, 5], "temperature": [0.1, 0.5]},
}


def changed(study=STUDY, **changes):
    tree = copy.deepcopy(study)
    for path, value in changes.items():
        *tables, key = path.split("__")
        table = tree
        for name in tables:
            table = table.setdefault(name, {})
        table[key] = value
    return tree


@pytest.fixture(scope="module")
def found():
    return studies.run(studies.parse(changed(run__kernels=True)))


@pytest.mark.slow
def test_its_numbers_are_those_of_the_library(found):
    keys = jax.random.split(jax.random.key(3), 3)
    setting = hidden_markov.preset("four-paths", keys[0], length=8, features=10)
    x, y = hidden_markov.draw(keys[1], setting.task, examples=20)
    x_test, y_test = hidden_markov.draw(keys[2], setting.task, examples=30)
    xi, test = (bpkr.attentioned_inputs(a, setting.heads) for a in (x, x_test))
    problem = bpkr.Problem(xi, y, heads=(2, 2), width=5, temperature=0.5)
    solution = problem.solve()
    here = found.sel(width=5, temperature=0.5)
    # Two convergent iterations agree to the gradient's tolerance over the curvature.
    np.testing.assert_allclose(here.U_1, solution.U[0], atol=1e-7)
    np.testing.assert_allclose(here.action, solution.action, atol=1e-9)
    np.testing.assert_allclose(here.energy + here.entropy, here.action, atol=1e-9)
    theory = problem.theory(solution)
    np.testing.assert_allclose(
        here.predictor_mean, theory.predict(test).mean, atol=1e-6
    )
    np.testing.assert_allclose(here.kernel, theory.kernel, atol=1e-6)
    limit = problem.gaussian_process()
    assert float(here.accuracy_gp) == bpkr.accuracy(limit.predict(test).mean, y_test)
    np.testing.assert_allclose(here.kernel_gp, limit.kernel, atol=1e-12)


@pytest.mark.slow
def test_gp_limits_of_single_paths_are_those_of_smaller_networks(found):
    made = tasks.learning(studies.parse(STUDY).task)
    one = bpkr.Problem(
        made.xi[:, :, [1]], made.Y, heads=(1,), width=1, temperature=0.1
    ).gaussian_process()
    right = bpkr.accuracy(one.predict(made.xi_test[:, :, [1]]).mean, made.Y_test)
    pairs = found.accuracy_gp_pair.sel(temperature=0.1)
    assert float(pairs.sel(path_1="1-2", path_1_pair="1-2")) == right
    np.testing.assert_array_equal(pairs.values, pairs.values.T)


@pytest.mark.slow
def test_one_temperature_is_a_coordinate_and_ratios_set_the_layers_widths():
    ratios = [1.0, 2.0, 0.5]
    study = changed(
        network={"width": 20, "temperature": 0.5, "width_ratios": ratios},
        run__corrections=False,
    )
    found = studies.run(studies.parse(study))
    assert "temperature" not in found.dims and float(found.temperature) == 0.5
    made = tasks.learning(studies.parse(study).task)
    solution = bpkr.Problem(
        *made.data, heads=made.heads, width=[20, 40, 10], temperature=0.5
    ).solve()
    np.testing.assert_allclose(found.U_1[0], solution.U[0], atol=1e-7)
    assert "U_1_corrected" not in found


@pytest.mark.slow
def test_a_width_below_the_number_of_paths_has_no_correction(found):
    """And no predictors where none are asked for, which changes nothing else."""
    network = {"width": [3, 5], "temperature": 0.5}
    less = studies.run(studies.parse(changed(network=network, run__predictors=False)))
    assert less.outside_support.values.tolist() == [True, False]
    assert np.isnan(less.accuracy_corrected.sel(width=3))
    assert np.isfinite(less.U_1).all()
    there, here = less.sel(width=5), found.sel(width=5, temperature=0.5)
    for name in ("accuracy", "U_1", "U_1_corrected"):
        np.testing.assert_allclose(there[name], here[name], atol=1e-7)
    left_out = {"predictor_mean", "predictor_variance"}
    assert left_out < set(found) and not left_out & set(less)


@pytest.mark.slow
def test_a_saddle_point_that_was_not_found_leaves_no_number(monkeypatch):
    solver = bpkr.NewtonSolver(max_iterations=1)
    monkeypatch.setattr(saddle, "NewtonSolver", lambda: solver)
    found = studies.run(studies.parse(STUDY))
    assert (found.result.values == 1).all()
    for name in ("U_1", "action", "accuracy", "U_1_corrected", "kernel_overlap"):
        assert np.isnan(found[name].values).all()
    assert (found.gradient_norm > 1e-9).all()
    assert np.isfinite(found.accuracy_gp).all()


def test_as_many_samples_are_stored_as_are_drawn_unless_said():
    stored = lambda **run: studies.parse(changed(kind="posterior", run=run)).run.stored
    assert stored() == stored(draws=1000) == 200
    assert stored(draws=100) == 100
    assert stored(draws=100, stored=7) == 7


@pytest.mark.parametrize(("examples", "ranks"), [(20, 20), (60, 50)])
def test_overlaps_of_fifty_ranks_are_kept_at_most(examples, ranks):
    work = studies.work(studies.parse(changed(task__n_train=examples)))
    assert (work.sizes()["example"], work.sizes()["rank"]) == (examples, ranks)


@pytest.mark.slow
def test_temperature_zero_is_least_squares_where_a_kernel_has_no_inverse():
    """20 training examples: four paths of N_0 = 19 span them, one path cannot."""
    study = studies.parse(
        changed(network={"width": 10, "temperature": 0.0}, run__corrections=False)
    )
    saddles, task = studies.run(study), tasks.learning(study.task)
    assert (saddles.result == 0).all() and np.isfinite(saddles.accuracy).all()
    assert np.isfinite(saddles.accuracy_gp)
    for path in range(4):
        xi, xi_test = (np.asarray(x)[:, :, path] for x in (task.xi, task.xi_test))
        f = xi_test @ np.linalg.lstsq(xi, np.asarray(task.Y))[0]
        right = np.mean(np.sign(f) == np.sign(task.Y_test))
        assert saddles.accuracy_gp_pair[path, path] == pytest.approx(float(right))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"network__width": []},
            "network.width: should hold at least 1 value; got \\[\\]",
        ),
        ({"network__width": [10, 10]}, "width: values must be distinct"),
        ({"network__temperature": float("nan")}, "network.temperature: .*finite"),
        ({"network__width": "ten"}, "network.width: should be a number"),
        ({"network": {"width": 10}}, "network.temperature: is missing"),
        ({"task__preset": "three-paths"}, "task.preset: should be 'four-paths'"),
        ({"task__heads": [["good"]]}, "task.heads.0.0: should be 'previous-token'"),
        ({"task__n_trian": 3}, "task.n_trian: unknown key .did you mean 'n_train'"),
        ({"task__features": 7}, "task.features: should be a multiple of 2; got 7."),
        ({"task__flip_plus": 1.5}, "task.flip_plus: should be at most 1"),
        ({"task__readout": "middle"}, "task.readout: should be 'first', 'last'"),
        ({"run__method": "weights"}, "run.method: unknown key"),
        ({"kind": "posterior", "run__method": "saddle"}, "run.method: should be"),
        ({"kind": "posterior", "run__step_size": 0.1}, "step_size has no use"),
        (
            {"kind": "posterior", "run": {"evidence": True, "chains": 2}},
            "evidence needs at least 3 chains",
        ),
        (
            {"kind": "posterior", "run__draws": 2},
            "run.draws: should be at least 4; got 2",
        ),
        ({"kind": "posterior", "run__stored": 2000}, "stored must not exceed draws"),
        ({"kind": "posterior", "run__block": 10}, "block has no use with"),
        (
            {"kind": "posterior", "run": {"method": "weights", "draws": 205}},
            "block of 10; got 205 and 10",
        ),
        ({"task__n_train": 5}, "task.n_train: should be a multiple of 2; got 5"),
    ],
)
def test_mistakes_are_named_with_what_is_allowed(changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        studies.parse(changed(**changes), "mine.toml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network__width": 0.5}, "width must be finite and >= 1; got 0.5"),
        ({"network__temperature": -0.1}, "temperature must be at least 0"),
        ({"network__temperature": 1e308}, r"temperature must be at most 1e\+100"),
        ({"network__variances": [1.0] * 4}, "variances: need one per layer"),
        ({"network__width_ratios": [1.0] * 3}, "width: need one number or"),
        ({"task__readout": 40}, "readout must be .* a token below 5; got 40"),
        pytest.param(
            {"task__n_train": 20000, "run__kernels": True},
            "kernels: they need .* GiB",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_impossible_settings_are_named(changes, message):
    heads = [["previous-token", "uniform"]]
    sizes = {"n_train": 8, "n_test": 20, "length": 4, "features": 6, "heads": heads}
    of_sizes = STUDY | {"task": sizes}  # of test_selection.py
    study = studies.parse(changed(of_sizes, **changes))
    with pytest.raises(ValueError, match=message) as caught:
        studies.run(study)
    assert "\n" not in str(caught.value)


def test_without_the_sampling_extra_a_posterior_is_refused_at_once(monkeypatch):
    study = studies.parse(changed(kind="posterior"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"numpyro: pip install .*\[sampling\]"):
        studies.run(study)
