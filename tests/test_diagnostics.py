import numpy as np
import pytest
from scipy import signal

from statmech_attn.diagnostics import bfmi, summary


def autoregressive(rng, phi, shape):
    noise = rng.normal(size=shape)
    return signal.lfilter([1.0], [1.0, -phi], noise, axis=1)[:, 500:]


def test_errors_of_correlated_means_cover_them():
    """Every entry is a chain of its own: 300 means of known law in units of stderr."""
    chains = autoregressive(np.random.default_rng(0), 0.8, (4, 2500, 300))
    found = summary(chains)
    z = found.mean / found.stderr
    assert abs(z.std() - 1) < 5 / np.sqrt(2 * z.size)
    # n_eff = n (1 - phi) / (1 + phi); each estimate is off by some 10 %.
    assert abs(found.n_eff.mean() * 9 / 8000 - 1) < 0.05
    assert abs(found.std.mean() * 0.6 - 1) < 0.01
    assert found.r_hat.max() < 1.05


def test_r_hat_tells_chains_of_different_place_or_spread():
    chains = np.random.default_rng(1).normal(size=(4, 1000))
    number = np.arange(4)[:, None]
    cases = np.stack([chains, chains + number, chains * (1 + number)], axis=-1)
    same, moved, widened = summary(cases).r_hat
    assert same < 1.01 and moved > 1.3 and widened > 1.05
    heavy = np.random.default_rng(2).standard_cauchy((4, 1000))
    assert summary(heavy).r_hat < 1.01
    assert summary(np.ones((2, 10))).r_hat == 1.0
    assert summary(np.ones((2, 10)) * [[1.0], [2.0]]).r_hat == np.inf
    assert summary(np.ones((2, 10))).stderr == 0.0


def test_bfmi_of_an_autoregressive_energy():
    """E (E_t - E_{t-1})^2 / Var E = 2 (1 - phi)."""
    phi = 0.9
    found = bfmi(autoregressive(np.random.default_rng(3), phi, (3, 100_000)))
    # The variance over n draws has relative error sqrt(2 tau / n), tau about 10.
    assert np.abs(found / (2 * (1 - phi)) - 1).max() < 5 * np.sqrt(2 * 10 / 100_000)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="draws >= 4"):
        summary(np.ones((2, 3)))
    with pytest.raises(ValueError, match="finite"):
        summary(np.full((2, 10), np.nan))
    with pytest.raises(ValueError, match=r"\(chains, draws\)"):
        bfmi(np.ones((2, 10, 3)))
