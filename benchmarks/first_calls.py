"""Processor seconds of the first call in a process, without and with a kept program.

    python benchmarks/first_calls.py

Every call is made by two processes, one after the other, that share a new folder of
compiled programs: the first compiles, the second reads.  A second call in the same
process is the computation alone.  The seconds of the whole process, imports included,
stand behind those of the call.  Two commands follow, which compute nothing.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import statmech_attn
from statmech_attn import bpkr, dmft, dynamics
from statmech_attn.dynamics.maps.catalogue import henon


def problem() -> bpkr.Problem:
    """40 examples of 20 features, four paths."""
    draws = np.random.default_rng(0)
    xi, Y = draws.normal(size=(40, 20, 4)), np.sign(draws.normal(size=40))
    return bpkr.Problem(xi, Y, heads=(2, 2), width=30, temperature=0.1)


def readme():
    """The example of the README: the published network, iterated and classified."""
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(1.28, file.gamma, file.epsilon)
    start = dmft.from_checkpoint(net, params, file)
    state, observed = dmft.trajectory(net, params, start, steps=10_000)
    verdict = dynamics.classify(dmft.system(net), state, params, exponents=4)
    return observed.m_o_se[-1], verdict.explain(), verdict.phase


def calls() -> dict[str, Callable]:
    sampled = dict(draws=100, chains=2)
    return {
        "statmech_attn.setup": lambda: None,
        "dynamics.classify": lambda: dynamics.classify(henon, jnp.array([0.1, 0.1])),
        "the README": readme,
        "Problem.solve": lambda: problem().solve(),
        "Problem.corrections": lambda: problem().corrections(problem().solve()),
        "Problem.posterior": lambda: problem().posterior(jax.random.key(0), **sampled),
    }


def seconds(call: Callable) -> float:
    begun = time.process_time()
    jax.block_until_ready(jax.tree.leaves(call()))
    return time.process_time() - begun


def measured(name: str, store: str) -> tuple[str, str]:
    """First and second call of a process of its own."""
    words = [sys.executable, __file__, "--call", name]
    kept = os.environ | {"JAX_COMPILATION_CACHE_DIR": store}
    before = used_by_children()
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, env=kept)
    first, second = done.stdout.decode().split()
    return f"{first} of {used_by_children() - before:.1f}", second


def used_by_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--call", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.call:
        statmech_attn.setup()
        call = calls()[options.call]
        print(f"{seconds(call):.2f} {seconds(call):.2f}")
        return
    print("| call | compiled | read | again |\n| --- | --- | --- | --- |")
    for name in calls():
        with tempfile.TemporaryDirectory() as store:
            compiled, again = measured(name, store)
            read, _ = measured(name, store)
        print(f"| `{name}` | {compiled} | {read} | {again} |", flush=True)
    for words in ("--help", "run no-such-study.toml -o out.h5"):
        program = [sys.executable, "-m", "statmech_attn.cli", *words.split()]
        before = used_by_children()
        subprocess.run(program, capture_output=True)
        used = used_by_children() - before
        print(f"| `statmech-attn {words}` | | | {used:.2f} |")


if __name__ == "__main__":
    main()
