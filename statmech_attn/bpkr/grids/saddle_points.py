"""Saddle points of Bayesian learning over widths and temperatures.

The temperatures of one width are a chain: it begins at the highest one, near the GP
limit, and each saddle point is sought from the one before.  So a point depends on the
grid alone, and a chunk that begins inside a chain follows it from its beginning.
Where a task has several test sets, `chosen_temperature` gives that of each width.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from statmech_attn.bpkr.grids import chosen_temperature
from statmech_attn.bpkr.grids.chosen_temperature import shares
from statmech_attn.bpkr.grids.examples import LearningTask
from statmech_attn.bpkr.grids.points import (
    alignment_and_scores,
    Grid,
    RANKS,
    TaskPoints,
)
from statmech_attn.bpkr.posed import prior
from statmech_attn.bpkr.posed.newton import RESULT_WORDS
from statmech_attn.bpkr.posed.quantities import (
    ACCURACY,
    LOG_EVIDENCE,
    order_parameters,
    overlaps,
    PREDICTOR,
    TASK_COORDINATES,
)
from statmech_attn.bpkr.problem import Problem
from statmech_attn.bpkr.theory.predictor import accuracy, correct, Theory
from statmech_attn.bpkr.theory.saddle import along_falling_temperatures
from statmech_attn.bpkr.theory.solution import Solution
from statmech_attn.labels import Variable, Variables
from statmech_attn.reporting import size
from statmech_attn.scan import Arrays, Contents, lacking, Tick
from statmech_attn.statistics import share_error


LARGEST = 4 * 2**30  # bytes of kernels kept in the file
STEP = 1e-3  # in the logarithm of a parameter; derivatives are good to such a part
BY = "_by_temperature _by_width"
_ASKED = "with run.kernels"
VARIABLES = Variables(
    order_parameters("width", f"_corrected {BY}",
    "`_corrected` with run.corrections"),
    Variable("action", "width", "action", "1", "S"),
    Variable("energy", "width", "energy over the width", "1", "E/N"),
    Variable("entropy", "width", "sum of the entropies", "1", "Σ s_l"),
    Variable(
        "gradient_norm", "width", "norm of the gradient of the action", "1", "|∇S|",
        group="",
    ),
    Variable("iterations", "width", "Newton steps", "1", "n", group=""),
    Variable(
        "result", "width", "how the iteration ended", "1", "result", group="",
        flags=RESULT_WORDS,
        note="-1: not computed; NaN in what follows from a result above 0",
    ),
    Variable(
        "signature", "width sign",
        "negative, zero, positive eigenvalues of the Hessian",
        "1", "n", note="-1 where there was no memory for it",
    ),
    Variable(
        "outside_support", "width",
        "True: a width is below the size of its U, so the exact law, whose U are "
        "singular, has no saddle point in its support", "1", "N_l < d_l",
        note="without temperature",
    ),
    *(row.over("width test", f"_corrected {BY}") for row in PREDICTOR),
    ACCURACY.over("width", "_corrected", group=""),
    Variable(
        "accuracy_silenced", "width attention_head", "accuracy without the head", "1",
        "accuracy",
    ),
    overlaps(group=""),
    Variable("accuracy_gp", "", "accuracy in the GP limit", "1", "accuracy", group=""),
    Variable(
        "accuracy_gp_pair", "path_1 path_1_pair",
        "accuracy in the GP limit of a network with two paths, or one", "1", "accuracy",
        note="not of tasks with several test sets",
    ),
    Variable(
        "kernel_overlap_gp", "rank",
        "overlap of GP kernel eigenvectors with the labels",
        "1", "|v_i·Y|/|Y|", group="",
    ),
    LOG_EVIDENCE.over("width", note="Laplace; with run.corrections"),
    chosen_temperature.VARIABLES,
    Variable(
        "path_kernel", "path_1 example example_pair",
        "kernel of one path alone, U = 1", "1", "K_π", group="kernels", note=_ASKED,
    ),
    Variable(
        "kernel", "width example example_pair", "renormalised kernel", "1", "K",
        group="kernels", note=_ASKED,
    ),
    Variable(
        "kernel_gp", "example example_pair", "kernel in the GP limit", "1", "K",
        group="kernels", note=_ASKED,
    ),
    TASK_COORDINATES,
)  # fmt: skip
RIGHT = "right"  # answers to every test set: for the choice of T, not for the file
ANSWERS = ("test_set", "answer")  # dimensions of these


class SaddlePoints(TaskPoints):
    """Order parameters, predictor and scores at every width and temperature.

    Args:
        task: examples, heads and test sets.
        grid: widths and temperatures.
        variances: prior variances of the weights, as in `Problem`.
        predictors: whether the predictor of every test example is kept.
        corrections: whether corrections of order 1/N and the evidence are computed.
        kernels: whether kernels are kept.

    Raises:
        ValueError: impossible settings, or kernels that do not fit into memory.

    Example:
        >>> import jax
        >>> jax.config.update("jax_enable_x64", True)
        >>> xi = jax.random.normal(jax.random.key(0), (30, 1, 1))
        >>> train, test = zip(*[(x[:20], x[20:]) for x in (xi, xi[:, 0, 0])])
        >>> task = LearningTask(*train, *test, (1,))
        >>> points = SaddlePoints(task, Grid([9, 30], [0.1, 1.0]))
        >>> points.compute().predictor_mean.sizes
        Frozen({'width': 2, 'temperature': 2, 'test': 10})
    """

    title = "order parameters"
    variables = VARIABLES
    empty: Mapping[str, int] = {"result": -1}

    def __init__(
        self,
        task: LearningTask,
        grid: Grid,
        *,
        predictors: bool = True,
        corrections: bool = False,
        kernels: bool = False,
        variances: Sequence[float] | None = None,
    ):
        about = {"kind": "order-parameter"}
        super().__init__(task, grid, variances=variances, about=about)
        self.predictors, self.corrections = predictors, corrections
        self.kernels = kernels
        self.batch = len(self.temperatures)
        self._last: tuple[int, dict[float, Solution]] = -1, {}
        if kernels:
            check_kernels(task, self.grid)

    def row(self, number: int, tick: Tick, folder: Path | None) -> dict[str, Any]:
        i, j = divmod(number, len(self.temperatures))
        return self._row(self._saddle(i, j, tick))

    def _saddle(self, i: int, j: int, tick: Tick) -> Solution:
        """A saddle point of width `i`, sought from those of higher temperatures.

        Those of the width before are kept.
        """
        if self._last[0] != i:
            self._last = i, {}
        width, falling = (
            self.grid.width(self.grid.widths[i]),
            self.temperatures[j:][::-1],
        )
        for _ in along_falling_temperatures(
            self.problem, width, falling, self._last[1]
        ):
            tick(0.0)
        return self._last[1][self.temperatures[j]]

    def between(self, width: float, temperature: float, tick: Tick) -> dict[str, Any]:
        """The row of a width and a temperature that the grid need not have.

        It is what a grid with these as well would hold there.

        Args:
            width: one number, as in the grid.
            temperature: of the posterior.
            tick: called after every solution; it raises to end the search.
        """
        above = [T for T in reversed(self.temperatures) if T > temperature]
        solutions, size = {}, self.grid.width(width)
        tick(0.0)
        for _ in along_falling_temperatures(
            self.problem, size, [*above, temperature], solutions
        ):
            tick(0.0)
        return self._row(solutions[temperature])

    def _row(self, saddle: Solution) -> dict[str, Any]:
        row = of_saddle(saddle)
        if saddle.converged:
            theory = saddle.problem.theory(saddle)
            row |= predictor(theory, self.task, self.predictors)
            row |= alignment_and_scores(theory, saddle.U, saddle.U_a)
            row |= derivatives(saddle, self.task, row)
            if self.corrections:
                row |= corrected(self.task, saddle)
            if self.kernels:
                row["kernel"] = theory.kernel
        return self._completed(row)

    def _completed(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row, with NaN for arrays that a point lacks."""
        return {name: row.get(name, self._unknown(name)) for name in self._names()}

    def _unknown(self, name: str) -> np.ndarray:
        sizes, dims = self.sizes(), ANSWERS
        if name != RIGHT:
            dims = [d for d in VARIABLES.dims(name) if d not in self.axes]
        return np.full([sizes[dimension] for dimension in dims], np.nan)

    def _names(self) -> list[str]:
        """Names of the arrays that a point has."""
        U = [f"U_{l}" for l in range(1, len(self.task.heads) + 1)] + ["U_a"]
        predictor = ["predictor_mean", "predictor_variance"] * self.predictors
        differentiated = (*U, *predictor)
        predictor += ["accuracy"]
        corrected = [f"{name}_corrected" for name in (*U, *predictor)]
        corrected += ["log_evidence"]
        return [
            *U,
            *predictor,
            *(f"{name}{part}" for name in differentiated for part in BY.split()),
            *("action", "energy", "entropy", "gradient_norm", "iterations", "result"),
            *("signature", "accuracy_silenced", "kernel_overlap"),
            *("head_score", "head_score_floor"),
            *[RIGHT] * bool(self.task.sets),
            *corrected * self.corrections,
            *["kernel"] * self.kernels,
        ]

    def with_accuracies(self, variables: Contents) -> Contents:
        """Variables of a row, with accuracies on several test sets for answers.

        Args:
            variables: dimensions and values of the row.
        """
        if RIGHT not in variables:
            return variables
        counts, of_sets = self.task.counts, ANSWERS[:1]
        accuracy = shares(variables[RIGHT][1], counts)
        remaining = {name: x for name, x in variables.items() if name != RIGHT}
        return remaining | {
            "accuracy_sets": (of_sets, accuracy),
            "accuracy_sets_stderr": (of_sets, share_error(accuracy, counts)),
        }

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        """Converged without numbers; `result` says why another has none."""
        names = ["U_1", "action", "accuracy", *["predictor_mean"] * self.predictors]
        lost = lacking(arrays, *names)
        return lost & (arrays["result"] == 0)

    def derived(self, columns: Contents) -> Contents:
        """The GP limit, and the choice of a temperature, beside the points."""
        limits = gaussian_processes(self.problem, self.task, self.temperatures)
        contents = super().derived(columns) | limits
        contents["outside_support"] = ("width",), singular_laws(self.task, self.grid)
        if self.task.sets:
            right, limit = (contents.pop(name)[1] for name in (RIGHT, f"{RIGHT}_gp"))
            sets = dict(zip(self.task.sets, self.task.counts, strict=True))
            contents |= chosen_temperature.variables(
                right, limit, self.temperatures, sets, self.task.choices
            )
        if self.kernels:
            contents |= kernels_of_paths(self.problem)
        return contents


def of_saddle(saddle: Solution) -> dict[str, Any]:
    """Order parameters, action and convergence of a saddle point, by name."""
    names = ("U_a", "action", "energy", "entropy", "gradient_norm", "iterations")
    variables = {name: np.asarray(getattr(saddle, name)) for name in names}
    for layer, U in enumerate(saddle.U, 1):
        variables[f"U_{layer}"] = np.asarray(U)
    variables["result"] = np.asarray(saddle.result, np.int8)
    variables["signature"] = np.asarray(saddle.signature)
    return variables


def singular_laws(task: LearningTask, grid: Grid) -> list[bool]:
    """Whether the saddle points of each width lie outside the exact law's support."""
    widths = [prior.prior(grid.width(N), task.heads).widths for N in grid.widths]
    return prior.outside_support(widths, prior.sizes(task.branches)).tolist()


def predictor(theory: Theory, task: LearningTask, predictors: bool) -> dict[str, Any]:
    """Accuracy, also without each head and on all test sets.

    `predictors`: whether f of every test example is kept as well.
    """
    row: dict[str, Any] = {"accuracy_silenced": accuracy_silenced(theory, task)}
    if predictors:
        f = theory.predict(task.xi_test)
        row |= {"predictor_mean": f.mean, "predictor_variance": f.variance}
    mean = row["predictor_mean"] if predictors else theory.mean(task.xi_test)
    row["accuracy"] = accuracy(mean, task.Y_test)
    if task.sets:
        row[RIGHT] = right_answers(theory, task)
    return row


def derivatives(
    saddle: Solution, task: LearningTask, row: Mapping[str, Any]
) -> dict[str, Any]:
    """Derivatives of results in ln T (where T > 0), and in ln N of all widths together.

    By a second solution beside the first, of which two or three Newton steps are
    needed: comparisons say by these which error of T or N they would see.  `row` has
    order parameters, and f of every test example where that is kept.
    """
    problem, slopes = saddle.problem, {}
    factor = np.exp(STEP)
    beside = {"_by_width": {"width": np.asarray(problem.widths) * factor}}
    if problem.temperature > 0:
        changed = {"temperature": float(problem.temperature) * factor}
        beside["_by_temperature"] = changed
    for ending, change in beside.items():
        moved = problem.at(**change).solve(start=saddle)
        if moved.converged:
            values = {"U_a": np.asarray(moved.U_a)}
            values |= {
                f"U_{layer}": np.asarray(U) for layer, U in enumerate(moved.U, 1)
            }
            if "predictor_mean" in row:
                f = moved.predict(task.xi_test)
                values |= {"predictor_mean": f.mean, "predictor_variance": f.variance}
            slopes |= {n + ending: (x - row[n]) / STEP for n, x in values.items()}
    return slopes


def right_answers(theory: Theory, task: LearningTask) -> np.ndarray:
    """Whether each example of each test set is answered rightly, 1 or 0.

    NaN beyond the examples of a set that has fewer than others.
    """
    right = np.full((len(task.tests), max(task.counts)), np.nan)
    for of_set, (xi, y) in zip(right, task.tests, strict=True):
        of_set[: len(y)] = correct(theory.mean(xi), y)
    return right


def accuracy_silenced(theory: Theory, task: LearningTask) -> list[float]:
    """Accuracy without each head in turn.

    NaN for the only head of a layer, and at temperature zero where the kernel of the
    other paths has no inverse.
    """
    accuracies = []
    for layer, count in enumerate(task.branches):
        for head in range(count):
            if count == 1:
                accuracies.append(np.nan)
                continue
            try:
                without = theory.silenced([(layer, head)])
            except ValueError:
                if theory.problem.temperature > 0:
                    raise
                accuracies.append(np.nan)
                continue
            accuracies.append(accuracy(without.mean(task.xi_test), task.Y_test))
    return accuracies


def corrected(task: LearningTask, saddle: Solution) -> dict[str, Any]:
    """Order parameters and predictor to order 1/N.

    Nothing where a width is below the number of paths, or the problem too large.
    """
    if saddle.outside_support:
        return {}
    try:
        better = saddle.problem.corrections(saddle)
    except ValueError:  # too large for memory
        return {}
    f = better.predict(task.xi_test)
    row = {f"U_{layer}_corrected": U for layer, U in enumerate(better.U, 1)}
    return row | {
        "U_a_corrected": better.U_a,
        "predictor_mean_corrected": f.mean,
        "predictor_variance_corrected": f.variance,
        "accuracy_corrected": accuracy(f.mean, task.Y_test),
        "log_evidence": better.log_evidence,
    }


def gaussian_processes(
    problem: Problem, task: LearningTask, temperatures: Sequence[float]
) -> Contents:
    """The limit of large widths, at every temperature.

    Of a task with one test set also networks with one or two of the paths only.  NaN at
    temperature zero for a kernel that has no inverse.
    """
    limit = gp_limit(problem)
    right = lambda chosen, T: _limit_right(limit, task, chosen, T)
    every = np.arange(task.xi.shape[2])
    answers = np.stack([right(every, T) for T in temperatures])
    variables: Contents = {
        "accuracy_gp": (
            ("temperature",),
            shares(answers, task.counts)[:, 0],
        ),
        "kernel_overlap_gp": (("rank",), limit.overlap()[:RANKS]),
    }
    if task.sets:
        return variables | {f"{RIGHT}_gp": (("temperature", *ANSWERS), answers)}
    pairs = np.empty((len(temperatures), every.size, every.size))
    for i, T in enumerate(temperatures):
        for a, b in zip(*np.tril_indices(every.size)):
            pairs[i, a, b] = pairs[i, b, a] = right(np.unique([a, b]), T)[0].mean()
    return variables | {
        "accuracy_gp_pair": (("temperature", *task.path_dims(1)), pairs)
    }


def _limit_right(limit: Theory, task: LearningTask, chosen, temperature: float):
    """Right answers of some paths alone in the limit, on every test set."""
    part, sigma_0, width = task.of_paths(chosen), limit.problem.variances[0], 1
    network = Problem(
        *part.data,
        heads=(len(chosen),),
        width=width,
        temperature=temperature,
        variances=[sigma_0, 1, 1],
        form="factors",
    )
    try:
        theory = network.theory(limit.U[np.ix_(chosen, chosen)])
    except ValueError:
        if temperature > 0:
            raise
        return np.full((len(part.tests), max(part.counts)), np.nan)
    return right_answers(theory, part)


def gp_limit(problem: Problem) -> Theory:
    """U and kernel in the limit of large widths, which no temperature enters."""
    return problem.at(temperature=1.0).gaussian_process()


def check_kernels(task: LearningTask, grid: Grid) -> None:
    """Refuse kernels that do not fit into memory."""
    P, paths = task.Y.size, task.xi.shape[2]
    needed = 8 * P**2 * (paths + int(np.prod(grid.shape)) + 1)
    if needed > LARGEST:
        raise ValueError(
            f"kernels: they need {size(needed)}, more than "
            f"{size(LARGEST)}; use fewer examples, widths or temperatures."
        )


def kernels_of_paths(problem: Problem) -> Contents:
    """Kernels of the single paths, and of the GP limit."""
    limit, pair = gp_limit(problem), ("example", "example_pair")
    single = [limit.restricted([a]).kernel for a in range(problem.xi.shape[2])]
    return {
        "path_kernel": (("path_1", *pair), np.stack(single)),
        "kernel_gp": (pair, limit.kernel),
    }
