"""In which keys two studies differ, and in what two environments."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from statmech_attn.storage.schema import canonical_study


_ABSENT = object()
SHOWN = 40  # characters of a value


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Readable lines, one for each key with another value."""
    return [
        f"{key}: {old.get(key, 'absent')} -> {new.get(key, 'absent')}"
        for key in dict.fromkeys((*old, *new))
        if old.get(key) != new.get(key)
    ]


def study_differences(old: str, new: str) -> list[str]:
    """Readable lines, one for each key in which two study texts differ.

    Comments, order, spacing and the spelling of numbers are no differences.
    """
    first, second = (json.loads(canonical_study(text)) for text in (old, new))
    return list(_compare("", first, second))


def in_one_line(lines: Sequence[str]) -> str:
    """The first three lines and how many there are beyond them."""
    more = [f"and {len(lines) - 3} more"] if len(lines) > 3 else []
    return "; ".join([*lines[:3], *more])


def _compare(path: str, old: Any, new: Any) -> Iterator[str]:
    """Lines for everything that differs from here on; `path` is a key with dots."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            below = f"{path}.{_key(key)}" if path else _key(key)
            yield from _compare(below, old.get(key, _ABSENT), new.get(key, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (first, second) in enumerate(zip(old, new, strict=True)):
            yield from _compare(f"{path}[{number}]", first, second)
    elif _spelled(old) != _spelled(new):
        yield f"{path}: {_shown(old)} -> {_shown(new)}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _spelled(value: Any) -> str:
    """A value as TOML spells it, in one line."""
    if value is _ABSENT:
        return "absent"
    if isinstance(value, dict):
        items = (f"{_key(key)} = {_spelled(item)}" for key, item in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_spelled, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _shown(value: Any) -> str:
    text = _spelled(value)
    if len(text) <= SHOWN:
        return text
    if isinstance(value, list):
        return f"{len(value)} values"
    return f"{text[: SHOWN - 1]}…"
