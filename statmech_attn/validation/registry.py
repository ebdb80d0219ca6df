"""All reference systems; a module that has rows of its own adds them here."""

from collections.abc import Sequence

from statmech_attn.validation import (
    bifurcations,
    exponents,
    geometry,
    irreversibility,
    phases,
)
from statmech_attn.validation.rows import Row


ROWS: tuple[Row, ...] = (
    exponents.ROWS
    + phases.ROWS
    + geometry.ROWS
    + bifurcations.ROWS
    + irreversibility.ROWS
)


def select(words: Sequence[str] = (), rows: Sequence[Row] = ROWS) -> list[Row]:
    """Rows whose name contains one of the words, in any case; all without words.

    Args:
        words: parts of names; a row whose name contains one is selected.
        rows: to select from; all of `ROWS` when omitted.

    Raises:
        ValueError: a word that no name contains.

    Example:
        >>> [row.name for row in select(["lozi"])]
        ['Lozi']
    """
    has = lambda row, word: word.lower() in row.name.lower()
    for word in words:
        if not any(has(row, word) for row in rows):
            names = ", ".join(row.name for row in rows)
            raise ValueError(f"no reference system {word!r}; there are: {names}.")
    return [row for row in rows if not words or any(has(row, w) for w in words)]
