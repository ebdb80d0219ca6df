"""Time of a learning curve of the four-path hidden-Markov task, and of a new P in it.

python benchmarks/learning_curve.py [--largest 100] [--sizes 20] [--sets 10]

prints times of the first solution, which compiles, of the first one at every other P,
of a curve of one training set, and of all, each with the programs compiled or read from
the cache for it: none for a new P, and none for more training sets.
"""

import argparse
import time

import jax
import numpy as np

import statmech_attn
from statmech_attn import bpkr
from statmech_attn.batches import compilations
from statmech_attn.bpkr.grids import training_sets
from statmech_attn.tasks import hidden_markov


def task(key, setting, examples):
    """Attentioned inputs and labels."""
    x, y = hidden_markov.draw(key, setting.task, examples=examples)
    readout = setting.readout
    return bpkr.attentioned_inputs(x, setting.heads, readout=readout), y


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=100)
    parser.add_argument("--sizes", type=int, default=20)
    parser.add_argument("--sets", type=int, default=10)
    options = parser.parse_args()
    statmech_attn.setup()
    keys = jax.random.split(jax.random.key(0), 4)
    setting = hidden_markov.preset("four-paths", keys[0])
    xi, Y = task(keys[1], setting, options.largest * options.sets)
    xi_test, Y_test = task(keys[2], setting, 1000)
    problem = bpkr.Problem(
        xi, Y, heads=setting.heads, width=30, temperature=0.01, form="factors"
    )
    sizes = np.unique(np.linspace(2, options.largest, options.sizes).astype(int))
    sizes = sizes.tolist()
    print(f"{'':<44} {'ms':>9} {'CPU ms':>9}")
    whole = timed("training set", lambda: problem.subset(np.arange(options.largest)))
    for number, P in enumerate(sizes):
        name = f"P = {P}, first solution" + ", compiled" * (number == 0)
        timed(name, lambda P=P: training_sets.truncated(whole, P).solve())
    curve = lambda sets: bpkr.learning_curve(
        keys[3], problem, xi_test, Y_test, examples=sizes, training_sets=sets
    )
    timed("curve of one training set, compiled", lambda: curve(1))
    print(timed(f"curve of {options.sets} training sets", lambda: curve(options.sets)))


def timed(name, compute):
    """What is computed; prints its time and the programs that it had to compile."""
    before = compilations.count()
    clock, cpu = time.perf_counter(), time.process_time()
    result = jax.block_until_ready(compute())
    seconds, used = time.perf_counter() - clock, time.process_time() - cpu
    programs = compilations.count().since(before)
    print(f"{name:<44} {1e3 * seconds:9.1f} {1e3 * used:9.1f}  {programs}", flush=True)
    return result


if __name__ == "__main__":
    main()
