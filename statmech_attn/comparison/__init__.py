"""Theory against simulation, in standard errors."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.comparison.agreement import VERDICTS as VERDICTS
    from statmech_attn.comparison.dispatch import compare as compare
    from statmech_attn.comparison.irreversibility import (
        compare_entropy_production as compare_entropy_production,
    )
    from statmech_attn.comparison.posteriors import sampled_by as sampled_by
    from statmech_attn.comparison.trajectories import (
        least_spins as least_spins,
        SPREAD_LIMIT as SPREAD_LIMIT,
    )


lazy.attach(__name__)
