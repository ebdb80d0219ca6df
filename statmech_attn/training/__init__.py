"""Gradient descent: of all examples at once, and of minibatches of one-shot tasks."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.training import (
        networks as networks,
        one_shot_networks as one_shot_networks,
    )
    from statmech_attn.training.one_shot_networks import (
        OneShotNetworks as OneShotNetworks,
    )
    from statmech_attn.training.options import (
        Descent as Descent,
        Minibatches as Minibatches,
    )
    from statmech_attn.training.results import (
        DIVERGED as DIVERGED,
        RESULTS as RESULTS,
        VANISHED as VANISHED,
    )
    from statmech_attn.training.transformer import (
        attention_heads as attention_heads,
        Transformer as Transformer,
        value_weights as value_weights,
    )


lazy.attach(__name__)
