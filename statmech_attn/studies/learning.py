"""From the tables of a learning study to its task and its grid."""

import json
from dataclasses import asdict

import jax

from statmech_attn import bpkr
from statmech_attn.bpkr import Grid, Learning
from statmech_attn.kinds import TASKS
from statmech_attn.studies.bpkr_tables import (
    HiddenMarkovTable,
    listed,
    WidthsTable,
)
from statmech_attn.studies.tables import TaskTable
from statmech_attn.tasks import hidden_markov


def learning(table: TaskTable) -> Learning:
    """Draw the task of a study.

    Raises:
        ValueError: impossible settings, in one line.
    """
    (row,) = TASKS.named(table.name)
    return TASKS.part(row, "draw")(table)


def hidden_markov_chains(table: HiddenMarkovTable) -> Learning:
    """Heads, training and test set, each with a key of its own.

    Raises:
        ValueError: impossible settings, in one line.
    """
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
    return Learning(*train, *test, counts, description, skip=table.skip)


def grid(table: WidthsTable) -> Grid:
    """Widths and temperatures of a study, sorted; a single temperature is no axis."""
    T = table.temperature
    temperatures = sorted(T) if isinstance(T, list) else T
    return Grid(sorted(listed(table.width)), temperatures, table.width_ratios)
