"""Wide frames, which LAPACK makes orthonormal, beside narrow ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.dynamics import lyapunov_spectrum, orthonormalise
from statmech_attn.dynamics.maps import orthonormal


SITES = orthonormal.WIDE + 4
EPS = np.finfo(float).eps


def frames(sites):
    """Frames of three lanes; a column is zero in each, the first one in the last."""
    columns = np.random.default_rng(1).normal(size=(sites + 3, sites, 3))
    columns *= np.logspace(0, -8, sites)[:, None]
    for lane, column in enumerate((sites - 1, 5, 0)):
        columns[:, column, lane] = 0
    return columns


def test_wide_frames_are_those_of_gram_schmidt(monkeypatch):
    """Of six columns, which are wide when WIDE is smaller."""
    columns = 6
    written_out = jax.jit(orthonormalise)(frames(columns))
    monkeypatch.setattr(orthonormal, "WIDE", columns - 1)
    reflected = jax.jit(lambda frames: orthonormalise(frames))(frames(columns))
    # Either is orthonormal to a few roundings per column, by which columns turn that
    # have as much of others in them: at random, of a condition of about `columns`.
    tolerance = 10 * EPS * columns**2
    np.testing.assert_allclose(reflected[0], written_out[0], atol=tolerance)
    for lengths, expected in zip(reflected[1:], written_out[1:], strict=True):
        np.testing.assert_allclose(lengths, expected, rtol=tolerance)
    zero = np.asarray(reflected[1]) == 0
    assert zero.sum() == 3 and zero[[columns - 1, 5, 0], [0, 1, 2]].all()
    assert not np.asarray(reflected[0])[:, zero].any()


def test_lanes_of_wide_frames_do_not_depend_on_their_neighbours():
    together = jax.jit(orthonormalise)(frames(SITES))
    for lane in range(3):
        alone = jax.jit(orthonormalise)(frames(SITES)[..., lane])
        for one, many in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one, many[..., lane])


@pytest.mark.slow
def test_exponents_of_a_wide_linear_map_are_those_of_its_eigenvalues():
    rates = np.linspace(0.5, -2.0, SITES)
    eigenvectors = np.random.default_rng(0).normal(size=(SITES, SITES))
    matrix = eigenvectors * np.exp(rates) @ np.linalg.inv(eigenvectors)
    # Vectors part at the least ratio of eigenvalues, by 0.13 nats per step: beyond
    # rounding after 280 of the 1000 steps that align them.
    spectrum = lyapunov_spectrum(
        lambda x, matrix: matrix @ x, jnp.zeros(SITES), jnp.asarray(matrix), steps=100
    )
    np.testing.assert_allclose(spectrum.exponents, rates, atol=1e-11)
