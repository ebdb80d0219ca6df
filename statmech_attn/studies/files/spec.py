"""Study files: TOML, checked before anything runs.

A study names its kind, its network, its parameters and its numerical choices; the
same study gives the same numbers.  Every error is one line: the key's path, what came
and what is allowed.
"""

import difflib
import reprlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError

from statmech_attn import inputs, kinds, refusals
from statmech_attn.options import either
from statmech_attn.storage import toml
from statmech_attn.studies.files import user_code
from statmech_attn.studies.tables import AnyTask, Interval, Range, StudyTable, TAGS


MAX_LENGTH = 2**22  # characters of a study file
LONGEST = 80  # characters of a name or value in a message
_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxlong = _BRIEF.maxother = LONGEST


dump = toml.dumps


def load(
    path: str | Path, settings: Sequence[str] = (), *, allow_code: bool = False
) -> tuple[StudyTable, str]:
    """Read a study file; `settings` such as "run.steps=500" override its keys.

    Files named in it are relative to its folder.  No code that it names is run.

    Args:
        path: study file (TOML).
        settings: such as "run.steps=500", which override keys of the file.
        allow_code: take a study whose code lies outside its folder as well.

    Returns:
        The checked study, and its full text as stored with the results (the overrides
        are appended as a comment-free, complete TOML document).

    Raises:
        ValueError: not TOML, a key that is unknown, missing or impossible, or code
            outside the folder.
        OSError: the file cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "scan.toml")
        ...     _ = path.write_text('kind = "bifurcation"\\n[parameters]\\nbeta = 1.4')
        ...     study, text = load(path, ["run.steps=500"])
        >>> study.run.steps
        500
    """
    path = Path(path)
    text = _text(path)
    tree = _toml(text, str(path))
    for setting in settings:
        _override(tree, setting)
    if settings:
        text = dump(tree)
    study = parse(tree, str(path)).beside(path.parent)
    if not allow_code:
        user_code.require_inside(study.code(), path.parent)
    return study, text


def parse(tree: dict[str, Any], name: str = "study") -> StudyTable:
    """Check a study that is given as nested dictionaries.

    Args:
        tree: tables and keys, as in a study file.
        name: of the study, in messages.

    Returns:
        The checked study, with all defaults filled in.

    Raises:
        ValueError: a key that is unknown, missing or out of range, in one line.

    Example:
        >>> study = parse({"kind": "trajectory", "parameters": {"beta": 1.4}})
        >>> study.run.steps > 0
        True
    """
    try:
        model = model_of(tree)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        raise ValueError(f"{name}: {_one_line(error, model)}") from None


def model_of(tree: dict[str, Any]) -> type[StudyTable]:
    """The tables of a study: those of its kind, and of its task where it has one."""
    kind, names = tree.get("kind"), kinds.studied()
    if kind is None:
        raise ValueError(f"kind is missing; allowed: {', '.join(names)}.")
    task = _task(tree)
    row = kinds.of_study(kind, kinds.SYSTEM if "system" in tree else task)
    if row is None:
        hint = _nearest(kind, names) or ";"
        raise ValueError(f"no kind {_shown(kind)}{hint} allowed: {', '.join(names)}.")
    if "system" in tree and row.task != kinds.SYSTEM:
        allowed = [other.name for other in kinds.KINDS if other.task == kinds.SYSTEM]
        raise ValueError(
            f"system: a {kind} study takes none of one's own; kinds that do: "
            f"{', '.join(allowed)}."
        )
    model = kinds.KINDS.part(row, "table")
    return model if not issubclass(model, AnyTask) else of_task(model, task)


def of_task(model: type[AnyTask], task: Any) -> type[AnyTask]:
    """The tables of a study for a task by its name, the first one when it is None."""
    names = kinds.TASKS.names()
    rows = kinds.TASKS.named(names[0] if task is None else task)
    if not rows:
        raise ValueError(f"task.name: should be {either(names)}; got {_shown(task)}.")
    return model.of_task(kinds.TASKS.part(rows[0], "table"))


def models() -> Iterator[tuple[str, str, type[StudyTable]]]:
    """Every kind of study with each of its tasks ("" for none), and its tables."""
    for row in kinds.KINDS:
        model = kinds.KINDS.part(row, "table")
        if model is None:
            continue
        if not issubclass(model, AnyTask):
            yield row.name, row.task, model
            continue
        tasks = {other.task for other in kinds.KINDS.named(row.name)}
        every = [task for task in kinds.TASKS.names() if task not in tasks]
        for task in every if row.task == kinds.EVERY else [row.task]:
            yield row.name, task, of_task(model, task)


def _task(tree: dict[str, Any]) -> Any:
    """Name of the task, if it has one."""
    task = tree.get("task")
    return task.get("name") if isinstance(task, dict) else None


def _text(path: Path) -> str:
    inputs.require_unicode(path)
    inputs.require_regular(path)
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MAX_LENGTH + 1)
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file.") from None
    if len(text) > MAX_LENGTH:
        raise ValueError(
            f"{path}: longer than {MAX_LENGTH} characters; give values as "
            "{ start = ..., stop = ..., num = ... }."
        )
    return text


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        return toml.loads(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _override(tree: dict[str, Any], setting: str) -> None:
    path, equals, text = setting.partition("=")
    keys, shown = [key.strip() for key in path.split(".")], _plain(setting)
    if not equals or not all(keys) or len(keys) > toml.DEEPEST:
        raise ValueError(f"--set {shown}: write it as table.key=value.")
    try:
        value = toml.loads(f"x = {text}")["x"]
    except ValueError:
        value = text.strip()
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise ValueError(f"--set {shown}: {_plain(key)} is a value, not a table.")
    tree[keys[-1]] = value


def _one_line(error: ValidationError, model: type[StudyTable]) -> str:
    """The first error as `key.path: what is wrong; what is allowed`."""
    errors = error.errors()
    unknown = [e for e in errors if e["type"] == "extra_forbidden"]
    first = (unknown or errors)[0]
    location = [str(part) for part in first["loc"] if part not in TAGS]
    path = ".".join(map(_plain, location))
    message = refusals.words(first)
    if first["type"] == "extra_forbidden":
        allowed = _keys_at(model, first["loc"][:-1])
        hint = _hint(location[-1], allowed, model)
        return f"{path}: {message}{hint} allowed here: {', '.join(allowed)}."
    got = first["input"]
    missing = first["type"] == "missing" or isinstance(got, (dict, BaseModel))
    shown = "" if missing else f"; got {_shown(got)}"
    # What several keys together break has no place of its own.
    return f"{path}{': ' if path else ''}{message}{shown}."


def _plain(text: str) -> str:
    """A name as it is, unless it would break the line or fill it."""
    return text if text.isprintable() and len(text) <= LONGEST else _shown(text)


def _shown(value: Any) -> str:
    """A value as Python writes it, with its middle left out where it is long."""
    try:
        return _BRIEF.repr(value)
    except ValueError:  # of Python, about integers of more than 4300 digits
        return "a number of thousands of digits"


def _keys_at(model: type[BaseModel], location: Sequence[Any]) -> list[str]:
    """Keys that the table at `location` allows."""
    kind: Any = model
    for key in location:
        if key in TAGS:
            kind = next(_tagged(kind, key))
        elif get_origin(kind) is dict:  # of tables, by any names
            kind = get_args(kind)[1]
        else:
            kind = _without_none(kind.model_fields[key].annotation)
    return list(getattr(kind, "model_fields", ()))


def _without_none(kind: Any) -> Any:
    if type(None) not in get_args(kind):
        return kind
    return next(part for part in get_args(kind) if part is not type(None))


def _tagged(kind: Any, tag: Any) -> Iterator[Any]:
    """Forms of a value that have a tag."""
    parts = get_args(kind)
    if any(isinstance(part, Tag) and part.tag == tag for part in parts):
        yield parts[0]
    for part in parts:
        yield from _tagged(part, tag)


def _hint(key: str, allowed: Sequence[str], model: type[BaseModel]) -> str:
    """What an unknown key may be meant for: in another table, or misspelt."""
    by_name: dict[str, list[str]] = {}
    for path in paths(model):
        by_name.setdefault(path.split(".")[-1], []).append(path)
    if key in by_name:
        return f" (did you mean {either(by_name[key])}?);"
    if nearest := _nearest(key, allowed):
        return nearest
    near = difflib.get_close_matches(key[:LONGEST], by_name, n=1)
    return f" (did you mean {either(by_name[near[0]])}?);" if near else ";"


def paths(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every key of a study with the tables that it stands in, such as run.steps."""
    for name, field in model.model_fields.items():
        inner = [t for t in tables_in(field.annotation) if t not in (Range, Interval)]
        if not inner:
            yield f"{prefix}{name}"
        for table in inner:
            yield from paths(table, f"{prefix}{name}.")


def tables_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Tables that a key takes, without what they are wrapped in."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from tables_in(inner)


def _nearest(word: Any, allowed: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(word)[:LONGEST], allowed, n=1)
    return f" (did you mean {near[0]!r}?);" if near else ""
