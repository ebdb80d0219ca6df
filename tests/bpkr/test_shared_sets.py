"""Errors over training sets that have examples in common."""

import jax
import numpy as np

from statmech_attn import bpkr


def test_sets_of_all_examples_have_no_error():
    """All four hold the same ten examples: their scatter is that of rounding."""
    xi = jax.device_put(np.random.default_rng(0).normal(size=(10, 1, 1)))
    Y = xi[:, 0, 0]
    problem = bpkr.Problem(xi, Y, heads=(1,), width=10, temperature=0.1)
    curve = bpkr.learning_curve(
        jax.random.key(1), problem, xi, Y, examples=[5, 10], training_sets=4
    )
    for name in ("error", "variance"):
        stderr = curve[f"{name}_stderr"].values
        assert np.isnan(stderr[1]).all() and (stderr[0] > 0).all()
    assert curve.shared
    alone = bpkr.learning_curve(
        jax.random.key(1), problem, xi, Y, examples=[5], training_sets=2
    )
    assert not alone.shared
