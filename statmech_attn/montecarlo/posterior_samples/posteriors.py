"""Sampled posteriors over a grid: exact law of the order parameters, or all weights."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key
from scipy import stats

from statmech_attn import bpkr, extras
from statmech_attn.bpkr import estimates, LearningTask, points, quantities, TaskPoints
from statmech_attn.labels import Variable, Variables
from statmech_attn.montecarlo.options import Sampling
from statmech_attn.montecarlo.posterior_samples import weight_space
from statmech_attn.montecarlo.posterior_samples.weight_sampling import sample_weights
from statmech_attn.reporting import Reporter, Silent
from statmech_attn.scan import Tick
from statmech_attn.statistics import share_error, summary
from statmech_attn.storage import toml


WARMUP = 500  # steps of sampling weights, when not given
OF_DRAWS = ("_stderr", "_std", "_n_eff", "_r_hat")
VARIABLES = Variables(
    quantities.order_parameters(
        "width",
        " ".join((*OF_DRAWS, "_draws")),
        "`_draws`, evenly chosen, have chain and draw after width",
    ),
    *(row.over("width test", "_stderr") for row in quantities.PREDICTOR),
    quantities.ACCURACY.over("width", "_stderr", group=""),
    quantities.ACCURACY_SETS.over(
        "width test_set",
        note="of the mean predictor; binomial error, without the Monte Carlo error",
    ),
    quantities.overlaps(),
    Variable(
        "divergences", "width", "divergent draws of all chains", "1", "n", group=""
    ),
    Variable(
        "bfmi",
        "width",
        "Bayesian fraction of missing information, least of all chains",
        "1",
        "BFMI",
        note="of samplers with momenta",
    ),
    Variable("leapfrog_steps", "width", "gradients for a draw, mean", "1", "n"),
    Variable("step_size", "width", "step of the integrator", "1", "h"),
    quantities.LOG_EVIDENCE.over(
        "width", "_stderr", group="evidence", note="with run.evidence"
    ),
    quantities.TASK_COORDINATES,
    attributes=("method",),
)


class Sampled(NamedTuple):
    """What every method of sampling gives at one width and temperature.

    `means` are those of the predictor on all sets of a task that has several.
    """

    order_parameters: dict[str, np.ndarray]  # (chains, draws, ...) of U_1 ... U_L, U_a
    mean: np.ndarray  # predictor on the test set, its error and the posterior variance
    mean_stderr: np.ndarray
    variance: np.ndarray
    variance_stderr: np.ndarray
    diagnostics: dict[str, float]
    means: Sequence[np.ndarray] = ()


class Posteriors(TaskPoints):
    """A posterior at every width and temperature, each with a key of its own."""

    title = "sampling"
    variables = VARIABLES
    numbers = ("U_1", "U_a", "predictor_mean", "accuracy")

    def __init__(
        self,
        key: Key[Array, ""],
        task: LearningTask,
        grid: bpkr.Grid,
        *,
        sampling: Sampling = Sampling(),
        stored: int = 0,
        variances: Sequence[float] | None = None,
    ):
        require_numpyro()
        self.key, self.sampling, self.stored = key, sampling, stored
        self.keeps_blocks = sampling.method != estimates.EXACT_LAW
        about = {"kind": "posterior", "method": sampling.method}
        super().__init__(task, grid, variances=variances, about=about)

    def check(self, problem: bpkr.Problem) -> None:
        where = "weight space" if self.keeps_blocks else "the exact law"
        problem.check_finite_width(where)

    def row(self, number: int, tick: Tick, folder: Path | None) -> dict[str, Any]:
        draws = self._sampled(number, Ticking(tick), folder)
        row = _described(draws, self.task, self.stored)
        theory = self.at(number).theory(row["U_1"])
        U = [row[f"U_{layer}"] for layer in range(1, len(self.task.heads) + 1)]
        return row | points.alignment_and_scores(theory, U, row["U_a"])

    def _sampled(self, number: int, report: Reporter, folder: Path | None) -> Sampled:
        key, problem = jax.random.fold_in(self.key, number), self.at(number)
        run = toml.dumps(dict(self.identity()))
        return sampled(
            key, problem, self.task, self.sampling, report, folder=folder, run=run
        )


class Ticking(Silent):
    """Tells a tick what share of a point is done."""

    def __init__(self, tick: Tick):
        self._tick, self._work = tick, 1.0

    def begin(self, description: str, points: int, work: float) -> None:
        self._work = work

    def advance(self, work: float) -> None:
        self._tick(work / self._work)


def require_numpyro() -> None:
    """Raise `ValueError` unless what samples posteriors is installed."""
    if importlib.util.find_spec("numpyro") is None:
        raise ValueError(extras.needed("sampling", "numpyro", "sampling"))


def sampled(
    key,
    problem: bpkr.Problem,
    task: LearningTask,
    options: Sampling,
    report: Reporter,
    *,
    folder: Path | None,
    run: str,
) -> Sampled:
    """The posterior of a problem by the method of the options.

    `task` has the examples that the predictor is tested on, `folder` is where blocks of
    a sampler of weights are kept, if anywhere, and `run` says what they belong to, in
    words that no other run has.
    """
    if options.method == estimates.EXACT_LAW:
        return exact_law(key, problem, task, options, report)
    return all_weights(key, problem, task, options, report, folder=folder, run=run)


def exact_law(
    key, problem: bpkr.Problem, task: LearningTask, options: Sampling, report: Reporter
) -> Sampled:
    """The exact law of the order parameters, by NUTS."""
    run_key, evidence_key = jax.random.split(key)
    report.begin("sampling", 3, 3)
    posterior = problem.posterior(
        run_key, draws=options.draws, warmup=options.warmup, chains=options.chains
    )
    report.advance(1)
    f = posterior.predict(task.xi_test)
    report.advance(1)
    row = {
        "divergences": int(posterior.divergences),
        "bfmi": posterior.bfmi.min(),
        "leapfrog_steps": float(posterior.steps.mean()),
    }
    if options.evidence:
        evidence = bpkr.evidence(evidence_key, posterior)
        row["log_evidence"] = evidence.value
        row["log_evidence_stderr"] = evidence.stderr
    report.advance(1)
    further_inputs = [xi for xi, _ in task.sets.values()][1:]
    means = [f.mean, *posterior.means(further_inputs)] if task.sets else ()
    return Sampled(
        _named(posterior.U, posterior.U_a),
        f.mean,
        f.mean_stderr,
        f.variance,
        f.variance_stderr,
        row,
        means,
    )


def all_weights(
    key,
    problem: bpkr.Problem,
    task: LearningTask,
    options: Sampling,
    report: Reporter,
    *,
    folder: Path | None,
    run: str,
) -> Sampled:
    """The posterior of all weights, in blocks."""
    sets = task.tests
    draws_of_weights = sample_weights(
        key,
        weight_space.posterior(problem),
        method=options.method,
        xi_test=jnp.concatenate([xi for xi, _ in sets]),
        y_test=jnp.concatenate([y for _, y in sets]),
        draws=options.draws,
        warmup=options.warmup or WARMUP,
        chains=options.chains,
        block=options.block,
        folder=folder,
        study=run,
        report=report,
        step_size=options.step_size,
    )
    energy = (
        {} if draws_of_weights.bfmi is None else {"bfmi": draws_of_weights.bfmi.min()}
    )
    main, ends = slice(task.Y_test.size), np.cumsum([y.size for _, y in sets])
    means = np.split(draws_of_weights.predictor_mean, ends[:-1]) if task.sets else ()
    return Sampled(
        _named(draws_of_weights.U, draws_of_weights.U_a),
        draws_of_weights.predictor_mean[main],
        draws_of_weights.predictor_mean_stderr[main],
        draws_of_weights.predictor_variance[main],
        draws_of_weights.predictor_variance_stderr[main],
        {
            "divergences": draws_of_weights.divergences,
            "leapfrog_steps": draws_of_weights.leapfrog_steps.mean(),
            "step_size": draws_of_weights.step_size.mean(),
        }
        | energy,
        means,
    )


def _named(U, U_a) -> dict[str, np.ndarray]:
    """Draws by the name of the order parameter."""
    named = {f"U_{layer}": np.asarray(draws) for layer, draws in enumerate(U, 1)}
    return named | {"U_a": np.reshape(U_a, np.shape(U_a)[:2])}


def _described(sampled: Sampled, task: LearningTask, stored: int) -> dict[str, Any]:
    """Means with errors, diagnostics and some draws of one point."""
    row: dict[str, Any] = {}
    for name, draws in sampled.order_parameters.items():
        of_draws = summary(draws)
        row[name] = of_draws.mean
        row |= {f"{name}{part}": getattr(of_draws, part[1:]) for part in OF_DRAWS}
        if stored:
            stored_draws = (
                np.linspace(0, draws.shape[1] - 1, stored).round().astype(int)
            )
            row[f"{name}_draws"] = draws[:, stored_draws]
    row |= {
        "predictor_mean": sampled.mean,
        "predictor_mean_stderr": sampled.mean_stderr,
        "predictor_variance": sampled.variance,
        "predictor_variance_stderr": sampled.variance_stderr,
        "accuracy": bpkr.accuracy(jnp.asarray(sampled.mean), task.Y_test),
        "accuracy_stderr": accuracy_error(sampled.mean, sampled.mean_stderr),
    }
    if task.sets:
        labels = [y for _, y in task.tests]
        means = map(jnp.asarray, sampled.means)
        accuracy = np.array(list(map(bpkr.accuracy, means, labels)))
        row["accuracy_sets"] = accuracy
        # Binomial: of the examples alone, as those of the theory beside it.
        row["accuracy_sets_stderr"] = share_error(accuracy, task.counts)
    return row | sampled.diagnostics


def accuracy_error(mean, stderr) -> float:
    """Largest standard error that uncertain signs can give the accuracy.

    The sign of f on a test input is wrong with the probability p that its mean is on
    the other side of zero; the errors sqrt(p (1 - p)) add up at most.
    """
    p = stats.norm.sf(np.abs(mean) / np.where(stderr > 0, stderr, np.inf))
    p = np.where(stderr > 0, p, 0.0)
    return float(np.sqrt(p * (1 - p)).mean())
