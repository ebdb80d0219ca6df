"""Gradient descent: of all examples at once, and of minibatches of one-shot tasks."""

from statmech_attn.training.descent import (
    CONVERGED,
    Descent,
    DIVERGED,
    RECORDS,
    RESULTS,
    RUNNING,
    State,
    Trained,
    Trainer,
    VANISHED,
)
from statmech_attn.training.stochastic import (
    ClassPatches,
    Learnt,
    Minibatches,
    StochasticTrainer,
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
    "outputs",
    "Precision",
    "RECORDS",
    "RESULTS",
    "RUNNING",
    "State",
    "StochasticTrainer",
    "Trained",
    "Trainer",
    "Transformer",
    "value_weights",
    "VANISHED",
]
