"""Speed of one-shot training on this device, printed as a table.

    python benchmarks/one_shot_training.py [--steps 20] [--sizes laptop paper]

Tasks per second of whole steps (tasks drawn, gradient, Adam), on random patches.
Floating point operations are those of the formula in `flops`, three passes for a
gradient, over the peak measured for matrix products: of float32, and of bfloat16 where
precision is mixed.
"""

import argparse
import math
import time

import jax
import jax.numpy as jnp


CLASSES, DRAWINGS = 100, 20
PEAK = 4096, 1024  # side of the matrices of an accelerator, of a CPU


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--sizes", nargs="+", default=["laptop", "paper"])
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    cpu = jax.default_backend() == "cpu"
    kind = jax.devices()[0].device_kind
    print(f"# jax {jax.__version__}, {kind}, {options.steps} steps")
    peaks = {"single": peak(jnp.float32, cpu)}
    if not cpu:
        peaks["mixed"] = peak(jnp.bfloat16, cpu)
    print(
        "size    precision  compile s  ms/step  tasks/s  Gflop/step   Gflop/s    peak"
    )
    for size in options.sizes:
        for precision, most in peaks.items():
            measured(size, precision, most, options.steps)


def measured(size: str, precision, most: float, steps: int) -> None:
    """Print a line of the table."""
    compiled, step, batch, done = timed(size, precision, steps)
    print(
        f"{size:<7} {precision:<9} {compiled:>10.1f} {1e3 * step:>8.2f} "
        f"{batch / step:>8.0f} {done / 1e9:>11.2f} {done / step / 1e9:>9.1f} "
        f"{most / 1e9:>7.0f} ({100 * done / step / most:.1f} %)",
        flush=True,
    )


def timed(
    size: str, precision, steps: int, **options
) -> tuple[float, float, int, float]:
    """Seconds of compilation and of a step, tasks of a step, and its operations."""
    from statmech_attn.studies.one_shot.tables import ONE_SHOT_PRESETS
    from statmech_attn.tasks import one_shot
    from statmech_attn.training import Minibatches
    from statmech_attn.training.stochastic import StochasticTrainer
    from statmech_attn.training.transformer import initial

    preset = ONE_SHOT_PRESETS[size]
    setting = one_shot.Setting(channels=preset["task"]["channels"])
    choices = Minibatches(
        learning_rate=preset["run"]["learning_rate"],
        steps=steps,
        block=10 * steps,
        validation_batches=1,
        precision=precision,
        **options,
    )
    key = jax.random.key(0)
    weights = initial(key, n_inputs=setting.n_inputs, **preset["network"])
    clock = time.perf_counter()
    trainer = StochasticTrainer(choices, patches(setting), weights, key)
    compiled = time.perf_counter() - clock
    state, _ = trainer.start(key, weights)
    trainer.advance(trainer.near_the_end(state))
    clock = time.perf_counter()
    trainer.advance(state)
    step = (time.perf_counter() - clock) / steps
    done = 3 * choices.batch * flops(setting, **preset["network"])
    return compiled, step, choices.batch, done


def flops(setting, *, heads, key_size: int, **_: int) -> int:
    """Of f of one task: scores and paths of the features of tokens; the weights are
    contracted once for all tasks of a batch and do not count."""
    T, n, total, paths = setting.tokens, setting.patch**2 + 1, 0, 1
    scores = min(key_size * (2 * n + T), n * (n + 2 * T))
    for H in reversed(heads):
        total += 2 * T * H * (scores + T * paths)
        paths *= H
    return total + 2 * T * n * paths


def patches(setting):
    """Random patches of random classes."""
    from statmech_attn.tasks import one_shot
    from statmech_attn.training.stochastic import ClassPatches, token_embedding

    shape = (CLASSES, DRAWINGS, setting.patches, setting.patch**2)
    drawn = jax.random.normal(jax.random.key(1), shape, jnp.float32)
    tokens = token_embedding(one_shot.codes(setting), setting.channels)
    return ClassPatches(drawn, drawn[:20], tokens)


def peak(kind, cpu: bool) -> float:
    """Operations per second of a product of square matrices, the best of ten."""
    from statmech_attn.batches import Compiled

    side = PEAK[cpu]
    matrix = jnp.ones((side, side), kind)
    with jax.default_matmul_precision("float32" if kind == jnp.float32 else "default"):
        product = Compiled(lambda a: a @ a, matrix, shared=1)
    best = math.inf
    for _ in range(10):
        clock = time.perf_counter()
        product(matrix)
        best = min(best, time.perf_counter() - clock)
    return 2 * side**3 / best


if __name__ == "__main__":
    main()
