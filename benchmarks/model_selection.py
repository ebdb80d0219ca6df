"""How good width and temperature are that the evidence chooses, beside validation.

python benchmarks/model_selection.py [--sets 20] [--examples 50 100]
python benchmarks/model_selection.py --output model_selection.h5

Labels are those of the hidden-Markov task, and of networks drawn from the prior with
N = 30 and T = 0.1 on the same inputs.  The evidence sees all P training examples.  For
the choice by validation a fifth of them is held out, and the network then learns from
all.  "best" is the point of the grid with the smallest test error, which nobody knows.
Numbers are means over training sets with their standard errors.  The second command
writes the grid of one training set, of a network of the prior, for `figure`.
"""

import argparse

import jax
import numpy as np
import xarray as xr

import statmech_attn
from statmech_attn import bpkr, storage
from statmech_attn.presentation import quantity
from statmech_attn.tasks import hidden_markov


GRID = {
    "widths": [8, 16, 30, 100, 1000],
    "temperatures": [0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0],
}
TRUE = {"width": 30, "temperature": 0.1}
TESTS = 1000


def task(key, setting, examples, drawn: bool):
    """Attentioned inputs and labels of training and test set."""
    input_key, order_key, weight_key, noise_key = jax.random.split(key, 4)
    count = examples + TESTS
    x, Y = hidden_markov.draw(input_key, setting.task, examples=count)
    xi = bpkr.attentioned_inputs(x, setting.heads, readout=setting.readout)
    order = jax.random.permutation(order_key, count)
    xi, Y = xi[order], Y[order]
    if drawn:
        heads = bpkr.head_counts(setting.heads)
        weights = bpkr.draw_weights(
            weight_key, n_inputs=xi.shape[1], heads=heads, width=TRUE["width"]
        )
        noise = np.sqrt(TRUE["temperature"]) * jax.random.normal(noise_key, (count,))
        Y = bpkr.forward_paths(weights, xi) + noise
    return (xi[:examples], Y[:examples]), (xi[examples:], Y[examples:])


def select(train, validation, heads) -> xr.Dataset:
    """Evidence and errors on the grid."""
    problem = bpkr.Problem(*train, heads=heads, **TRUE)
    return bpkr.model_selection(problem, *validation, grid=bpkr.Grid(**GRID)).compute()


def one(train, test, heads) -> list[float]:
    """Test errors at both choices and at best, and two rank correlations."""
    held_out = len(train[1]) // 5
    first = [part[:-held_out] for part in train], [part[-held_out:] for part in train]
    validation, whole = select(*first, heads), select(train, test, heads)
    choices = (whole, "evidence"), (validation, "validation"), (whole, "validation")
    errors = []
    for selection, choice in choices:
        place = selection.sel(choice=choice)
        at = {"width": place.chosen_width, "temperature": place.chosen_temperature}
        errors.append(float(whole.error.sel(at)))
    return [*errors, *(float(x.rank_correlation) for x in (whole, validation))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--examples", type=int, nargs="+", default=[50, 100])
    parser.add_argument("--output")
    options = parser.parse_args()
    statmech_attn.setup()
    head_key, set_key = jax.random.split(jax.random.key(0))
    setting = hidden_markov.preset("four-paths", head_key)
    heads = bpkr.head_counts(setting.heads)
    if options.output:
        train, test = task(set_key, setting, options.examples[0], drawn=True)
        data = select(train, [part[:100] for part in test], heads)
        storage.write(options.output, data, study="", kind=data.attrs["kind"])
        return
    words = "labels", "P", "by the evidence", "by validation", "best"
    words += "ρ_S, ln p(Y) and test", "ρ_S, ln p(Y) and validation"
    print(f"| {' | '.join(words)} |\n{'| --- ' * len(words)}|")
    for drawn, name in ((True, "networks of the prior"), (False, "hidden-Markov")):
        for examples in options.examples:
            rows = np.array(
                [
                    one(*task(key, setting, examples, drawn), heads)
                    for key in jax.random.split(set_key, options.sets)
                ]
            )
            error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
            columns = map(quantity, rows.mean(axis=0), error)
            print(f"| {' | '.join([name, str(examples), *columns])} |", flush=True)
            gap = rows[:, 0] - rows[:, 1]
            error = gap.std(ddof=1) / np.sqrt(len(gap))
            print(f"  evidence less validation: {quantity(gap.mean(), error)}")


if __name__ == "__main__":
    main()
