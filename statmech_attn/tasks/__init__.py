"""Learning tasks for the Bayesian theory of attention."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.tasks import (
        arrays,
        downloads,
        hidden_markov,
        image_sets,
        images,
        one_shot,
        options,
        trained_arrays,
    )


__all__ = [
    "arrays",
    "downloads",
    "hidden_markov",
    "image_sets",
    "images",
    "one_shot",
    "options",
    "trained_arrays",
]
lazy.attach(__name__)
