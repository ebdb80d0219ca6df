"""Values with their errors: means, chains, and agreement of theory with simulation."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.statistics.agreement import (
        bias_slope,
        in_standard_errors,
        limit_difference,
        linear_until,
        Slope,
        spread_ratio,
        spread_slope,
        threshold,
    )
    from statmech_attn.statistics.diagnostics import bfmi, Summary, summary
    from statmech_attn.statistics.means import (
        block_stderr,
        mean_of_known,
        not_below_rounding,
        paired_error,
        rounding,
        share_error,
        standard_error,
        wilson,
    )


__all__ = [
    "bfmi",
    "bias_slope",
    "block_stderr",
    "in_standard_errors",
    "limit_difference",
    "linear_until",
    "mean_of_known",
    "not_below_rounding",
    "paired_error",
    "rounding",
    "share_error",
    "Slope",
    "spread_ratio",
    "spread_slope",
    "standard_error",
    "Summary",
    "summary",
    "threshold",
    "wilson",
]
lazy.attach(__name__)
