"""The schema of study files and the tables of the documents hold what is declared."""

import collections
import copy
import functools
import importlib.util
import json
import pathlib
import re
from typing import Any

import jsonschema
import pytest

from statmech_attn import kinds, studies
from statmech_attn.storage import toml
from statmech_attn.studies.files import reference, spec


ROOT = pathlib.Path(__file__).resolve().parents[3]
_SPEC: Any = importlib.util.spec_from_file_location(
    "reference_of_docs", ROOT / "docs" / "reference.py"
)
documents = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(documents)
FILES = sorted([*ROOT.glob("analysis/*.toml"), *ROOT.glob("simulations/**/*.toml")])


@functools.cache
def checker(kind: str = "") -> jsonschema.Draft202012Validator:
    """Of all studies, or of those of a kind, which no other part takes: it is fast."""
    schema = reference.schema()
    if not kind:
        jsonschema.Draft202012Validator.check_schema(schema)
        return jsonschema.Draft202012Validator(schema)
    of_kind = lambda part: part["properties"]["kind"]["const"] == kind
    parts = [part for part in schema["oneOf"] if of_kind(part)]
    return jsonschema.Draft202012Validator(schema | {"oneOf": parts})


def refused(tree: dict[str, Any]) -> bool:
    """Whether the parser refuses a study."""
    try:
        studies.parse(tree)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_shipped_study_is_valid(path):
    tree = toml.loads(path.read_text())
    assert not refused(tree)
    assert not [error.message for error in checker().iter_errors(tree)]


def mutations(tree: dict[str, Any], model) -> list[dict[str, Any]]:
    """Studies with one key of a type that it does not take, out of range or unknown."""
    found = []

    def changed(table: str, key: str, value: Any) -> None:
        other = copy.deepcopy(tree)
        (other.setdefault(table, {}) if table else other)[key] = value
        found.append(other)

    for name in model.model_fields:
        table = tree.get(name)
        if name == "kind":
            continue
        changed("", name, 3)
        for key in spec._keys_at(model, [name]) if isinstance(table, dict) else ():
            for value in (True, -(2**60), [], "no such word", {"no_such_key": 1}):
                changed(name, key, value)
        if isinstance(table, dict):
            changed(name, "no_such_key", 1)
    changed("", "no_such_table", {})
    return found


def beyond_schema(tree: dict[str, Any]) -> bool:
    """Whether the parser refuses what no schema can say: a rule of several keys."""
    model = spec.model_of(tree)
    try:
        model.model_validate(tree)
    except ValueError as error:
        types = {one["type"] for one in error.errors()}  # type: ignore[attr-defined]
        return types == {"value_error"}
    return False


ONE_OF_EACH = {  # a file of every kind and task
    spec.model_of(toml.loads(path.read_text())): path for path in FILES
}


@pytest.mark.parametrize("path", ONE_OF_EACH.values(), ids=lambda path: path.stem)
def test_what_the_parser_refuses_for_type_range_or_name_the_schema_refuses(path):
    tree = toml.loads(path.read_text())
    wrong, count = [], 0
    for other in mutations(tree, spec.model_of(tree)):
        try:
            skip = beyond_schema(other)
        except ValueError:  # another task: no tables to ask
            skip = False
        if skip:
            continue
        count += (is_refused := refused(other))
        if is_refused == checker(tree["kind"]).is_valid(other):
            wrong.append(other)
    assert count > 10 and not wrong


def test_a_study_without_a_kind_or_of_no_kind_is_invalid():
    assert not checker().is_valid({"parameters": {"beta": 1.0}})
    assert not checker().is_valid({"kind": "trajectroy", "parameters": {"beta": 1.0}})


def test_every_key_has_a_sentence():
    schema = reference.schema()
    silent = [
        f"{study['title']}: {path}"
        for study in schema["oneOf"]
        for path, field, _ in reference.fields(study, schema["$defs"])
        if not field.get("description", "").endswith(".")
    ]
    assert not silent


def sections() -> dict[str, str]:
    """Tables of keys by the title of their study."""
    text = "\n".join(documents.keys().values())
    return dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.M | re.S))


def test_every_key_of_a_study_is_in_its_section_or_in_one_that_it_links():
    schema, texts, links = reference.schema(), sections(), 0
    for study in schema["oneOf"]:
        text = texts[study["title"]]
        elsewhere = dict(re.findall(r"`\[(\w+)\]` of \[([\w, -]+)\]\(", text))
        links += len(elsewhere)
        for path, _, _ in reference.fields(study, schema["$defs"]):
            place = elsewhere.get(path.partition(".")[0])
            assert f"\n| `{path}` |" in (texts[place] if place else text), path
    assert links > 40


def test_long_tables_of_keys_are_written_once():
    tables = collections.Counter()
    for text in sections().values():
        rows = re.findall(r"^\| `(\w+)\.(.*)", text, re.M)
        for name in {name for name, _ in rows}:
            tables[name, *[row for x, row in rows if x == name]] += 1
    often = {table for table, count in tables.items() if count > 1}
    assert len(tables) > 40 and max(map(len, often)) <= documents.LINKED


def test_every_variable_of_a_file_is_named_under_its_kind():
    pages, count = documents.variables(), 0
    for row in kinds.KINDS:
        for variable in kinds.KINDS.part(row, "variables") or ():
            quantity = variable.long_name.partition(": ")[0]
            form = "{X}" + variable.name.removeprefix(quantity)
            text, count = pages[row.name], count + 1
            assert f"`{variable.name}`" in text or f"`{form}`" in text, variable.name
    assert count > 500


def test_variables_of_several_kinds_are_those_that_their_tables_name():
    pages = documents.variables()
    shared = re.findall(r"^\| (`.+?`) \|", pages.pop(""), re.M)
    place = re.escape(documents.PLACE)
    lists = re.findall(rf"\({place}\): (.*)\.", "\n".join(pages.values()))
    assert {*", ".join(lists).split(", ")} == {*", ".join(shared).split(", ")}
    assert len(shared) == len({*shared}) > 5 and len(lists) > 15


def test_the_documents_hold_what_the_declarations_say():
    written = documents.written()
    different = [
        name
        for name, text in written.items()
        if text != (ROOT / "docs" / name).read_text("utf-8")
    ]
    assert not different, "make reference"


def test_a_schema_is_written_once(tmp_path, capsys):
    from statmech_attn.cli import app

    path = tmp_path / "study.schema.json"
    app(["schema", "--output", str(path)], standalone_mode=False)
    assert json.loads(path.read_text()) == reference.schema()
    with pytest.raises(SystemExit):
        app(["schema", "--output", str(path)])
    assert "exists" in capsys.readouterr().err
    app(["schema"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out) == reference.schema()
