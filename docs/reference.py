"""Rewrite the pages that are read from the declarations, between two marks.

keys.md has the keys of study files, variables.md the variables of result files.
"""

import collections
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from statmech_attn import kinds
from statmech_attn.labels import Variable
from statmech_attn.studies import reference


DOCS = Path(__file__).resolve().parent
BEGIN, END = "<!-- generated: begin -->\n", "<!-- generated: end -->\n"
KEYS = "| key | type | default | range | unit | |\n" + "| --- " * 6 + "|\n"
LINKED = 7  # keys that a table has at least to be written once for all kinds


def keys() -> dict[str, str]:
    """Tables of every key of every kind of study, in Markdown, by kind.

    A table of a study is written once for a kind, and a long one once for all:
    elsewhere a link leads to it.
    """
    whole = reference.schema()
    pages, places = collections.defaultdict(list), {}
    for study in whole["oneOf"]:
        title, kind = study["title"], study["properties"]["kind"]["const"]
        tables = collections.defaultdict(list)
        for path, field, required in reference.fields(study, whole["$defs"]):
            name = path.partition(".")[0] if "." in path else ""
            tables[name].append(_key(path, field, required))
        rows, links = [], []
        for name, lines in tables.items():
            page = "" if len(lines) >= LINKED else kind
            place = places.setdefault((page, name, *lines), (kind, title))
            if name and place != (kind, title):
                links.append(f"`[{name}]` of {_link(place[1])}")
            else:
                rows += lines
        also = f"\nAnd the keys {', '.join(links)}.\n" if links else ""
        text = f"## {title}\n\n{study['description']}\n\n{KEYS}{''.join(rows)}{also}"
        pages[kind].append(text)
    return {kind: "\n".join(texts) for kind, texts in pages.items()}


def _link(title: str) -> str:
    """A link to a heading of the same page."""
    return f"[{title}](#{title.replace(', ', '-')})"


def _key(path: str, field: dict[str, Any], required: bool) -> str:
    """The row of a key."""
    words, _, unit = field.get("description", "").partition(" Unit: ")
    cells = (
        f"`{path}`",
        reference.type_of(field),
        "required" if required else _code(field.get("default")),
        reference.range_of(field),
        unit.removesuffix("."),
        words,
    )
    return f"| {' | '.join(map(_cell, cells))} |\n"


def _code(value: Any) -> str:
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return f"`{text}`".replace("'", '"')


FOLDED = "<details>\n<summary>Its variables</summary>\n\n"  # of a second table
VARIABLES = "| variable | dimensions | units | symbol | |\n" + "| --- " * 5 + "|\n"
COMMON = 3  # kinds whose files have a variable alike that is described for all of them
SHARED, PLACE = "Of several kinds", "#of-several-kinds"


def variables() -> dict[str, str]:
    """Tables of the variables of every kind of file, in Markdown, by kind.

    What COMMON kinds or more have alike is under "", and named below their tables; so
    is, below a further table of a kind, what the first has alike.
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
    shared = f"## {SHARED}\n\n{VARIABLES}{''.join(common[x] for x in sorted(common))}"
    return {kind: "\n".join(texts) for kind, texts in pages.items()} | {"": shared}


def _of_one_form(table: Iterable[Variable]) -> list[Variable]:
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


def _variable(variable: Variable) -> tuple[str, str]:
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


def written() -> dict[str, str]:
    """What documents should hold, by their names."""
    result = {}
    for name, tables in {"keys.md": keys(), "variables.md": variables()}.items():
        first = [
            text.partition("\n")[0].removeprefix("## ") for text in tables.values()
        ]
        links = " · ".join(_link(title) for title in first if title != SHARED)
        before, _, rest = (DOCS / name).read_text("utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        inner = "\n\n".join(text.rstrip() for text in (links, *tables.values()))
        result[name] = f"{before}{BEGIN}\n{inner}\n\n{END}{after}"
    return result


if __name__ == "__main__":
    for document, text in written().items():
        (DOCS / document).write_text(text, "utf-8")
