"""TOML texts, whatever is in them: a tree, or an error of one line, in bounded time.

Python's parser takes time that grows like the square of the number of names in one
dotted key, runs out of stack in nested lists, and reads integers of any size.
"""

import json
import re
import tomllib
from typing import Any


DEEPEST = 64  # names in one dotted key
_NAME = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*"""
_TOO_DEEP = re.compile(rf"(?<![\w-])(?:{_NAME}\.[ \t]*){{{DEEPEST}}}")


def loads(text: str) -> dict[str, Any]:
    """The tree of a TOML text.

    Errors have one line, also those of texts nested deeper than any study.
    """
    if _TOO_DEEP.search(text):
        raise ValueError(f"a key has more than {DEEPEST} names.")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not valid TOML: {error}.") from None
    except RecursionError:
        raise ValueError("lists or tables are nested too deep.") from None
    except ValueError:  # of Python, about integers of more than 4300 digits
        raise ValueError("a number has thousands of digits.") from None


def dumps(tree: dict[str, Any]) -> str:
    """Nested dictionaries of numbers, strings and lists as TOML."""
    lines = lambda table: [f"{_key(k)} = {inline(v)}" for k, v in table.items()]
    plain = lines({k: v for k, v in tree.items() if not isinstance(v, dict)})
    tables = [
        f"\n[{_key(k)}]\n" + "\n".join(lines(v))
        for k, v in tree.items()
        if isinstance(v, dict)
    ]
    return "\n".join(plain + tables) + "\n"


def inline(value: Any) -> str:
    """A value as TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        items = [f"{_key(k)} = {inline(v)}" for k, v in value.items()]
        return "{ " + ", ".join(items) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(inline(v) for v in value) + "]"
    if isinstance(value, str):
        # JSON escapes what TOML forbids, except for DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else inline(name)
