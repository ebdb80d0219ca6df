"""Saddle point and posteriors side by side: built files with known differences."""

import numpy as np
import pytest
import xarray as xr

from statmech_attn import kinds, storage, studies
from statmech_attn.comparison import compare
from statmech_attn.comparison.posteriors import VERDICTS


WIDTHS = np.array([10.0, 100.0, 1000.0])
PATHS = ["1", "2"]
POINT = ("width",)
PAIR = ("width", "path_1", "path_1_pair")
ERROR = 1e-3
ATTRIBUTES = {"task": "{}", "prior": "[]"}


def file(values, errors=None, **attributes):
    """A file of one layer, two paths and three test inputs."""
    variables = dict(values)
    for name, (dims, array) in (errors or {}).items():
        variables[f"{name}_stderr"] = (dims, array)
    coordinates = {"width": WIDTHS, "path_1": PATHS, "path_1_pair": PATHS}
    table = kinds.KINDS.part(kinds.of_file(attributes["kind"]), "variables")
    found = table.labelled(variables, coordinates).assign_coords(temperature=0.1)
    found.temperature.attrs = {"long_name": "T", "units": "1", "symbol": "T"}
    return found.assign_attrs(ATTRIBUTES | attributes)


def truth():
    U = np.eye(2) + np.array([1.0, 0.3, 0.1])[:, None, None]
    return {
        "U_1": (PAIR, U),
        "U_a": (POINT, np.array([2.0, 1.2, 1.0])),
        "predictor_mean": ((*POINT, "test"), np.full((3, 3), 0.5)),
        "predictor_variance": ((*POINT, "test"), np.full((3, 3), 0.2)),
        "accuracy": (POINT, np.array([0.9, 0.8, 0.7])),
    }


def posterior(method, seed, shift=0.0, r_hat=1.0, n_eff=2000.0):
    draw = np.random.default_rng(seed).normal
    values, errors = {}, {}
    for name, (dims, exact) in truth().items():
        values[name] = (dims, exact + ERROR * draw(size=exact.shape) + shift)
        errors[name] = (dims, np.full(exact.shape, ERROR))
    values["U_1_r_hat"] = (PAIR, np.full((3, 2, 2), r_hat))
    values["U_1_n_eff"] = (PAIR, np.full((3, 2, 2), n_eff))
    return file(values, errors, kind="posterior", method=method)


def saddle(power=-1.0):
    values = truth()
    dims, U = values["U_1"]
    values["U_1"] = (dims, U + 5 * WIDTHS[:, None, None] ** power)
    values["U_1_corrected"] = (dims, U)
    for name in ("U_a", "predictor_mean", "predictor_variance", "accuracy"):
        values[f"{name}_corrected"] = values[name]
    return file(values, kind="order-parameter")


def verdicts(found, estimate):
    codes = found.verdict.sel(estimate=estimate).values.ravel()
    return [VERDICTS[code] for code in codes]


def test_without_predictors_the_order_parameters_are_compared():
    names = ["predictor_mean", "predictor_variance"]
    theory = saddle().drop_vars([*names, *(f"{name}_corrected" for name in names)])
    found = compare(theory, posterior("order-parameter", 1), posterior("weights", 2))
    assert verdicts(found, "weights") == ["agrees"] * 3
    assert "U_1_z" in found and "predictor_mean" not in found
    # Three different entries of U_1, U_a and the accuracy.
    assert (found.comparisons.sel(estimate="weights") == 3 + 1 + 1).all()


def test_two_ways_of_sampling_agree_within_errors_and_a_shift_is_seen():
    exact = posterior("order-parameter", 1)
    found = compare(saddle(), exact, posterior("weights", 2))
    assert found.attrs["reference"] == "exact"
    assert found.estimate.values.tolist() == ["saddle", "corrected", "exact", "weights"]
    # 11 entries, means and variances at 3 widths; exceeded by chance once in 1000.
    assert int(found.comparisons.sel(estimate="weights").sum()) == 11 * 3
    assert 4.0 < float(found.threshold) < 4.5
    assert verdicts(found, "weights") == ["agrees"] * 3
    assert verdicts(found, "corrected") == ["agrees"] * 3
    assert verdicts(found, "exact") == ["reference"] * 3
    assert verdicts(found, "saddle") == ["differs", "differs", "differs"]
    # Ten combined errors, sqrt(2) of a single one, are no chance.
    shift = 10 * np.sqrt(2) * ERROR
    shifted = compare(saddle(), exact, posterior("weights", 2, shift=shift))
    assert verdicts(shifted, "weights") == ["differs"] * 3


def test_the_smallest_error_is_found_nine_times_in_ten():
    """An error of all entries of the predictor, against the exact law.

    The count of 2000 draws is binomial, and the entry that tells most is one of three,
    all alike: others raise the power, by less than the bound below.
    """
    exact, weights = posterior("order-parameter", 1), posterior("weights", 2)
    found = compare(saddle(), exact, weights)
    seen = found.smallest_error.sel(estimate="weights", quantity="predictor_mean")
    bound = float(found.threshold)
    np.testing.assert_allclose(
        seen, (bound + 1.2816) * np.sqrt(2) * ERROR / 0.5, rtol=0.01
    )
    z = np.random.default_rng(0).normal(size=2000) + float(seen[0, 0]) * 0.5 / (
        np.sqrt(2) * ERROR
    )
    assert abs((abs(z) > bound).mean() - 0.9) < 5 * np.sqrt(0.09 / 2000)


def learned(**network):
    """A saddle point of six examples, with derivatives."""
    task = {"preset": "four-paths", "seed": 1, "n_train": 6, "n_test": 2}
    study = {
        "kind": "order-parameter",
        "task": task | {"length": 4, "features": 4},
        "network": {"width": 30.0, "temperature": 0.1} | network,
        "run": {"corrections": False},
    }
    return studies.run(studies.parse(study))


def replicas(theory, copies):
    """The theory at as many widths as there are copies, all with its numbers."""
    names = [n for n in theory if "width" in theory[n].dims]
    wide = xr.concat([theory[names]] * copies, "width").assign_attrs(theory.attrs)
    return wide.assign_coords(width=np.arange(1.0, copies + 1))


def drawn(means, like, method, seed, error):
    """Independent noise of every entry; ten times that of U_a for all others."""
    draw, values = np.random.default_rng(seed).normal, {}
    names = ("U_1", "U_2", "U_a", "predictor_mean", "predictor_variance")
    for name in filter(means.__contains__, names):
        stderr = error if name == "U_a" else 10 * error
        values[name] = means[name] + stderr * draw(size=means[name].shape)
        values[f"{name}_stderr"] = xr.full_like(means[name], stderr)
    values |= {"accuracy": means.accuracy, "accuracy_stderr": 0 * means.accuracy}
    values["U_1_r_hat"] = xr.ones_like(means.U_1)
    values["U_1_n_eff"] = xr.full_like(means.U_1, 1e6)
    return xr.Dataset(
        values, attrs=like.attrs | {"kind": "posterior", "method": method}
    )


@pytest.mark.slow
@pytest.mark.parametrize("parameter", ("temperature", "width"))
def test_an_error_of_a_parameter_is_found_nine_times_in_ten(parameter):
    """Weights sampled at another T or N against the exact law, in 400 replicas.

    U_a tells most.  One third of the error leaves it (z* - 2 * 1.28) / 3 errors below
    the bound z*: found once in 3000.  Other entries add less than the binomial error.
    """
    theory, copies = learned(), 400
    right = replicas(theory, copies)
    error = 2e-3 * abs(theory[f"U_a_by_{parameter}"].item())
    exact = drawn(right, right, "order-parameter", 1, error)

    def compared(off):
        value = theory[parameter].item() * np.exp(off)
        moved = learned(**{parameter: value})
        moved = moved.assign_coords(temperature=theory.temperature)
        moved = replicas(moved, copies)
        weights = drawn(moved, right, "weights", 2, error)
        return compare(right, exact, weights).sel(estimate="weights")

    share = lambda found: float((found.verdict == VERDICTS.index("differs")).mean())
    smallest = compared(0.0).smallest_parameter_error.sel(parameter=parameter)
    visible = float(smallest.max())
    assert float(smallest.min()) == visible < 0.03
    binomial = np.sqrt(0.9 * 0.1 / copies)
    assert abs(share(compared(visible)) - 0.9) < 4 * binomial
    assert share(compared(visible / 3)) < 0.01


def test_a_theory_without_derivatives_says_nothing_of_parameters():
    found = compare(saddle(), posterior("order-parameter", 1), posterior("weights", 2))
    assert "smallest_parameter_error" not in found


def test_noise_that_hides_ten_per_cent_is_no_agreement():
    names = ("U_1", "U_a", "predictor_mean", "predictor_variance")
    both = [
        posterior(method, i) for i, method in enumerate(("order-parameter", "weights"))
    ]
    blurred = [
        file.assign({f"{n}_stderr": 200 * file[f"{n}_stderr"] for n in names})
        for file in both
    ]
    found = compare(saddle(), *blurred)
    assert verdicts(found, "weights") == ["cannot_tell"] * 3
    assert verdicts(compare(saddle(), *both), "weights") == ["agrees"] * 3


def test_differences_are_in_combined_standard_errors():
    exact, weights = posterior("order-parameter", 1), posterior("weights", 2)
    found = compare(saddle(), exact, weights).sel(estimate="weights").squeeze()
    expected = (weights.U_1 - exact.U_1) / (np.sqrt(2) * ERROR)
    np.testing.assert_allclose(found.U_1_z.values, expected.values, rtol=1e-6)


@pytest.mark.parametrize("power", (-1.0, -0.5))
def test_the_distance_has_its_size_and_its_exponent(power):
    found = compare(saddle(power), posterior("order-parameter", 1))
    here = found.sel(estimate="saddle").squeeze()
    # Each within four of its own errors, which are a bound of ERROR for equal entries.
    size = np.abs(here.U_1_rms - 5 * WIDTHS**power)
    assert (size < 4 * here.U_1_rms_stderr).all()
    np.testing.assert_allclose(here.U_1_rms_stderr, ERROR, rtol=0.3)
    assert abs(here.U_1_rms_slope - power) < 4 * here.U_1_rms_slope_stderr
    assert np.isnan(found.U_1_rms.sel(estimate="exact")).all()


@pytest.mark.slow
def test_the_noise_has_no_share_in_the_distance():
    """Six errors: their square is 36, and 37 with the variance of sampling.

    The mean over four entries of 1600 replicas has the error 12 / 80.
    """
    right = replicas(saddle().isel(width=[2]), 1600)
    exact = drawn(right, right, "order-parameter", 1, ERROR / 10)
    found = compare(right.assign(U_1=right.U_1 + 6 * ERROR), exact)
    rms = found.U_1_rms.sel(estimate="saddle") / ERROR
    assert rms.notnull().all()
    assert abs(float((rms**2).mean()) - 36) < 4 * 12 / 80


def test_noise_alone_is_no_distance():
    found = compare(saddle(), posterior("order-parameter", 1), posterior("weights", 2))
    for estimate in ("corrected", "weights"):
        assert np.isnan(found.U_1_rms.sel(estimate=estimate)).all()
        assert np.isnan(found.U_1_rms_slope.sel(estimate=estimate)).all()


def test_a_posterior_of_fewer_widths_is_compared_where_it_is_known():
    exact = posterior("order-parameter", 1)
    found = compare(saddle(), exact, posterior("weights", 2).isel(width=[1]))
    assert found.width.values.tolist() == [10.0, 100.0, 1000.0]
    expected = ["nothing_compared", "agrees", "nothing_compared"]
    assert verdicts(found, "weights") == expected
    assert verdicts(found, "corrected") == ["agrees"] * 3


@pytest.mark.parametrize("trouble", ({"r_hat": 1.2}, {"n_eff": 20.0}))
def test_draws_that_have_not_mixed_are_not_judged(trouble):
    exact = posterior("order-parameter", 1)
    found = compare(saddle(), exact, posterior("weights", 2, **trouble))
    assert verdicts(found, "weights") == ["not_mixed"] * 3
    assert verdicts(found, "corrected") == ["agrees"] * 3
    # A reference that has not mixed judges nothing.
    found = compare(saddle(), posterior("order-parameter", 1, **trouble))
    assert verdicts(found, "corrected") == ["not_mixed"] * 3


def test_errors_of_few_draws_allow_larger_differences():
    exact = posterior("order-parameter", 1)
    many = compare(saddle(), exact, posterior("weights", 2))
    few = compare(saddle(), exact, posterior("weights", 2, n_eff=60.0))
    assert float(few.threshold) > 1.05 * float(many.threshold)


def test_without_an_exact_law_the_first_posterior_is_the_reference():
    found = compare(saddle(), posterior("weights", 1), posterior("langevin", 2))
    assert found.attrs["reference"] == "weights"
    assert verdicts(found, "langevin") == ["agrees"] * 3


def test_only_shared_widths_are_compared_and_the_result_can_be_stored(tmp_path):
    part = posterior("order-parameter", 1).isel(width=[0, 2])
    found = compare(saddle(), part)
    assert found.width.values.tolist() == [10.0, 1000.0]
    storage.write(tmp_path / "c.h5", found, study="", kind="comparison")
    assert storage.read(tmp_path / "c.h5").U_1_z.equals(found.U_1_z)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (lambda: [saddle()], "got order-parameter and order-parameter"),
        (
            lambda: [posterior("weights", 1), posterior("weights", 2)],
            "two files of the method 'weights'",
        ),
        (
            lambda: [posterior("weights", 1).assign_attrs(task='{"seed":1}')],
            "task differs: theory has {}, weights has",
        ),
        (
            lambda: [posterior("weights", 1).assign_coords(width=WIDTHS + 1)],
            "has no width in common",
        ),
    ],
)
def test_files_that_do_not_belong_together_are_refused(files, message):
    with pytest.raises(ValueError, match=message) as caught:
        compare(saddle(), *files())
    assert "\n" not in str(caught.value)


def test_a_trajectory_is_compared_with_one_file():
    with pytest.raises(ValueError, match="one of kind monte-carlo"):
        compare(saddle().assign_attrs(kind="trajectory"), saddle(), saddle())
    with pytest.raises(ValueError, match="one or more of kind posterior"):
        compare(saddle())
