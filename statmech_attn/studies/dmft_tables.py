"""Tables of the studies of self-attention dynamics."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator, StrictBool, StrictInt

from statmech_attn.studies.tables import (
    Axis,
    Count,
    Finite,
    HowMany,
    Seed,
    StudyTable,
    Table,
    WholeNumber,
)


SIZES = {  # what patterns generated from a seed need, besides seed and context
    "random-segments": ("n_patterns", "n_segments", "n_bits"),
    "random-independent": ("n_patterns", "n_sites", "n_bits"),
    "cycle": ("n_patterns", "n_bits"),
}


class NetworkSpec(Table):
    """[network]: a preset, a pattern file, or patterns generated from a seed."""

    patterns: str = "poclopez-pe2"
    context: Count | None = None
    fractions: list[Finite] | None = None
    n_patterns: Count | None = None
    n_segments: Count | None = None
    n_sites: Count | None = None
    n_bits: WholeNumber | None = None
    seed: Seed | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of generated patterns, by keyword."""
        return {name: getattr(self, name) for name in SIZES[self.patterns]}

    @model_validator(mode="after")
    def _generated_need_sizes(self):
        needed: set[str] = set()
        if self.patterns in SIZES:
            needed = {"seed", *SIZES[self.patterns]}
            missing = [k for k in (*needed, "context") if getattr(self, k) is None]
            if missing:
                names = ", ".join(sorted(missing))
                raise ValueError(f"patterns = {self.patterns!r} needs {names}")
        every = {"seed"}.union(*SIZES.values())
        extra = sorted(k for k in every - needed if getattr(self, k) is not None)
        if extra:
            raise ValueError(
                f"{', '.join(extra)} has no use with patterns = {self.patterns!r}"
            )
        return self


class ParametersSpec(Table):
    """[parameters]: numbers, lists or ranges; gamma, epsilon default to the file's."""

    beta: Axis
    gamma: Axis | None = None
    epsilon: Axis | None = None


class RunSpec(Table):
    """Keys of [run] that every kind has; counts are token steps."""

    start: Literal["checkpoint", "token", "random"] | None = None
    row: WholeNumber = 0
    seed: Seed = 0
    transient: WholeNumber = 0
    steps: Count = 1000


class TrajectoryRun(RunSpec):
    """Kept steps after a transient, and sqrt(N) times the linear-noise spread."""

    noise: StrictBool = False


class BifurcationRun(RunSpec):
    start: (
        Literal["checkpoint", "token", "random", "continue-up", "continue-down"] | None
    ) = None
    starts: Count = 1
    transient: WholeNumber = 20_000
    steps: Count = 20_000
    extend: StrictBool = True
    max_doublings: Annotated[StrictInt, Field(ge=0, le=16)] = 4
    refine: Annotated[StrictInt, Field(ge=0, le=10)] = 0
    exponents: HowMany = 4
    section_tolerance: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1e-3
    section_samples: Count = 128
    strobe_samples: Count = 64

    @model_validator(mode="after")
    def _starts_are_random(self):
        if self.starts > 1 and self.start != "random":
            raise ValueError('starts > 1 needs start = "random"')
        return self

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


class MonteCarloRun(RunSpec):
    """`transient` is left out of averages; `mean_field_transient` moves the start."""

    method: Literal["collapsed", "spins"] = "collapsed"
    n_spins: Annotated[list[Count], Field(min_length=1)]
    runs: Annotated[StrictInt, Field(ge=2)] = 100
    stored: WholeNumber = 1
    steps: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = 200
    mean_field_transient: WholeNumber = 0

    @model_validator(mode="after")
    def _something_is_averaged(self):
        if self.transient >= self.steps:
            raise ValueError("transient must be below steps, or nothing is averaged")
        if self.stored > self.runs:
            raise ValueError("stored must not exceed runs")
        return self


class DmftStudy(StudyTable):
    """What the studies of self-attention dynamics share."""

    network: NetworkSpec = NetworkSpec()
    parameters: ParametersSpec
    run: RunSpec

    @property
    def seeds(self) -> dict[str, int]:
        return {"seed": self.run.seed}

    def beside(self, folder: Path) -> Self:
        name = self.network.patterns
        if not name.endswith(".json") or Path(name).is_absolute():
            return self
        network = self.network.model_copy(update={"patterns": str(folder / name)})
        return self.model_copy(update={"network": network})


class TrajectoryStudy(DmftStudy):
    kind: Literal["trajectory"]
    run: TrajectoryRun = TrajectoryRun()


class BifurcationStudy(DmftStudy):
    kind: Literal["bifurcation"]
    run: BifurcationRun = BifurcationRun()


class MonteCarloStudy(DmftStudy):
    kind: Literal["monte-carlo"]
    run: MonteCarloRun
