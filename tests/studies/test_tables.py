"""Numbers of study files: one strict definition for every key of every kind."""

import math
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from statmech_attn.studies.files import spec
from statmech_attn.studies.tables import Table


def parts_of(annotation: Any) -> set[Any]:
    """Types that a key takes, without what they are wrapped in."""
    inner = get_args(annotation)
    return set().union(*map(parts_of, inner)) if inner else {annotation}


def tables_of(model: type[Table]) -> Iterator[type[Table]]:
    """A table and all tables within it."""
    yield model
    for field in model.model_fields.values():
        for part in parts_of(field.annotation):
            if isinstance(part, type) and issubclass(part, Table):
                yield from tables_of(part)


STUDIES = [model for _, _, model in spec.models()]
NUMBERS = {
    (table, name): parts_of(field.annotation) & {int, float}
    for study in STUDIES
    for table in tables_of(study)
    for name, field in table.model_fields.items()
    if parts_of(field.annotation) & {int, float}
}


DETERMINISTIC = {"LoadedParameters.beta", "CapacityParameters.beta"}  # temperature 0


def errors_at(table: type[Table], name: str, value: Any) -> list[str]:
    """Types of the errors of one key, whatever else the table lacks."""
    try:
        table.model_validate({name: value})
    except ValidationError as error:
        return [e["type"] for e in error.errors() if e["loc"][:1] == (name,)]
    return []


@pytest.mark.parametrize(
    "value", [True, False, "1", "1e-3", math.nan, math.inf, -math.inf]
)
def test_no_number_of_any_kind_is_a_truth_value_a_text_or_not_finite(value):
    accepted = {
        f"{table.__name__}.{name}"
        for table, name in NUMBERS
        for given in (value, [value])
        if not errors_at(table, name, given)
    }
    assert accepted == (DETERMINISTIC if value == math.inf else set())


def test_floats_take_whole_numbers():
    refused = [
        f"{table.__name__}.{name}"
        for (table, name), types in NUMBERS.items()
        if float in types and "float_type" in errors_at(table, name, 1)
    ]
    assert not refused


def test_integers_take_no_fractions():
    accepted = [
        f"{table.__name__}.{name}"
        for (table, name), types in NUMBERS.items()
        if types == {int} and not errors_at(table, name, 1.5)
    ]
    assert not accepted


def test_the_tables_of_all_kinds_are_walked():
    names = {f"{table.__name__}.{name}" for table, name in NUMBERS}
    assert len(names) > 60
    assert names >= {
        "BifurcationRun.section_tolerance",
        "ContinuationRun.largest_step",
        "CurvesSpec.start",
        "OneShotRun.gain",
        "MixedSpec.beta",
        "PruningNetwork.width",
        "Range.num",
        "HiddenMarkovTable.hardness",
        "WidthsTable.variances",
    }
