"""Values with their errors: means, chains, and agreement of theory with simulation."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.statistics.agreement import (
        bias_slope,
        extrapolation,
        in_standard_errors,
        LEVEL,
        limit_difference,
        linear_until,
        log_spread_error,
        power_law,
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
    from statmech_attn.statistics.power import (
        Deviations,
        in_errors,
        Law,
        law,
        noise,
        POWER,
        rotated,
        smallest_visible,
        Sums,
        sums,
        visible_alone,
    )


lazy.attach(__name__)
