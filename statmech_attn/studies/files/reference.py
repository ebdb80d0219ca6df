"""The JSON schema of study files (draft 2020-12), by which editors complete them.

It is read from the tables of `studies`, whose docstrings have a sentence for every key.
"""

import inspect
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from statmech_attn import kinds
from statmech_attn.options import MAX_COUNT, option_texts, OptionText
from statmech_attn.studies.files.spec import models, tables_in
from statmech_attn.studies.tables import StudyTable


DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """The JSON schema of study files, of all kinds that are known here."""
    shared: dict[str, Any] = {}
    every = [of_study(name, task, model, shared) for name, task, model in models()]
    return {
        "$schema": DRAFT,
        "title": "Study file of statmech_attn",
        "description": "The key `kind` says which of these it is.",
        "type": "object",
        "required": ["kind"],
        "oneOf": every,
        "$defs": shared,
    }


def of_study(
    name: str, task: str, model: type[StudyTable], shared: dict[str, Any]
) -> dict[str, Any]:
    """Schema of one kind of study; its tables are added to the shared ones."""
    prefix = f"{name}.{task}" if task else name
    whole = model.model_json_schema(ref_template=f"#/$defs/{prefix}.{{model}}")
    tables = {table.__name__: table for table in _tables(model)}
    for key, part in whole.pop("$defs", {}).items():
        shared[f"{prefix}.{key}"] = _described(part, tables[key])
    schema = _described(whole, model)
    schema["title"] = f"{name}, {task}" if task else name
    # A name alone decides which of all studies is meant.
    schema["properties"]["kind"] |= {"const": name}
    schema["required"] = sorted({"kind", *schema.get("required", ())})
    if task and task not in (kinds.TASKS.names()[0], kinds.SYSTEM):
        schema["required"] = sorted({*schema["required"], "task"})
    return schema


def _described(part: dict[str, Any], table: type[BaseModel]) -> dict[str, Any]:
    """Schema of a table, with the sentences of its docstrings."""
    sentences = option_texts(table)
    part = part | {"description": inspect.cleandoc(table.__doc__ or "").split("\n")[0]}
    for key, field in part.get("properties", {}).items():
        sentence, unit = sentences.get(key, OptionText("", ""))
        field.pop("title", None)
        _without_null(field)
        if isinstance(field.get("default"), dict):
            del field["default"]
        if "patternProperties" in field:
            field["additionalProperties"] = False
        if sentence:
            field["description"] = sentence + (f" Unit: {unit}." if unit else "")
    return part


def _without_null(field: dict[str, Any]) -> None:
    """TOML has no null: what may be left out is no choice of a value."""
    if field.get("default", 0) is None:
        del field["default"]
    choices = [
        option for option in field.get("anyOf", ()) if option != {"type": "null"}
    ]
    if len(choices) == 1:
        del field["anyOf"]
        field |= choices[0]
    elif choices:
        field["anyOf"] = choices


def _tables(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A table and all tables within it."""
    yield model
    for field in model.model_fields.values():
        for part in tables_in(field.annotation):
            yield from _tables(part)


def fields(part, shared, path="") -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Every key of a schema with its path, tables opened."""
    for key, field in part.get("properties", {}).items():
        place, required = f"{path}{key}", key in part.get("required", ())
        where = field.get("$ref")
        if where and where.split(".")[-1] not in FORMS:
            inner = f"{place}."
        elif where := _of_any_name(field).get("$ref"):
            inner = f"{place}.NAME."
        else:
            yield place, field, required
            continue
        yield from fields(shared[where.removeprefix("#/$defs/")], shared, inner)


def _of_any_name(field: dict[str, Any]) -> dict[str, Any]:
    """Schema of every value of a table whose keys are names of the user's."""
    return next(iter(field.get("patternProperties", {}).values()), {})


FORMS = {  # tables that are written in a line
    "Range": "`{ start, stop, num }`",
    "Interval": "`{ start, stop }`",
    "Box": "`{ low, high }`",
}
WORDS = {"number": "number", "integer": "integer", "string": "text", "boolean": "bool"}


def type_of(field: dict[str, Any]) -> str:
    """What a key takes, in words."""
    if "const" in field:
        return f'`"{field["const"]}"`'
    if "enum" in field:
        return ", ".join(f'`"{value}"`' for value in field["enum"])
    for choice in ("anyOf", "oneOf"):
        if choice in field:
            return " or ".join(dict.fromkeys(map(type_of, field[choice])))
    if field.get("type") == "array":
        return f"list of {type_of(field['items'])}"
    if inner := _of_any_name(field):
        return f"table of {type_of(inner)}"
    if "$ref" in field:
        return FORMS.get(field["$ref"].split(".")[-1], "table")
    return WORDS.get(field.get("type", ""), "any")


LIMITS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "multipleOf": "multiple of {}",
    "minItems": "{} or more",
}


def range_of(field: dict[str, Any]) -> str:
    """Bounds of a key; of its entries where it is a list."""
    parts = [
        form.format(f"{field[key]:g}" if isinstance(field[key], float) else field[key])
        for key, form in LIMITS.items()
        if key in field and field[key] != MAX_COUNT
    ]
    inner = [field["items"]] if "items" in field else field.get("anyOf", [])
    for part in [*inner, *field.get("oneOf", [])]:
        parts += [words for words in [range_of(part)] if words and words not in parts]
    return ", ".join(parts)
