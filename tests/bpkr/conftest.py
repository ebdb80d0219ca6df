import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from statmech_attn import bpkr
from statmech_attn.batches import rng
from statmech_attn.tasks import hidden_markov


@pytest.fixture(scope="session")
def small():
    """Three layers of 2, 1 and 2 random heads on ten random inputs."""
    keys = jax.random.split(jax.random.key(11), 5)
    heads = bpkr.heads_from_products(
        [rng.normal(k, (H, 6, 6)) for k, H in zip(keys, (2, 1, 2))]
    )
    x = rng.normal(keys[3], (10, 6, 5))
    return x, heads, rng.normal(keys[4], (10,))


@pytest.fixture(scope="session")
def small_inputs(small):
    """Attentioned inputs of `small`."""
    return jax.jit(bpkr.attentioned_inputs)(*small[:2])


@pytest.fixture(scope="session")
def chains():
    """The published four-path task, one draw: xi, y, test xi, test y."""
    keys = jax.random.split(jax.random.key(0), 3)
    setting = hidden_markov.preset("four-paths", keys[0])
    found = []
    for key, examples in zip(keys[1:], (setting.n_train, setting.n_test)):
        x, y = hidden_markov.draw(key, setting.task, examples=examples)
        found += [bpkr.attentioned_inputs(x, setting.heads, readout="last"), y]
    return tuple(jnp.asarray(a) for a in found)


@pytest.fixture(scope="session")
def factors_of():
    """Factors of given positive definite order parameters, the inverse of `action`."""

    def factors_of(U, U_a, heads):
        lower = [np.linalg.cholesky(np.atleast_2d(x)) for x in (*U, U_a)]
        factors = [lower[-1]]
        for F, above, H in zip(lower[-2::-1], lower[:0:-1], heads[::-1]):
            block = np.kron(np.eye(H), above)
            factors.append(scipy.linalg.solve_triangular(block, F, lower=True))
        return tuple(jax.device_put(factors[::-1]))

    return factors_of


@pytest.fixture(scope="session")
def chart():
    """Unknowns of given factors, the inverse of `saddle.factors_at`."""

    def chart(factors):
        factors = [np.asarray(C) for C in factors]
        logs = [C + np.diag(np.log(np.diagonal(C)) - np.diagonal(C)) for C in factors]
        entries = [C[np.tril_indices(len(C))] for C in logs]
        return jax.device_put(np.concatenate(entries))

    return chart
