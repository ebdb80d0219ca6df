r"""The same scan on a GPU and on the CPU of one machine, with derived tolerances.

Two programs round differently.  A rounding of relative size eps at every step grows
along an orbit like the tangent vector of the fastest growth,

    |z_t - z'_t|  <=  ROUNDINGS eps \sum_{s<t} |J_{t-1} ... J_{s+1}|

with the Jacobians J of the orbit itself, so that the bound is computed and not guessed:
it stays near eps for a cycle and grows exponentially in chaos.  What an infinite time
average has as its limit agrees within the errors that the scan gives.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft
from statmech_attn.batches import Compiled, limited
from statmech_attn.dynamics import PHASES
from statmech_attn.dynamics.diagrams import Plan, Points, run, Scan
from statmech_attn.dynamics.motion import classification


BETAS = np.array([2.8, 1.262, 1.4])  # a cycle, a torus, chaos
STEPS = 200
ROUNDINGS = 127  # gamma, which multiplies overlaps and their rounding in the softmax
SIGMAS = 6  # of a difference of two exponents, three points and two exponents each
PLAN = Plan(
    transient=20_000, steps=20_000, exponents=2, max_doublings=2, compiler="xla"
)


def gpu_or_skip():
    try:
        return jax.devices("gpu")[0]
    except RuntimeError:
        pytest.skip("JAX has no GPU here.")


def cpu():
    return jax.devices("cpu")[0]


def start():
    """Points on their attractors, made on the CPU."""
    file = dmft.load("poclopez-pe2")
    with jax.default_device(cpu()):
        net = dmft.network(file.patterns, context=file.context)
        params = dmft.parameters(BETAS, file.gamma, file.epsilon)
        state = dmft.from_checkpoint(net, params, file)
        return net, Points(params, dmft.advance(net, params, state, 20_000))


def orbit(device, net, points, function=dmft.step):
    """Attention windows (STEPS, C, M, points), compiled for a device."""

    def follow(net, params, state):
        def body(state, _):
            state = function(net, params, state)
            return state, state.attention

        return jax.lax.scan(body, state, None, length=STEPS)[1]

    with jax.default_device(device):
        return np.asarray(Compiled(follow, net, *points, shared=1)(net, *points))


def bounds(net, points):
    """The bound of the module docstring for every step, (STEPS, points)."""

    def growth(net, params, state):
        def turn(carry, _):
            state, products = carry
            J = dmft.jacobian(net, params, state)
            grown = jnp.einsum("ij,sjk->sik", J, products)
            products = jnp.concatenate([grown[1:], jnp.eye(len(J))[None]])
            sizes = jnp.linalg.norm(products, axis=(1, 2))
            return (dmft.step(net, params, state), products), sizes.sum()

        zeros = jnp.zeros((STEPS, net.dimension, net.dimension))
        return jax.lax.scan(turn, (state, zeros), None, length=STEPS)[1]

    with jax.default_device(cpu()):
        compiled = jax.jit(growth)
        found = [compiled(net, *points.take(np.array(i))) for i in range(len(BETAS))]
    return ROUNDINGS * np.finfo(float).eps * np.stack(found, axis=-1)


def scanned(device, net, points):
    with jax.default_device(device), limited(1):
        return run(Scan(dmft.system(net), PLAN, points), points)


def assert_close(one, other, bound):
    """Orbits within the bound as long as it means something."""
    gap = np.abs(one - other).max(axis=(1, 2))
    meant = bound < 1e-3
    assert meant[:STEPS].all(axis=0)[0] and meant[:60].all()
    assert (gap <= bound)[meant].all()


def assert_same_verdicts(one, other):
    one, other = one.verdicts, other.verdicts
    names = [PHASES[i] for i in one.phase]
    assert names == [PHASES[i] for i in other.phase]
    assert names == ["periodic", "quasiperiodic", "chaotic"]
    assert np.array_equal(one.period, other.period)
    error = np.hypot(one.stderr, other.stderr)
    assert (np.abs(one.exponents - other.exponents) <= SIGMAS * error + 1e-6).all()


def test_a_gpu_follows_the_orbits_of_the_cpu():
    device = gpu_or_skip()
    net, points = start()
    assert_close(
        orbit(cpu(), net, points), orbit(device, net, points), bounds(net, points)
    )


@pytest.mark.parametrize("exponents", [0, 4])
def test_a_native_program_has_the_bits_of_the_cpu(exponents):
    """Every state, frame and sum of a window; products are fused alike in both."""
    device = gpu_or_skip()
    pytest.importorskip("llvmlite", exc_type=ImportError)
    from statmech_attn.native import Native

    net, points = start()
    system, number = dmft.system(net), np.asarray(300 if exponents else 20_000)

    def window(net, params, state, number):
        if not exponents:
            return dmft.advance(net, params, state, number)
        map = system.beside(params)
        return classification.measure(map, state, system.seen, exponents, number, 4, 1)

    given = lambda lanes: (net, *points.take(np.zeros(lanes, int)), number)
    one = Native(window, given, shared=1)(net, *points, number)
    other = Native(window, given, shared=1, device=device)(net, *points, number)
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(x, np.asarray(y))


@pytest.mark.slow
def test_a_gpu_finds_the_phases_and_exponents_of_the_cpu():
    device = gpu_or_skip()
    net, points = start()
    assert_same_verdicts(scanned(cpu(), net, points), scanned(device, net, points))


@pytest.mark.slow
def test_the_width_of_a_batch_changes_no_bit_on_a_gpu():
    device = gpu_or_skip()
    net, points = start()
    with jax.default_device(device), limited(1):
        narrow, wide = (
            run(Scan(dmft.system(net), PLAN, points, lanes=lanes), points)
            for lanes in (8, 256)
        )
    for one, other in zip(jax.tree.leaves(narrow), jax.tree.leaves(wide), strict=True):
        assert np.array_equal(one, other, equal_nan=True)


@pytest.mark.slow
def test_another_order_of_rounding_stays_within_the_bound():
    """The comparison itself, on the CPU: the same step, added up in another order."""
    net, points = start()

    def reordered(net, params, state):
        other = dmft.Network(
            net.weighted[..., ::-1],
            net.output[..., ::-1],
            net.positional,
            net.context,
            net.output_rank,
            net.code_period,
        )
        return dmft.step(other, params, state)

    bound, plain = bounds(net, points), orbit(cpu(), net, points)
    other = orbit(cpu(), net, points, reordered)
    assert not np.array_equal(plain, other)
    assert_close(plain, other, bound)
    with pytest.raises(AssertionError):
        assert_close(plain, plain + 1e-11, bound)
