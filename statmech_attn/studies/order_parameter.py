"""Saddle points of Bayesian learning over widths and temperatures."""

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
    if study.run.corrections:
        variables |= corrected(made, grid, found, report)
    if study.run.kernels:
        variables |= kernels(made, grid, found.U[0])
    report.finish()
    return learning.dataset(study, made, grid, variables)


def solutions(made: Learning, grid: Grid) -> bpkr.Solution:
    """Saddle points of the whole grid; NaN where the iteration did not converge."""
    found = bpkr.sweep(
        *made.data,
        widths=[grid.width(width) for width in grid.widths],
        temperatures=grid.temperatures,
        heads=made.heads,
        variances=grid.variances,
    )
    lost = np.asarray(found.result) != 0

    def kept(values):
        values = np.array(values)
        if values.dtype.kind == "f":
            values[lost] = np.nan
        return values

    return jax.tree.map(kept, found)


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
    """Predictor, accuracy, alignment and head scores at given U_1 of every point."""
    mean, variance = (learning.empty(grid, made.Y_test.size) for _ in range(2))
    overlap = learning.empty(grid, made.Y.size)
    scores, silenced = (learning.empty(grid, sum(made.heads)) for _ in range(2))
    accuracy = learning.empty(grid)
    for index, point in grid.points():
        U = U_1[index]
        if not np.isfinite(U).all():
            continue
        theory = bpkr.theory(
            *made.data, U, temperature=point["temperature"], variance=grid.variance_0
        )
        mean[index], variance[index] = theory.predict(made.xi_test)
        accuracy[index] = bpkr.accuracy(jnp.asarray(mean[index]), made.Y_test)
        overlap[index] = theory.overlap()
        scores[index] = np.concatenate(bpkr.head_scores(U, made.heads))
        silenced[index] = accuracy_silenced(theory, made)
    return {
        "predictor_mean": ((*POINT, "test"), mean),
        "predictor_variance": ((*POINT, "test"), variance),
        "accuracy": (POINT, accuracy),
        "kernel_overlap": ((*POINT, "rank"), overlap),
        "head_score": ((*POINT, "attention_head"), scores),
        "accuracy_silenced": ((*POINT, "attention_head"), silenced),
    }


def accuracy_silenced(theory: bpkr.Theory, made: Learning) -> list[float]:
    """Accuracy without each head in turn; NaN for the only head of a layer."""
    found = []
    for layer, count in enumerate(made.heads):
        for head in range(count):
            if count == 1:
                found.append(np.nan)
                continue
            without = theory.silenced(made.heads, [(layer, head)])
            mean = without.predict(made.xi_test).mean
            found.append(bpkr.accuracy(mean, made.Y_test))
    return found


def corrected(
    made: Learning, grid: Grid, found: bpkr.Solution, report: Reporter
) -> Variables:
    """Order parameters and predictor to order 1/N; NaN where N is too small for it."""
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
        better = bpkr.corrections(solution, *made.data, heads=made.heads, **point)
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
    """The limit of large widths, also of networks with one or two of the paths only."""
    count, paths = len(grid.temperatures), made.xi.shape[2]
    accuracy, pairs = np.empty(count), np.empty((count, paths, paths))
    overlap = np.empty((count, made.Y.size))
    for i, temperature in enumerate(grid.temperatures):
        limit = bpkr.gaussian_process(
            *made.data, heads=made.heads, temperature=temperature,
            variances=grid.variances,
        )  # fmt: skip
        overlap[i] = limit.overlap()

        def right(chosen):
            chosen = np.array(chosen)
            network = bpkr.theory(
                made.xi[:, :, chosen], made.Y, limit.U[np.ix_(chosen, chosen)],
                temperature=temperature, variance=grid.variance_0,
            )  # fmt: skip
            mean = network.predict(made.xi_test[:, :, chosen]).mean
            return bpkr.accuracy(mean, made.Y_test)

        accuracy[i] = right(range(paths))
        for a in range(paths):
            for b in range(a + 1):
                pairs[i, a, b] = pairs[i, b, a] = right(sorted({a, b}))
    dims = ("temperature",)
    return {
        "accuracy_gp": (dims, accuracy),
        "accuracy_gp_pair": ((*dims, *made.path_dims(1)), pairs),
        "kernel_overlap_gp": ((*dims, "rank"), overlap),
    }


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
    for index, point in grid.points():
        if np.isfinite(U_1[index]).all():
            renormalised[index] = bpkr.theory(
                *made.data, U_1[index], temperature=point["temperature"],
                variance=grid.variance_0,
            ).kernel  # fmt: skip
    limit = bpkr.gaussian_process(
        *made.data, heads=made.heads, temperature=1.0, variances=grid.variances
    )
    pair = ("example", "example_pair")
    single = np.stack([limit.restricted([a]).kernel for a in range(paths)])
    return {
        "path_kernel": (("path_1", *pair), single),
        "kernel_gp": (pair, limit.kernel),
        "kernel": ((*POINT, *pair), renormalised),
    }
