"""Keys of study files and variables of result files, as documents.

`schema` is the JSON schema of study files (draft 2020-12), from which editors complete
and check them; `keys` and `variables` are tables in Markdown.  All of them are read
from the declarations: the tables of `studies`, whose docstrings have a sentence for
every key, and the `labels.Variables` of every kind.
"""

import collections
import inspect
from collections.abc import Iterable, Iterator
from typing import Any, TYPE_CHECKING

from pydantic import BaseModel

from statmech_attn import kinds
from statmech_attn.options import MAX_COUNT, Said, said
from statmech_attn.studies.files.spec import models, tables_in
from statmech_attn.studies.tables import StudyTable


if TYPE_CHECKING:  # `new` reads tables of keys and imports no NumPy
    from statmech_attn.labels import Variable


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
LINKED = 7  # keys that a table has at least to be linked from another page


def keys() -> dict[str, str]:
    """Tables of every key of every kind of study, in Markdown, by kind.

    A table of a study is written once on a page, and a long one on one page only:
    elsewhere a link leads to it.
    """
    whole = schema()
    pages, places = collections.defaultdict(list), {}
    for study in whole["oneOf"]:
        title, kind = study["title"], study["properties"]["kind"]["const"]
        tables = collections.defaultdict(list)
        for path, field, required in fields(study, whole["$defs"]):
            name = path.partition(".")[0] if "." in path else ""
            tables[name].append(_key(path, field, required))
        rows, links = [], []
        for name, lines in tables.items():
            page = "" if len(lines) >= LINKED else kind
            place = places.setdefault((page, name, *lines), (kind, title))
            if name and place != (kind, title):
                file = "" if place[0] == kind else f"{place[0]}.md"
                anchor = place[1].replace(", ", "-")
                links.append(f"`[{name}]` of [{place[1]}]({file}#{anchor})")
            else:
                rows += lines
        also = f"\nAnd the keys {', '.join(links)}.\n" if links else ""
        text = f"## {title}\n\n{study['description']}\n\n{KEYS}{''.join(rows)}{also}"
        pages[kind].append(text)
    return {kind: "\n".join(texts) for kind, texts in pages.items()}


def _key(path: str, field: dict[str, Any], required: bool) -> str:
    """The row of a key."""
    words, _, unit = field.get("description", "").partition(" Unit: ")
    cells = (
        f"`{path}`",
        type_of(field),
        "required" if required else _code(field.get("default")),
        range_of(field),
        unit.removesuffix("."),
        words,
    )
    return f"| {' | '.join(map(_cell, cells))} |\n"


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


def _code(value: Any) -> str:
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return f"`{text}`".replace("'", '"')


FOLDED = "<details>\n<summary>Its variables</summary>\n\n"  # of a second table
VARIABLES = "| variable | dimensions | units | symbol | |\n" + "| --- " * 5 + "|\n"
COMMON = 3  # kinds whose files have a variable alike that is described for all of them
SHARED, PLACE = "Of several kinds", "../hdf5.md#of-several-kinds"


def variables() -> dict[str, str]:
    """Tables of the variables of every kind of file, in Markdown, by kind.

    What COMMON kinds or more have alike is under "", and named on their pages; so is,
    below a further table of a kind, what the first has alike.
    """
    tables, of = {}, collections.defaultdict(set)
    for row in kinds.KINDS:
        table = kinds.KINDS.part(row, "variables")
        of_task = row.task not in ("", kinds.EVERY) and not row.dimension
        if table is None or of_task and any(kind == row.name for kind, _ in tables):
            continue
        lines = dict(map(_variable, _of_one_form(table)))
        tables[row.name, row.dimension] = lines
        for line in lines.items():
            of[line].add(row.name)
    common = {}
    for names, text in sorted(of, key=lambda line: -len(of[line])):
        if len(of[names, text]) >= COMMON:
            common.setdefault(names, text)
    pages, written = collections.defaultdict(list), collections.defaultdict(dict)
    for (kind, dimension), lines in tables.items():
        alike = [x for x in lines if common.get(x) == lines[x]]
        above = [x for x in lines if written[kind].get(x) == lines[x]]
        rest = {x: lines[x] for x in lines if x not in (*alike, *above)}
        written[kind] |= rest
        title = f"{kind}, with `{dimension}`" if dimension else kind
        pages[kind].append(
            f"## {title}\n\n{FOLDED if dimension else ''}{VARIABLES}"
            + "".join(rest.values())
            + (f"\nAs above: {', '.join(above)}.\n" if above else "")
            + (f"\n[{SHARED}]({PLACE}): {', '.join(alike)}.\n" if alike else "")
            + ("\n</details>\n" if dimension else "")
        )
    shared = f"### {SHARED}\n\n{VARIABLES}{''.join(common[x] for x in sorted(common))}"
    return {kind: "\n".join(texts) for kind, texts in pages.items()} | {"": shared}


def _of_one_form(table: "Iterable[Variable]") -> "list[Variable]":
    """Variables in which what is said alike of several quantities X is one."""
    forms = collections.defaultdict(list)
    for variable in table:
        quantity, _, words = variable.long_name.partition(": ")
        if words and variable.name.startswith(f"{quantity}_"):
            end = variable.name.removeprefix(quantity)
            forms[end, variable.dims, words].append((quantity, variable))
        else:
            forms[variable.name].append(("", variable))
    result = []
    for form, ((_, variable), *others) in forms.items():
        if others:
            names = ", ".join(name for name, _ in forms[form])
            new = {"name": f"{{X}}{form[0]}", "long_name": form[2]}
            variable = variable._replace(**new, note=f"X: {names}")
        result.append(variable)
    return result


def _variable(variable: "Variable") -> tuple[str, str]:
    """Names of a variable, and its row."""
    words = variable.long_name
    for part in (variable.note, _meanings(variable)):
        words += f"; {part}" if part else ""
    names = ", ".join(f"`{variable.name}{end}`" for end in variable.endings)
    cells = (
        names,
        variable.dims.replace(" ", ", "),
        variable.units,
        f"`{variable.symbol or variable.name}`",
        words,
    )
    return names, f"| {' | '.join(map(_cell, cells))} |\n"


def _meanings(variable) -> str:
    if not variable.flags:
        return ""
    return f"{'bits' if variable.masks else 'flags'}: {', '.join(variable.meanings)}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
