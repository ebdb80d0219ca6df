"""Templates of studies: every key, each with a value that it takes."""

import re

import pytest

from statmech_attn.storage import toml
from statmech_attn.studies import parse
from statmech_attn.studies.files import reference, spec, templates


KINDS = [(name, task) for name, task, _ in spec.models()]


def uncommented(text: str) -> str:
    """A template with every key given its value."""
    return re.sub(r"^#(?=[\w\[])", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize(("kind", "task"), KINDS)
def test_a_template_passes_the_check(kind, task):
    study = parse(toml.loads(templates.template(kind, task)))
    assert study.kind == kind


@pytest.mark.parametrize(("kind", "task"), KINDS)
def test_a_template_has_every_key_with_a_value_of_its_type(kind, task):
    shared = {}
    (model,) = [m for name, other, m in spec.models() if (name, other) == (kind, task)]
    schema = reference.of_study(kind, task, model, shared)
    tree = toml.loads(uncommented(templates.template(kind, task)))
    for path, field, _ in reference.fields(schema, shared):
        value = tree
        for name in path.split("."):
            value = value[name]
        if path in model.template:
            assert value == model.template[path]
        elif "default" in field:
            assert value == field["default"]
    try:
        model.model_validate(tree)
    except ValueError as error:  # rules of several keys alone
        assert {one["type"] for one in error.errors()} == {"value_error"}


@pytest.mark.parametrize(("kind", "task"), KINDS)
def test_values_of_a_template_are_of_keys_that_there_are(kind, task):
    (model,) = [m for name, other, m in spec.models() if (name, other) == (kind, task)]
    shared = {}
    schema = reference.of_study(kind, task, model, shared)
    known = {path for path, _, _ in reference.fields(schema, shared)}
    assert model.template.keys() <= known


def test_the_lines_of_a_template_fit_an_editor():
    for kind, task in KINDS:
        assert max(map(len, templates.template(kind, task).splitlines())) <= 88


def test_no_template_of_another_kind_or_task():
    with pytest.raises(ValueError, match="did you mean 'trajectory'"):
        templates.template("trajectroy")
    with pytest.raises(ValueError, match="no task 'one-shot' of a basins study"):
        templates.template("basins", "one-shot")
