"""Saddle points of Bayesian learning over widths and temperatures."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from statmech_attn import bpkr
from statmech_attn.bpkr.prior import prior
from statmech_attn.reporting import Reporter, size
from statmech_attn.studies import learning
from statmech_attn.studies.bpkr_tables import OrderParameterStudy
from statmech_attn.studies.learning import Grid, Learning


POINT = ("width", "temperature")
LARGEST = 4 * 2**30  # bytes of kernels kept in the file

Variables = dict[str, tuple[tuple[str, ...], Any]]


def run(study: OrderParameterStudy, report: Reporter) -> xr.Dataset:
    """Order parameters, predictor and scores at every width and temperature."""
    made = learning.learning(study.task)
    grid = learning.grid(study.network, made)
    points = int(np.prod(grid.shape))
    if study.run.kernels:
        check_kernels(made, grid)
    report.begin("order parameters", points, points)
    found = solutions(made, grid)
    report.advance(points / 2)
    variables = saddles(made, found) | gaussian_processes(made, grid)
    variables |= predictors(made, grid, found.U[0])
    variables |= alignment_and_scores(made, grid, found.U[0])
    if study.run.corrections:
        variables |= corrected(made, grid, found, report)
    if study.run.kernels:
        variables |= kernels(made, grid, found.U[0])
    report.finish()
    return learning.dataset(study, made, grid, variables)


def solutions(made: Learning, grid: Grid) -> bpkr.Solution:
    """Saddle points of the whole grid, without numbers where none was found."""
    found = bpkr.sweep(
        *made.data,
        widths=[grid.width(width) for width in grid.widths],
        temperatures=grid.temperatures,
        heads=made.heads,
        variances=grid.variances,
    )

    return jax.tree.map(np.array, found)


def saddles(made: Learning, found: bpkr.Solution) -> Variables:
    """What the saddle point itself has to say."""
    names = ("U_a", "action", "energy", "entropy", "gradient_norm", "iterations")
    variables: Variables = {name: (POINT, getattr(found, name)) for name in names}
    for layer, U in enumerate(found.U, 1):
        variables[f"U_{layer}"] = ((*POINT, *made.path_dims(layer)), U)
    variables["result"] = (POINT, found.result.astype(np.int8))
    variables["signature"] = ((*POINT, "sign"), found.signature)
    return variables


def predictors(made: Learning, grid: Grid, U_1) -> Variables:
    """Predictor and accuracy at given U_1 of every point, also without each head."""
    mean, variance = (learning.empty(grid, made.Y_test.size) for _ in range(2))
    accuracy, silenced = learning.empty(grid), learning.empty(grid, sum(made.heads))
    for index, theory in theories(made, grid, U_1):
        mean[index], variance[index] = theory.predict(made.xi_test)
        accuracy[index] = bpkr.accuracy(jnp.asarray(mean[index]), made.Y_test)
        silenced[index] = accuracy_silenced(theory, made)
    return {
        "predictor_mean": ((*POINT, "test"), mean),
        "predictor_variance": ((*POINT, "test"), variance),
        "accuracy": (POINT, accuracy),
        "accuracy_silenced": ((*POINT, "attention_head"), silenced),
    }


def alignment_and_scores(made: Learning, grid: Grid, U_1) -> Variables:
    """Overlap of kernel eigenvectors with the labels, and head scores, at given U_1."""
    overlap = learning.empty(grid, made.Y.size)
    scores = learning.empty(grid, sum(made.heads))
    for index, theory in theories(made, grid, U_1):
        overlap[index] = theory.overlap()
        scores[index] = np.concatenate(bpkr.head_scores(U_1[index], made.heads))
    return {
        "kernel_overlap": ((*POINT, "rank"), overlap),
        "head_score": ((*POINT, "attention_head"), scores),
    }


def theories(
    made: Learning, grid: Grid, U_1
) -> Iterator[tuple[tuple[int, int], bpkr.Theory]]:
    """Predictors of all points whose U_1 is known."""
    for index, point in grid.points():
        if np.isfinite(U_1[index]).all():
            yield index, bpkr.theory(
                *made.data, U_1[index], temperature=point["temperature"],
                variance=grid.variance_0,
            )  # fmt: skip


def accuracy_silenced(theory: bpkr.Theory, made: Learning) -> list[float]:
    """Accuracy without each head in turn.

    NaN for the only head of a layer, and at temperature zero where the kernel of the
    other paths has no inverse.
    """
    found = []
    for layer, count in enumerate(made.heads):
        for head in range(count):
            if count == 1:
                found.append(np.nan)
                continue
            try:
                without = theory.silenced(made.heads, [(layer, head)])
            except ValueError:
                if theory.temperature > 0:
                    raise
                found.append(np.nan)
                continue
            mean = without.predict(made.xi_test).mean
            found.append(bpkr.accuracy(mean, made.Y_test))
    return found


def corrected(
    made: Learning, grid: Grid, found: bpkr.Solution, report: Reporter
) -> Variables:
    """Order parameters and predictor to order 1/N.

    NaN where N is too small for it, everywhere where the problem is too large.
    """
    U = [learning.empty(grid, d, d) for d in (x.shape[-1] for x in found.U)]
    U_a, accuracy, log_evidence = (learning.empty(grid) for _ in range(3))
    mean, variance = (learning.empty(grid, made.Y_test.size) for _ in range(2))
    too_narrow = set()
    for index, point in grid.points():
        widths = prior(point["width"], made.heads).widths
        if (widths[:-1] < [x.shape[-1] for x in found.U]).any():
            too_narrow.add(grid.widths[index[0]])
            continue
        if found.result[index] != 0:
            continue
        solution = jax.tree.map(lambda values: values[index], found)
        try:
            better = bpkr.corrections(solution, *made.data, heads=made.heads, **point)
        except ValueError as error:  # too large for memory
            report.note(f"no 1/N correction: {error}")
            break
        for kept, values in zip(U, better.U, strict=True):
            kept[index] = values
        U_a[index], log_evidence[index] = better.U_a, better.log_evidence
        mean[index], variance[index] = better.predict(made.xi_test)
        accuracy[index] = bpkr.accuracy(jnp.asarray(mean[index]), made.Y_test)
    if too_narrow:
        report.note(
            "no 1/N correction where a width is below the number of paths: N = "
            + ", ".join(f"{width:g}" for width in sorted(too_narrow))
        )
    test = (*POINT, "test")
    variables: Variables = {
        "U_a_corrected": (POINT, U_a),
        "predictor_mean_corrected": (test, mean),
        "predictor_variance_corrected": (test, variance),
        "accuracy_corrected": (POINT, accuracy),
        "log_evidence": (POINT, log_evidence),
    }
    for layer, values in enumerate(U, 1):
        dims = (*POINT, *made.path_dims(layer))
        variables[f"U_{layer}_corrected"] = (dims, values)
    return variables


def gaussian_processes(made: Learning, grid: Grid) -> Variables:
    """The limit of large widths, also of networks with one or two of the paths only.

    NaN at temperature zero for a kernel that has no inverse.
    """
    count, paths = len(grid.temperatures), made.xi.shape[2]
    accuracy, pairs = np.empty(count), np.empty((count, paths, paths))
    limit = gp_limit(made, grid)

    def right(chosen, temperature):
        try:
            network = bpkr.theory(
                made.xi[:, :, chosen], made.Y, limit.U[np.ix_(chosen, chosen)],
                temperature=temperature, variance=grid.variance_0,
            )  # fmt: skip
        except ValueError:
            if temperature > 0:
                raise
            return np.nan
        mean = network.predict(made.xi_test[:, :, chosen]).mean
        return bpkr.accuracy(mean, made.Y_test)

    for i, temperature in enumerate(grid.temperatures):
        accuracy[i] = right(np.arange(paths), temperature)
        for a in range(paths):
            for b in range(a + 1):
                pairs[i, a, b] = right(np.unique([a, b]), temperature)
                pairs[i, b, a] = pairs[i, a, b]
    return {
        "accuracy_gp": (("temperature",), accuracy),
        "accuracy_gp_pair": (("temperature", *made.path_dims(1)), pairs),
        "kernel_overlap_gp": (("rank",), limit.overlap()),
    }


def gp_limit(made: Learning, grid: Grid) -> bpkr.Theory:
    """U and kernel in the limit of large widths, which no temperature enters."""
    return bpkr.gaussian_process(
        *made.data, heads=made.heads, temperature=1.0, variances=grid.variances
    )


def check_kernels(made: Learning, grid: Grid) -> None:
    """Refuse kernels that do not fit into memory."""
    P, paths = made.Y.size, made.xi.shape[2]
    needed = 8 * P**2 * (paths + int(np.prod(grid.shape)) + 1)
    if needed > LARGEST:
        raise ValueError(
            f"run.kernels: the kernels need {size(needed)}, more than "
            f"{size(LARGEST)}; use fewer examples, widths or temperatures."
        )


def kernels(made: Learning, grid: Grid, U_1) -> Variables:
    """Kernels of the single paths, of the GP limit and of every point."""
    P, paths = made.Y.size, made.xi.shape[2]
    renormalised = learning.empty(grid, P, P)
    for index, theory in theories(made, grid, U_1):
        renormalised[index] = theory.kernel
    limit, pair = gp_limit(made, grid), ("example", "example_pair")
    single = np.stack([limit.restricted([a]).kernel for a in range(paths)])
    return {
        "path_kernel": (("path_1", *pair), single),
        "kernel_gp": (pair, limit.kernel),
        "kernel": ((*POINT, *pair), renormalised),
    }
