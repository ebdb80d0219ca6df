"""Tables of the studies of self-attention dynamics."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TYPE_CHECKING

from pydantic import Field, model_validator

from statmech_attn.dynamics import BasinPlan, diagrams, Search
from statmech_attn.kinds import GeneratorKind, GENERATORS
from statmech_attn.options import Count, Seed, WholeNumber
from statmech_attn.studies.files import digests
from statmech_attn.studies.tables import (
    Axis,
    HowMany,
    ListedStudy,
    of,
    Range,
    StudyTable,
    Table,
)


SIZES = ("n_patterns", "n_segments", "n_sites", "n_bits")  # of generated patterns


Start = Literal["checkpoint", "token", "random"]
AnyStart = Literal[Start, "continue-up", "continue-down"]


class NetworkSpec(Table, frozen=True):
    """[network]: a preset, a pattern file, or patterns generated from a seed.

    Attributes:
        patterns: name of a preset, a pattern file (.json) beside the study, or a
            generator, such as random-segments, random-independent, cycle.
        context (token): length C of the context window; that of the file when left out.
        stretch (token): tokens in the place of one, in the window and in the positional
            code; with redrawn = 1/stretch, both last as long as without.
        fractions: fractions of sites in the site classes, which sum to one.
        n_patterns: number M of generated patterns.
        n_segments: number of segments of generated patterns.
        n_sites: number of site classes of generated patterns.
        n_bits: number of bits of the positional code of generated patterns.
        seed: seed of generated patterns.
    """

    patterns: str = "poclopez-pe2"
    context: Count | None = None
    stretch: Count = 1
    fractions: list[float] | None = None
    n_patterns: Count | None = None
    n_segments: Count | None = None
    n_sites: Count | None = None
    n_bits: WholeNumber | None = None
    seed: Seed | None = None

    @property
    def generator(self) -> GeneratorKind | None:
        """What generates the patterns, if that is asked for."""
        return next(iter(GENERATORS.named(self.patterns)), None)

    @model_validator(mode="after")
    def _generated_need_sizes(self):
        generator = self.generator
        needed = {"seed", *generator.sizes} if generator else set()
        missing = [k for k in (*needed, "context") if getattr(self, k) is None]
        if generator and missing:
            names = ", ".join(sorted(missing))
            raise ValueError(f"patterns = {self.patterns!r} needs {names}")
        others = {"seed", *SIZES} - needed
        extra = sorted(k for k in others if getattr(self, k) is not None)
        if extra:
            raise ValueError(
                f"{', '.join(extra)} has no use with patterns = {self.patterns!r}"
            )
        return self


class ParametersSpec(Table, frozen=True):
    """[parameters]: numbers, lists or ranges; gamma, epsilon default to the file's.

    Attributes:
        beta: inverse temperature of the output.
        gamma: inverse temperature of attention; that of the pattern file when left out.
        epsilon: weight of the positional part; that of the pattern file when left out.
    """

    beta: Annotated[Axis, Field(examples=[{"start": 0.5, "stop": 2.5, "num": 21}])]
    gamma: Axis | None = None
    epsilon: Axis | None = None


class MixedSpec(ParametersSpec, frozen=True):
    """[parameters]: numbers, lists or ranges; gamma, epsilon default to the file's.

    Attributes:
        redrawn: probability with which a spin of the next token is redrawn, else
            copied; all spins are redrawn when left out.
    """

    redrawn: Axis | None = None


class ListedSpec(ParametersSpec, frozen=True):
    """[parameters]: those that are no columns of a list of points.

    Attributes:
        beta: inverse temperature of the output; needed without a list of points.
    """

    beta: Axis | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


class ListedMixedSpec(  # pyright: ignore[reportIncompatibleVariableOverride]
    ListedSpec, MixedSpec, frozen=True
):
    """[parameters]: those that are no columns of a list of points."""


class StartSpec(Table, frozen=True):
    """Keys of [run] that every kind has; counts are token steps.

    Attributes:
        start: state that orbits start from; the checkpoint of the pattern file where it
            fits, else a token, when left out.
        row: number of the pattern that a start from a token repeats.
        seed: seed of random initial conditions and of all random numbers of a run.
        transient (token): steps before anything is kept or averaged.
    """

    start: AnyStart | None = None
    row: WholeNumber = 0
    seed: Seed = 0
    transient: WholeNumber = 0


class RunSpec(StartSpec, frozen=True):
    """Keys of [run] of what is iterated.

    Attributes:
        steps (token): steps that are kept or averaged.
    """

    steps: Count = 1000


class TrajectoryRun(RunSpec, frozen=True):
    """Kept steps after a transient, and sqrt(N) times the linear-noise spread.

    Attributes:
        noise: whether the spread of the linear noise is computed as well.
        entropy_production: whether the entropy production of every token is computed,
            which takes three times as long.
    """

    start: Start | None = None
    noise: bool = False
    entropy_production: bool = False


class ConfirmSpec(of(diagrams.Confirm, step="token")):
    """run.confirm: doubtful points again, from perturbed states and for longer."""


class DiagramRun(Table, frozen=True):
    """Keys of [run] of a diagram of any system.

    Attributes:
        starts: random starts of every point.
        extend: whether the window of an undecided point is doubled.
        exponents: Lyapunov exponents that are computed, the largest first; 0: neither
            exponents nor phases.
        refine: levels of bisection where neighbours have different phases.
    """

    if TYPE_CHECKING:
        start: Any = None
        confirm: Any = None
        max_doublings: Any = None
        seed: Any = None
    starts: Count = 1
    extend: bool = True
    exponents: HowMany = diagrams.Plan.exponents
    refine: Annotated[int, Field(ge=0, le=10)] = 0

    @model_validator(mode="after")
    def _refinement_sees_phases(self):
        if self.refine and (self.start or "").startswith("continue"):
            raise ValueError(
                "refine needs points that do not depend on their neighbours; "
                f"start = {self.start!r} follows them"
            )
        if self.refine and self.exponents == 0:
            raise ValueError("refine compares phases, which need exponents > 0")
        return self

    @model_validator(mode="after")
    def _verdicts_are_confirmed(self):
        confirmed = "confirm" in self.model_fields_set and self.confirm.starts
        if confirmed and self.exponents == 0:
            raise ValueError("confirm repeats verdicts, which need exponents > 0")
        return self


class BifurcationRun(
    of(
        diagrams.Plan,
        "transient",
        "steps",
        "max_doublings",
        "section_tolerance",
        "section_samples",
        "strobe_samples",
        "compiler",
        "entropy_production",
        step="token",
    ),
    DiagramRun,
    RunSpec,
    frozen=True,
):
    """[run] of a scan.

    Attributes:
        start: state that orbits start from; the checkpoint of the pattern file where it
            fits, else a token, when left out; "continue-up" and "continue-down" follow
            attractors along the first parameter.
        section_tolerance: half width of the section in the second overlap.
        confirm: how doubtful verdicts are confirmed; starts = 0: not at all.
    """

    start: AnyStart | None = None
    confirm: ConfirmSpec = ConfirmSpec()

    @model_validator(mode="after")
    def _starts_are_random(self):
        if self.starts > 1 and self.start != "random":
            raise ValueError('starts > 1 needs start = "random"')
        return self


class MonteCarloRun(RunSpec, frozen=True):
    """`transient` is left out of averages; `mean_field_transient` moves the start.

    Attributes:
        method: how the local fields are drawn: from the counts of site classes, or spin
            by spin.
        n_spins: numbers N of spins.
        runs: independent runs of every N and beta.
        stored: runs whose trajectories are kept.
        steps (token): steps of a run.
        mean_field_transient (token): mean-field steps before the start.
        entropy_production: whether its rate is averaged over the kept steps of every
            run, less the last C; takes 10 to 45 % longer.
    """

    start: Start | None = None
    method: Literal["collapsed", "spins"] = "collapsed"
    n_spins: Annotated[list[Count], Field(min_length=1, examples=[[3_000, 300_000]])]
    runs: Annotated[int, Field(ge=2)] = 100
    stored: WholeNumber = 1
    steps: Annotated[int, Field(ge=1, le=1_000_000)] = 200
    mean_field_transient: WholeNumber = 0
    entropy_production: bool = False

    @model_validator(mode="after")
    def _something_is_averaged(self):
        if self.transient >= self.steps:
            raise ValueError(
                f"transient must be below steps, {self.steps}, or nothing is averaged; "
                f"got {self.transient}"
            )
        if self.stored > self.runs:
            raise ValueError(
                f"stored must not exceed runs, {self.runs}; got {self.stored}"
            )
        return self


class ResponseRun(StartSpec, frozen=True):
    """Linear response to a field along a pattern, and spectra of the linear noise.

    Attributes:
        transient (token): steps before the orbit is looked at.
        frequencies (rad / token): frequencies of the field.
        field: family of the pattern along which the field acts.
        pattern: number of that pattern, from 0.
        longest (token): longest period that is looked for.
    """

    start: Start | None = None
    transient: WholeNumber = 20_000
    frequencies: Annotated[
        Axis, Field(examples=[{"start": 0.01, "stop": 3.14, "num": 300}])
    ] = Range(start=0.01, stop=3.14, num=300)
    field: Literal["o", "v", "q", "k"] = "v"
    pattern: WholeNumber = 0
    longest: Count = 1024


class NetworkStudy(StudyTable, frozen=True):
    """A study of a network.

    Attributes:
        network: preset, pattern file or generator.
        parameters: numbers, lists or ranges { start, stop, num }.
        run: numerical choices.
    """

    network: NetworkSpec = NetworkSpec()
    parameters: Table
    run: Table

    def files(self) -> list[Path]:
        path = Path(self.network.patterns)
        return [path] if path.suffix == ".json" else []

    def inputs(self) -> dict[str, str]:
        return {path.name: digests.of_file(path) for path in self.files()}

    def beside(self, folder: Path) -> Self:
        name = self.network.patterns
        if not name.endswith(".json"):
            return self
        path = os.path.abspath(folder / name)
        network = self.network.model_copy(update={"patterns": path})
        return self.model_copy(update={"network": network})


class DmftStudy(NetworkStudy, frozen=True):
    """What the studies of self-attention dynamics share."""

    run: StartSpec

    @property
    def seeds(self) -> dict[str, int]:
        return {"seed": self.run.seed}


class TrajectoryStudy(DmftStudy, frozen=True):
    """Trajectories of the mean-field map, at several beta."""

    template: ClassVar[Mapping[str, Any]] = {
        "parameters.beta": [1.0, 1.255, 1.27, 1.28, 1.4]
    }

    kind: Literal["trajectory"]
    parameters: MixedSpec
    run: TrajectoryRun = TrajectoryRun()


class ResponseStudy(DmftStudy, frozen=True):
    """Susceptibilities, spectra and effective temperatures, at several beta."""

    template: ClassVar[Mapping[str, Any]] = {"parameters.beta": [1.0, 1.2, 1.24]}

    kind: Literal["response"]
    parameters: MixedSpec
    run: ResponseRun = ResponseRun()


class BifurcationStudy(ListedStudy, DmftStudy, frozen=True):
    """Attractors on a grid: sections, Lyapunov exponents, phases."""

    template: ClassVar[Mapping[str, Any]] = {
        "parameters.beta": {"start": 1.1, "stop": 1.5, "num": 101}
    }

    kind: Literal["bifurcation"]
    parameters: ListedMixedSpec = ListedMixedSpec()
    run: BifurcationRun = BifurcationRun()


class MonteCarloStudy(ListedStudy, DmftStudy, frozen=True):
    """Simulations of N spins, at several N and beta."""

    template: ClassVar[Mapping[str, Any]] = {"parameters.beta": [1.0, 1.255, 1.28, 1.4]}

    kind: Literal["monte-carlo"]
    parameters: ListedMixedSpec = ListedMixedSpec()
    run: MonteCarloRun

    @model_validator(mode="after")
    def _copied_spins_are_counted(self):
        if self.parameters.redrawn is not None and self.run.method == "spins":
            raise ValueError(
                'parameters.redrawn needs run.method = "collapsed", which has the same '
                "law"
            )
        return self


class SearchRun(Table, frozen=True):
    """Keys of [run] of basins of any system.

    Attributes:
        starts: random starts at every value of the parameter.
        exponents: Lyapunov exponents of an attractor.
    """

    starts: Annotated[int, Field(ge=2)] = 88
    exponents: Count = 2


class BasinsRun(
    of(
        Search,
        "transient",
        "horizon",
        "capture",
        step="token",
        transient=50_000,
        horizon=200_000,
    ),
    of(BasinPlan, "steps", "points", "matching", "furthest", step="token"),
    SearchRun,
    RunSpec,
    frozen=True,
):
    """Random starts, how long they are followed, and how sets are matched.

    Attributes:
        start: starts are random.
    """

    start: Literal["random"] = "random"


class BasinsStudy(ListedStudy, DmftStudy, frozen=True):
    """Attractors at several values of a parameter, and their basins."""

    template: ClassVar[Mapping[str, Any]] = {
        "parameters.beta": {"start": 0.5, "stop": 2.5, "num": 21}
    }

    kind: Literal["basins"]
    parameters: ListedSpec = ListedSpec()
    run: BasinsRun = BasinsRun()
