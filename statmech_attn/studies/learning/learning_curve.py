"""Learning-curve studies: theory and samples over widths and temperatures."""

import jax

from statmech_attn import bpkr
from statmech_attn.bpkr import estimates, learning_curves
from statmech_attn.montecarlo import posteriors
from statmech_attn.reporting import Silent
from statmech_attn.studies.files import spec
from statmech_attn.studies.learning import tasks
from statmech_attn.studies.learning.tables import LearningCurveStudy


def work(study: LearningCurveStudy) -> learning_curves.LearningCurves:
    """The learning curves that a study asks for."""
    run, network = study.run, study.network
    if run.samples:
        posteriors.require_numpyro()
    needed = max(run.examples) * run.training_sets
    pool = tasks.learning(study.task.enlarged(needed))._replace(sets={})
    grid = tasks.grid(network)
    points = learning_curves.LearningCurves(
        jax.random.key(run.seed),
        pool.posed(variances=network.variances, form="factors", **grid.point(0)),
        pool.xi_test,
        pool.Y_test,
        examples=run.examples,
        grid=grid,
        training_sets=run.training_sets,
        corrections=run.corrections,
        samplers={
            estimates.of_method(method): _sampler(study, method, pool)
            for method in run.samples
        },
        keeps_blocks=study.keeps_blocks,
        about={"task": pool.description},
    )
    for method in run.samples:
        for number in range(points.grid.total):
            problem = points.problem.at(**points.grid.point(number))
            problem.check_finite_width(f'samples = ["{method}"]')
    return points


def _sampler(
    study: LearningCurveStudy, method: str, pool: bpkr.LearningTask
) -> learning_curves.Sampler:
    """The mean of f over draws by a method, with the settings of the study."""

    def sampler(
        key, problem: bpkr.Problem, xi_test, Y_test, folder
    ) -> learning_curves.Measured:
        draws = posteriors.sampled(
            key,
            problem,
            pool,
            study.run.sampling(method),
            Silent(),
            folder=folder,
            run=spec.dump(study.model_dump(exclude_none=True)),
        )
        return learning_curves.measured(
            draws.mean, draws.variance, Y_test, draws.mean_stderr
        )

    return sampler
