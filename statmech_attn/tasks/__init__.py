"""Learning tasks for the Bayesian theory of attention."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.tasks import (
        array_files as array_files,
        arrays as arrays,
        downloads as downloads,
        hidden_markov as hidden_markov,
        image_sets as image_sets,
        images as images,
        one_shot as one_shot,
        options as options,
        trained_arrays as trained_arrays,
    )


lazy.attach(__name__)
