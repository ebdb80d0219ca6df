"""What a key of a table should be: words of this package for errors of pydantic.

A sentence of a validator of our own is taken as it is.
"""

from collections.abc import Mapping
from typing import Any


WORDS: dict[str, str] = {  # by the type of an error; {} are values of its context
    "missing": "is missing",
    "extra_forbidden": "unknown key",
    "float_type": "should be a number",
    "finite_number": "should be a finite number",
    "int_type": "should be a whole number",
    "int_from_float": "should be a whole number",
    "bool_type": "should be true or false",
    "string_type": "should be a text in quotes",
    "list_type": "should be a list",
    "dict_type": "should be a table",
    "model_type": "should be a table",
    "literal_error": "should be {expected}",
    "greater_than_equal": "should be at least {ge}",
    "greater_than": "should be above {gt}",
    "less_than_equal": "should be at most {le}",
    "less_than": "should be below {lt}",
    "multiple_of": "should be a multiple of {multiple_of}",
    "string_too_short": "should not be empty",
    "too_short": "should hold at least {min_length} {entry}",
}
_OWN = "Value error, "  # before the sentence of a validator
_ENTRIES = {"Dictionary": "key"}


def words(error: Mapping[str, Any]) -> str:
    """What is wrong with a value, from an entry of `ValidationError.errors()`."""
    if error["type"] not in WORDS:
        return str(error["msg"]).removeprefix(_OWN).removesuffix(".")
    context = dict(error.get("ctx", {}))
    entry = _ENTRIES.get(context.get("field_type", ""), "value")
    entry += "s" if context.get("min_length", 1) > 1 else ""
    return WORDS[error["type"]].format_map(context | {"entry": entry})
