"""Examples of a study of hidden Markov chains, as its heads attend them."""

import json
from dataclasses import asdict

import jax

from statmech_attn import bpkr
from statmech_attn.bpkr import LearningTask
from statmech_attn.studies.learning.tables import HiddenMarkovTable
from statmech_attn.tasks import hidden_markov


def learning(table: HiddenMarkovTable) -> LearningTask:
    """Heads, training and test set, each with a key of its own."""
    head_key, train_key, test_key = jax.random.split(jax.random.key(table.seed), 3)
    setting = hidden_markov.preset(table.preset, head_key, **table.changes)

    def drawn(key, examples):
        x, y = hidden_markov.draw(key, setting.task, examples=examples)
        xi = bpkr.attentioned_inputs(
            x, setting.heads, readout=setting.readout, skip=table.skip
        )
        return xi, y

    train = drawn(train_key, setting.n_train)
    test = drawn(test_key, setting.n_test)
    layers = table.heads or hidden_markov.PRESETS[table.preset][1]
    described = setting._asdict() | {"task": asdict(setting.task), "heads": layers}
    described |= {"skip": table.skip} if table.skip else {}
    description = json.dumps({"name": table.name, "seed": table.seed} | described)
    counts = bpkr.head_counts(setting.heads)
    return LearningTask(*train, *test, counts, description, skip=table.skip)
