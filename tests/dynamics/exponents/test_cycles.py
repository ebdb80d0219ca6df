"""Exponents of cycles: closed forms, exact Floquet exponents, what rounding hides."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft
from statmech_attn.dynamics import cycle_spectrum, lyapunov_spectrum
from statmech_attn.dynamics.exponents.cycles import go_round, spectra, whole_period
from statmech_attn.dynamics.exponents.frames import completed, turn


EXACT = json.loads((Path(__file__).parents[2] / "dmft/floquet.json").read_text())
K = 6


def logistic(r):
    return lambda x: r * x * (1 - x)


def test_cycles_of_the_logistic_map_to_rounding():
    """ln|4 + 2 r - r^2| / 2 on the two-cycle; errors are those of rounding."""
    cycle = cycle_spectrum(logistic(3.2), jnp.array(0.52), period=2)
    assert abs(cycle.exponents[0] - np.log(0.16) / 2) < 3 * cycle.stderr[0] < 1e-11


def test_superstable_cycles_have_no_number():
    """-inf where the derivative is exactly zero; elsewhere rounding is its size."""
    flat = cycle_spectrum(logistic(2.0), jnp.array(0.5), period=1)
    assert np.isneginf(flat.exponents[0]) and np.isnan(flat.stderr[0])
    r = 1 + np.sqrt(5)
    hidden = cycle_spectrum(
        lambda x: logistic(r)(x - 0.1) + 0.1, jnp.array(0.6), period=2
    )
    assert hidden.settled.all() and not np.isfinite(hidden.exponents[0])


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.5, -0.4, 3.0], [0.4, 0.5, -2.0], [0.0, 0.0, 0.1]],  # a pair, cut at k = 1
        [[0.9, 50.0, 0.0], [0.0, 0.89, 40.0], [0.0, 0.0, 0.3]],  # far from normal
        [[0.5, 1.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 1e-9]],  # a Jordan block
    ],
)
@pytest.mark.parametrize("k", [1, 3])
def test_multipliers_of_linear_maps(matrix, k):
    """Pairs, nearly equal moduli and a defect are eigenvalues of small blocks."""
    matrix = jnp.array(matrix)
    step = lambda x: matrix @ (x - 1) + 1
    cycle = cycle_spectrum(step, jnp.array([1.0, 1.001, 0.999]), period=1, exponents=k)
    exact = np.sort(np.log(np.abs(np.linalg.eigvals(matrix))))[::-1][:k]
    gap = np.abs(cycle.exponents - exact)
    # A defect moves by the root of what moves a simple eigenvalue.
    assert cycle.settled.all() and (gap <= np.maximum(3 * cycle.stderr, 1e-12)).all()
    assert np.nanmax(cycle.stderr) < 1e-5


def published():
    """The network on its 36 reference cycles, one a lane."""
    file = dmft.load(EXACT["patterns"].removesuffix(".json"))
    net = dmft.network(file.patterns, context=file.context)
    betas = np.array([cycle["beta"] for cycle in EXACT["cycles"]])
    params = dmft.parameters(betas, EXACT["gamma"], EXACT["epsilon"])
    window = np.moveaxis([cycle["window"] for cycle in EXACT["cycles"]], 0, -1)
    exact = np.array([cycle["exponents"] for cycle in EXACT["cycles"]]).T
    periods = np.array([cycle["period"] for cycle in EXACT["cycles"]])
    return dmft.TangentMap(net, params), window, exact, periods


@pytest.mark.slow
def test_published_cycles_against_extended_precision():
    """36 cycles of periods 4 to 280: resolved exponents are right within errors."""
    system, window, exact, periods = published()
    rounds = jax.jit(go_round)
    start = dmft.from_window(system.net, system.params, window * (1 + 1e-9), 0)
    vectors = np.asarray(system.vector(start))
    everyone = np.arange(len(periods))

    def once(which, vector_count, frames_of, periods_of, kicks):
        # All lanes go round, so that one program serves: the others are left out.
        vectors, frames = place["vectors"].copy(), place["frames"].copy()
        vectors[:, which], frames[..., which] = vector_count, frames_of
        after = rounds(system, start, vectors, frames, kicks, whole)
        return jax.tree.map(lambda x: np.asarray(x)[..., which], after)

    whole = whole_period(system, periods)
    frames = completed(np.zeros((12, 0, len(everyone))), K + 1)
    place = {"vectors": vectors, "frames": frames}
    cycles = spectra(once, vectors, frames, whole, K, rank=12, patience=100)
    numbers = np.isfinite(cycles.exponents)
    assert numbers[:3].all()
    # At least as many as double precision is known to tell, of 36 cycles each.
    assert (numbers.sum(axis=1)[3:] >= [15, 12, 10]).all()
    z = np.abs(cycles.exponents - exact[:K]) / cycles.stderr
    assert np.nanmax(z) < 4
    assert cycles.stderr[:3].max() < 1e-4
    assert not np.isinf(cycles.exponents).any()


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 2, 4])
def test_averages_on_published_cycles_at_every_spacing(every):
    """What counts as resolved is the Floquet exponent within its error."""
    system, window, exact, _ = published()
    start = dmft.from_window(system.net, system.params, window, 0)
    spectrum = lyapunov_spectrum(
        dmft.system(system.net),
        start,
        system.params,
        steps=8192,
        exponents=K,
        reorthonormalize_every=every,
    )
    z = np.abs(spectrum.exponents - exact[:K]) / spectrum.stderr
    resolved = np.isfinite(spectrum.exponents)
    assert resolved[:3].all() and not np.isinf(spectrum.exponents).any()
    assert np.nanmax(z) < 6


@pytest.mark.slow
def test_a_frame_is_orthonormal_after_every_compiled_push():
    """Also where XLA fuses the push with what follows it (openxla/xla#49176)."""
    system, window, _, _ = published()
    state = dmft.from_window(system.net, system.params, window, 0)
    frame = jnp.asarray(completed(np.zeros((12, 0, window.shape[-1])), K))
    lifted, push = system.lift(state), jax.jit(turn)
    for _ in range(5):
        after = push(system, lifted, frame)
        gram = jnp.einsum("dib,djb->ijb", after.frame, after.frame)
        assert jnp.abs(gram - jnp.eye(K)[..., None]).max() < 1e-13
        exact = system.push(lifted, frame)[1]
        assert jnp.abs(after.pushed - exact).max() < 1e-13
        lifted, frame = after.lifted, after.frame


def test_a_period_below_one_is_refused():
    with pytest.raises(ValueError, match="period must be at least 1; got 0"):
        cycle_spectrum(logistic(3.2), jnp.array(0.5), period=0)


def test_a_map_that_returns_another_state_is_refused():
    pair = lambda x: (x[1], x[0])
    with pytest.raises(ValueError, match="step must return a state like"):
        cycle_spectrum(pair, jnp.array([0.1, 0.2]), period=1)
    asks = lambda x, p: p["r"] * x
    with pytest.raises(ValueError, match="asks for the parameter 'r'"):
        cycle_spectrum(asks, jnp.array(0.1), {"a": 2.0}, period=1)
