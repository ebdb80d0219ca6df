"""What a study can name: kinds, tasks, samplers and generators, a row each.

A row says where the parts of a kind are, as "module:name", and is all that the rest of
the package knows of it.  Nothing is imported before it is needed.

Another distribution adds a row by an entry point that carries the name of the row:

    [project.entry-points."statmech_attn.kinds"]
    walk = "walks:KIND"

Groups are `statmech_attn.kinds`, `statmech_attn.tasks`, `statmech_attn.samplers` and
`statmech_attn.generators`; docs/plugins.md has a whole example.
"""

import functools
import importlib
import importlib.metadata
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar


Where = Any  # "module:name", or the thing itself


class Kind(NamedTuple):
    """A kind of study, or of file where it has no table.

    Attributes:
        name: as in `kind = "..."`, and the attribute `kind` of its files.
        task: of which task the row is; "*": of every one in `TASKS`; "": the kind has
            no task, or one of its own; "system": of studies with the table [system].
        table: `studies.StudyTable` of the study file.
        work: function of the table that gives a `scan.Work`.
        batched: whether it takes the keyword `batch` as well; see `scan.Work`.
        variables: `labels.Variables` of the result file.
        summary: `cli.Summary` of what `info` prints; the sizes where there is none.
        pictures: of a file, each a `plotting.Picture`.
        dimension: which of the files of this name are of this row: those that have it.
        rows: dimensions, or variables that have them, of what is a point of a file and
            a row of an exported table; the first dimension where there are none.
        padding: variable that is NaN, or a count of 0 or -1, where lists are padded.
    """

    name: str
    task: str = ""
    table: Where = ""
    work: Where = ""
    batched: bool = False
    variables: Where = ""
    summary: Where = ""
    pictures: Where = ""
    dimension: str = ""
    rows: str = ""
    padding: str = ""


class TaskKind(NamedTuple):
    """A learning task for the Bayesian theory.

    Attributes:
        name: as in `task.name`.
        table: `studies.TaskTable` of the table [task].
        draw: function of the table that gives a `studies.Learning`.
        example: function of a folder that writes the files that a template names there,
            and gives the path of the first; nowhere where it names none.
    """

    name: str
    table: Where
    draw: Where
    example: Where = ""


class SamplerKind(NamedTuple):
    """A Markov chain that samples the posterior of all weights.

    Attributes:
        name: as in `run.method` of a posterior study.
        build: function of the log density and the keyword `step_size` that gives a
            `montecarlo.Sampler`; nowhere for the exact law of the order parameters,
            which samples no weights.
        adapts: whether it adapts the step size, and takes the number of steps that it
            has for that as the keyword `warmup`.
        momenta: whether every draw has new momenta, so that energies can be compared.
    """

    name: str
    build: Where
    adapts: bool = False
    momenta: bool = False


class GeneratorKind(NamedTuple):
    """A generator of patterns of an attention network.

    Attributes:
        name: as in `network.patterns`.
        draw: function of a random key and of sizes, as keywords, that gives
            `dmft.Patterns`.
        sizes: these keywords, out of n_patterns, n_segments, n_sites and n_bits.
    """

    name: str
    draw: Where
    sizes: tuple[str, ...]


Row = TypeVar("Row", Kind, TaskKind, SamplerKind, GeneratorKind)


class Rows(Generic[Row]):
    """Rows by name: those of the package, and those of other distributions.

    Args:
        what: a row is, in messages.
        group: of the entry points.
        row: type of the rows.
    """

    def __init__(self, what: str, group: str, row: type[Row], rows: list[Row]):
        self._what, self.group, self._type, self._rows = what, group, row, rows

    def __iter__(self) -> Iterator[Row]:
        """Every row.

        Raises:
            ValueError: one of another distribution cannot be used.
        """
        for name in self.names():
            yield from self.named(name)

    @property
    def built_in(self) -> list[Row]:
        """Rows of the package, and those added to this process."""
        return self._rows

    def names(self) -> list[str]:
        """Of all rows; those of other distributions last, which are not loaded."""
        others = (entry.name for entry in installed(self.group))
        return list(dict.fromkeys([*(row.name for row in self._rows), *others]))

    def named(self, name: object) -> list[Row]:
        """Rows of a name; none where nobody has it.

        Raises:
            ValueError: a row of another distribution that cannot be loaded, or two that
                claim the name; one line that says whose they are.
        """
        rows = [row for row in self._rows if row.name == name]
        entries = [entry for entry in installed(self.group) if entry.name == name]
        if not entries:
            return rows
        first, *others = entries
        if rows or others:
            other = _distribution(others[0]) if others else "statmech_attn itself"
            raise ValueError(
                f"{self._said(first)} has a name that is taken by {other}; uninstall "
                "one of them."
            )
        return [self._loaded(first)]

    def add(self, row: Row) -> None:
        """Make a row known to this process alone.

        Raises:
            ValueError: the name is taken.
        """
        if row.name in self.names():
            raise ValueError(f"{self._what} {row.name!r} is there already.")
        self._rows.append(row)

    def part(self, row: Row, name: str) -> Any:
        """What a field of a row leads to; None where it leads nowhere.

        Raises:
            ValueError: it cannot be imported from another distribution.
        """
        where = getattr(row, name)
        if not isinstance(where, str):
            return where
        if not where:
            return None
        try:
            module, _, attribute = where.partition(":")
            return getattr(importlib.import_module(module), attribute)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit too
            for entry in installed(self.group):
                if entry.name == row.name:
                    self._refuse(entry, f"{name} = {where!r}: {_brief(error)}", error)
            raise

    def _loaded(self, entry: importlib.metadata.EntryPoint) -> Row:
        try:
            row = entry.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit too
            self._refuse(entry, _brief(error), error)
        if not isinstance(row, self._type) or row.name != entry.name:
            self._refuse(
                entry,
                f"{entry.value} is no {self._type.__name__} of the name {entry.name!r}",
            )
        return row

    def _refuse(self, entry, why: str, error: BaseException | None = None):
        raise ValueError(f"{self._said(entry)} cannot be loaded: {why}.") from error

    def _said(self, entry: importlib.metadata.EntryPoint) -> str:
        return f"{self._what} {entry.name!r} of {_distribution(entry)}"


@functools.cache
def installed(group: str) -> tuple[importlib.metadata.EntryPoint, ...]:
    """Entry points of a group, none of them loaded."""
    return tuple(importlib.metadata.entry_points(group=group))


def owner(module: str) -> str:
    """The distribution whose kinds, tasks or samplers a module belongs to, or nothing.

    Example:
        >>> owner("numpy.linalg")
        ''
    """
    package = module.partition(".")[0]
    for rows in (KINDS, TASKS, SAMPLERS, GENERATORS):
        for entry in installed(rows.group):
            if entry.module.partition(".")[0] == package:
                return _distribution(entry)
    return ""


def _distribution(entry: importlib.metadata.EntryPoint) -> str:
    distribution = entry.dist
    return (
        f"{distribution.name} {distribution.version}"
        if distribution
        else "an unknown distribution"
    )


def _brief(error: BaseException) -> str:
    """An error in one line."""
    words = " ".join(str(error).split()).removesuffix(".")
    return f"{type(error).__name__}: {words[:200]}"


EVERY, SYSTEM = "*", "system"
_STUDIES, _DRAWING = "statmech_attn.studies", "statmech_attn.plotting.drawing"
_SUMMARY = "statmech_attn.cli.summary"
_LEARNING = "statmech_attn.cli.learning_summary"
_EXTENSIVE = "statmech_attn.cli.extensive_summary"

_BIFURCATION = Kind(
    "bifurcation",
    table=f"{_STUDIES}.dmft_tables:BifurcationStudy",
    work=f"{_STUDIES}.bifurcation:work",
    batched=True,
    variables=f"{_STUDIES}.bifurcation:VARIABLES",
    summary=f"{_SUMMARY}:BIFURCATION",
    pictures=f"{_DRAWING}:BIFURCATION",
    rows="section_count phase",
)
_CONTINUATION = Kind(
    "continuation",
    table=f"{_STUDIES}.dmft_tables:ContinuationStudy",
    work=f"{_STUDIES}.continuation:work",
    variables=f"{_STUDIES}.continuation:VARIABLES",
    summary=f"{_SUMMARY}:CONTINUATION",
    pictures=f"{_DRAWING}:CONTINUATION",
    rows="branch point",
    padding="arclength",
)
_BASINS = Kind(
    "basins",
    table=f"{_STUDIES}.basins_table:BasinsStudy",
    work=f"{_STUDIES}.basins:work",
    variables=f"{_STUDIES}.basins:VARIABLES",
    summary=f"{_SUMMARY}:BASINS",
    pictures=f"{_DRAWING}:BASINS",
    rows="count",
    padding="count",
)
_ORDER_PARAMETER = Kind(
    "order-parameter",
    task="*",
    table=f"{_STUDIES}.bpkr_tables:OrderParameterStudy",
    work=f"{_STUDIES}.order_parameter:work",
    variables=f"{_STUDIES}.order_parameter:VARIABLES",
    summary=f"{_LEARNING}:ORDER_PARAMETERS",
    pictures=f"{_DRAWING}:ORDER_PARAMETER",
    rows="action",
)
_PRUNING = Kind(
    "pruning",
    task="*",
    table=f"{_STUDIES}.pruning_table:LearnedPruningStudy",
    work=f"{_STUDIES}.pruning:work",
    variables=f"{_STUDIES}.pruning:VARIABLES",
    summary=f"{_LEARNING}:PRUNING",
    pictures=f"{_DRAWING}:PRUNING",
    rows="restart",
)
KINDS = Rows(
    "kind",
    "statmech_attn.kinds",
    Kind,
    [
        Kind(
            "trajectory",
            table=f"{_STUDIES}.dmft_tables:TrajectoryStudy",
            work=f"{_STUDIES}.trajectory:of_network",
            batched=True,
            variables="statmech_attn.dmft.trajectories:VARIABLES",
            summary=f"{_SUMMARY}:TRAJECTORY",
            pictures=f"{_DRAWING}:TRAJECTORY",
            rows="beta time",
        ),
        Kind(
            "trajectory",
            task=SYSTEM,
            table=f"{_STUDIES}.system_tables:SystemTrajectoryStudy",
            work=f"{_STUDIES}.trajectory:of_system",
            batched=True,
            variables="statmech_attn.dynamics.trajectories:VARIABLES",
            pictures=f"{_DRAWING}:OWN_TRAJECTORY",
            dimension="observable",
        ),
        _BIFURCATION,
        _BIFURCATION._replace(
            task=SYSTEM, table=f"{_STUDIES}.system_tables:SystemDiagramStudy"
        ),
        Kind(
            "diagram",
            variables="statmech_attn.dynamics.diagrams:VARIABLES",
            summary=f"{_SUMMARY}:BIFURCATION",
            pictures=f"{_DRAWING}:DIAGRAM",
            rows="section_count phase",
        ),
        _CONTINUATION,
        _CONTINUATION._replace(
            task=SYSTEM, table=f"{_STUDIES}.system_tables:SystemContinuationStudy"
        ),
        Kind(
            "monte-carlo",
            table=f"{_STUDIES}.dmft_tables:MonteCarloStudy",
            work=f"{_STUDIES}.monte_carlo:work",
            batched=True,
            variables="statmech_attn.montecarlo.dataset:VARIABLES",
            pictures=f"{_DRAWING}:MONTE_CARLO",
            rows="n_spins beta time",
        ),
        Kind(
            "extensive",
            table=f"{_STUDIES}.extensive_tables:ExtensiveStudy",
            work=f"{_STUDIES}.extensive:order_parameters",
            variables="statmech_attn.dmft.extensive.order_parameters:VARIABLES",
            summary=f"{_EXTENSIVE}:THEORY",
            pictures=f"{_DRAWING}:EXTENSIVE",
            rows="noise_std",
        ),
        Kind(
            "extensive-simulation",
            table=f"{_STUDIES}.extensive_tables:ExtensiveSimulationStudy",
            work=f"{_STUDIES}.extensive:samples",
            variables="statmech_attn.montecarlo.extensive_samples:VARIABLES",
            summary=f"{_EXTENSIVE}:SIMULATION",
            pictures=f"{_DRAWING}:EXTENSIVE_SIMULATION",
            rows="A_mean",
        ),
        Kind(
            "capacity",
            table=f"{_STUDIES}.extensive_tables:CapacityStudy",
            work=f"{_STUDIES}.extensive:capacities",
            variables="statmech_attn.dmft.extensive.capacities:VARIABLES",
            summary=f"{_EXTENSIVE}:CAPACITIES",
            pictures=f"{_DRAWING}:CAPACITY",
            rows="capacity",
        ),
        _ORDER_PARAMETER,
        _ORDER_PARAMETER._replace(
            task="one-shot",
            table=f"{_STUDIES}.trained_tables:OneShotOrderParameterStudy",
        ),
        Kind(
            "posterior",
            task="*",
            table=f"{_STUDIES}.bpkr_tables:PosteriorStudy",
            work=f"{_STUDIES}.posterior:work",
            variables=f"{_STUDIES}.posterior:VARIABLES",
            summary=f"{_LEARNING}:POSTERIOR",
            pictures=f"{_DRAWING}:POSTERIOR",
            rows="U_a",
        ),
        Kind(
            "learning-curve",
            task="*",
            table=f"{_STUDIES}.learning_curve_table:LearningCurveStudy",
            work=f"{_STUDIES}.learning_curve:work",
            variables=f"{_STUDIES}.learning_curve:VARIABLES",
            summary=f"{_LEARNING}:LEARNING_CURVE",
            pictures=f"{_DRAWING}:LEARNING_CURVE",
            rows="error",
        ),
        Kind(
            "model-selection",
            task="*",
            table=f"{_STUDIES}.selection_table:ModelSelectionStudy",
            work=f"{_STUDIES}.selection:work",
            variables=f"{_STUDIES}.selection:VARIABLES",
            summary=f"{_LEARNING}:MODEL_SELECTION",
            pictures=f"{_DRAWING}:MODEL_SELECTION",
            rows="log_evidence",
        ),
        Kind(
            "training",
            task="*",
            table=f"{_STUDIES}.bpkr_tables:TrainingStudy",
            work=f"{_STUDIES}.training:work",
            variables=f"{_STUDIES}.training:VARIABLES",
            summary=f"{_LEARNING}:TRAINING",
            pictures=f"{_DRAWING}:TRAINING",
            rows="U_a",
        ),
        Kind(
            "training",
            task="one-shot",
            table=f"{_STUDIES}.one_shot_tables:OneShotTrainingStudy",
            work=f"{_STUDIES}.one_shot_training:work",
            variables=f"{_STUDIES}.one_shot_training:VARIABLES",
            summary=f"{_LEARNING}:NETWORKS",
            pictures=f"{_DRAWING}:ONE_SHOT_TRAINING",
            rows="restart",
            dimension="test_set",
        ),
        _PRUNING,
        _PRUNING._replace(
            task="one-shot",
            table=f"{_STUDIES}.pruning_table:PruningStudy",
            work=f"{_STUDIES}.pruning:of_trained",
        ),
        _BASINS,
        _BASINS._replace(
            task=SYSTEM,
            table=f"{_STUDIES}.basins_table:SystemBasinsStudy",
            variables=f"{_STUDIES}.basins:SYSTEM_VARIABLES",
            dimension="observable",
        ),
        Kind(
            "hysteresis",
            variables="statmech_attn.dynamics.diagrams.hysteresis:VARIABLES",
            summary=f"{_SUMMARY}:HYSTERESIS",
            pictures=f"{_DRAWING}:HYSTERESIS",
            rows="number",
        ),
        Kind(
            "comparison",
            variables="statmech_attn.comparison.trajectories:VARIABLES",
            summary=f"{_SUMMARY}:COMPARISON",
            pictures=f"{_DRAWING}:COMPARISON",
            rows="largest_z",
        ),
        Kind(
            "comparison",
            variables="statmech_attn.comparison.posteriors:VARIABLES",
            summary=f"{_LEARNING}:ESTIMATES",
            pictures=f"{_DRAWING}:POSTERIORS_COMPARED",
            rows="verdict",
            dimension="estimate",
        ),
        Kind(
            "comparison",
            variables="statmech_attn.comparison.extensive:VARIABLES",
            summary=f"{_EXTENSIVE}:COMPARED",
            pictures=f"{_DRAWING}:EXTENSIVE_COMPARED",
            rows="verdict",
            dimension="observable",
        ),
        Kind(
            "head-scores",
            variables="statmech_attn.bpkr.scores:VARIABLES",
            summary=f"{_LEARNING}:HEAD_SCORES",
            pictures=f"{_DRAWING}:HEAD_SCORES",
            rows="head_score",
        ),
        Kind(
            "running-lyapunov",
            variables=f"{_STUDIES}.records:RUNNING_LYAPUNOV",
            summary=f"{_SUMMARY}:BIFURCATION",
            pictures=f"{_DRAWING}:RUNNING_LYAPUNOV",
            rows="beta",
        ),
        Kind(
            "chaos-indicators",
            variables=f"{_STUDIES}.records:CHAOS_INDICATORS",
            pictures=f"{_DRAWING}:CHAOS_INDICATORS",
            rows="beta",
        ),
        Kind(
            "benchmark",
            variables=f"{_STUDIES}.records:BENCHMARK",
            pictures=f"{_DRAWING}:BENCHMARK",
        ),
    ],
)
TASKS = Rows(
    "task",
    "statmech_attn.tasks",
    TaskKind,
    [
        TaskKind(
            "hidden-markov",
            table=f"{_STUDIES}.bpkr_tables:HiddenMarkovTable",
            draw=f"{_STUDIES}.learning:hidden_markov_chains",
        ),
        TaskKind(
            "one-shot",
            table=f"{_STUDIES}.trained_tables:RestartTask",
            draw=f"{_STUDIES}.one_shot:learning",
        ),
        TaskKind(
            "arrays",
            table=f"{_STUDIES}.bpkr_tables:ArraysTask",
            draw=f"{_STUDIES}.arrays:learning",
            example="statmech_attn.tasks.arrays:write_example",
        ),
    ],
)
SAMPLERS = Rows(
    "sampler",
    "statmech_attn.samplers",
    SamplerKind,
    [
        SamplerKind("order-parameter", "", adapts=True, momenta=True),
        SamplerKind(
            "weights", "statmech_attn.montecarlo.nuts:nuts", adapts=True, momenta=True
        ),
        SamplerKind("langevin", "statmech_attn.montecarlo.langevin:langevin"),
    ],
)

_PATTERNS = "statmech_attn.dmft.patterns"
GENERATORS = Rows(
    "generator",
    "statmech_attn.generators",
    GeneratorKind,
    [
        GeneratorKind(
            "random-segments",
            f"{_PATTERNS}:random_segments",
            ("n_patterns", "n_segments", "n_bits"),
        ),
        GeneratorKind(
            "random-independent",
            f"{_PATTERNS}:random_independent",
            ("n_patterns", "n_sites", "n_bits"),
        ),
        GeneratorKind("cycle", f"{_PATTERNS}:cycle", ("n_patterns", "n_bits")),
    ],
)


def studied() -> list[str]:
    """Names of all kinds of study."""
    untabled = {row.name for row in KINDS.built_in if not row.table}
    return [name for name in KINDS.names() if name not in untabled]


def of_study(name: object, task: object = None) -> Kind | None:
    """The row of a study file: of its task, of every task, or of none.

    Example:
        >>> of_study("training", "one-shot").table.split(":")[1]
        'OneShotTrainingStudy'
    """
    rows = {row.task: row for row in KINDS.named(name) if row.table}
    of_task = rows.get(task) if isinstance(task, str) else None
    return of_task or rows.get(EVERY) or rows.get("")


def of_file(name: object, dimensions: Any = ()) -> Kind | None:
    """The row of a result file, by its attribute `kind` and its dimensions.

    Example:
        >>> of_file("comparison", {"estimate": 3}).dimension
        'estimate'
    """
    rows = KINDS.named(name)
    special = [row for row in rows if row.dimension and row.dimension in dimensions]
    plain = [row for row in rows if not row.dimension]
    return next(iter(special + plain), None)
