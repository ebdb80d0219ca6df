"""A study file to begin with: every key of a kind, commented, with its default.

It is written from the same declarations as the schema (`reference`), which carry the
type, the range, the unit, the default and a sentence for every key.
"""

import inspect
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from statmech_attn import kinds, storage
from statmech_attn.storage import toml
from statmech_attn.studies.files import reference
from statmech_attn.studies.files.spec import model_of, models


WIDTH = 88
ORDER = "start stop num low high"  # of the keys of tables in examples
HEAD = """\
#
# A line without a space after its # is a key with its default, or with an example where
# there is no default: remove the # to change the value.  Without computing anything,
#     statmech-attn run FILE.toml --dry-run
# checks this file and forecasts time and memory.
"""

SYSTEM = '''\
"""The cubic map, which is odd: an example, with one attractor or two."""


def step(x, parameters):
    """One step: the new state, from the state and the numbers of [parameters]."""
    return parameters["a"] * x - x**3
'''


OF_BLOCK = {  # what a template of a system has, where it is made from weights
    "system.function": None,
    "system.weights": "block.npz",
    "system.initial": {"low": -1.0, "high": 1.0, "shape": [4, 8]},
}


def write_block(folder: str | Path) -> Path:
    """Write random weights, `block.npz`: what templates of blocks name.

    Args:
        folder: of the study that names them.

    Raises:
        FileExistsError: there is such a file already.

    Example:
        `statmech-attn new bifurcation --task block -o study.toml` writes both.
    """
    import numpy as np

    file = Path(folder) / "block.npz"
    storage.require_new(file)
    random = np.random.default_rng(0)
    normal = lambda *shape: 2 * random.normal(size=shape) / np.sqrt(shape[-1])
    arrays = {name: normal(2, 4, 8) for name in ("query", "key", "value")} | {
        "output": normal(2, 8, 4),
        "up": normal(16, 8),
        "down": normal(8, 16),
        "input": random.normal(size=(4, 8)),
    }
    with storage.replaced(file) as part, part.open("wb") as stream:
        np.savez(stream, **arrays)
    return file


def write_system(folder: str | Path) -> Path:
    """Write a small system, `my_model.py`: what templates of systems name.

    Args:
        folder: of the study that names it.

    Raises:
        FileExistsError: there is one already.

    Example:
        `statmech-attn new bifurcation --task system -o study.toml` writes both.
    """
    file = Path(folder) / "my_model.py"
    if file.exists():
        raise FileExistsError(f"{file}: is there already.")
    storage.write_text(file, SYSTEM)
    return file


def template(kind: str, task: str = "") -> str:
    """A commented study of a kind that passes the check, with every key that it has.

    Args:
        kind: kind of study.
        task: for kinds with several; the first of them when empty.  "block" is a
            system that is made from weights.

    Raises:
        ValueError: there is no such kind, or no such task of this kind.

    Example:
        >>> template("trajectory").splitlines()[-2:]
        ['# bool; default: false', '#entropy_production = false']
    """
    tasks = {name: model for row, name, model in models() if row == kind}
    if not tasks:
        model_of({"kind": kind})
    made_of_weights = task == kinds.BLOCK and kinds.SYSTEM in tasks
    if made_of_weights:
        task = kinds.SYSTEM
    if task and task not in tasks:
        known = ", ".join(filter(None, tasks)) or "none"
        raise ValueError(f"no task {task!r} of a {kind} study; its tasks: {known}.")
    name = task or next(iter(tasks))
    values = dict(tasks[name].template)
    if made_of_weights:
        scanned = values["parameters"]["a"]
        values = values | OF_BLOCK | {"parameters": {"scale": scanned}}
    shared: dict[str, Any] = {}
    study = reference.of_study(kind, name, tasks[name], shared)
    parts = [_comment(f"{study['title']}: {study['description']}"), HEAD]
    for table in _tables(study, shared, values):
        parts.append(f"\n{table.header}" if table.header else "")
        parts += [f"\n{_entry(key, table.commented)}" for key in table.keys]
    return "".join(parts)


def sentences() -> dict[str, str]:
    """What every kind of study computes, in a sentence.

    Example:
        >>> sentences()["monte-carlo"]
        'Simulations of N spins, at several N and beta.'
    """
    first: dict[str, str] = {}
    for name, _, model in models():
        first.setdefault(name, inspect.cleandoc(model.__doc__ or "").split("\n")[0])
    return first


class _Key(NamedTuple):
    """A key as it is written in its table, with the value that a template gives it."""

    name: str
    schema: dict[str, Any]
    required: bool
    value: Any


class _Table(NamedTuple):
    """A table of a study; `commented` where it is left out as a whole."""

    header: str
    keys: list[_Key]
    commented: bool


def _tables(
    study: dict[str, Any], shared: dict[str, Any], values: Mapping[str, Any]
) -> Iterator[_Table]:
    """The keys that stand in no table, with `kind` first, and then the tables."""
    every = [
        _Key(*field, values.get(field[0])) for field in reference.fields(study, shared)
    ]
    outside = [key for key in every if "." not in key.name]
    yield _Table("", sorted(outside, key=lambda key: key.name != "kind"), False)
    for name in dict.fromkeys(k.name.split(".")[0] for k in every if "." in k.name):
        keys = [
            key._replace(name=key.name.removeprefix(f"{name}."))
            for key in every
            if key.name.startswith(f"{name}.")
        ]
        required = any(key.required and "." not in key.name for key in keys)
        commented = required and name not in study["required"]
        yield _Table(f"{'#' * commented}[{name}]\n", keys, commented)


def _entry(key: _Key, commented: bool) -> str:
    """A key with its sentence above it."""
    sentence, _, unit = key.schema.get("description", "").partition(" Unit: ")
    default = key.schema.get("default")
    details = [
        reference.type_of(key.schema).replace("`", ""),
        reference.range_of(key.schema),
        f"unit: {unit.removesuffix('.')}" if unit else "",
        "required" if key.required else "",
        f"default: {toml.inline(default)}" if default is not None else "",
        "no default" if default is None and not key.required else "",
    ]
    needed = key.required and "." not in key.name and not commented
    mark = "" if needed or key.value is not None else "#"
    value = _example(key.schema) if key.value is None else key.value
    return (
        f"{_comment(sentence)}{_comment('; '.join(filter(None, details)))}"
        f"{mark}{key.name} = {toml.inline(value)}\n"
    )


def _comment(text: str) -> str:
    lines = textwrap.wrap(text, WIDTH - 2, break_on_hyphens=False)
    return "".join(f"# {line}\n" for line in lines)


def _in_order(example: Any) -> Any:
    """An example, whose keys a schema has in alphabetical order."""
    if not isinstance(example, dict):
        return example
    ordered = sorted(example, key=lambda key: ORDER.find(key))
    return {key: _in_order(example[key]) for key in ordered}


def _example(schema: dict[str, Any]) -> Any:
    """A value that a key takes: its default, an example, or what its type suggests."""
    if "default" in schema:
        return schema["default"]
    if "examples" in schema:
        return _in_order(schema["examples"][0])
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return _example(schema[choice][0])
    match schema.get("type"):
        case "array":
            return [_example(schema["items"])] * schema.get("minItems", 1)
        case "integer":
            return schema.get("minimum", 1)
        case "number":
            return float(schema.get("minimum", 1.0))
    return ""
