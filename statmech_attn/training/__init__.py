"""Gradient descent: of all examples at once, and of minibatches of one-shot tasks."""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.training import networks, one_shot_networks
    from statmech_attn.training.descent import State, Trained, Trainer
    from statmech_attn.training.one_shot_networks import OneShotNetworks
    from statmech_attn.training.options import Descent, Minibatches
    from statmech_attn.training.results import (
        CONVERGED,
        DIVERGED,
        RECORDS,
        RESULTS,
        RUNNING,
        VANISHED,
    )
    from statmech_attn.training.stochastic import (
        ClassPatches,
        Learnt,
        PILOT_STEPS,
        precision_here,
        StochasticTrainer,
        token_codes,
    )
    from statmech_attn.training.transformer import (
        attention_heads,
        initial,
        outputs,
        Precision,
        Transformer,
        value_weights,
    )


__all__ = [
    "attention_heads",
    "ClassPatches",
    "CONVERGED",
    "Descent",
    "DIVERGED",
    "initial",
    "Learnt",
    "Minibatches",
    "networks",
    "one_shot_networks",
    "OneShotNetworks",
    "outputs",
    "PILOT_STEPS",
    "Precision",
    "precision_here",
    "RECORDS",
    "RESULTS",
    "RUNNING",
    "State",
    "StochasticTrainer",
    "token_codes",
    "Trained",
    "Trainer",
    "Transformer",
    "value_weights",
    "VANISHED",
]
lazy.attach(__name__)
