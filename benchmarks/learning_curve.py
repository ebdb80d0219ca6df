"""Time of a learning curve of the four-path hidden-Markov task, and of a new P in it.

python benchmarks/learning_curve.py [--largest 100] [--sizes 20] [--sets 10]

prints the time of the first solution, which compiles, of the first one at every other
P, and of the whole curve.  Nothing is compiled after the first training set.
"""

import argparse
import time

import jax
import numpy as np

import statmech_attn
from statmech_attn import bpkr
from statmech_attn.batches import compilations
from statmech_attn.bpkr import curves
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
    whole = curves.subset(problem, np.arange(options.largest))
    for number, size in enumerate(sizes):
        begun = time.perf_counter(), time.process_time()
        part = curves.truncated(whole, int(size))
        jax.block_until_ready(part.solve().U)
        clock, cpu = time.perf_counter() - begun[0], time.process_time() - begun[1]
        words = "first solution, compiled" if number == 0 else "first solution"
        print(f"P = {size:4d}: {words} {1e3 * clock:8.1f} ms, CPU {1e3 * cpu:8.1f} ms")
    before = compilations.count()
    begun = time.perf_counter(), time.process_time()
    curve = bpkr.learning_curve(
        keys[3], problem, xi_test, Y_test, examples=sizes, training_sets=options.sets
    )
    clock, cpu = time.perf_counter() - begun[0], time.process_time() - begun[1]
    print(
        f"{len(sizes)} P x {options.sets} training sets: {clock:.1f} s, CPU {cpu:.1f} s"
    )
    print(f"{compilations.count().since(before)}")
    print(curve)


if __name__ == "__main__":
    main()
