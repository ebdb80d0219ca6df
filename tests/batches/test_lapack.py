"""Linear algebra of many matrices at once, in programs that run at the same time."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest


TOGETHER = """
import threading

import jax
import jax.numpy as jnp

from statmech_attn import batches

jax.config.update("jax_enable_x64", True)
batches.require_double()
matrices = jax.random.normal(jax.random.key(0), (136, 12, 12)) + 5 * jnp.eye(12)


def body(_, x):
    total = 0.0
    for k in range(8):
        matrix = matrices + 0.01 * x[..., None] + k
        for _ in range(3):
            matrix = jnp.sin(0.01 * matrix @ matrix.mT) + jnp.eye(12)
        total += jnp.linalg.slogdet(matrix)[1][:, None] * x
    return jnp.tanh(total) + 1


loop = jax.jit(lambda x, n: jax.lax.fori_loop(0, n, body, x))
program = loop.lower(matrices[..., 0], 3).compile()
call = lambda: program(matrices[..., 0], 200).block_until_ready()
threads = [threading.Thread(target=call) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("ended")
"""


@pytest.mark.slow
def test_programs_with_batched_determinants_do_not_wait_for_each_other():
    command = [sys.executable, "-c", TOGETHER]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.stdout == "ended\n", ended.stderr


@pytest.mark.parametrize(
    "function",
    [
        jnp.linalg.cholesky,
        jnp.linalg.eigh,
        jnp.linalg.eigvals,
        jnp.linalg.qr,
        jnp.linalg.slogdet,
        jnp.linalg.svd,
        lambda a: jnp.linalg.solve(a, a.mT),
        lambda a: jax.scipy.linalg.solve_triangular(a, a.mT, lower=True),
    ],
)
def test_a_batch_of_matrices_has_the_bits_of_single_ones(function):
    a = np.random.default_rng(1).normal(size=(2, 3, 5, 5))
    a = jax.device_put(a @ a.swapaxes(2, 3) + np.eye(5))
    program = jax.jit(function)
    together = jax.tree.leaves(program(a))
    for lane in np.ndindex(2, 3):
        alone = jax.tree.leaves(program(a[lane]))
        for batched, single in zip(together, alone, strict=True):
            np.testing.assert_array_equal(batched[lane], single)
