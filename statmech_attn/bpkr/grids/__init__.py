"""Learning problems over widths, temperatures and numbers of examples."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.bpkr.grids import (
        estimates as estimates,
        learning_curves as learning_curves,
        points as points,
        pruned_networks as pruned_networks,
    )
    from statmech_attn.bpkr.grids.examples import (
        Attended as Attended,
        VALIDATION as VALIDATION,
    )
    from statmech_attn.bpkr.grids.points import TaskPoints as TaskPoints


lazy.attach(__name__, checks=False)
