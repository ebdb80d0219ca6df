"""Networks trained by gradient descent over widths, temperatures and first weights."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from statmech_attn import bpkr
from statmech_attn.bpkr import LearningTask, quantities, TaskPoints
from statmech_attn.labels import cf_words, Variable, Variables
from statmech_attn.montecarlo import weight_space
from statmech_attn.scan import Arrays, lacking, Pilot, Tick
from statmech_attn.training.descent import block_store, Trained, Trainer
from statmech_attn.training.options import Descent
from statmech_attn.training.results import DIVERGED, RESULTS


_AFTER = "constant after the end of a run"
RESULT = Variable(
    "training_result",
    "width restart",
    "how the training ended",
    "1",
    "result",
    group="",
    flags=cf_words(RESULTS),
    note="-1: not run; NaN in what follows from the weights where it diverged",
)
STEPS = Variable(
    "training_steps", "width restart", "steps of gradient descent", "1", "n"
)
STEP = Variable("step", "step", "step of gradient descent", "1", "n")
LOSS = Variable(
    "loss",
    "width restart step",
    "minus the log density of the weights, up to a constant",
    "1",
    "L",
    group="",
    note=_AFTER,
)
VARIABLES = Variables(
    quantities.order_parameters("width restart"),
    LOSS,
    Variable(
        "loss_data",
        "width restart step",
        "squared errors over 2 T",
        "1",
        "Σ(f−Y)²/2T",
        note=_AFTER,
    ),
    Variable(
        "loss_prior",
        "width restart step",
        "half the squared norm of the whitened weights",
        "1",
        "|z|²/2",
        note=_AFTER,
    ),
    Variable(
        "loss_gradient_norm",
        "width restart",
        "norm of the gradient of the loss",
        "1",
        "|∇L|",
        group="",
    ),
    Variable("predictor", "width restart test", "f of the trained network", "1", "f"),
    quantities.ACCURACY.over("width restart", group=""),
    Variable(
        "accuracy_train",
        "width restart",
        "share of training examples with the right sign",
        "1",
        "accuracy",
        group="",
    ),
    STEPS,
    RESULT,
    STEP,
    quantities.RESTART,
    quantities.TASK_COORDINATES,
)


class TrainedNetworks(TaskPoints):
    """Networks trained from draws of their prior, each with a key of its own.

    Args:
        key: random key of JAX.
        task, grid, variances: as in `bpkr.SaddlePoints`.
        descent: steps and rate of gradient descent.
        restarts: trainings from initial weights of their own, at every point.

    Example:
        >>> import jax
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi = jax.random.normal(jax.random.key(0), (30, 3, 1))
        >>> train, test = zip(*[(x[:20], x[20:]) for x in (xi, xi[:, 0, 0])])
        >>> points = TrainedNetworks(
        ...     jax.random.key(1), bpkr.LearningTask(*train, *test, (1,)),
        ...     bpkr.Grid([9, 30], 0.1), Descent(learning_rate=0.01, steps=100))
        >>> points.shape
        (2, 1, 1)
    """

    title = "training"
    variables = VARIABLES
    keeps_blocks = True
    empty: Mapping[str, int] = {"training_result": -1}

    def __init__(
        self,
        key: Key[Array, ""],
        task: LearningTask,
        grid: bpkr.Grid,
        descent: Descent,
        *,
        restarts: int = 1,
        variances: Sequence[float] | None = None,
    ):
        super().__init__(
            task,
            grid,
            variances=variances,
            about={"kind": "training"},
            restart=np.arange(restarts),
        )
        self.key, self.descent, self.restarts = key, descent, restarts
        self._trainers: dict[int, Trainer] = {}
        self._compiling = threading.Lock()
        for number in range(0, self.total, restarts):
            self.posterior(number)

    def posterior(self, number: int) -> weight_space.WeightPosterior:
        """The posterior whose maximum a point looks for."""
        posterior = weight_space.posterior(self.at(number), reduced=False)
        return posterior.with_traced_temperature()

    def start(self, number: int, problem: weight_space.WeightPosterior):
        """Initial weights of a point."""
        return problem.draw_prior(jax.random.fold_in(self.key, number))

    def trainer(self, number: int) -> Trainer:
        """The descent of a point, compiled once for every width."""
        width = number // (self.restarts * len(self.temperatures))
        with self._compiling:
            if width not in self._trainers:
                problem = self.posterior(number)
                terms = weight_space.WeightPosterior.loss_terms
                start = self.start(number, problem)
                self._trainers[width] = Trainer(terms, self.descent, problem, start)
            return self._trainers[width]

    def row(self, number: int, tick: Tick, folder: Path | None) -> dict[str, Any]:
        problem, trainer = self.posterior(number), self.trainer(number)
        start = self.start(number, problem)
        inputs = (np.asarray(x).tobytes() for x in jax.tree.leaves((problem, start)))
        store = block_store(folder, self.identity(), inputs)
        after = lambda steps: tick(steps / self.descent.steps)
        return self._described(problem, trainer.run(problem, start, store, after))

    def _described(self, problem, trained: Trained) -> dict[str, Any]:
        """What is stored of a network; no numbers where the descent diverged."""
        z, task = trained.weights, self.task
        U, U_a = problem.order_parameters(z)
        f = problem.predict(z, problem.rotated_inputs(task.xi_test))
        row = {f"U_{l}": matrix for l, matrix in enumerate(U, 1)} | {
            "U_a": U_a,
            "predictor": f,
            "accuracy": bpkr.accuracy(f, task.Y_test),
            "accuracy_train": bpkr.accuracy(problem.training_outputs(z), task.Y),
        }
        if trained.result == DIVERGED:
            row = {name: np.full(np.shape(x), np.nan) for name, x in row.items()}
        return row | {
            "loss": trained.data + trained.prior,
            "loss_data": trained.data,
            "loss_prior": trained.prior,
            "loss_gradient_norm": trained.gradient_norm,
            "training_steps": trained.steps,
            "training_result": np.int8(trained.result),
        }

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        """Points without numbers though their training did not diverge."""
        lost = lacking(arrays, "U_1", "U_a", "predictor", "accuracy")
        return lost & (arrays["training_result"] != DIVERGED)

    def pilot(self) -> Pilot:
        """A block at the largest width, or one gradient."""
        number = self.total - 1
        problem, trainer = self.posterior(number), self.trainer(number)
        seconds = trainer.block_seconds(problem, self.start(number, problem))
        blocks = self.descent.steps // self.descent.block_size
        overlaps = [size**2 for size in self.problem.sizes]
        curves = 3 * len(self.descent.recorded)
        numbers = 5  # accuracies, gradient, steps, result
        stored = sum(overlaps) + curves + self.task.Y_test.size + numbers
        return Pilot(seconds * blocks, trainer.memory, stored=8 * stored)

    def coordinates(self) -> dict[str, Any]:
        return super().coordinates() | {"step": np.array(self.descent.recorded)}
