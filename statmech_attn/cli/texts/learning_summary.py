"""What learning found, as short tables: theory, posteriors, trainings, pruning."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import xarray as xr
from jaxtyping import Float

from statmech_attn import bpkr
from statmech_attn.cli.texts.tables import (
    Content,
    formatted,
    Summary,
    tabled,
    with_error,
    word,
)
from statmech_attn.presentation import quantity


END = "*"  # marks a temperature at an end of its grid
PLACE = {"N": "width g", "T": "temperature g"}


def order_parameters(dataset: xr.Dataset) -> Content:
    """Per width and temperature: accuracy, and how the saddle point was reached."""
    columns = PLACE | {
        "accuracy": "accuracy .3f",
        "with 1/N": "accuracy_corrected .3f",
        "GP": "accuracy_gp .3f",
        "steps": "iterations .0f",
        "gradient": "gradient_norm .1e",
        "result": lambda point: word(point.result, "not_computed"),
    }
    yield tabled("order parameters", columns, _points(dataset))
    if len(narrow := _outside_support(dataset)):
        yield (
            f"N = {', '.join(f'{N:g}' for N in narrow)}: below the size of U, so these "
            "saddle points lie outside the support of the exact law, whose U is "
            "singular; compare with a posterior"
        )
    if np.isnan(dataset.get("accuracy_corrected", 0.0)).any():
        yield (
            "no 1/N correction where a width is below the number of paths, where there "
            "is no saddle point, or where it needs too much memory"
        )
    if "accuracy_chosen" in dataset:
        yield from _chosen(dataset)


def _chosen(dataset: xr.Dataset) -> Content:
    """Per width and choice of the temperature: accuracy on every test set.

    The gain is that over the GP limit on the first set.
    """
    first, *further = _folded(dataset.test_set.values)
    set_of = lambda i: lambda p: formatted(p.accuracy_chosen[i], ".3f")
    columns = {
        "N": lambda p: p.attrs["N"],
        "by": lambda p: p.choice.item(),
        "T": _temperature,
        first: set_of(0),
        "gain\nover GP": lambda p: p.attrs["gain"],
        **{name: set_of(i) for i, name in enumerate(further, 1)},
    }
    yield tabled("accuracy at the chosen temperature", columns, _choices(dataset))
    if any(dataset.get(f"chosen_at_end{e}", np.False_).any() for e in ("", "_gp")):
        yield f"{END} an end of the grid of temperatures: a better one may lie beyond"
    yield (
        "standard errors of accuracies, for other examples from the same source, up to "
        f"{float(dataset.accuracy_chosen_stderr.max()):.3f}; the gain has that of the "
        "difference on the same examples"
    )


def _choices(dataset: xr.Dataset) -> Iterator[xr.Dataset]:
    """Every width and choice, and every choice of the GP limit by the same names."""
    for width in dataset.width.values:
        for by in dataset.choice.values:
            chosen = dataset.sel(width=width, choice=by)
            gain = _gain(chosen.isel(test_set=0))
            yield chosen.assign_attrs(N=f"{float(width):g}", gain=gain)
    limit = [name for name in dataset if str(name).endswith("_gp")]
    names = {name: str(name).removesuffix("_gp") for name in limit}
    of_limit = dataset.drop_vars(set(names.values()) & {*dataset.variables})
    for by in dataset.choice.values:
        chosen = of_limit.rename(names).sel(choice=by)
        yield chosen.assign_attrs(N="GP", gain="")


def _outside_support(dataset: xr.Dataset) -> Float[np.ndarray, " W"]:
    """Widths whose saddle points lie outside the support of the exact law."""
    if "outside_support" not in dataset:  # a file of an earlier version
        return np.empty(0)
    return np.atleast_1d(dataset.width)[np.atleast_1d(dataset.outside_support)]


def _temperature(choice: xr.Dataset) -> str:
    """Marked where it is an end of the grid."""
    chosen = formatted(choice.chosen_temperature, "g")
    return f"{chosen}{END}" if choice.get("chosen_at_end", False) else chosen


def _gain(choice: xr.Dataset) -> str:
    return with_error(choice.accuracy_gain, choice.accuracy_gain_stderr)


def posterior(dataset: xr.Dataset) -> Content:
    """Per width and temperature: accuracy, and how far the draws can be trusted."""
    sets = dataset.get("test_set", xr.DataArray([])).values[1:]
    accuracy_of = lambda name: (
        lambda p: formatted(p.accuracy_sets.sel(test_set=name), ".3f")
    )
    columns = PLACE | {
        "accuracy": lambda p: (
            f"{float(p.accuracy):.3f} ± {float(p.accuracy_stderr):.1g}"
        ),
        **{name: accuracy_of(x) for name, x in zip(_folded(sets), sets)},
        "least n_eff": lambda p: f"{float(p.U_1_n_eff.min()):.0f}",
        "largest R-hat": lambda p: f"{float(p.U_1_r_hat.max()):.3f}",
        "divergences": "divergences .0f",
        "BFMI": "bfmi .2f",
    }
    if "log_evidence" in dataset:
        columns["ln p(Y)"] = lambda p: (
            f"{float(p.log_evidence):.3f} ± {float(p.log_evidence_stderr):.1g}"
        )
    yield tabled(f"posterior by {dataset.attrs['method']}", columns, _points(dataset))
    yield (
        "n_eff and R-hat are of the entries of U_1; R-hat above 1.01 or a BFMI below "
        "0.3 asks for longer chains"
    )


def learning_curve(dataset: xr.Dataset) -> Content:
    """Per width, temperature and number of examples: test error of every estimate."""
    estimates = [str(name) for name in np.atleast_1d(dataset.estimate.values)]
    error_of = lambda name: (
        lambda p: with_error(
            p.error.sel(estimate=name), p.error_stderr.sel(estimate=name)
        )
    )
    columns = PLACE | {"P": lambda p: p.examples.item()}
    columns |= {name: error_of(name) for name in estimates}
    sizes = dataset.examples.values
    points = (p.sel(examples=size) for p in _points(dataset) for size in sizes)
    yield tabled("mean squared test error", columns, points)
    sets = dataset.sizes["training_set"]
    words = f"means over {sets} training sets, with their standard errors"
    if dataset.shared:
        words += (
            "; sets are drawn from the same examples: errors are over such draws, not "
            "over other examples, and there is none for sets of all of them"
        )
    yield words


def training(dataset: xr.Dataset) -> Content:
    """Per width and temperature: the best of all restarts, and how they ended."""
    columns = PLACE | {
        "test accuracy": lambda p: formatted(p.accuracy.mean(), ".3f"),
        "training": lambda p: formatted(p.accuracy_train.mean(), ".3f"),
        "least loss": lambda p: formatted(p.loss.isel(step=-1).min(), ".5g"),
        "gradient": lambda p: formatted(p.loss_gradient_norm.max(), ".1e"),
        "result": _ends,
    }
    yield tabled("training", columns, _points(dataset))
    finite = np.isfinite(dataset.accuracy).sum("restart")
    few, many = int(finite.min()), int(finite.max())
    count = f"{many}" if few == many else f"{few} to {many}"
    yield (
        f"accuracies are means over {count} initial weights, the gradient is the "
        "largest"
    )


def _ends(point: xr.Dataset) -> str:
    """How many restarts ended in which way."""
    codes, counts = np.unique(point.training_result, return_counts=True)
    of = lambda code: point.training_result.copy(data=np.full(counts.sum(), code))[0]
    return ", ".join(
        f"{count} × {word(of(code), 'not_computed')}"
        for code, count in zip(codes, counts, strict=True)
    )


def networks(dataset: xr.Dataset) -> Content:
    """Per restart: accuracies of the best weights, and how the training ended."""
    set_of = lambda i: lambda p: formatted(p.accuracy_sets[i], ".3f")
    ended = lambda p: word(p.training_result, "not_run").removesuffix(" reached")
    columns = {
        "restart": lambda p: p.restart.item(),
        "best\nstep": "best_step .0f",
        "best\nscore": lambda p: formatted(p.accuracy_validation.max(), ".3f"),
        **{name: set_of(i) for i, name in enumerate(_folded(dataset.test_set.values))},
        "least\nloss": lambda p: formatted(p.loss.min(), ".4f"),
        "ended": ended,
    }
    restarts = (dataset.sel(restart=restart) for restart in dataset.restart.values)
    yield tabled("accuracy of trained networks", columns, restarts)
    yield (
        "of the weights at the best step, which has the best score on the validation "
        "tasks of the training; standard errors up to "
        f"{float(dataset.accuracy_sets_stderr.max()):.3f}"
    )


def estimates(dataset: xr.Dataset) -> Content:
    """Per width, temperature and estimate: accuracy, distance, verdict."""
    columns = PLACE | {
        "estimate": lambda p: p.estimate.item(),
        "accuracy": "accuracy .3f",
        "rms ΔU_1": "U_1_rms ±",
        "largest |z|": "largest_z .2f",
        "verdict": "verdict ?",
    }
    names = dataset.estimate.values
    points = (p.sel(estimate=name) for p in _points(dataset) for name in names)
    yield tabled(f"against the {dataset.attrs['reference']} posterior", columns, points)
    yield (
        f"with this many comparisons, |z| up to {float(dataset.threshold):.2f} is "
        "consistent with chance; a saddle point differs from the posterior at finite "
        "width, but two ways of sampling the posterior must agree"
    )
    compared = dataset.sel(estimate=dataset.estimate != dataset.attrs["reference"])
    for name in dataset.get("quantity", np.array([])).data:
        smallest = compared.smallest_error.sel(quantity=name)
        if np.isfinite(float(smallest.max())):
            yield (
                f"{name}: an error of {100 * float(smallest.max()):.2g} % of all "
                "entries would be found with probability 0.9 in every comparison"
            )
    for name in dataset.get("parameter", np.array([])).data:
        smallest = compared.smallest_parameter_error.sel(parameter=name)
        yield f"{name}: {_visible(float(smallest.max()))} in every comparison"
    saddle = dataset.sel(estimate="saddle")
    for slope, error in zip(
        saddle.U_1_rms_slope.values, saddle.U_1_rms_slope_stderr.values, strict=True
    ):
        if np.isfinite(slope):
            yield (
                f"the saddle point's rms ΔU_1 goes like N^({slope:.2f} ± {error:.2f}); "
                "at fixed P it tends to -2 for N >> P"
            )


def _visible(smallest: float) -> str:
    if not np.isfinite(smallest):
        return "no error would be found"
    return f"an error of {100 * smallest:.2g} % would be found with probability 0.9"


def pruning(dataset: xr.Dataset) -> Content:
    """Per order with scores: how they go with what the heads are worth."""
    finite = np.isfinite(dataset.rank_correlation_mean).any("test_set")
    if not finite.any():
        return
    of_set = lambda i: (
        lambda p: with_error(
            p.rank_correlation_mean[i], p.rank_correlation_mean_stderr[i]
        )
    )
    sets = enumerate(_folded(dataset.test_set.values))
    columns = {"order": lambda p: p.order.item()} | {x: of_set(i) for i, x in sets}
    orders = (dataset.sel(order=x) for x in dataset.order.values[finite])
    # A random order has no scores.
    yield tabled("rank correlation of score and accuracy lost", columns, orders)
    counts = np.isfinite(dataset.rank_correlation).sum("restart").values
    few, many = counts[counts > 0].min(), counts.max()
    trainings = f"{many}" if few == many else f"{few} to {many}"
    words = f"means over {trainings} trainings with their standard errors"
    yield (
        f"{'of one network' if many == 1 else words}; scores that say nothing give "
        f"0 ± {_chance(dataset):.1g}"
    )


def _chance(dataset: xr.Dataset) -> float:
    """Standard deviation of meaningless mean correlations, of that with least data."""
    chances = []
    for name in dataset.test_set.values:
        of_set = dataset.sel(test_set=name).transpose("restart", ...)
        for order in dataset.order.values:
            correlations = of_set.rank_correlation.sel(order=order).values
            drop = of_set.accuracy_drop.values
            chances.append(bpkr.pruning.chance_correlation(correlations, drop))
    return np.nanmax(chances)


BESIDE_SCORES = {  # variables of heads, and their columns
    "head_score_floor": "floor",
    "head_score_trained": "trained weights",
}


def head_scores(dataset: xr.Dataset) -> Content:
    """Per head: score with its error, its floor, and what it is held against."""
    columns = {"head": _head, "score": "head_score ±"}
    columns |= {
        heading: f"{name} .2g"
        for name, heading in BESIDE_SCORES.items()
        if name in dataset
    }
    yield tabled("head scores", columns, _heads(dataset))
    words = "errors over examples"
    if np.isnan(dataset.head_score_stderr).all():
        words = "without errors, which need two resamples or more, and two examples"
    if "head_score_floor" in dataset:
        words += "; the floor is the score of a head that f does not read"
    if "head_score_trained" in dataset:
        words += "; trained weights have none: it is that of their initial values"
    if failed := int(dataset.failed):
        words += f"; {failed} sets of fewer examples have no saddle point"
    yield words
    if "error_left_out" in dataset:
        error = with_error(dataset.error_left_out, dataset.error_left_out_stderr)
        yield (
            f"an example is predicted from all others with mean squared error {error}; "
            f"labels have variance {quantity(dataset.label_variance)}"
        )
    size, N = len(dataset.U_1), float(dataset.width[0])
    if N < size:
        yield (
            f"N = {N:g}: below {size}, the size of U, so the saddle point lies outside "
            "the support of the exact law, whose U is singular"
        )


def ablation(dataset: xr.Dataset) -> Content:
    """Per head: loss gained without it, and what derivatives of the loss say of it."""
    columns = {"head": _head, "loss gained": "loss_gained ±"}
    if "gradient_score" in dataset:
        columns["to first order"] = "loss_gained_linear ±"
        columns["gradient"] = "gradient_score ±"
    yield tabled("losses without heads", columns, _heads(dataset))
    yield f"loss with all heads {with_error(dataset.loss, dataset.loss_stderr)}"
    if "loss_gained_pruned" in dataset:
        order = ", ".join(map(str, dataset.pruned_head.values))
        yield f"greedy order, on the same examples: {order}"


def model_selection(dataset: xr.Dataset) -> Content:
    """What evidence and validation choose, and how far they agree."""
    columns = {"by": lambda p: p.choice.item(), **PLACE}
    columns["ln p(Y)"] = lambda p: quantity(p.log_evidence, p.log_evidence_stderr)
    columns["validation error"] = "error ±"
    if "error_test" in dataset:
        columns["test error"] = "error_test ±"
    yield tabled(
        "chosen", columns, map(partial(_chosen_point, dataset), dataset.choice)
    )
    yield (
        "the choice by the evidence has a validation error larger than the least by "
        f"{with_error(dataset.excess, dataset.excess_stderr)}; rank correlation of "
        f"evidence and error on the grid {float(dataset.rank_correlation):.2f}"
    )


def _chosen_point(dataset: xr.Dataset, by: xr.DataArray) -> xr.Dataset:
    chosen = dataset.sel(choice=by)
    place = chosen.chosen_width, chosen.chosen_temperature
    return chosen.sel(dict(zip(("width", "temperature"), map(float, place))))


def _heads(dataset: xr.Dataset) -> Iterator[xr.Dataset]:
    return (
        dataset.isel(attention_head=i) for i in range(dataset.sizes["attention_head"])
    )


def _head(head: xr.Dataset) -> str:
    return head.attention_head.item()


def _folded(names) -> list[str]:
    """Names of test sets as headings that are narrow and stay apart."""
    return [str(name).replace("-", "\n") for name in names]


def _points(dataset: xr.Dataset):
    """Every width and temperature of a learning file, temperatures fastest."""
    if "temperature" not in dataset.dims:
        dataset = dataset.expand_dims("temperature")
    for width in range(dataset.sizes["width"]):
        for temperature in range(dataset.sizes["temperature"]):
            yield dataset.isel(width=width, temperature=temperature)


ORDER_PARAMETERS = Summary(
    order_parameters,
    "result iterations gradient_norm accuracy accuracy_* chosen_temperature* "
    "chosen_at_end* outside_support width temperature",
)
POSTERIOR = Summary(
    posterior,
    "accuracy accuracy_stderr accuracy_sets U_1_n_eff U_1_r_hat divergences bfmi "
    "log_evidence* width temperature",
)
LEARNING_CURVE = Summary(
    learning_curve,
    "error error_stderr estimate examples shared result width temperature",
)
TRAINING = Summary(
    training,
    "loss loss_gradient_norm training_result accuracy accuracy_train width temperature",
)
NETWORKS = Summary(
    networks, "loss best_step training_result accuracy_validation accuracy_sets*"
)
ESTIMATES = Summary(
    estimates,
    "verdict largest_z threshold smallest_* quantity parameter accuracy U_1_rms* width "
    "temperature",
)
PRUNING = Summary(pruning, "rank_correlation* accuracy_drop")
HEAD_SCORES = Summary(
    head_scores,
    "head_score* head_share_permuted loss_gained* score_correlation* failed "
    "error_left_out* label_variance U_1 width",
)
ABLATION = Summary(
    ablation, "loss loss_stderr loss_gained* gradient_score* head_interaction*"
)
MODEL_SELECTION = Summary(
    model_selection,
    "log_evidence* error* chosen_* excess* rank_correlation width temperature",
)
