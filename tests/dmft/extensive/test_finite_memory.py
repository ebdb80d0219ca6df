import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft, dynamics
from statmech_attn.dmft import extensive


KINDS = extensive.independent()
GIVEN = {"alpha": 0.1, "beta": 1.4, "gamma": 4.0, "epsilon": 0.1}
MEMORY = 6
STEPS = 60_000  # of an exponent


@pytest.fixture(scope="module")
def step(net):
    return eqx.filter_jit(extensive.system(net, KINDS).step)


def attended(step, net, given, tokens):
    """Attention vectors from the token that fills the window on."""
    state = extensive.system_start(net, KINDS, given, memory=MEMORY)
    A = [state.order.A[-1]]
    for _ in range(tokens):
        state = step(state, given)
        A.append(state.order.A[-1])
    return np.stack(A), state


@pytest.mark.slow
def test_a_window_follows_the_recursion_of_all_tokens(net, step):
    problem = extensive.loaded_network(net, KINDS, **GIVEN)
    value = extensive.closed(problem, net.output[0], steps=12).value
    A, state = attended(step, net, GIVEN, 12 - MEMORY + 1)
    assert np.allclose(A, value.A[MEMORY - 1 :], rtol=0, atol=2e-5)
    assert not np.allclose(A[0], A[-1], atol=1e-3)
    newest = np.asarray(value.C)[-1, -1:-4:-1]
    assert np.allclose(state.order.C[-1, -1:-4:-1], newest, rtol=0, atol=1e-4)
    shown = extensive.system(net, KINDS).display(state, GIVEN)
    assert np.allclose(shown, value.m_o_se[-1], rtol=0, atol=2e-5)


def test_without_other_patterns_a_window_is_the_mean_field_map(net, step):
    given = GIVEN | {"alpha": 0.0}
    params = dmft.parameters(given["beta"], given["gamma"], given["epsilon"])
    start = dmft.from_row(net, params, 0)
    _, seen = dmft.trajectory(net, params, start, steps=12)
    A, _ = attended(step, net, given, 12 - MEMORY + 1)
    assert np.allclose(A, seen.A[MEMORY - 2 :], rtol=0, atol=1e-13)


@pytest.mark.slow
def test_noise_moves_the_means_of_cells_by_standard_deviations_of_a_spin(net, step):
    """At beta = 0, where the deviation of a spin is one, and where it is smaller."""
    sites = extensive.system(net, KINDS).step.sites
    noise = 0.01 * np.arange(1, len(sites.share) + 1)
    for beta in (0.0, 6.0):
        given = GIVEN | {"beta": beta}
        state = extensive.system_start(net, KINDS, given, memory=MEMORY)
        bare, noisy = step(state, given), step(state, given, noise)
        spin = bare.fields.spin[-2]
        width = np.sqrt(1 - np.asarray(spin) ** 2)
        moved = (1 - given["epsilon"]) * sites.weighted @ (noise * width)
        change = np.asarray(noisy.order.m[-1] - bare.order.m[-1])
        assert np.allclose(change, moved, rtol=0, atol=1e-14)
        assert (width.min() < 0.9) == (beta > 0)


@pytest.mark.slow
def test_two_replicas_separate_with_the_largest_exponent():
    """The published network with further patterns, where it is chaotic.

    Rounding parts the two orbits: each average has an error of 0.0018 after so many
    steps, and the difference may be four times that of both.
    """
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    given = {"alpha": 0.1, "beta": 1.4, "gamma": file.gamma, "epsilon": file.epsilon}
    loaded = extensive.system(net, KINDS)
    step = eqx.filter_jit(loaded.step)
    state = extensive.system_start(net, KINDS, given, memory=8)
    for _ in range(200):
        state = step(state, given)
    spectrum = dynamics.lyapunov_spectrum(
        loaded, state, given, steps=STEPS, exponents=1, reorthonormalize_every=1
    )
    size = 1e-8
    push = size * jnp.ones_like(state.order.A[-1])
    A = state.order.A.at[-1].add(push)
    other = eqx.tree_at(lambda window: window.order.A, state, A)

    def turn(replicas, _):
        state, other = (loaded.step(replica, given) for replica in replicas)
        apart = jax.tree.map(lambda x, y: y - x, state, other)
        length = jnp.sqrt(sum(jnp.sum(x**2) for x in jax.tree.leaves(apart)))
        nearer = lambda x, d: x + (size / length * d).astype(x.dtype)
        return (state, jax.tree.map(nearer, state, apart)), jnp.log(length / size)

    _, logs = jax.lax.scan(turn, (state, other), length=STEPS)
    found = np.mean(logs[200:])
    assert found == pytest.approx(float(spectrum.exponents[0]), abs=0.01)


def test_bad_input_is_refused(net):
    with pytest.raises(ValueError, match="memory must be at least 2 C = 4; got 3"):
        extensive.system_start(net, KINDS, GIVEN, memory=3)
    with pytest.raises(ValueError, match="the recursion closes for cycle"):
        extensive.system(net, extensive.identical())
