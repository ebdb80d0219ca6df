import numpy as np
import pytest
from scipy import signal

from statmech_attn.statistics import bfmi, diagnostics
from statmech_attn.statistics.diagnostics import summary


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


@pytest.mark.parametrize("value", (1.0, 0.1))  # means of 0.1 are off by round-off
def test_chains_that_never_move_are_not_taken_for_draws(value):
    moving = np.random.default_rng(4).normal(size=(4, 100))
    one_stuck = np.where(np.arange(4)[:, None] == 2, value, moving)
    apart = np.broadcast_to(value * np.arange(4)[:, None], (4, 100))
    cases = [moving, one_stuck, apart, np.full((4, 100), value)]
    found = summary(np.stack(cases, axis=-1))
    assert found.n_eff[0] > 100 and (found.n_eff[1:] == 4).all()
    assert found.r_hat[0] < 1.05 and (found.r_hat[1:3] == np.inf).all()
    assert np.isnan(found.r_hat[3]) and np.isnan(found.stderr[3])
    assert found.mean[3] == pytest.approx(value, rel=1e-14)


def test_draws_that_alternate_count_for_a_few_times_their_number():
    chains = np.random.default_rng(6).normal(size=(2, 50)) * 0.01
    found = summary(chains + (-1.0) ** np.arange(50))
    assert found.n_eff == 200 and found.stderr == found.std / np.sqrt(200)


def test_entries_together_are_entries_alone(monkeypatch):
    chains = np.random.default_rng(5).normal(size=(3, 50, 4, 2))
    whole = summary(chains)
    monkeypatch.setattr(diagnostics, "CHUNK", 3 * 150)  # three entries at a time
    for one, other in zip(whole, summary(chains)):
        # Sums over entries side by side may run in another order.
        assert one.shape == (4, 2) and np.allclose(one, other, rtol=1e-13, atol=1e-13)


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
    with pytest.raises(ValueError, match=r"shape \(chains, draws\)"):
        bfmi(np.ones((2, 10, 3)))
