"""No word of pydantic reaches a user: every error of a table has words of our own."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from statmech_attn import refusals, studies
from statmech_attn.scan.chunks.folder import Manifest
from statmech_attn.studies.files import spec


OF_TYPE = {  # errors of a value that is not of a type of pydantic's core
    "float": ("float_type", "finite_number"),
    "int": ("int_type", "int_from_float"),
    "bool": ("bool_type",),
    "str": ("string_type",),
    "list": ("list_type",),
    "dict": ("dict_type",),
    "literal": ("literal_error",),
    "model": ("model_type",),
    "model-fields": ("missing", "extra_forbidden"),
}
OF_LIMIT = {  # errors of a value out of a range
    "ge": "greater_than_equal",
    "gt": "greater_than",
    "le": "less_than_equal",
    "lt": "less_than",
    "multiple_of": "multiple_of",
}
SILENT = {  # parts of a type without errors of their own, or with sentences of ours
    *("model-field", "default", "nullable", "no-info", "tagged-union"),
    *("function-after", "function-before", "definition-ref", "definitions"),
}
LIMITS = {"min_length", "max_length", "pattern", *OF_LIMIT}


def nodes(schema: Any) -> Iterator[dict]:
    """Every type within a type."""
    parts = schema.values() if isinstance(schema, dict) else schema
    if isinstance(schema, dict) and isinstance(schema.get("type"), str):
        yield schema
    for part in parts:
        if isinstance(part, (dict, list, tuple)):
            yield from nodes(part)


def errors_of(node: dict) -> Iterator[str]:
    kind = node["type"]
    yield from () if kind in SILENT else OF_TYPE[kind]
    for limit in LIMITS & node.keys():
        if limit == "min_length":
            yield "string_too_short" if kind == "str" else "too_short"
        else:
            yield OF_LIMIT[limit]


def test_every_error_that_a_table_can_have_has_words():
    tables = [*(model for *_, model in spec.models()), Manifest]
    met = {
        error
        for table in tables
        for node in nodes(table.__pydantic_core_schema__)
        for error in errors_of(node)
    }
    assert met <= refusals.WORDS.keys()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run": {"steps": True}}, "run.steps: should be a whole number; got True."),
        ({"run": {"steps": 0}}, "run.steps: should be at least 1; got 0."),
        ({"run": {"steps": 1.5}}, "run.steps: should be a whole number; got 1.5."),
        ({"run": []}, "run: should be a table; got []."),
        ({"network": {"patterns": 3}}, "patterns: should be a text in quotes; got 3."),
        ({"parameters": {"beta": []}}, "beta: should hold at least 1 value; got []."),
        ({"parameters": {}}, "parameters.beta: is missing."),
        ({"parameters": {"beta": "1"}}, "beta: should be a number; got '1'."),
    ],
)
def test_a_wrong_value_is_refused_in_words_of_our_own(change, message):
    tree = {"kind": "trajectory", "parameters": {"beta": 1.4}} | change
    with pytest.raises(ValueError) as caught:
        studies.parse(tree)
    assert str(caught.value).endswith(message)


def test_entries_that_lack_are_counted():
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(spec.StudyTable).validate_python({})
    assert refusals.words(caught.value.errors()[0]) == "is missing"
    of_table = {"field_type": "Dictionary", "min_length": 1}
    of_list = {"field_type": "List", "min_length": 2}
    too_short = lambda context: {"type": "too_short", "msg": "", "ctx": context}
    assert refusals.words(too_short(of_table)) == "should hold at least 1 key"
    assert refusals.words(too_short(of_list)) == "should hold at least 2 values"
