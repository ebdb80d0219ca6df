"""Posteriors at finite width: exact law of the order parameters, or all weights."""

import importlib.util
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy import stats

from statmech_attn import bpkr, diagnostics
from statmech_attn.bpkr import wishart
from statmech_attn.montecarlo import sample_weights, weight_space
from statmech_attn.reporting import Reporter
from statmech_attn.studies import learning, spec
from statmech_attn.studies.bpkr_tables import PosteriorStudy
from statmech_attn.studies.learning import Learning
from statmech_attn.studies.order_parameter import alignment_and_scores, POINT, Variables


WARMUP = 500  # steps of sampling weights, when not given


class Sampled(NamedTuple):
    """What every method of sampling gives at one width and temperature."""

    order_parameters: dict[str, np.ndarray]  # (chains, draws, ...) of U_1 ... U_L, U_a
    mean: np.ndarray  # predictor on the test set, its error and the posterior variance
    mean_stderr: np.ndarray
    variance: np.ndarray
    variance_stderr: np.ndarray
    diagnostics: dict[str, float]


def run(
    study: PosteriorStudy, report: Reporter, workspace: Path | None = None
) -> xr.Dataset:
    """Sample every width and temperature of a study.

    Args:
        workspace: folder for the blocks of draws of all weights.
    """
    if importlib.util.find_spec("numpyro") is None:
        raise ValueError(
            "sampling needs numpyro: pip install 'statmech-attn[sampling]'."
        )
    made = learning.learning(study.task)
    grid = learning.grid(study.network, made)
    sample = exact_law if study.run.method == "order-parameter" else all_weights
    key = jax.random.key(study.run.seed)
    found = {}
    for number, (index, point) in enumerate(grid.points()):
        width, temperature = grid.widths[index[0]], point["temperature"]
        report.note(f"N = {width:g}, T = {temperature:g}")
        folder = workspace and workspace / f"point_{number:03d}"
        run_key = jax.random.fold_in(key, number)
        sampled = sample(run_key, made, point, study, report, folder)
        found[index] = _described(sampled, made, study.run.stored)
    variables: Variables = {}
    for name, (dims, _) in found[0, 0].items():
        values = [of_point[name][1] for of_point in found.values()]
        stacked = np.reshape(values, grid.shape + np.shape(values[0]))
        variables[name] = ((*POINT, *dims), stacked)
    variables |= alignment_and_scores(made, grid, variables["U_1"][1])
    return learning.dataset(study, made, grid, variables).assign_attrs(
        method=study.run.method
    )


def exact_law(
    key, made: Learning, point, study: PosteriorStudy, report: Reporter, folder
) -> Sampled:
    """The exact law of the order parameters, by NUTS, which needs no folder."""
    options = study.run
    law = wishart.law(*made.data, heads=made.heads, **point)
    run_key, evidence_key = jax.random.split(key)
    report.begin("sampling", 3, 3)
    drawn = wishart.sample(
        run_key, law, draws=options.draws, warmup=options.warmup, chains=options.chains
    )
    report.advance(1)
    f = wishart.predict(drawn, law, made.xi_test)
    report.advance(1)
    found = {
        "divergences": int(drawn.divergences),
        "bfmi": drawn.bfmi.min(),
        "leapfrog_steps": float(drawn.steps.mean()),
    }
    if options.evidence:
        evidence = bpkr.evidence(evidence_key, law, drawn)
        found["log_evidence"] = evidence.value
        found["log_evidence_stderr"] = evidence.stderr
    report.finish()
    named = _named(drawn.U, drawn.U_a)
    return Sampled(named, f.mean, f.mean_stderr, f.variance, f.variance_stderr, found)


def all_weights(
    key, made: Learning, point, study: PosteriorStudy, report: Reporter, folder
) -> Sampled:
    """The posterior of all weights, by NUTS or Langevin dynamics."""
    options = study.run
    drawn = sample_weights(
        key,
        weight_space.posterior(*made.data, heads=made.heads, **point),
        method={"weights": "nuts"}.get(options.method, options.method),
        xi_test=made.xi_test,
        y_test=made.Y_test,
        draws=options.draws,
        warmup=options.warmup or WARMUP,
        chains=options.chains,
        block=options.block_size,
        folder=folder,
        study=spec.dump(study.model_dump(exclude_none=True)),
        report=report,
        step_size=options.step_size,
    )
    energy = {} if drawn.bfmi is None else {"bfmi": drawn.bfmi.min()}
    return Sampled(
        _named(drawn.U, drawn.U_a),
        drawn.predictor_mean,
        drawn.predictor_mean_stderr,
        drawn.predictor_variance,
        drawn.predictor_variance_stderr,
        {
            "divergences": drawn.divergences,
            "leapfrog_steps": drawn.leapfrog_steps.mean(),
            "step_size": drawn.step_size.mean(),
        }
        | energy,
    )


def _named(U, U_a) -> dict[str, np.ndarray]:
    """Draws by the name of the order parameter."""
    named = {f"U_{layer}": np.asarray(draws) for layer, draws in enumerate(U, 1)}
    return named | {"U_a": np.reshape(U_a, np.shape(U_a)[:2])}


def _described(sampled: Sampled, made: Learning, stored: int) -> Variables:
    """Means with errors, diagnostics and some draws of one point."""
    found: Variables = {}
    for name, draws in sampled.order_parameters.items():
        dims = made.path_dims(int(name[2:])) if name != "U_a" else ()
        of_draws = diagnostics.summary(draws)
        found[name] = (dims, of_draws.mean)
        for part in ("stderr", "std", "n_eff", "r_hat"):
            found[f"{name}_{part}"] = (dims, getattr(of_draws, part))
        if stored:
            kept = np.linspace(0, draws.shape[1] - 1, stored).round().astype(int)
            found[f"{name}_draws"] = (("chain", "draw", *dims), draws[:, kept])
    test = ("test",)
    y = made.Y_test
    found["predictor_mean"] = (test, sampled.mean)
    found["predictor_mean_stderr"] = (test, sampled.mean_stderr)
    found["predictor_variance"] = (test, sampled.variance)
    found["predictor_variance_stderr"] = (test, sampled.variance_stderr)
    found["accuracy"] = ((), bpkr.accuracy(jnp.asarray(sampled.mean), y))
    found["accuracy_stderr"] = ((), accuracy_error(sampled.mean, sampled.mean_stderr))
    return found | {n: ((), value) for n, value in sampled.diagnostics.items()}


def accuracy_error(mean, stderr) -> float:
    """Largest standard error that uncertain signs can give the accuracy.

    The sign of f on a test input is wrong with the probability p that its mean is on
    the other side of zero; the errors sqrt(p (1 - p)) add up at most.
    """
    p = stats.norm.sf(np.abs(mean) / np.where(stderr > 0, stderr, np.inf))
    p = np.where(stderr > 0, p, 0.0)
    return float(np.sqrt(p * (1 - p)).mean())
