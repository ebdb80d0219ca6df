"""Reference systems, run on the user's machine: `statmech-attn validate`."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.validation.registry import ROWS as ROWS, select as select
    from statmech_attn.validation.rows import (
        Comparison as Comparison,
        judge as judge,
        Measurement as Measurement,
        Result as Result,
        Row as Row,
        run_row as run_row,
    )


lazy.attach(__name__)
