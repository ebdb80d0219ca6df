"""Tables of the studies of a system of one's own: any map or flow in Python."""

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, model_validator, Tag

from statmech_attn.dynamics import BasinPlan, continuation, diagrams, Search
from statmech_attn.options import Count, Positive, Seed, WholeNumber
from statmech_attn.studies.files import digests, user_code
from statmech_attn.studies.network.continuation_table import CycleRun, Followed
from statmech_attn.studies.network.tables import DiagramRun, SearchRun
from statmech_attn.studies.tables import (
    Axis,
    Bounds,
    Interval,
    ListedStudy,
    Number,
    of,
    StudyTable,
    Table,
    Values,
)


NAME = r"^[^\W\d]\w*$"


def _written(pattern: str, words: str) -> AfterValidator:
    """A text of some form."""

    def check(text: str) -> str:
        if re.match(pattern, text) is None:
            raise ValueError(f"should be {words}")
        return text

    return AfterValidator(check)


def _pattern(pattern: str) -> Any:
    """The same for the schema."""
    return Field(json_schema_extra={"pattern": pattern})


OBSERVE = rf"{NAME}|{user_code.REFERENCE}"
Reference = Annotated[
    str,
    _written(user_code.REFERENCE, '"my_model.py:name" or "package.module:name"'),
    _pattern(user_code.REFERENCE),
]
Name = Annotated[
    str, _written(NAME, "a name of letters, digits and underscores"), _pattern(NAME)
]
Observe = Annotated[
    str,
    _written(OBSERVE, 'the name of a function, or "my_model.py:name"'),
    _pattern(OBSERVE),
]
Rows = Annotated[list[list[float]], Field(min_length=1, fail_fast=True), Tag("rows")]


def _numbers_form(value: Any) -> str:
    if not isinstance(value, list):
        return "number"
    return "rows" if value and isinstance(value[0], list) else "list"


def _initial_form(value: Any) -> str:
    return "box" if isinstance(value, (dict, Box)) else _numbers_form(value)


Numbers = Annotated[Number | Values | Rows, Discriminator(_numbers_form)]


class Box(Table, frozen=True):
    """Random initial states, uniform between two corners.

    Attributes:
        low: lower corner; a number is that of every coordinate.
        high: upper corner; a number is that of every coordinate.
        shape: of a state, where both corners are numbers; a number when left out.
    """

    low: Numbers
    high: Numbers
    shape: list[Count] | None = None


Initial = Annotated[
    Number | Values | Rows | Annotated[Box, Tag("box")], Discriminator(_initial_form)
]


class FlowSpec(Table, frozen=True):
    """[system.flow]: the function is a vector field; a step is the flow over a time.

    Attributes:
        time: length of one step, in the units of the flow.
        substeps: steps of the solver within one step.
    """

    time: Positive
    substeps: Count


class SectionSpec(Table, frozen=True):
    """[system.section]: where the shown observable is recorded.

    Attributes:
        observable: name of the observable that decides.
        value: value of that observable on the section.
        tolerance: half width of the section; when left out, the section is where the
            observable crosses the value from below, between two steps.
    """

    observable: Annotated[Name, Field(examples=["x"])]
    value: Annotated[float, Field(examples=[0.0])]
    tolerance: Positive | None = None


class BlockSpec(Table, frozen=True):
    """[system.block]: the transformer block that weights belong to.

    Attributes:
        norm: layer norm, or division by the root mean square.
        epsilon: what norms add to the variance: 1e-5 in PyTorch, 1e-6 in Flax.
        post: whether norms follow heads and MLP, as in layers of PyTorch by default,
            and do not stand before them.
        closing: whether a norm ends every step; where norms do not follow heads and
            MLP, when left out.
        activation: function of the MLP; "gelu" is the usual approximation,
            "exact-gelu" the function itself, as in PyTorch.
        causal: whether a token sees only itself and those before it.
    """

    norm: Literal["layer", "rms"] = "layer"
    epsilon: Positive = 1e-5
    post: bool = False
    closing: Annotated[bool | None, Field(examples=[True])] = None
    activation: Literal["gelu", "exact-gelu", "relu"] = "gelu"
    causal: bool = False


class SystemSpec(Table, frozen=True):
    """[system]: a function in Python or weights, where it starts, what is observed.

    Attributes:
        function: "my_model.py:step", a file relative to the study, or
            "package.module:step": a JAX function (state, parameters) -> state, or a
            `dynamics.System`; parameters are a dictionary with the names of
            [parameters].
        weights: in place of a function, a file of arrays (npz or HDF5) relative to the
            study: the weights of a transformer block, which is looped; its parameters
            are `scale` of all branches and `temperature` of the attention.
        block: how these weights are used.
        initial: initial state, a number, a list or a list of lists; or a box { low,
            high } for random ones.
        observe: name of a function state -> numbers in the same file, or a reference
            to one; all coordinates when left out.
        observables: names of these numbers; x_1, x_2, ... when left out.
        shown: observable that diagrams show; the first one when left out.
        section: where diagrams record it; nowhere but at every step when left out.
        flow: the function is a vector field, followed for a time at every step.
        unit: what a step is, in a word.
    """

    function: Reference | None = Field(None, examples=["my_model.py:step"])
    weights: Annotated[str, Field(min_length=1)] | None = Field(
        None, examples=["block.npz"]
    )
    block: BlockSpec | None = None
    initial: Annotated[Initial, Field(examples=[{"low": -1.0, "high": 1.0}])]
    observe: Observe | None = Field(None, examples=["observe"])
    observables: list[Name] | None = Field(None, min_length=1, examples=[["x", "y"]])
    shown: Name | None = Field(None, examples=["x"])
    section: SectionSpec | None = None
    flow: FlowSpec | None = None
    unit: Annotated[str, Field(min_length=1)] | None = Field(None, examples=["step"])

    @model_validator(mode="after")
    def _one_source(self):
        if (self.function is None) == (self.weights is None):
            raise ValueError("system needs a function or weights, and not both")
        if self.weights is None and self.block is not None:
            raise ValueError("system.block says how weights are used; there are none")
        if self.weights is not None and self.flow is not None:
            raise ValueError("system.flow is of a function; weights have steps already")
        if self.function is None and self.observe and ":" not in self.observe:
            raise ValueError(
                'system.observe: with weights, write it as "my_model.py:name"'
            )
        return self

    @property
    def observer(self) -> str | None:
        """The reference of what is observed, with its file."""
        if self.function is None or self.observe is None or ":" in self.observe:
            return self.observe
        return f"{user_code.split(self.function)[0]}:{self.observe}"

    @property
    def references(self) -> list[str]:
        """Of all code, with the file of each."""
        return [x for x in (self.function, self.observer) if x is not None]

    @property
    def name(self) -> str:
        """In messages, and in the file."""
        if self.function is not None:
            return user_code.brief(self.function)
        return Path(str(self.weights)).name

    def beside(self, folder: Path) -> Self:
        """The system with its files looked up in a folder."""
        files = {}
        if self.function is not None:
            files["function"] = user_code.beside(self.function, folder)
        if self.weights is not None:
            files["weights"] = os.path.abspath(folder / self.weights)
        if self.observe is not None and ":" in self.observe:
            files["observe"] = user_code.beside(self.observe, folder)
        return self.model_copy(update=files)


class LabelSpec(Table, frozen=True):
    """A table of [labels]: how a parameter or an observable is labelled.

    Attributes:
        words: what it is, in words; the name when left out.
        unit: unit of the values, as UDUNITS writes it.
        symbol: symbol in formulas and figures; the name when left out.
    """

    words: str = ""
    unit: str = "1"
    symbol: str = ""


class SystemRun(Table, frozen=True):
    """Keys of [run] that every kind has.

    Attributes:
        seed: seed of random initial states and of all random numbers of a run.
    """

    seed: Seed = 0


FUNCTION = {"system.function": "my_model.py:step"}  # of templates
SCANNED = {"a": {"start": 0.0, "stop": 1.0, "num": 11}}
Grid = Annotated[dict[Name, Axis], Field(min_length=1, examples=[SCANNED])]


class SystemStudy(StudyTable, frozen=True):
    """What the studies of a system of one's own share.

    Attributes:
        system: the function or the weights, its initial state, and what is observed.
        parameters: by name, numbers, lists or ranges { start, stop, num }.
        labels: words, units and symbols of parameters and observables, by name.
        run: numerical choices.
    """

    system: SystemSpec
    parameters: dict[Name, Any]
    labels: dict[Name, LabelSpec] = {}
    run: SystemRun

    @property
    def variant(self) -> str:
        return "system"

    @property
    def seeds(self) -> dict[str, int]:
        return {"seed": self.run.seed}

    def code(self) -> list[str]:
        return self.system.references

    def files(self) -> list[Path]:
        files = [user_code.origin(reference) for reference in self.code()]
        return files + [Path(x) for x in (self.system.weights,) if x is not None]

    def inputs(self) -> dict[str, str]:
        of_code = user_code.digests_of(self.code())
        if self.system.weights is None:
            return of_code
        return of_code | {self.system.name: digests.of_file(Path(self.system.weights))}

    def beside(self, folder: Path) -> Self:
        return self.model_copy(update={"system": self.system.beside(folder)})

    def require_named(self, names: list[str]) -> None:
        """Refuse labels of what is no parameter and no observable."""
        for name in self.labels:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                hint = f" (did you mean {near[0]!r}?)" if near else ""
                raise ValueError(
                    f"labels.{name}: is no parameter and no observable{hint}; there "
                    f"are {', '.join(names)}."
                )


class ConfirmSpec(of(diagrams.Confirm)):
    """run.confirm: doubtful points again, from perturbed states and for longer."""


class SystemDiagramRun(
    of(
        diagrams.Plan,
        "transient",
        "steps",
        "max_doublings",
        "section_samples",
        "strobe_samples",
        "compiler",
    ),
    DiagramRun,
    SystemRun,
    frozen=True,
):
    """[run] of a diagram.

    Attributes:
        start: "continue-up" and "continue-down" follow attractors along the first
            parameter; every point begins at the initial state when left out.
        exponents: Lyapunov exponents that are computed, the largest first; 0: neither
            exponents nor phases; as many as there are coordinates, 4 at most, when left
            out.
        confirm: how doubtful verdicts are confirmed; starts = 0: not at all.
    """

    start: Literal["continue-up", "continue-down"] | None = None
    confirm: ConfirmSpec = ConfirmSpec()


class SystemDiagramStudy(ListedStudy, SystemStudy, frozen=True):
    """Attractors of a system of one's own: sections, Lyapunov exponents, phases."""

    template: ClassVar[Mapping[str, Any]] = FUNCTION | {
        "parameters": {"a": {"start": 0.51, "stop": 2.81, "num": 116}}
    }

    kind: Literal["bifurcation"]
    parameters: Grid = {}
    run: SystemDiagramRun = SystemDiagramRun()

    @model_validator(mode="after")
    def _starts_are_random(self):
        if self.run.starts > 1 and not isinstance(self.system.initial, Box):
            raise ValueError(
                "run.starts > 1 needs random states: system.initial = { low, high }"
            )
        return self


class SystemTrajectoryRun(SystemRun, frozen=True):
    """[run] of a trajectory.

    Attributes:
        transient (step): steps before anything is kept.
        steps (step): steps that are kept.
    """

    transient: WholeNumber = 0
    steps: Count = 1000


class SystemTrajectoryStudy(SystemStudy, frozen=True):
    """Trajectories of a system of one's own, at several values of a parameter."""

    template: ClassVar[Mapping[str, Any]] = FUNCTION | {
        "parameters": {"a": [1.5, 2.2, 2.4, 2.8]}
    }

    kind: Literal["trajectory"]
    parameters: Grid
    run: SystemTrajectoryRun = SystemTrajectoryRun()


class SystemContinuationRun(CycleRun, SystemRun, frozen=True):
    """[run] of a continuation.

    Attributes:
        transient (step): steps of the simulation before Newton's method.
    """

    transient: WholeNumber = 10_000


class SystemCurvesSpec(of(continuation.Settings, "max_points"), Interval, frozen=True):
    """[curves]: the second parameter in which special points are followed.

    Attributes:
        parameter: the second parameter.
        max_points: points of a curve at most.
    """

    parameter: Annotated[Name, Field(examples=["b"])]


class SystemContinuationStudy(Followed, SystemStudy, frozen=True):
    """A continuation of cycles of a system of one's own, stable or not.

    Attributes:
        parameters: by name, numbers, and one interval { start, stop }.
    """

    template: ClassVar[Mapping[str, Any]] = FUNCTION | {
        "parameters": {"a": {"start": 0.5, "stop": 2.5}},
        "run.at": 1.5,
        "run.switch": 2,
    }

    kind: Literal["continuation"]
    parameters: Annotated[
        dict[Name, Bounds],
        Field(min_length=1, examples=[{"a": {"start": 0.0, "stop": 1.0}, "b": 0.5}]),
    ]
    run: SystemContinuationRun = SystemContinuationRun()
    curves: SystemCurvesSpec | None = None

    @property
    def free(self) -> dict[str, Interval]:
        return {n: x for n, x in self.parameters.items() if isinstance(x, Interval)}

    @model_validator(mode="before")
    @classmethod
    def _one_is_free(cls, tree: Any) -> Any:
        values = tree.get("parameters") if isinstance(tree, dict) else None
        intervals = (dict, Interval)
        if (
            isinstance(values, dict)
            and values
            and (sum(isinstance(x, intervals) for x in values.values()) != 1)
        ):
            raise ValueError("parameters: give exactly one of them as { start, stop }")
        return tree

    @model_validator(mode="after")
    def _curves_in_a_parameter(self):
        if self.curves is not None and self.curves.parameter not in self.parameters:
            raise ValueError(
                f"curves.parameter must be one of {', '.join(self.parameters)}"
            )
        return self


class SystemBasinsRun(
    of(Search, "transient", "horizon", "record", "capture"),
    of(BasinPlan, "steps", "points", "matching", "furthest"),
    SearchRun,
    SystemRun,
    frozen=True,
):
    """Random starts, how long they are followed, and how sets are matched.

    Attributes:
        exponents: Lyapunov exponents of an attractor; as many as there are coordinates,
            2 at most, when left out.
    """


class SystemBasinsStudy(ListedStudy, SystemStudy, frozen=True):
    """Attractors of a system of one's own along a parameter, and their basins."""

    template: ClassVar[Mapping[str, Any]] = FUNCTION | {
        "parameters": {"a": {"start": 0.7, "stop": 2.5, "num": 10}}
    }

    kind: Literal["basins"]
    parameters: Grid = {}
    run: SystemBasinsRun = SystemBasinsRun()

    @model_validator(mode="after")
    def _starts_are_random(self):
        if not isinstance(self.system.initial, Box):
            raise ValueError(
                "system.initial must be a box, { low, high }, from which starts are "
                "drawn"
            )
        return self
