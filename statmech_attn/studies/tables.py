"""What the tables of all study files share: types of values, and no unknown keys."""

import functools
import operator
import os
from collections.abc import Mapping
from dataclasses import fields, MISSING
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    get_args,
    Literal,
    Self,
    TYPE_CHECKING,
    TypeVar,
)

from pydantic import (
    BaseModel,
    ConfigDict,
    create_model,
    Discriminator,
    Field,
    model_validator,
    Tag,
)

from statmech_attn.options import declared, option_texts, Options, Seed, WholeNumber
from statmech_attn.studies.files import digests


MAX_POINTS = 10_000_000


class Table(BaseModel, frozen=True):
    """Known keys only, and every key a value of its own type.

    A `float` takes finite numbers, integers included, an `int` integers; neither takes
    `true`, `false` or a text, in any table.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def of(
    choices: type[Options],
    *names: str,
    step: str = "step",
    optional: bool = False,
    examples: Mapping[str, Any] = {},
    **defaults: Any,
) -> Any:
    """A table with options of a class, to be extended.

    Types, ranges, defaults, units and sentences are those of the class.  `names` are
    all options when none is given; `step` is the word for a step in units of keys; with
    `optional` each may be left out, and is None then; `examples` are values for
    templates of studies.
    """
    kinds, sentences = declared(choices), option_texts(choices)
    values = {field.name: field.default for field in fields(choices)} | defaults
    keys: dict[str, Any] = {}
    entries = []
    for name in names or kinds:
        sentence, unit = sentences[name]
        unit = f" ({unit.replace('step', step)})" if unit else ""
        entries.append(f"    {name}{unit}: {sentence}")
        default = ... if values[name] is MISSING else values[name]
        kind = kinds[name] if default is None else _without_none(kinds[name])
        if name in examples:
            keys[name] = (Annotated[kind, Field(examples=[examples[name]])], default)
            continue
        keys[name] = (kind | None, None) if optional else (kind, default)
    text = "\n".join([f"{choices.__name__}.", "", "Attributes:", *entries])
    return create_model(choices.__name__, __base__=Table, __doc__=text, **keys)


def _without_none(kind: Any) -> Any:
    """A type that a file can hold, which has no None."""
    if type(None) not in get_args(kind):
        return kind
    parts = [part for part in get_args(kind) if part is not type(None)]
    return functools.reduce(operator.or_, parts)


Choices = TypeVar("Choices", bound=Options)


def chosen(choices: type[Choices], table: Table, **others: Any) -> Choices:
    """The options that a table has, as the class in which they are declared.

    `others` are options that are no keys of the table, or have other values.
    """
    names = declared(choices).keys() & type(table).model_fields.keys()
    return choices(**{name: getattr(table, name) for name in names} | others)


class Range(Table, frozen=True):
    """Evenly spaced values, both ends included.

    Attributes:
        start: first value.
        stop: last value.
        num: number of values.
    """

    start: float
    stop: float
    num: Annotated[int, Field(ge=1, le=MAX_POINTS)]


class Interval(Table, frozen=True):
    """A range without steps.

    Attributes:
        start: lower end of its interval.
        stop: upper end of its interval.
    """

    start: float
    stop: float

    @model_validator(mode="after")
    def _upward(self):
        if not self.start < self.stop:
            raise ValueError(f"start must be below stop, {self.stop:g}")
        return self


TAGS = tuple("number list rows box range interval word count [key]".split())


def axis_form(value: Any) -> str:
    """Tag of the form in which the values of a parameter are given."""
    forms = {dict: "range", Range: "range", list: "list"}
    return forms.get(type(value), "number")


Number = Annotated[float, Tag("number")]
Values = Annotated[list[float], Field(min_length=1, fail_fast=True), Tag("list")]
Axis = Annotated[
    Number | Values | Annotated[Range, Tag("range")], Discriminator(axis_form)
]
Bounds = Annotated[
    Number | Annotated[Interval, Tag("interval")],
    Discriminator(
        lambda v: "interval" if isinstance(v, (dict, Interval)) else "number"
    ),
]
HowMany = Annotated[
    Annotated[Literal["all"], Tag("word")] | Annotated[WholeNumber, Tag("count")],
    Discriminator(lambda value: "word" if isinstance(value, str) else "count"),
]


class StudyTable(Table, frozen=True):
    """The whole of a study file; `kind` is the name of its row in `kinds.KINDS`.

    Attributes:
        kind: kind of the study.
        template: values of keys by their paths, such as "run.steps", with which a
            template runs within two minutes to a result worth looking at; needed where
            defaults and examples do not.
    """

    template: ClassVar[Mapping[str, Any]] = {}

    kind: Any

    @property
    def variant(self) -> str | None:
        """Which row of its kind the study is of, where there are several."""
        return None

    @property
    def seeds(self) -> dict[str, int]:
        """Seeds of all random numbers, by what they are for."""
        raise NotImplementedError

    @property
    def keeps_blocks(self) -> bool:
        """Whether a run keeps what it has beside its output, to go on after a kill."""
        return False

    def inputs(self) -> dict[str, str]:
        """SHA-256 of what the study reads beside its text, by name.

        A file that it names by its file name, images with their folder as in
        "omniglot/images_background.zip", a preset as "preset NAME".

        Raises:
            OSError: one of them cannot be read.
        """
        return {}

    def identity(self) -> dict[str, Any]:
        """What makes the computation another one: the study, and what it reads."""
        return self.model_dump(exclude_none=True) | {"inputs": self.inputs()}

    def files(self) -> list[Path]:
        """Files that the study names, and image files that it reads."""
        return []

    def code(self) -> list[str]:
        """References to the code that a run executes, as in `studies.code`."""
        return []

    def beside(self, folder: Path) -> Self:
        """The study with the files that it names looked up in its own folder.

        Args:
            folder: of the study file.
        """
        return self


class ListedStudy(StudyTable, frozen=True):
    """A study whose points may be a list in any number of parameters.

    Attributes:
        points: in the place of scanned parameters, a CSV file relative to the study:
            names of parameters in its first line, a point in each of the others.
    """

    if TYPE_CHECKING:
        parameters: Any
    points: str | None = Field(None, min_length=1, examples=["curve.csv"])

    @model_validator(mode="after")
    def _parameters_are_given(self):
        values = dict(self.parameters)
        if self.points is None and (not values or values.get("beta", 0.0) is None):
            missing = ".beta" if values else ""
            raise ValueError(
                f"parameters{missing}: is missing; give it, or a list as points"
            )
        return self

    def files(self) -> list[Path]:
        return super().files() + ([] if self.points is None else [Path(self.points)])

    def inputs(self) -> dict[str, str]:
        if self.points is None:
            return super().inputs()
        path = Path(self.points)
        return super().inputs() | {path.name: digests.of_file(path)}

    def beside(self, folder: Path) -> Self:
        study = super().beside(folder)
        if self.points is None:
            return study
        points = os.path.abspath(folder / self.points)
        return study.model_copy(update={"points": points})


class TaskTable(Table, frozen=True):
    """[task] of a study of learning; `name` is that of its row in `kinds.TASKS`.

    Attributes:
        templates: for some kinds of studies what `StudyTable.template` is with this
            task, beside the values of the kind itself.
        seed: seed of the random numbers with which the examples are drawn.
    """

    templates: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    name: Any
    seed: Seed = 0

    def inputs(self) -> dict[str, str]:
        """SHA-256 of the files that the examples are made from, by name."""
        return {}

    def files(self) -> list[Path]:
        """The same files."""
        return []

    def beside(self, folder: Path) -> Self:
        """The task with the files that it names looked up in a folder.

        Args:
            folder: of the study file.
        """
        return self

    def enlarged(self, examples: int) -> Self:
        """The task with so many training examples at least, where it draws them.

        Args:
            examples: smallest number of training examples.
        """
        if "n_train" not in type(self).model_fields:
            return self
        count = max(examples + examples % 2, getattr(self, "n_train", None) or 0)
        return self.model_copy(update={"n_train": count})


class LearningStudy(StudyTable, frozen=True):
    """A study with a task.

    Attributes:
        task: what is learned.
        run: numerical choices, with the seed of a study that draws random numbers.
    """

    if TYPE_CHECKING:
        task: Any
        run: Any

    @property
    def variant(self) -> str | None:
        return self.task.name

    @property
    def seeds(self) -> dict[str, int]:
        seeds = {"task": self.task.seed}
        if "seed" in type(self.run).model_fields:
            seeds["run"] = self.run.seed
        return seeds

    def inputs(self) -> dict[str, str]:
        return self.task.inputs()

    def files(self) -> list[Path]:
        return self.task.files()

    def beside(self, folder: Path) -> Self:
        return self.model_copy(update={"task": self.task.beside(folder)})


class AnyTask(LearningStudy, frozen=True):
    """A study of a kind that takes every task.

    Attributes:
        task: what is learned.
    """

    task: Any

    @classmethod
    def of_task(cls, table: type[TaskTable]) -> "type[AnyTask]":
        """The study of a task with this table."""
        return _of_task(cls, table)

    def __reduce__(self):
        """By content: the class of a study of some task stands in no module."""
        tree = self.model_dump(exclude_none=True)
        return _again, (type(self).__base__, type(self.task), tree)


def _again(study: type[AnyTask], table: type[TaskTable], tree: Any) -> AnyTask:
    return study.of_task(table).model_validate(tree)


@functools.cache
def _of_task(study: type[AnyTask], table: type[TaskTable]) -> type[AnyTask]:
    missing = any(field.is_required() for field in table.model_fields.values())
    default = ... if missing else table.model_validate({})
    task: Any = (table, default)
    model = create_model(
        study.__name__, __base__=study, __doc__=study.__doc__, task=task
    )
    (kind,) = get_args(study.model_fields["kind"].annotation)
    model.template = study.template | table.templates.get(kind, {})
    return model
