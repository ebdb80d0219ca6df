"""Study files: TOML, checked before anything runs.

A study names its kind, its network, its parameters and its numerical choices; the
same study gives the same numbers.  Every error is one line: the key's path, what came
and what is allowed.
"""

import difflib
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    model_validator,
    StrictBool,
    StrictInt,
    Tag,
    ValidationError,
)


Finite = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Count = Annotated[StrictInt, Field(ge=1)]
WholeNumber = Annotated[StrictInt, Field(ge=0)]
Seed = Annotated[StrictInt, Field(ge=0, lt=2**32)]
SIZES = {  # what patterns generated from a seed need, besides seed and context
    "random-segments": ("n_patterns", "n_segments", "n_bits"),
    "random-independent": ("n_patterns", "n_sites", "n_bits"),
    "cycle": ("n_patterns", "n_bits"),
}
MAX_POINTS = 10_000_000


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Range(_Table):
    """Evenly spaced values, both ends included."""

    start: Finite
    stop: Finite
    num: Annotated[StrictInt, Field(ge=1, le=MAX_POINTS)]

    def values(self) -> np.ndarray:
        return np.linspace(self.start, self.stop, self.num)


TAGS = ("number", "list", "range", "word", "count")


def _axis_form(value: Any) -> str:
    forms = {dict: "range", Range: "range", list: "list"}
    return forms.get(type(value), "number")


Number = Annotated[Finite, Tag("number")]
Values = Annotated[list[Finite], Field(min_length=1), Tag("list")]
Axis = Annotated[
    Number | Values | Annotated[Range, Tag("range")], Discriminator(_axis_form)
]
HowMany = Annotated[
    Annotated[Literal["all"], Tag("word")] | Annotated[WholeNumber, Tag("count")],
    Discriminator(lambda value: "word" if isinstance(value, str) else "count"),
]


class NetworkSpec(_Table):
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


class ParametersSpec(_Table):
    """[parameters]: numbers, lists or ranges; gamma, epsilon default to the file's."""

    beta: Axis
    gamma: Axis | None = None
    epsilon: Axis | None = None


class RunSpec(_Table):
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
    exponents: HowMany = 4
    section_tolerance: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1e-3
    section_samples: Count = 128
    strobe_samples: Count = 64

    @model_validator(mode="after")
    def _starts_are_random(self):
        if self.starts > 1 and self.start != "random":
            raise ValueError('starts > 1 needs start = "random"')
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


class _Study(_Table):
    network: NetworkSpec = NetworkSpec()
    parameters: ParametersSpec


class TrajectoryStudy(_Study):
    kind: Literal["trajectory"]
    run: TrajectoryRun = TrajectoryRun()


class BifurcationStudy(_Study):
    kind: Literal["bifurcation"]
    run: BifurcationRun = BifurcationRun()


class MonteCarloStudy(_Study):
    kind: Literal["monte-carlo"]
    run: MonteCarloRun


Study = TrajectoryStudy | BifurcationStudy | MonteCarloStudy
KINDS: dict[str, type[_Study]] = {
    "trajectory": TrajectoryStudy,
    "bifurcation": BifurcationStudy,
    "monte-carlo": MonteCarloStudy,
}


def load(path: str | Path, settings: Sequence[str] = ()) -> tuple[Study, str]:
    """Read a study file; `settings` such as "run.steps=500" override its keys.

    Pattern files named in it are relative to its folder.

    Returns:
        The checked study, and its full text as stored with the results (the overrides
        are appended as a comment-free, complete TOML document).

    Raises:
        ValueError: not TOML, or a key that is unknown, missing or impossible.
        OSError: the file cannot be read.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file.") from None
    tree = _toml(text, str(path))
    for setting in settings:
        _override(tree, setting)
    if settings:
        text = dump(tree)
    study = parse(tree, str(path))
    return _beside(study, path.parent), text


def parse(tree: dict[str, Any], name: str = "study") -> Study:
    """Check a study given as nested dictionaries."""
    kind = tree.get("kind")
    if kind is None:
        raise ValueError(f"{name}: kind is missing; allowed: {', '.join(KINDS)}.")
    if not isinstance(kind, str) or kind not in KINDS:
        hint = _nearest(str(kind), list(KINDS)) or ";"
        raise ValueError(f"{name}: no kind {kind!r}{hint} allowed: {', '.join(KINDS)}.")
    try:
        return KINDS[kind].model_validate(tree)  # type: ignore[return-value]
    except ValidationError as error:
        raise ValueError(f"{name}: {_one_line(error, KINDS[kind])}") from None


def dump(tree: dict[str, Any]) -> str:
    """Nested dictionaries of numbers, strings and lists as TOML."""
    plain = [f"{k} = {_value(v)}" for k, v in tree.items() if not isinstance(v, dict)]
    tables = [
        f"\n[{k}]\n" + "\n".join(f"{key} = {_value(x)}" for key, x in v.items())
        for k, v in tree.items()
        if isinstance(v, dict)
    ]
    return "\n".join(plain + tables) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{name}: not valid TOML: {error}.") from None


def _override(tree: dict[str, Any], setting: str) -> None:
    path, equals, text = setting.partition("=")
    keys = [key.strip() for key in path.split(".")]
    if not equals or not all(keys):
        raise ValueError(f"--set {setting}: write it as table.key=value.")
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise ValueError(f"--set {setting}: {key} is a value, not a table.")
    tree[keys[-1]] = value


def _beside(study: Study, folder: Path) -> Study:
    """Resolve a relative pattern file against the folder of the study file."""
    name = study.network.patterns
    if name.endswith(".json") and not Path(name).is_absolute():
        network = study.network.model_copy(update={"patterns": str(folder / name)})
        return study.model_copy(update={"network": network})
    return study


def _one_line(error: ValidationError, model: type[_Study]) -> str:
    """The first error as `key.path: what is wrong; what is allowed`."""
    errors = error.errors()
    unknown = [e for e in errors if e["type"] == "extra_forbidden"]
    first = (unknown or errors)[0]
    location = [str(part) for part in first["loc"] if part not in TAGS]
    path = ".".join(location)
    if first["type"] == "extra_forbidden":
        allowed = _keys_at(model, first["loc"][:-1])
        hint = _nearest(location[-1], allowed) or ";"
        return f"{path}: unknown key{hint} allowed here: {', '.join(allowed)}."
    if first["type"] == "missing":
        return f"{path}: is missing."
    message = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if first["type"] in ("model_type", "dict_type"):
        message = "should be a table"
    got = first["input"]
    shown = "" if isinstance(got, (dict, BaseModel)) else f"; got {got!r}"
    return f"{path}: {message}{shown}."


def _keys_at(model: type[BaseModel], location: Sequence[Any]) -> list[str]:
    """Keys that the table at `location` allows."""
    if "range" in location:
        return list(Range.model_fields)
    for key in location:
        model = model.model_fields[key].annotation  # type: ignore[assignment]
    return list(model.model_fields)


def _nearest(word: str, allowed: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, allowed, n=1)
    return f" (did you mean {near[0]!r}?);" if near else ""
