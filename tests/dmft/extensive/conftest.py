"""The network that several tests of loaded networks share."""

import jax
import pytest

from statmech_attn import dmft


@pytest.fixture(scope="session")
def net():
    patterns = dmft.random_segments(
        jax.random.key(3), n_patterns=2, n_segments=5, n_bits=1
    )
    return dmft.network(patterns, context=2)
