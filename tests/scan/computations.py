"""Every computation with all its arguments, and another value of each."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn import bpkr, dmft, dynamics, montecarlo, scan
from statmech_attn.dmft import extensive
from statmech_attn.dmft.along_beta.trajectories import along_beta, NetworkTrajectories
from statmech_attn.dynamics import continuation, diagrams, Linearised, System
from statmech_attn.dynamics.along_parameter.trajectories import Trajectories
from statmech_attn.dynamics.maps.starts import start_of_each
from statmech_attn.labels import Variable, Variables
from statmech_attn.montecarlo import posteriors
from statmech_attn.montecarlo.finite_networks import finite_size, simulation_grid
from statmech_attn.tasks.image_files.images import ImageClasses, Split
from statmech_attn.tasks.image_sets import ImageSets
from statmech_attn.tasks.one_shot import Setting
from statmech_attn.training import Descent, Minibatches, networks, one_shot_networks


KEY, OTHER = jax.random.split(jax.random.key(0))
ROWS = Variables(Variable("x", "x", "another label"))
OBSERVED = [Variable("x", "", "x", "1", "x"), Variable("y", "", "y", "1", "y")]


def henon(x, p):
    return jnp.stack([1 - p["a"] * x[0] ** 2 + x[1], p["b"] * x[0]])


class Doubled(Linearised):
    def push(self, lifted, frame):
        after, frame = super().push(lifted, frame)
        return after, 2 * frame


SYSTEM = {"step": henon, "observe": lambda x: x, "display": lambda x, p: x[:1]}
SYSTEMS = {
    "step": lambda x, p: henon(x, p) + 0.0,
    "observe": lambda x: 0 * x,
    "drive_period": 2,
    "tangent": lambda p: Doubled(henon, p),
    "batched": True,
    "unit": "year",
    "display": lambda x, p: x[1:],
    "clock": lambda x: 0,
    "any_width": True,
    "rank": 1,
    "entropy_production": lambda s, p, n: (jnp.zeros(16), 0.0),
    "flow": dynamics.flow(lambda x: -x, time=1.0, substeps=4).flow,
    "first_return": lambda x, p: x,
}
GRID = {"a": [1.0, 1.2, 1.4], "b": 0.3}
GRIDS = {"values": GRID | {"a": [1.0, 1.3, 1.4]}, "fixed": GRID | {"b": 0.2}}
STARTS = np.array([[0.1, 0.2], [0.2, 0.1]])
SIDE = np.linspace(-1, 1, 4)
AXES, SEARCH = diagrams.axes_of(GRID), dynamics.Search(horizon=300, record=64)
start = lambda value: functools.partial(start_of_each, jnp.full(2, value))
LISTS = [diagrams.point_list({"a": [1.0, 1.2], "b": [0.3, b]}) for b in (0.3, 0.2)]


@functools.cache
def network(context=1):
    patterns = dmft.site_classes([[[1]], [[-1]], [[1]], [[1]]])
    return dmft.network(patterns, context=context), patterns


def law(diffusion=0.5):
    """Of the network above, near enough to be one."""
    numbers = dict(
        value=1.0, coefficient=1 / 3, growth=1.0, score=0.0, drift=np.zeros(1)
    )
    numbers |= dict(components=1, diffusion=diffusion, steps=1, overlap=None)
    vectors = dict(
        x=np.zeros(1), vector=np.ones(1, complex), adjoint=np.ones(1, complex)
    )
    return dmft.CriticalFluctuations(kind="period_doubling", **numbers, **vectors)


def images(seed):
    one = np.random.default_rng(seed).uniform(size=(4, 4, 8, 8)).astype(np.float32)
    classes = ImageClasses(tuple("abcd"), one)
    setting = Setting(image_size=8, patch=4, channels=1)
    return ImageSets(setting, Split(classes, classes, classes), {})


@functools.cache
def task(sign=1.0):
    xi = np.random.default_rng(0).normal(size=(30, 1, 1))
    parts = jax.device_put([xi[:20], sign * xi[:20, 0, 0], xi[20:], xi[20:, 0, 0]])
    return bpkr.LearningTask(*parts, heads=(1,))


def of_row(params, *_):
    return dmft.from_row(network()[0], params, 0)


def axes_of_network(beta=1.2, gamma=1.0):
    grid = {"beta": [0.7, beta], "gamma": gamma, "epsilon": 0.0}
    return dict(zip(("axes", "starts"), along_beta(grid, of_row)))


def shifted(params, *_):
    half = lambda x: x / 2 if jnp.issubdtype(x.dtype, jnp.inexact) else x
    return jax.tree.map(half, of_row(params))


def diagram(**changes):
    posed = {"system": System(**SYSTEM), "axes": AXES, "start": start(0.1)}
    posed |= {"plan": diagrams.Plan(exponents=1), "variables": Variables()}
    attributes = {"kind": "diagram"}
    return diagrams.diagram_work(
        diagrams.Diagram(**posed | {"attributes": attributes} | changes)
    )


@functools.cache
def posed():
    return task().posed(width=9, temperature=0.1), *task().tests[0]


ENSEMBLES = {"ensemble": extensive.independent()}
LOADED = {"alpha": [0.1, 0.2], "beta": 2.0, "gamma": 0.0, "epsilon": 0.0}
LOADS = {"alpha": 0.1, "beta": 4.0, "gamma": 1.0, "epsilon": 0.1}
PATTERNS = dmft.site_classes(np.ones((4, 1, 1)))
CONDENSED = {"net": dmft.network(PATTERNS, context=2)}
WIDER = {"net": dmft.network(PATTERNS, context=3)}
batches = lambda steps: Minibatches(learning_rate=0.01, steps=steps, block=10)
sampling = lambda warmup: montecarlo.Sampling(draws=20, warmup=warmup, chains=2)
descent = lambda steps: Descent(learning_rate=0.01, steps=steps, block=10)
IMAGES = {"heads": (2,), "width": 4, "key_size": 2}


# What builds a computation, all its arguments, and another value of each.
TABLE = {
    "GridWork": lambda: (
        diagram,
        {},
        {
            "system": System(henon),
            "axes": diagrams.axes_of(GRIDS["values"]),
            "start": start(0.2),
            "plan": diagrams.Plan(exponents=2),
            "variables": ROWS,
            "starts": 2,
            "refine": 1,
            "sweep": "up",
            "confirm": diagrams.Confirm(0),
            "seed": 1,
            "attributes": {"kind": "diagram", "start": "given"},
        },
    ),
    "BasinDiagram": lambda: (
        dynamics.BasinDiagram,
        {"system": System(**SYSTEM), "starts": STARTS, "grid": GRID},
        {
            "system": System(henon),
            "starts": STARTS + [[0.0, 0.0], [0.0, 1e-9]],
            "grid": GRIDS["values"],
            "count": 3,
            "search": SEARCH,
            "plan": dynamics.BasinPlan(steps=7),
            "layout": "another",
            "observables": OBSERVED,
            "variables": ROWS,
            "about": {"system": "other"},
        },
    ),
    "PlaneBasins": lambda: (
        dynamics.PlaneBasins,
        {
            "system": System(lambda z: jnp.stack([1.5 * jnp.tanh(z[0]), z[1] / 2])),
            **{"state": np.zeros(2), "x": SIDE, "y": SIDE, "seeds": 8},
            "search": dataclasses.replace(SEARCH, horizon=2000),
        },
        {
            "system": System(lambda z: jnp.stack([1.6 * jnp.tanh(z[0]), z[1] / 2])),
            "state": np.array([0.1, 0.0]),
            "x": SIDE + 0.1,
            "y": SIDE + 0.1,
            "along": (1, 0),
            "parameters": None,
            "attractors": None,
            "seeds": None,
            "search": dataclasses.replace(SEARCH, horizon=2001),
            "coarse": 2,
        },
    ),
    "Scan": lambda: (
        scan.over,
        {"function": henon, "grid": GRIDS["fixed"]},
        {
            "function": shifted,
            "grid": GRIDS["values"],
            "variables": ROWS,
            "keep": ["x"],
            "numbers": ["x"],
            "coordinates": {"part": [1.0]},
            "derive": dict,
            "batch": None,
            "kind": "other",
            "about": {"system": "other"},
            "work": None,
        },
    ),
    "DiagramPlan": lambda: (
        continuation.DiagramPlan,
        {
            **{"system": System(**SYSTEM), "x": STARTS[0]},
            **{"values": {"a": 0.3, "b": 0.3, "c": 0.3}, "free": "a"},
            **{"within": (0.0, 1.0), "second": "b", "second_within": (0.0, 1.0)},
        },
        {
            "system": System(henon),
            "x": STARTS[1],
            "values": {"a": 0.3, "b": 0.2, "c": 0.3},
            "free": "c",
            "within": (0.0, 2.0),
            "period": 2,
            "doublings": 1,
            "second": "c",
            "second_within": (0.0, 2.0),
            "settings": continuation.Settings(max_points=7),
            "curve_points": 7,
            "variables": ROWS,
            "about": {"system": "other"},
        },
    ),
    "Trajectories": lambda: (
        Trajectories,
        {
            **{"system": System(**SYSTEM), "axes": LISTS[0], "starts": start(0.1)},
            **{"steps": 5, "parameters": Variables(*AXES.labels)},
            **{"observables": OBSERVED, "about": {"system": "henon"}},
        },
        {
            "system": System(henon),
            "axes": LISTS[1],
            "starts": start(0.2),
            "steps": 6,
            "transient": 1,
            "parameters": ROWS,
            "observables": OBSERVED[::-1],
            "about": {"system": "other"},
            "batch": None,
        },
    ),
    "NetworkTrajectories": lambda: (
        NetworkTrajectories,
        {"net": network()[0], **axes_of_network()} | {"steps": 5},
        {
            "net": network(2)[0],
            "axes": axes_of_network(1.3)["axes"],
            "starts": shifted,
            "steps": 6,
            "transient": 1,
            "noise": network()[1],
            "entropy_production": True,
            "about": {"start": "given"},
            "batch": None,
        },
    ),
    "FiniteSizes": lambda: (
        finite_size.FiniteSizes,
        {
            **{"key": KEY, "net": network()[0], "patterns": network()[1]},
            **{"law": law(), "gamma": 1.0, "epsilon": 0.0, "n_spins": [1000]},
        },
        {
            "key": OTHER,
            "net": None,
            "patterns": None,
            "law": law(1.1),
            "sampling": montecarlo.CriticalSampling(runs=8, samples=40),
            "gamma": 2.0,
            "epsilon": 0.1,
            "n_spins": [1000, 2000],
            "distances": [0.0],
            "about": {"start": "given"},
        },
    ),
    "Simulations": lambda: (
        simulation_grid.Simulations,
        {
            **{"key": KEY, "net": network()[0], "patterns": network()[1]},
            **axes_of_network(),
            **{"n_spins": [100], "steps": 5, "runs": 4},
        },
        {
            "key": OTHER,
            "net": network(2)[0],
            "patterns": None,
            "axes": axes_of_network(gamma=2.0)["axes"],
            "starts": shifted,
            "n_spins": [200],
            "steps": 6,
            "runs": 5,
            "stored": 2,
            "transient": 1,
            "mean_field_transient": 1,
            "method": "spins",
            "entropy_production": True,
            "about": {"start": "given"},
            "batch": None,
        },
    ),
    "OrderParameters": lambda: (
        extensive.OrderParameters,
        {**CONDENSED, "ensemble": extensive.cycle(), **LOADED, "key": KEY}
        | {"recall": extensive.SolvedRecall(steps=3)},
        WIDER
        | ENSEMBLES
        | LOADS
        | {"recall": extensive.SolvedRecall(steps=4), "key": OTHER},
    ),
    "ExtensiveSamples": lambda: (
        montecarlo.ExtensiveSamples,
        {**CONDENSED, "patterns": PATTERNS, "ensemble": extensive.cycle(), **LOADED}
        | {"recall": montecarlo.SampledRecall(steps=3, samples=2)}
        | {"n_spins": [100], "key": KEY},
        WIDER
        | ENSEMBLES
        | LOADS
        | {"patterns": None, "recall": montecarlo.SampledRecall(steps=3, samples=3)}
        | {"n_spins": [200], "key": OTHER},
    ),
    "capacities": lambda: (
        extensive.capacities,
        {**CONDENSED, "patterns": PATTERNS, "ensemble": extensive.cycle()}
        | {"beta": 2.0, "gamma": 0.0},
        WIDER
        | ENSEMBLES
        | {"patterns": None, "beta": 3.0, "gamma": 1.0, "contexts": [1, 2]}
        | {"retrieval": extensive.Retrieval(lags=5)},
    ),
    "SaddlePoints": lambda: (
        bpkr.SaddlePoints,
        {"task": task(), "grid": bpkr.Grid([9], [0.1])},
        {
            "task": task(-1.0),
            "grid": bpkr.Grid([9], [0.2]),
            "predictors": False,
            "corrections": True,
            "kernels": True,
            "variances": (1.0, 2.0, 1.0),
        },
    ),
    "Posteriors": lambda: (
        posteriors.Posteriors,
        {"key": KEY, "task": task(), "grid": bpkr.Grid([9], [0.1])}
        | {"sampling": sampling(20)},
        {
            "key": OTHER,
            "task": task(-1.0),
            "grid": bpkr.Grid([9], [0.2]),
            "sampling": sampling(30),
            "stored": 1,
            "variances": (1.0, 2.0, 1.0),
        },
    ),
    "TrainedNetworks": lambda: (
        networks.TrainedNetworks,
        {"key": KEY, "task": task(), "grid": bpkr.Grid([9], [0.1])}
        | {"descent": descent(10)},
        {
            "key": OTHER,
            "task": task(-1.0),
            "grid": bpkr.Grid([9], [0.2]),
            "descent": descent(20),
            "restarts": 2,
            "variances": (1.0, 2.0, 1.0),
        },
    ),
    "model_selection": lambda: (
        bpkr.model_selection,
        dict(zip(("problem", "xi_validation", "Y_validation"), posed()))
        | {"grid": bpkr.Grid([9], [0.1])},
        {
            "problem": task(-1.0).posed(width=9, temperature=0.1),
            "xi_validation": posed()[1] + 1,
            "Y_validation": -posed()[2],
            "grid": bpkr.Grid([9], [0.2]),
            "key": KEY,
            "draws": 600,
            "test": posed()[1:],
            "about": {"start": "given"},
        },
    ),
    "LearningCurves": lambda: (
        bpkr.LearningCurves,
        {"key": KEY, **dict(zip(("problem", "xi_test", "Y_test"), posed()))}
        | {"examples": [4], "training_sets": 2},
        {
            "xi_test": posed()[1] + 1,
            "Y_test": -posed()[2],
            "key": OTHER,
            "problem": task(-1.0).posed(width=9, temperature=0.1),
            "examples": [5],
            "training_sets": 3,
            "grid": bpkr.Grid([9], [0.2]),
            "corrections": True,
            "samplers": {"mean": lambda *given: None},
            "about": {"start": "given"},
            "keeps_blocks": True,
        },
    ),
    "prune_networks": lambda: (
        bpkr.prune_networks,
        {"key": KEY, "task": task(), "width": 9, "temperature": 0.1},
        {
            "key": OTHER,
            "task": task(-1.0),
            "weights": [
                bpkr.draw_weights(KEY, n_inputs=1, heads=(1,), width=9),
            ],
            "width": 8,
            "temperature": 0.2,
            "sets": ("other",),
            "random_orders": 3,
            "exact": {"draws": 10},
            "about": {"start": "given"},
        },
    ),
    "OneShotNetworks": lambda: (
        one_shot_networks.OneShotNetworks,
        {"key": KEY, "images": images(0), "task_key": KEY}
        | {"minibatches": batches(10), **IMAGES},
        {
            "key": OTHER,
            "images": images(1),
            "task_key": OTHER,
            "minibatches": batches(20),
            "heads": (3,),
            "width": 5,
            "key_size": 3,
            "gain": 2.0,
            "restarts": 2,
            "n_test": 7,
            "about": {"start": "given"},
        },
    ),
}
