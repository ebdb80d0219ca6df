"""Learning tasks for the Bayesian theory of attention."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.tasks import (
        hidden_markov as hidden_markov,
        image_sets as image_sets,
        one_shot as one_shot,
        options as options,
    )
    from statmech_attn.tasks.image_files import downloads as downloads, images as images
    from statmech_attn.tasks.own_data import (
        array_files as array_files,
        arrays as arrays,
        trained_arrays as trained_arrays,
    )


OWN = "arrays hidden_markov image_sets images one_shot trained_arrays"
lazy.attach(__name__, modules=OWN.split())
