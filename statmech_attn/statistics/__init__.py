"""Values with their errors: means, chains, and agreement of theory with simulation."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.statistics.agreement import (
        bias_slope as bias_slope,
        extrapolation as extrapolation,
        in_standard_errors as in_standard_errors,
        LEVEL as LEVEL,
        limit_difference as limit_difference,
        linear_until as linear_until,
        log_spread_error as log_spread_error,
        power_law as power_law,
        Slope as Slope,
        spread_ratio as spread_ratio,
        spread_slope as spread_slope,
        threshold as threshold,
    )
    from statmech_attn.statistics.diagnostics import (
        bfmi as bfmi,
        Summary as Summary,
        summary as summary,
    )
    from statmech_attn.statistics.means import (
        block_stderr as block_stderr,
        mean_of_known as mean_of_known,
        not_below_rounding as not_below_rounding,
        paired_error as paired_error,
        rounding as rounding,
        share_error as share_error,
        standard_error as standard_error,
        wilson as wilson,
    )
    from statmech_attn.statistics.power import (
        Deviations as Deviations,
        in_errors as in_errors,
        Law as Law,
        law as law,
        noise as noise,
        POWER as POWER,
        rotated as rotated,
        smallest_visible as smallest_visible,
        Sums as Sums,
        sums as sums,
        visible_alone as visible_alone,
    )


lazy.attach(__name__)
