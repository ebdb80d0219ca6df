"""Programs of batches are written for a GPU where there is none.

A callback to Python, or an operation for which CUDA has no kernel, is found here: JAX
exports no program that has one.
"""

import functools

import equinox as eqx
import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr, dmft, dynamics, montecarlo
from statmech_attn.batches import Compiled
from statmech_attn.bpkr.theory import saddle
from statmech_attn.dmft import extensive
from statmech_attn.dmft.extensive import effective_process
from statmech_attn.dynamics.diagrams import Plan, Points, Scan
from statmech_attn.dynamics.diagrams.stages.recorded_sections import empty, taken
from statmech_attn.montecarlo import weight_space
from statmech_attn.montecarlo.finite_networks import (
    extensive as extensive_spins,
    run_blocks,
)
from statmech_attn.montecarlo.posterior_samples import weight_sampling
from statmech_attn.training import Descent
from statmech_attn.training.descent import Trainer


KEY = jax.random.key(0)


def lowered(function, *args, **kwargs):
    """The program for CUDA of a function, of which only arrays are arguments."""
    array = lambda x: eqx.is_array(x) or isinstance(x, jax.ShapeDtypeStruct)
    arrays, rest = eqx.partition((args, kwargs), array)

    def of_arrays(arrays):
        args, kwargs = eqx.combine(arrays, rest)
        results = function(*args, **kwargs)
        return [x for x in jax.tree.leaves(results) if eqx.is_array(x)]

    # A function of a library's jit is part of the program of this one.
    return jax.export.export(jax.jit(of_arrays), platforms=("cuda",))(arrays)


@pytest.fixture
def programs(monkeypatch):
    """Lower batches in place of compiling them, and named functions at a first call."""
    names = []

    def built(self, function, *examples, shared=0, origin=None):
        names.append(function.__name__)
        shapes = lambda x: jax.ShapeDtypeStruct(np.shape(x), x.dtype)
        lowered(function, *jax.tree.map(shapes, examples))

    monkeypatch.setattr(Compiled, "__init__", built)
    monkeypatch.setattr(Compiled, "bytes", 0)

    def watch(module, name):
        original = getattr(module, name)

        @functools.wraps(original)
        def called(*args, **kwargs):
            if name not in names:
                names.append(name)
                lowered(original, *args, **kwargs)
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, called)

    watch.names = names
    return watch


def network():
    file = dmft.load("poclopez-pe2")
    return file, dmft.network(file.patterns, context=file.context)


@pytest.mark.slow
def test_stages_of_a_diagram(programs):
    file, net = network()
    params = dmft.parameters(np.linspace(1, 2, 8), file.gamma, file.epsilon)
    points = Points(params, dmft.from_row(net, params, 0))
    plan = Plan(transient=8, steps=64, exponents=2, compiler="xla")
    Scan(dmft.system(net), plan, points)
    made = ["_windowed", "_advanced", "_recorded", "once", "_produced"]
    assert programs.names == made
    kept, rows = empty(plan, 8), np.zeros((16, 8))
    lowered(taken(plan), *jax.tree.map(jnp.asarray, (*kept, rows, rows, 16)))


def test_exponents():
    logistic = lambda x, r: r * x * (1 - x)
    spectrum = lambda r: dynamics.lyapunov_spectrum(
        logistic, jnp.full(r.shape, 0.3), r, steps=64, exponents=1
    )
    program = lowered(spectrum, jnp.linspace(3.5, 3.9, 8))
    assert program.platforms == ("cuda",)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spins", "collapsed"])
def test_simulations(programs, method):
    programs(run_blocks, "_stretch")
    file, net = network()
    params = dmft.parameters(1.27, file.gamma, file.epsilon)
    state = dmft.from_row(net, params, 0)
    given = dict(n_spins=300, runs=4, steps=3, method=method, key=KEY)
    montecarlo.simulate(net, file.patterns, params, state, **given)
    assert programs.names == ["_stretch"]


@pytest.mark.slow
def test_patterns_that_grow_with_the_network(programs):
    programs(extensive_spins, "_sample")
    programs(effective_process, "_population")
    one = dmft.site_classes(np.ones((4, 1, 1)))
    net = dmft.network(one, context=2)
    problem = extensive.loaded_network(
        net, extensive.identical(), alpha=0.1, beta=2.0, gamma=5.0
    )
    plan = montecarlo.extensive_plan(problem, one, [1.0], n_spins=100, steps=2)
    plan.sample(KEY)
    extensive.sampled(problem, [1.0], steps=2, key=KEY, population=64)
    assert sorted(programs.names) == ["_population", "_sample"]


def posed():
    x = jax.random.normal(KEY, (12, 5, 4))
    return bpkr.Problem(x, x[:, 0, 0], heads=(2, 2), width=20, temperature=0.1)


def test_saddle_points(programs):
    """Of two paths, as in an example of `bpkr.scores`."""
    programs(saddle, "_newton")
    xi, Y = np.array([[[1.0, 0.0]], [[-2.0, 0.0]]]), np.array([1.0, -1.0])
    problem = bpkr.Problem(xi, Y, heads=(2,), width=5, temperature=0.1)
    assert problem.solve().converged
    assert programs.names == ["_newton"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["weights", "langevin"])
def test_sampling_of_weights(monkeypatch, method):
    """Without diffrax's checks of arguments, a callback that a GPU can make."""
    pytest.importorskip("numpyro")
    monkeypatch.setattr(eqx._errors, "EQX_ON_ERROR", "nan")
    posterior = weight_space.posterior(posed())
    sampler = weight_sampling._sampler(method, posterior, 2, 0.1)

    def steps(key):
        state = sampler.start(key, posterior.draw_start(key))
        return sampler.describe(sampler.step(state)).z

    program = lowered(jax.vmap(steps), jax.random.split(KEY, 2))
    assert program.out_avals[0].shape == (2, posterior.dimension)


def test_training(programs):
    """Descent of one network; one-shot training has the same loop."""
    terms = lambda problem, z: ((problem @ z - 1) ** 2, 0.01 * z**2)
    sums = lambda problem, z: tuple(x.sum() for x in terms(problem, z))
    descent = Descent(learning_rate=0.1, steps=20, block=10)
    Trainer(sums, descent, jnp.eye(3), jnp.zeros(3))
    assert programs.names == ["_block", "_measured"]


def test_a_callback_is_found():
    back = lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), float), x)
    with pytest.raises(Exception, match="custom call|callback|platform"):
        lowered(back, jnp.asarray(1.0))
