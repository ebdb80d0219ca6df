"""Theory against simulation, in standard errors."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.comparison.dispatch import compare
    from statmech_attn.comparison.posteriors import sampled_by
    from statmech_attn.comparison.trajectories import LOGIT_LIMIT, VERDICTS


__all__ = [
    "compare",
    "LOGIT_LIMIT",
    "sampled_by",
    "VERDICTS",
]
lazy.attach(__name__)
