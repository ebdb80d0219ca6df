"""What learning found, as short tables: theory, posteriors, trainings, pruning."""

import numpy as np
import xarray as xr
from jaxtyping import Float

from statmech_attn import bpkr
from statmech_attn.cli.texts.tables import (
    Content,
    formatted,
    Summary,
    titled,
    with_error,
)
from statmech_attn.presentation import quantity


END = "*"  # marks a temperature at an end of its grid


def order_parameters(dataset: xr.Dataset) -> Content:
    """Per width and temperature: accuracy, and how the saddle point was reached."""
    columns = ("N", "T", "accuracy", "with 1/N", "GP", "steps", "gradient", "result")
    table = titled("order parameters", columns)
    reasons = [*dataset.result.attrs["flag_meanings"].split(), "not_computed"]
    for point in _points(dataset):
        table.add_row(
            *_place(point),
            formatted(point.accuracy, ".3f"),
            formatted(point.get("accuracy_corrected"), ".3f"),
            formatted(point.accuracy_gp, ".3f"),
            str(int(point.iterations)),
            formatted(point.gradient_norm, ".1e"),
            reasons[int(point.result)].replace("_", " "),
        )
    yield table
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
    columns = ("N", "by", "T", first, "gain\nover GP", *further)
    table = titled("accuracy at the chosen temperature", columns)
    rows = [(f"{float(w):g}", dataset.sel(width=w), "") for w in dataset.width]
    for name, results, ending in [*rows, ("GP", dataset, "_gp")]:
        for by in dataset.choice.values:
            chosen = results.sel(choice=by)
            main, *further_values = chosen[f"accuracy_chosen{ending}"].values
            gain = "" if ending else _gain(chosen.isel(test_set=0))
            table.add_row(
                name,
                str(by),
                _temperature(chosen, ending),
                formatted(main, ".3f"),
                gain,
                *(formatted(x, ".3f") for x in further_values),
            )
    yield table
    if any(dataset.get(f"chosen_at_end{e}", np.False_).any() for e in ("", "_gp")):
        yield f"{END} an end of the grid of temperatures: a better one may lie beyond"
    yield (
        "standard errors of accuracies, for other examples from the same source, up to "
        f"{float(dataset.accuracy_chosen_stderr.max()):.3f}; the gain has that of the "
        "difference on the same examples"
    )


def _outside_support(dataset: xr.Dataset) -> Float[np.ndarray, " W"]:
    """Widths whose saddle points lie outside the support of the exact law."""
    if "outside_support" not in dataset:  # a file of an earlier version
        return np.empty(0)
    return np.atleast_1d(dataset.width)[np.atleast_1d(dataset.outside_support)]


def _temperature(choice: xr.Dataset, ending: str) -> str:
    """Marked where it is an end of the grid."""
    chosen = formatted(choice[f"chosen_temperature{ending}"], "g")
    return f"{chosen}{END}" if choice.get(f"chosen_at_end{ending}", False) else chosen


def _gain(choice: xr.Dataset) -> str:
    return with_error(choice.accuracy_gain, choice.accuracy_gain_stderr)


def posterior(dataset: xr.Dataset) -> Content:
    """Per width and temperature: accuracy, and how far the draws can be trusted."""
    sets = dataset.get("test_set", xr.DataArray([])).values[1:]
    of_draws = ("least n_eff", "largest R-hat", "divergences", "BFMI")
    columns = ("N", "T", "accuracy", *_folded(sets), *of_draws)
    evidence = "log_evidence" in dataset
    table = titled(f"posterior by {dataset.attrs['method']}", columns)
    if evidence:
        table.add_column("ln p(Y)", justify="right")
    for point in _points(dataset):
        row = [
            *_place(point),
            f"{float(point.accuracy):.3f} ± {float(point.accuracy_stderr):.1g}",
            *(formatted(point.accuracy_sets.sel(test_set=x), ".3f") for x in sets),
            f"{float(point.U_1_n_eff.min()):.0f}",
            f"{float(point.U_1_r_hat.max()):.3f}",
            f"{int(point.divergences)}",
            formatted(point.get("bfmi"), ".2f"),
        ]
        if evidence:
            error = float(point.log_evidence_stderr)
            row.append(f"{float(point.log_evidence):.3f} ± {error:.1g}")
        table.add_row(*row)
    yield table
    yield (
        "n_eff and R-hat are of the entries of U_1; R-hat above 1.01 or a BFMI below "
        "0.3 asks for longer chains"
    )


def learning_curve(dataset: xr.Dataset) -> Content:
    """Per width, temperature and number of examples: test error of every estimate."""
    estimates = [str(name) for name in np.atleast_1d(dataset.estimate.values)]
    table = titled("mean squared test error", ("N", "T", "P", *estimates))
    for point in _points(dataset):
        for size in point.examples.values:
            row = point.sel(examples=size)
            errors = zip(row.error.values, row.error_stderr.values, strict=True)
            table.add_row(
                *_place(point),
                str(size),
                *(with_error(*pair) for pair in errors),
            )
    yield table
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
    measured = ("test accuracy", "training", "least loss", "gradient", "result")
    table = titled("training", ("N", "T", *measured))
    reasons = dataset.training_result.attrs["flag_meanings"].split()
    for point in _points(dataset):
        last = point.loss.isel(step=-1)
        codes, counts = np.unique(point.training_result, return_counts=True)
        words = [*reasons, "not_computed"]
        table.add_row(
            *_place(point),
            formatted(point.accuracy.mean(), ".3f"),
            formatted(point.accuracy_train.mean(), ".3f"),
            formatted(last.min(), ".5g"),
            formatted(point.loss_gradient_norm.max(), ".1e"),
            ", ".join(
                f"{count} × {words[code].replace('_', ' ')}"
                for code, count in zip(codes, counts, strict=True)
            ),
        )
    yield table
    finite = np.isfinite(dataset.accuracy).sum("restart")
    few, many = int(finite.min()), int(finite.max())
    count = f"{many}" if few == many else f"{few} to {many}"
    yield (
        f"accuracies are means over {count} initial weights, the gradient is the "
        "largest"
    )


def networks(dataset: xr.Dataset) -> Content:
    """Per restart: accuracies of the best weights, and how the training ended."""
    columns = (
        "restart",
        "best\nstep",
        "best\nscore",
        *_folded(dataset.test_set.values),
        "least\nloss",
        "ended",
    )
    table = titled("accuracy of trained networks", columns)
    words = [*dataset.training_result.attrs["flag_meanings"].split(), "not_run"]
    for restart in dataset.restart.values:
        network = dataset.sel(restart=restart)
        ended = words[int(network.training_result)].removesuffix("_reached")
        table.add_row(
            str(restart),
            str(int(network.best_step)),
            formatted(network.accuracy_validation.max(), ".3f"),
            *(formatted(x, ".3f") for x in network.accuracy_sets),
            formatted(network.loss.min(), ".4f"),
            ended.replace("_", " "),
        )
    yield table
    yield (
        "of the weights at the best step, which has the best score on the validation "
        "tasks of the training; standard errors up to "
        f"{float(dataset.accuracy_sets_stderr.max()):.3f}"
    )


def estimates(dataset: xr.Dataset) -> Content:
    """Per width, temperature and estimate: accuracy, distance, verdict."""
    columns = ("N", "T", "estimate", "accuracy", "rms ΔU_1", "largest |z|", "verdict")
    table = titled(f"against the {dataset.attrs['reference']} posterior", columns)
    words = dataset.verdict.attrs["flag_meanings"].split()
    for point in _points(dataset):
        for name in point.estimate.values:
            estimate = point.sel(estimate=name)
            table.add_row(
                *_place(estimate),
                str(name),
                formatted(estimate.accuracy, ".3f"),
                with_error(estimate.U_1_rms, estimate.U_1_rms_stderr),
                formatted(estimate.largest_z, ".2f"),
                words[int(estimate.verdict)].replace("_", " "),
            )
    yield table
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
    columns = ("order", *_folded(dataset.test_set.values))
    table = titled("rank correlation of score and accuracy lost", columns)
    finite = np.isfinite(dataset.rank_correlation_mean).any("test_set")
    if not finite.any():
        return
    for order in dataset.order.values[finite]:  # a random one has no scores
        of_order = dataset.sel(order=order)
        pairs = zip(
            of_order.rank_correlation_mean, of_order.rank_correlation_mean_stderr
        )
        table.add_row(order, *(with_error(*pair) for pair in pairs))
    yield table
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
    "head_score_z": "z",
    "head_score_by_layer": "layer alone",
    "head_score_trained": "trained weights",
}


def head_scores(dataset: xr.Dataset) -> Content:
    """Per head: score with its error, its floor, and what it is held against."""
    further = {name: word for name, word in BESIDE_SCORES.items() if name in dataset}
    ablated = "loss_gained" in dataset
    columns = (
        "head",
        "score",
        *further.values(),
        *["loss gained"] * ablated,
    )
    table = titled("head scores", columns)
    for place, name in enumerate(dataset.attention_head.values):
        head = dataset.isel(attention_head=place)
        row = [str(name), with_error(head.head_score, head.head_score_stderr)]
        row += [formatted(head[name], ".2g") for name in further]
        if ablated:
            row.append(with_error(head.loss_gained, head.loss_gained_stderr))
        table.add_row(*row)
    yield table
    if ablated:
        yield from _agreement(dataset)
    words = "errors over examples"
    if np.isnan(dataset.head_score_stderr).all():
        words = "without errors, which need two resamples or more, and two examples"
    if "head_score_floor" in dataset:
        words += "; the floor is the score of a head that f does not read"
    if "head_score_z" in dataset:
        most = bpkr.permuted_labels.threshold(dataset.sizes["attention_head"])
        words += (
            f"; z holds shares against {dataset.sizes['permutation']} permutations of "
            f"the labels; one of all exceeds {most:.1f} by chance in 5 % of networks"
        )
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


def _agreement(dataset: xr.Dataset) -> Content:
    """How scores order the heads, beside the losses gained without them."""
    columns = ("score", "all heads", "level", "within layers", "level")
    table = titled("rank correlations with the loss gained", columns)
    for name in dataset.head_score_name.values:
        of_score, row = dataset.sel(head_score_name=name), [str(name)]
        for ending in ("", "_within"):
            correlation = f"score_correlation{ending}"
            value, error = of_score[correlation], of_score[f"{correlation}_stderr"]
            row += [
                with_error(value, error),
                formatted(of_score[f"{correlation}_level"], ".2g"),
            ]
        table.add_row(*row)
    yield table
    agreement = bpkr.ScoreAgreement.of(dataset)
    yield agreement.explain()


def ablation(dataset: xr.Dataset) -> Content:
    """Per head: loss gained without it, and what derivatives of the loss say of it."""
    slopes = "gradient_score" in dataset
    columns = ("head", "loss gained", *["to first order", "gradient"] * slopes)
    table = titled("losses without heads", columns)
    for place, name in enumerate(dataset.attention_head.values):
        head = dataset.isel(attention_head=place)
        row = [str(name), with_error(head.loss_gained, head.loss_gained_stderr)]
        if slopes:
            row.extend(
                with_error(head[column], head[f"{column}_stderr"])
                for column in ("loss_gained_linear", "gradient_score")
            )
        table.add_row(*row)
    yield table
    yield f"loss with all heads {with_error(dataset.loss, dataset.loss_stderr)}"
    if "loss_gained_pruned" in dataset:
        order = ", ".join(map(str, dataset.pruned_head.values))
        yield f"greedy order, on the same examples: {order}"


def model_selection(dataset: xr.Dataset) -> Content:
    """What evidence and validation choose, and how far they agree."""
    columns = ("by", "N", "T", "ln p(Y)", "validation error")
    tested = "error_test" in dataset
    table = titled("chosen", columns + ("test error",) * tested)
    for by in dataset.choice.values:
        chosen = dataset.sel(choice=by)
        place = chosen.chosen_width, chosen.chosen_temperature
        point = dataset.sel(dict(zip(("width", "temperature"), map(float, place))))
        errors = ("error", *["error_test"] * tested)
        table.add_row(
            str(by),
            *_place(point),
            quantity(point.log_evidence, point.log_evidence_stderr),
            *(with_error(point[name], point[f"{name}_stderr"]) for name in errors),
        )
    yield table
    yield (
        "the choice by the evidence has a validation error larger than the least by "
        f"{with_error(dataset.excess, dataset.excess_stderr)}; rank correlation of "
        f"evidence and error on the grid {float(dataset.rank_correlation):.2f}"
    )


def _folded(names) -> list[str]:
    """Names of test sets as headings that are narrow and stay apart."""
    return [str(name).replace("-", "\n") for name in names]


def _place(point: xr.Dataset) -> tuple[str, str]:
    """Width and temperature of a point."""
    return f"{float(point.width):g}", f"{float(point.temperature):g}"


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
