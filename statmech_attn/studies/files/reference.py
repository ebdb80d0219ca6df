"""Keys of study files and variables of result files, as documents.

`schema` is the JSON schema of study files (draft 2020-12), from which editors complete
and check them; `keys` and `variables` are tables in Markdown.  All of them are read
from the declarations: the tables of `studies`, whose docstrings have a sentence for
every key, and the `labels.Variables` of every kind.
"""

import collections
import inspect
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from statmech_attn import kinds
from statmech_attn.options import MAX_COUNT, Said, said
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
    sentences = said(table)
    part = part | {"description": inspect.cleandoc(table.__doc__ or "").split("\n")[0]}
    for key, field in part.get("properties", {}).items():
        sentence, unit = sentences.get(key, Said("", ""))
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


KEYS = "| key | type | default | range | unit | |\n" + "| --- " * 6 + "|\n"


def keys() -> dict[str, str]:
    """Tables of every key of every kind of study, in Markdown, by kind."""
    whole = schema()
    pages = collections.defaultdict(list)
    for study in whole["oneOf"]:
        parts = [f"## {study['title']}\n\n{study['description']}\n\n", KEYS]
        for path, field, required in fields(study, whole["$defs"]):
            default = "required" if required else _code(field.get("default"))
            words, _, unit = field.get("description", "").partition(" Unit: ")
            row = (
                f"`{path}`",
                type_of(field),
                default,
                range_of(field),
                unit.removesuffix("."),
                words,
            )
            parts.append(f"| {' | '.join(map(_cell, row))} |\n")
        pages[study["properties"]["kind"]["const"]].append("".join(parts))
    return {kind: "\n".join(tables) for kind, tables in pages.items()}


def fields(part, shared, path="") -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Every key of a schema with its path, tables opened."""
    for key, field in part.get("properties", {}).items():
        place, required = f"{path}{key}", key in part.get("required", ())
        if where := field.get("$ref"):
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
        forms = {
            "Range": "`{ start, stop, num }`",
            "Interval": "`{ start, stop }`",
            "Box": "`{ low, high }`",
        }
        return forms.get(field["$ref"].split(".")[-1], "table")
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


def _code(value: Any) -> str:
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return f"`{text}`".replace("'", '"')


FOLDED = "<details>\n<summary>Its variables</summary>\n\n"  # of a second table
VARIABLES = "| variable | dimensions | units | symbol | |\n" + "| --- " * 5 + "|\n"


def variables() -> dict[str, str]:
    """Tables of the variables of every kind of file, in Markdown, by kind."""
    pages = collections.defaultdict(list)
    for row in kinds.KINDS:
        table = kinds.KINDS.part(row, "variables")
        of_task = row.task not in ("", kinds.EVERY) and not row.dimension
        if table is None or of_task and row.name in pages:
            continue
        title = f"{row.name}, with `{row.dimension}`" if row.dimension else row.name
        parts = [f"## {title}\n\n", FOLDED if row.dimension else "", VARIABLES]
        for variable in table:
            words = variable.long_name
            for part in (variable.note, _meanings(variable)):
                words += f"; {part}" if part else ""
            names = ", ".join(f"`{variable.name}{end}`" for end in variable.endings)
            dims = variable.dims.replace(" ", ", ")
            cells = (
                names,
                dims,
                variable.units,
                f"`{variable.symbol or variable.name}`",
                words,
            )
            parts.append(f"| {' | '.join(map(_cell, cells))} |\n")
        parts.append("\n</details>\n" if row.dimension else "")
        pages[row.name].append("".join(parts))
    return {kind: "\n".join(tables) for kind, tables in pages.items()}


def _meanings(variable) -> str:
    if not variable.flags:
        return ""
    return f"{'bits' if variable.masks else 'flags'}: {', '.join(variable.meanings)}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
