"""Reference systems, run on the user's machine: `statmech-attn validate`."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.validation.registry import ROWS, select
    from statmech_attn.validation.rows import (
        Comparison,
        judge,
        Measurement,
        Result,
        Row,
        run_row,
    )


__all__ = [
    "Comparison",
    "judge",
    "Measurement",
    "Result",
    "Row",
    "ROWS",
    "run_row",
    "select",
]
lazy.attach(__name__)
