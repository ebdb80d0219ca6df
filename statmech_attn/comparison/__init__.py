"""Theory against simulation, in standard errors."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.comparison.dispatch import compare
    from statmech_attn.comparison.posteriors import METHODS
    from statmech_attn.comparison.trajectories import (
        LOGIT_LIMIT,
        network_digest,
        VERDICTS,
    )


__all__ = [
    "compare",
    "LOGIT_LIMIT",
    "METHODS",
    "network_digest",
    "VERDICTS",
]
lazy.attach(__name__)
