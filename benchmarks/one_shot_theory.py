"""Time and memory of the theory on trained heads, printed as a table.

    python benchmarks/one_shot_theory.py           attentioned inputs, kernels, 10 x 10
    python benchmarks/one_shot_theory.py --deep    27 paths (L = 3, H = 3), 64 (H = 8)

Published sizes: 600 training tasks and four sets of 1000, 48 tokens, N_0 = 192.  The
heads are drawn as before a training, with a gain, and the tasks are Gaussian tokens: no
images are read.  `CPU s` counts all threads, so that it hardly depends on what else the
machine does; `GiB` is the highest memory of the process so far.
"""

import argparse

import jax
import numpy as np
from attended import timed

from statmech_attn import bpkr
from statmech_attn.bpkr.grids import saddle_points
from statmech_attn.bpkr.grids.points import alignment_and_scores
from statmech_attn.studies.one_shot import examples
from statmech_attn.studies.one_shot.examples import Drawn
from statmech_attn.tasks.one_shot import Examples, Setting
from statmech_attn.training.transformer import initial


WIDTHS = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]
TEMPERATURES = [0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5]
SETTING = Setting()
GAIN = 3.0
KEY_SIZE = 128
VARIANTS = {(3, 3, 3): [0.5, 0.1], (8, 8): [0.5]}  # heads: temperatures at N = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deep", action="store_true")
    jax.config.update("jax_enable_x64", True)
    print(f"# jax {jax.__version__}, {jax.default_backend()}")
    print(f"{'':<34} {'s':>8} {'CPU s':>8} {'GiB':>6}")
    if parser.parse_args().deep:
        for heads, temperatures in VARIANTS.items():
            points(learning(heads), [10], temperatures)
    else:
        published()


def published() -> None:
    chosen = learning((4, 4))
    limit = lambda: posed(chosen).gaussian_process()
    timed("600 tasks, kernel", lambda: np.asarray(limit().kernel))
    points(chosen, WIDTHS, TEMPERATURES)


def learning(heads) -> bpkr.LearningTask:
    """Attentioned inputs of all sets."""
    keys = iter(jax.random.split(jax.random.key(0), 6))
    network = initial(
        next(keys),
        n_inputs=SETTING.n_inputs,
        heads=heads,
        width=1,
        key_size=KEY_SIZE,
        gain=GAIN,
    )
    names = ("omniglot", "omniglot-validation", "fashion-mnist", "mnist")
    drawn = Drawn(
        tasks(next(keys), 600), {n: tasks(next(keys), 1000) for n in names}, {}
    )
    return timed(
        f"attentioned inputs, 4600 tasks, {heads}",
        lambda: examples.attended(network, drawn),
    )


def tasks(key, count: int) -> Examples:
    """Gaussian tokens; labels say whether the mean of 16 features is a large one."""
    x = jax.random.normal(key, (count, SETTING.n_inputs, SETTING.tokens))
    first = x[:, :16].mean((1, 2))
    return Examples(x, 2.0 * (first > np.median(first)) - 1)


def points(chosen: bpkr.LearningTask, widths, temperatures) -> None:
    """What a study computes at every point: saddle point, accuracies, scores."""

    def every():
        problem = posed(chosen)
        for N in widths:
            saddle = None
            for T in sorted(temperatures, reverse=True):
                saddle = problem.at(width=N, temperature=T).solve(start=saddle)
                theory = saddle.problem.theory(saddle)
                saddle_points.predictor(theory, chosen, predictors=False)
                alignment_and_scores(theory, saddle.U, saddle.U_a)

    timed(f"{len(widths)} x {len(temperatures)} points, {chosen.heads}", every)


def posed(chosen: bpkr.LearningTask) -> bpkr.Problem:
    """At any width and temperature."""
    return bpkr.Problem(*chosen.data, heads=chosen.heads, width=1, temperature=1.0)


if __name__ == "__main__":
    main()
