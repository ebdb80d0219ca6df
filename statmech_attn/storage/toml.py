"""TOML texts, whatever is in them: a tree, or an error of one line, in bounded time.

Python's parser takes time that grows like the square of the number of names in one
dotted key, runs out of stack in nested lists, and reads integers of any size.
"""

import re
import tomllib
from typing import Any


DEEPEST = 64  # names in one dotted key
_NAME = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*"""
_TOO_DEEP = re.compile(rf"(?<![\w-])(?:{_NAME}\.[ \t]*){{{DEEPEST}}}")


def loads(text: str) -> dict[str, Any]:
    """The tree of a text.

    Raises:
        ValueError: not TOML, or nested deeper than any study; one line.

    Example:
        >>> loads("[run]\\nsteps = 500")
        {'run': {'steps': 500}}
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
