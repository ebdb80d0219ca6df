"""What a study can name: kinds, tasks, samplers and generators, a row each.

A row says where the parts of a kind are, as "module:name", and is all that the rest of
the package knows of it.  Rows of kinds and tasks stand in the wing of `studies` that
has their parts; here are the names.  Nothing is imported before it is needed.

Another distribution adds a row by an entry point that carries the name of the row:

    [project.entry-points."statmech_attn.kinds"]
    walk = "walks:KIND"

Groups are `statmech_attn.kinds`, `statmech_attn.tasks`, `statmech_attn.samplers` and
`statmech_attn.generators`; docs/plugins.md has a whole example.
"""

import functools
import importlib
import importlib.metadata
from collections.abc import Iterator, Mapping
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
        summary: `cli.Summary` of what `info` shows; the sizes where there is none.
        pictures: of a file: modules of `plotting` whose functions are registered as
            such, in their order; or where a sequence of `plotting.Picture` is.
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
        draw: function of the table that gives a `studies.LearningTask`.
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
        places: rows of the package by name, themselves or as "module:name".
    """

    def __init__(
        self,
        what: str,
        group: str,
        row: type[Row],
        places: Mapping[str, tuple[Row | str, ...]],
    ):
        self._what, self.group, self._type = what, group, row
        self.places = dict(places)

    def __iter__(self) -> Iterator[Row]:
        """Every row."""
        for name in self.names():
            yield from self.named(name)

    def names(self) -> list[str]:
        """Of all rows; those of other distributions last, which are not loaded."""
        others = (entry.name for entry in installed(self.group))
        return list(dict.fromkeys([*self.places, *others]))

    def named(self, name: object) -> list[Row]:
        """Rows of a name; none where nobody has it.

        Raises:
            ValueError: a row of another distribution that cannot be loaded, or two that
                claim the name; one line that says whose they are.
        """
        places = self.places.get(name, ()) if isinstance(name, str) else ()
        rows: list[Any] = [_at(x) if isinstance(x, str) else x for x in places]
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
        self.places[row.name] = (row,)

    def part(self, row: Row, name: str) -> Any:
        """What a field of a row leads to; None where it leads nowhere."""
        where = getattr(row, name)
        if not isinstance(where, str):
            return where
        if not where:
            return None
        try:
            return _at(where)
        except (Exception, SystemExit) as error:
            for entry in installed(self.group):
                if entry.name == row.name:
                    self._refuse(entry, f"{name} = {where!r}: {_brief(error)}", error)
            raise

    def _loaded(self, entry: importlib.metadata.EntryPoint) -> Row:
        try:
            row = entry.load()
        except (Exception, SystemExit) as error:
            self._refuse(entry, _brief(error), error)
        if not isinstance(row, self._type) or row.name != entry.name:
            kind = self._type.__name__
            why = f"{entry.value} is no {kind} of the name {entry.name!r}"
            self._refuse(entry, why)
        return row

    def _refuse(self, entry, why: str, error: BaseException | None = None):
        raise ValueError(f"{self._said(entry)} cannot be loaded: {why}.") from error

    def _said(self, entry: importlib.metadata.EntryPoint) -> str:
        return f"{self._what} {entry.name!r} of {_distribution(entry)}"


def _at(where: str) -> Any:
    """What stands at "module:name"."""
    module, _, attribute = where.partition(":")
    return getattr(importlib.import_module(module), attribute)


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
    known = entry.dist
    return f"{known.name} {known.version}" if known else "an unknown distribution"


def _brief(error: BaseException) -> str:
    """An error in one line."""
    words = " ".join(str(error).split()).removesuffix(".")
    return f"{type(error).__name__}: {words[:200]}"


EVERY, SYSTEM = "*", "system"
BLOCK = "block"  # of a template: a system from weights
_WINGS = "statmech_attn.studies"


def _by_name(*rows: Row) -> dict[str, tuple[Row, ...]]:
    return {row.name: (row,) for row in rows}


def _wings(rows: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Places of rows by name, from "wing:ROW" each."""
    whole = lambda places: tuple(f"{_WINGS}.{place}" for place in places.split())
    return {name: whole(places) for name, places in rows.items()}


KINDS = Rows(
    "kind",
    "statmech_attn.kinds",
    Kind,
    _wings(
        {
            "trajectory": "network:TRAJECTORY systems:TRAJECTORY",
            "response": "network:RESPONSE",
            "bifurcation": "network:BIFURCATION systems:BIFURCATION",
            "diagram": "files.rows:DIAGRAM",
            "finite-size": "network:FINITE_SIZE",
            "continuation": "network:CONTINUATION systems:CONTINUATION",
            "monte-carlo": "network:MONTE_CARLO",
            "extensive": "extensive:ORDER_PARAMETERS",
            "extensive-simulation": "extensive:SAMPLES",
            "capacity": "extensive:CAPACITIES",
            "capacity-spins": "files.rows:CAPACITY_SPINS",
            "crosstalk-spins": "files.rows:CROSSTALK_SPINS",
            "order-parameter": "learning:ORDER_PARAMETER one_shot:ORDER_PARAMETER",
            "posterior": "learning:POSTERIOR",
            "learning-curve": "learning:LEARNING_CURVE",
            "model-selection": "learning:MODEL_SELECTION",
            "training": "learning:TRAINING one_shot:TRAINING",
            "pruning": "learning:PRUNING one_shot:PRUNING",
            "basins": "network:BASINS systems:BASINS",
            "hysteresis": "files.rows:HYSTERESIS",
            "comparison": "files.rows:TRAJECTORIES files.rows:POSTERIORS "
            "files.rows:EXTENSIVE",
            "head-scores": "files.rows:HEAD_SCORES",
            "ablation": "files.rows:ABLATION",
            "running-lyapunov": "files.rows:RUNNING_LYAPUNOV",
            "chaos-indicators": "files.rows:CHAOS_INDICATORS",
            "covariant-vectors": "files.rows:COVARIANT_VECTORS",
            "covariant-diagram": "files.rows:COVARIANT_DIAGRAM",
            "unstable-cycles": "files.rows:UNSTABLE_CYCLES",
            "plane-basins": "files.rows:PLANE_BASINS",
        }
    ),
)
TASKS = Rows(
    "task",
    "statmech_attn.tasks",
    TaskKind,
    _wings(
        {
            "hidden-markov": "learning:HIDDEN_MARKOV",
            "one-shot": "one_shot:TASK",
            "arrays": "learning:ARRAYS",
        }
    ),
)
_SAMPLES = "statmech_attn.montecarlo.posterior_samples"
SAMPLERS = Rows(
    "sampler",
    "statmech_attn.samplers",
    SamplerKind,
    _by_name(
        SamplerKind("order-parameter", "", adapts=True, momenta=True),
        SamplerKind("weights", f"{_SAMPLES}.nuts:nuts", adapts=True, momenta=True),
        SamplerKind("langevin", f"{_SAMPLES}.langevin:langevin"),
    ),
)


def _generator(name: str, *sizes: str) -> GeneratorKind:
    place = f"statmech_attn.dmft.patterns:{name.replace('-', '_')}"
    return GeneratorKind(name, place, sizes)


GENERATORS = Rows(
    "generator",
    "statmech_attn.generators",
    GeneratorKind,
    _by_name(
        _generator("random-segments", "n_patterns", "n_segments", "n_bits"),
        _generator("random-independent", "n_patterns", "n_sites", "n_bits"),
        _generator("cycle", "n_patterns", "n_bits"),
    ),
)


def studied() -> list[str]:
    """Names of all kinds of study."""
    files = f"{_WINGS}.files."
    tabled = lambda name: not str(KINDS.places.get(name, ("",))[0]).startswith(files)
    return [name for name in KINDS.names() if tabled(name)]


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
