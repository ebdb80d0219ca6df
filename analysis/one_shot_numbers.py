"""Accuracies, gains over the GP, blocks of U and pruning of the one-shot results.

    python analysis/one_shot_numbers.py                       the kept ones
    python analysis/one_shot_numbers.py --data results --size paper

Prints the tables of docs/validation_learning.md, from the files that the figure scripts
paper_figs/one_shot*.py draw.  Errors are standard errors over the trainings.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import xarray as xr
from scipy import stats

from statmech_attn import bpkr, storage
from statmech_attn.plotting.learning.one_shot import over_trainings, RANKS
from statmech_attn.plotting.learning.pruning import drops_by_rank


VARIANTS = {
    "": "two layers of four heads",
    "_wide": "two layers of eight heads",
    "_deep": "three layers of three heads",
    "_turned": "two layers of four heads, trained on turned characters too",
}
POINT = dict(width=10, temperature=0.5)  # of the published matrices
# Of the one published network: accuracy, rank correlation, drops of the lowest scores.
ACCURACY, CORRELATION, LOWEST = 0.838, 0.86, (0.020, 0.008)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kept = Path(__file__).resolve().parents[1] / "paper_figs" / "results"
    parser.add_argument("--data", type=Path, default=kept, metavar="FOLDER")
    parser.add_argument("--size", default="laptop")
    given = parser.parse_args()
    every = lambda name: [
        storage.read(path)
        for path in sorted(given.data.glob(f"{name}-{given.size}.h5"))
    ]
    for ending, words in VARIANTS.items():
        print(f"# {words}")
        for trained in every(f"one_shot_training{ending}"):
            training(trained)
        if theories := every(f"one_shot_theory{ending}-[0-9]*"):
            gains(theories)
            chosen_temperatures(theories)
            blocks(theories)
            alignment(theories)
        for pruned in every(f"one_shot_pruning{ending}"):
            pruning(pruned)
    print("# exact law beside the saddle point")
    for pruned in every("one_shot_pruning_exact"):
        pruning(pruned)


def training(trained: xr.Dataset) -> None:
    """Accuracies of the networks, and their blocks."""
    sets = [str(name) for name in trained.test_set.values]
    networks = list(trained.accuracy_sets)
    rows = [["mean", *with_error(*over_trainings(networks))]]
    rows += [
        [str(i), *map("{:.3f}".format, network)] for i, network in enumerate(networks)
    ]
    table("accuracy of gradient descent", ["network", *sets], rows)
    place("accuracy, first set", ACCURACY, trained.accuracy_sets.values[:, 0])
    heads = [n for name, n in trained.sizes.items() if str(name).startswith("head_")]
    ratios = [bpkr.block_structure(U, heads) for U in trained.U_1.values]
    print("blocks of U_1 of the weights, by layer:", shown(ratios), "\n")


def gains(theories: Sequence[xr.Dataset]) -> None:
    """Accuracy at the chosen temperatures and gain over the GP limit."""
    first = theories[0]
    sets = [str(name) for name in first.test_set.values]
    mean = lambda name, **chosen: over_trainings(
        [t[name].sel(chosen) for t in theories]
    )
    both = lambda name: [
        mean(name, choice=by, test_set=sets[0])[0].values
        for by in ("validation", "published")
    ]
    accuracy = "{:.3f} ({:.3f})".format
    gain, error = mean("accuracy_gain", choice="validation")
    paired, _ = mean("accuracy_gain_stderr", choice="validation", test_set=sets[0])
    rows = [
        [f"{N:g}", accuracy(*pair), *with_error(gain[i], error[i]), f"{paired[i]:.3f}"]
        for i, (N, *pair) in enumerate(
            zip(first.width.values, *both("accuracy_chosen"))
        )
    ]
    rows.append(["GP", accuracy(*both("accuracy_chosen_gp"))])
    columns = ["N", f"{sets[0]} (published choice)", *(f"gain, {n}" for n in sets)]
    table("accuracy of theory", [*columns, "paired error of one training"], rows)
    narrow = [
        t.accuracy_gain.sel(choice="validation", width=POINT["width"]) for t in theories
    ]
    each = np.array([[float(x.sel(test_set=name)) for name in sets] for x in narrow])
    rows = [[str(i), *map("{:.3f}".format, row)] for i, row in enumerate(each)]
    if len(each) > 1:
        test = stats.ttest_1samp(each, 0.0, alternative="greater")
        for words, values in (("t", test.statistic), ("p, one side", test.pvalue)):
            rows.append([words, *map("{:.2g}".format, values)])
    table("gain at N = 10 by training", ["network", *sets], rows)


def blocks(theories: Sequence[xr.Dataset]) -> None:
    """Whether pairs of paths that share a head of a layer have larger entries."""
    heads = np.array(
        [[int(head) for head in path.split("-")] for path in theories[0].path_1.values]
    ).max(axis=0)
    ratios = [bpkr.block_structure(t.U_1.sel(POINT).values, heads) for t in theories]
    print("blocks of U_1 of the saddle point, by layer:", shown(ratios), "\n")


def chosen_temperatures(theories: Sequence[xr.Dataset]) -> None:
    """Of every training, with a star at an end of the grid."""
    rows = []
    for by in ("validation", "published"):
        picked = [theory.sel(choice=by) for theory in theories]
        for N in [*theories[0].width.values, "GP"]:
            ending = "_gp" if N == "GP" else ""
            points = picked if ending else [theory.sel(width=N) for theory in picked]
            shown = [
                f"{float(point[f'chosen_temperature{ending}']):g}"
                + "*" * bool(point[f"chosen_at_end{ending}"])
                for point in points
            ]
            rows.append([by, "GP" if ending else f"{N:g}", *shown])
    columns = ["choice", "N", *map(str, range(len(theories)))]
    table("chosen temperatures by training, * at an end of the grid", columns, rows)


def alignment(theories: Sequence[xr.Dataset]) -> None:
    """Share of Y in the leading eigenvectors of the kernel, against the GP limit's."""
    share = lambda overlap: (overlap.isel(rank=slice(RANKS)) ** 2).sum("rank")
    narrow = [share(theory.kernel_overlap.sel(POINT, drop=True)) for theory in theories]
    limit = [share(theory.kernel_overlap_gp) for theory in theories]
    above = [one - other for one, other in zip(narrow, limit, strict=True)]
    columns = [over_trainings(values) for values in (narrow, limit, above)]
    rows = [with_error(*zip(*columns, strict=True))]
    title = f"share of Y in the first {RANKS} eigenvectors, N = 10, T = 0.5"
    table(title, ["N = 10", "GP", "above the GP's"], rows)


def pruning(pruned: xr.Dataset) -> None:
    """Rank correlations, drops by rank of the score, and several heads pruned."""
    sets = [str(name) for name in pruned.test_set.values]
    known = [
        str(name)
        for name in pruned.order.values
        if np.isfinite(pruned.rank_correlation.sel(order=name)).any()
    ]
    mean, error = pruned.rank_correlation_mean, pruned.rank_correlation_mean_stderr
    rows = [[o, *with_error(mean.sel(order=o), error.sel(order=o))] for o in known]
    table("rank correlation of score and drop", ["score", *sets], rows)
    rows = [[o, *with_error(*drops_by_rank(pruned, o))] for o in known]
    saddle = pruned.sel(order="saddle").isel(test_set=0)
    place("rank correlation", CORRELATION, saddle.rank_correlation.values)
    order = np.argsort(saddle.pruning_score.values, axis=-1, kind="stable")
    drops = np.take_along_axis(saddle.accuracy_drop.values, order, axis=-1)
    for number, published in enumerate(LOWEST):
        place(f"drop of lowest score {number + 1}", published, drops[:, number])
    heads = range(1, pruned.sizes["attention_head"] + 1)
    table(f"drop by rank of the score, {sets[0]}", ["score", *map(str, heads)], rows)
    curves = pruned.accuracy_cumulative.sel(test_set=sets[0]).mean(
        "restart", skipna=False
    )
    rows = [
        [o, *(f"{x:.3f}" for x in curves.sel(order=o).values)]
        for o in [*known, "random"]
    ]
    table(
        f"heads pruned, {sets[0]}", ["order", *map(str, pruned.n_pruned.values)], rows
    )
    accuracy = pruned.accuracy_cumulative.sel(order="saddle")
    change = accuracy - accuracy.sel(n_pruned=0)
    rows = [
        [str(n), *with_error(*over_trainings([*change.sel(n_pruned=n)]))]
        for n in change.n_pruned.values[1:]
    ]
    title = (
        "change of accuracy with heads pruned, lowest scores of the saddle point first"
    )
    table(title, ["heads", *sets], rows)


def place(name: str, published: float, each: np.ndarray) -> None:
    """Where one published network lies among trainings: t of 1 + 1/n variances."""
    each = each[np.isfinite(each)]
    if len(each) > 1:
        spread = each.std(ddof=1)
        t = (published - each.mean()) / spread / np.sqrt(1 + 1 / len(each))
        p = 2 * stats.t.sf(abs(t), len(each) - 1)
        print(
            f"{name}: published {published}, mean {each.mean():.3f}, "
            f"standard deviation {spread:.3f} of {len(each)}: "
            f"t = {t:.2f}, two-sided p = {p:.2g}\n"
        )


def with_error(means: Iterable, errors: Iterable) -> list[str]:
    """Values with their errors, where these are known."""
    return [
        f"{float(a):.3f}" + (f" ± {float(e):.3f}" if np.isfinite(e) else "")
        for a, e in zip(means, errors, strict=True)
    ]


def shown(ratios: Iterable[Sequence[float]]) -> str:
    return "; ".join(", ".join(f"{x:.2f}" for x in one) for one in ratios)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print as Markdown."""
    print(f"{title}\n\n| " + " | ".join(columns) + " |")
    print("|" + " --- |" * len(columns))
    for row in rows:
        print("| " + " | ".join([*row, *[""] * (len(columns) - len(row))]) + " |")
    print()


if __name__ == "__main__":
    main()
