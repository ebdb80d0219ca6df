"""This package beside others that answer the same questions, in one run.

    python benchmarks/peers.py

Every peer is optional: one that is not installed is named and left out (pip install
autograd pynamicalsys lyapax torch nolds).  Times are processor seconds of all threads,
after compilation, of jobs that take turns; the least of the rounds.  A ratio above one
means that this package takes less.  The authors' formulation of the 1-bit map (sums
over signs, Jacobians by autograd) and the gradient descents on the action are written
anew from the equations.  `make bench-peers` lets NumPy and torch have one thread, since
their threads for matrices this small wait for each other.
"""

import functools
import importlib.metadata
import importlib.util
import itertools
import platform
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from descents import Action, adam, GRADIENT
from lyapunov import N_BETA, spacing
from saddle import published_problem

from statmech_attn import bpkr, dmft, dynamics
from statmech_attn.batches import Compiled, CPU_LANES
from statmech_attn.dynamics.diagrams.stages.lanes import Points
from statmech_attn.dynamics.exponents import frames, lyapunov
from statmech_attn.dynamics.maps.catalogue import henon, lorenz


ROUNDS = 2
PEERS = ("autograd", "pynamicalsys", "lyapax", "torch", "nolds")
BETA, WARM, STEPS = 1.4, 128, 512  # of the 1-bit map
SPECTRUM = 20_480  # steps of a map of the plane, and of the Lorenz system
TIME_STEP, EVERY = 0.01, 10


class Row(NamedTuple):
    """Two programs with the same task."""

    task: str
    peer: str
    ours: float  # processor seconds
    theirs: float
    agreement: str


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def seconds(*jobs: Callable[[], object]) -> list[float]:
    """Least processor seconds of each; they take turns after a first call."""
    times = []
    for turn in range(ROUNDS + 1):
        row = []
        for job in jobs:
            begun = time.process_time()
            jax.block_until_ready(job())
            row.append(time.process_time() - begun)
        if turn:
            times.append(row)
    return np.min(times, axis=0).tolist()


def distance(x, y) -> str:
    return f"{np.max(np.abs(np.asarray(x) - np.asarray(y))):.1g}"


# The 1-bit map


class AsPublished:
    """The map of three patterns as sums over signs, with Jacobians by autograd."""

    def __init__(self, net: dmft.Network, file: dmft.PatternFile, beta: float):
        import autograd.numpy
        from autograd import jacobian

        self.np, self.jacobian = autograd.numpy, jacobian(self.attention)
        self.beta, self.gamma, self.epsilon = beta, file.gamma, file.epsilon
        first = np.ones((4, 1))
        self.signs = np.hstack([first, list(itertools.product((1, -1), repeat=2))])
        self.positional = np.asarray(net.positional)  # (C, 4, M)
        o, *others = np.asarray(file.patterns.semantic)
        w, triple = np.asarray(file.patterns.fractions), o.prod(axis=0)
        even = lambda W: self.signs @ (o * w) @ W.T
        odd = lambda W: np.outer(self.signs.prod(axis=1), W @ (w * triple))
        self.weights = [(even(W) + odd(W)) / 4 for W in others]  # of v, q and k

    def attention(self, z, position: int):
        """The next attention vector; z (C, M) has the newest first."""
        context = len(z)
        places = (position - np.arange(context)) % context
        hyperbolic = self.np.tanh(self.beta * self.np.dot(z, self.signs.T))
        v, q, k = (
            (1 - self.epsilon) * self.np.dot(hyperbolic, weights)
            + self.epsilon * self.positional[places, kind]
            for kind, weights in enumerate(self.weights, 1)
        )
        scores = self.gamma * self.np.dot(k, q[0])
        odds = self.np.exp(scores - self.np.max(scores))
        return self.np.dot(odds / self.np.sum(odds), v)

    def spectrum(self, z, position: int, steps: int, exponents: int):
        """Exponents of the steps after the first `WARM`, and the last window."""
        size, width = z.size, z.shape[1]
        Q, logs = np.eye(size)[:, :exponents], np.zeros(exponents)
        for t in range(WARM + steps):
            J = np.eye(size, k=-width)
            J[:width] = self.jacobian(z, position).reshape(width, size)
            z = np.vstack([self.attention(z, position), z[:-1]])
            position += 1
            Q, R = np.linalg.qr(J @ Q)
            if t >= WARM:
                logs += np.log(np.abs(np.diagonal(R)))
        return logs / max(steps, 1), z


def one_bit_map() -> Iterator[Row]:
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(BETA, file.gamma, file.epsilon)
    start = dmft.from_checkpoint(net, params, file)
    published = AsPublished(net, file, BETA)
    z, position = np.asarray(file.checkpoint[0]), file.checkpoint[1]
    options = dict(steps=STEPS, exponents=4, transient=0, align=WARM)
    one = lambda: (
        dynamics.lyapunov_spectrum(dmft.system(net), start, params, **options).exponents
    )
    theirs = lambda: published.spectrum(z, position, STEPS, 4)[0]
    ours, their_seconds = seconds(one, theirs)
    _, last = published.spectrum(z, position, 0, 4)
    ahead = dmft.window(dmft.advance(net, params, start, WARM))
    exponents, as_published = one(), theirs()
    resolved = np.isfinite(exponents)
    agreement = (
        f"orbit {distance(ahead, last)}, {resolved.sum()} resolved exponents "
        f"{distance(exponents[resolved], as_published[resolved])}"
    )
    task = f"1-bit map, 4 exponents, {STEPS} steps"
    yield Row(f"{task}, one β", "NumPy, autograd", ours, their_seconds, agreement)
    for name, many in many_betas(net, file):
        (ours,) = seconds(many)
        share = ours / N_BETA * (STEPS + WARM) / STEPS
        text = f"{task}, one of {N_BETA} β, {name}"
        yield Row(text, "NumPy, autograd", share, their_seconds, "")


def many_betas(net, file):
    """The same number of steps of many beta at once, by both compilers."""
    params = dmft.parameters(np.linspace(0.5, 3, N_BETA), file.gamma, file.epsilon)
    state = dmft.advance(net, params, dmft.from_checkpoint(net, params, file), 500)
    points = Points(*jax.tree.map(np.asarray, (params, state)))

    def window(net, params, state):
        system = dmft.TangentMap(net, params)
        every = spacing(4)
        return lyapunov.measure(
            system,
            *frames.start_frame(system, state, 4),
            lambda state: state.newest,
            turns=0,
            per_block=STEPS // every // lyapunov.BLOCKS,
            every=every,
            blocks=lyapunov.BLOCKS,
        )[1:]

    example = lambda lanes: (net, *points.take(np.zeros(lanes, int)))
    programs = {"xla": Compiled(window, *example(CPU_LANES), shared=1)}
    if installed("llvmlite"):
        from statmech_attn.native import Native

        programs["llvm"] = Native(window, example, shared=1)
    places = np.pad(np.arange(N_BETA), (0, -N_BETA % CPU_LANES), mode="edge")
    parts = [points.take(part) for part in places.reshape(-1, CPU_LANES)]
    for name, program in programs.items():
        yield name, lambda program=program: [program(net, *part) for part in parts]


# Maps and flows of the plane and of space


def runge_kutta(x, field=lorenz, h=TIME_STEP):
    k1 = field(x)
    k2 = field(x + h / 2 * k1)
    k3 = field(x + h / 2 * k2)
    k4 = field(x + h * k3)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


SYSTEMS = {  # step, start, time of a step, steps between orthonormalisations
    "Hénon": (henon, (0.1, 0.1), 1.0, 1),
    "Lorenz, Runge–Kutta 4": (runge_kutta, (1.0, 1.0, 1.0), TIME_STEP, EVERY),
}
TRANSIENT = 1000


def spectra() -> Iterator[Row]:
    peers = {"pynamicalsys": pynamicalsys_spectrum, "lyapax": lyapax_spectrum}
    for (task, system), (peer, make) in itertools.product(
        SYSTEMS.items(), peers.items()
    ):
        if not installed(peer):
            continue
        step, start, time_step, every = system
        ours = lambda: dynamics.lyapunov_spectrum(
            step,
            jnp.array(start),
            steps=SPECTRUM,
            transient=TRANSIENT,
            reorthonormalize_every=every,
        )
        theirs = make(*system)
        times = seconds(lambda: ours().exponents, theirs)
        spectrum = ours()
        exponents = spectrum.exponents / time_step
        error = float(spectrum.stderr[0]) / time_step
        agreement = f"{distance(exponents, theirs())}, our error {error:.1g}"
        yield Row(f"{task}, {SPECTRUM} steps", peer, *times, agreement)


OSCILLATORS = {200: 10_240, 2000: 1040}  # number of them: steps
COUPLING, LEADING, PHASE_STEP = 1.2, 5, 0.05


def kuramoto() -> Iterator[Row]:
    """Leading exponents of oscillators that are coupled by their mean field."""
    from lyapax import lyapunov_spectrum

    for count, steps in OSCILLATORS.items():
        chance = np.random.default_rng(0)
        frequencies = jnp.array(chance.normal(size=count))
        start = jnp.array(chance.uniform(0, 2 * np.pi, count))

        def field(x):
            sine, cosine = jnp.sin(x), jnp.cos(x)
            pull = sine.mean() * cosine - cosine.mean() * sine
            return frequencies + COUPLING * pull

        step = functools.partial(runge_kutta, field=field, h=PHASE_STEP)
        ours = lambda: dynamics.lyapunov_spectrum(
            step,
            start,
            steps=steps,
            transient=TRANSIENT,
            reorthonormalize_every=EVERY,
            exponents=LEADING,
        )
        call = jax.jit(
            lambda x: (
                lyapunov_spectrum(
                    step,
                    x,
                    PHASE_STEP,
                    steps,
                    k=LEADING,
                    renorm_every=EVERY,
                    t_transient=TRANSIENT * PHASE_STEP,
                ).exponents
            )
        )
        theirs = lambda: call(start)
        times = seconds(lambda: ours().exponents, theirs)
        error = float(ours().stderr[0]) / PHASE_STEP
        apart = distance(ours().exponents / PHASE_STEP, theirs())
        task = f"Kuramoto, {count} oscillators, {LEADING} exponents, {steps} steps"
        yield Row(task, "lyapax", *times, f"{apart}, our error {error:.1g}")


LONGEST, CYCLE_STARTS = 13, 200  # cycles of Hénon's map, starts of every period


def cycles() -> Iterator[Row]:
    """All cycles; the peer's Newton refines one start, which a user does for many."""
    from pynamicalsys import DiscreteDynamicalSystem

    ours = lambda: dynamics.unstable_cycles(
        henon, jnp.array([0.1, 0.2]), period=LONGEST, starts=CYCLE_STARTS
    )
    peer = DiscreteDynamicalSystem(model="henon map")
    options = dict(parameters=[1.4, 0.3])
    total = TRANSIENT + CYCLE_STARTS
    starts = peer.trajectory([0.1, 0.2], total, transient_time=TRANSIENT, **options)
    options.update(max_iter=50, convergence_threshold=1e-11, prime_period=True)

    def theirs():
        cycles = set()
        for period, x in itertools.product(range(1, LONGEST + 1), starts):
            try:
                point = peer.find_periodic_orbit(x, period, **options)
            except (RuntimeError, np.linalg.LinAlgError):  # or a shorter period
                continue
            points = peer.trajectory(point, period, parameters=[1.4, 0.3])
            cycles.add((period, *points[points[:, 0].argmin()].round(6)))
        return cycles

    times = seconds(ours, theirs)
    text = f"{len(ours().length)} cycles, theirs {len(theirs())}"
    yield Row(f"Hénon, cycles to period {LONGEST}", "pynamicalsys", *times, text)


SITES, COUPLING, VECTOR_STEPS = 64, 0.1, 2000  # of a ring of logistic maps


def covariant_vectors() -> Iterator[Row]:
    """All covariant vectors of a lattice, without the angles that nobody asks for."""
    from numba import njit
    from pynamicalsys import DiscreteDynamicalSystem

    def lattice(x):
        y = 4 * x * (1 - x)
        return (1 - COUPLING) * y + COUPLING / 2 * (jnp.roll(y, 1) + jnp.roll(y, -1))

    @njit
    def mapping(x, parameters):
        y = 4 * x * (1 - x)
        return (1 - COUPLING) * y + COUPLING / 2 * (np.roll(y, 1) + np.roll(y, -1))

    @njit
    def jacobian(x, parameters, *mapping):
        slope, J = 4 * (1 - 2 * x), np.zeros((SITES, SITES))
        for i in range(SITES):
            J[i, i] = (1 - COUPLING) * slope[i]
            for j in (i - 1, (i + 1) % SITES):
                J[i, j] = COUPLING / 2 * slope[j]
        return J

    start = np.random.default_rng(0).uniform(0.1, 0.9, SITES)
    ours = lambda: dynamics.covariant_vectors(
        lattice, start, steps=VECTOR_STEPS, transient=TRANSIENT, align=TRANSIENT
    )
    peer = DiscreteDynamicalSystem(
        mapping=mapping,
        jacobian=jacobian,
        system_dimension=SITES,
        number_of_parameters=1,
    )
    theirs = lambda: peer.CLV(
        start,
        VECTOR_STEPS,
        parameters=[0.0],
        transient_time=TRANSIENT,
        warmup_time=TRANSIENT,
        tail_time=TRANSIENT,
    )
    times = seconds(ours, theirs)
    vectors, states = theirs()
    push = jax.vmap(lambda x, v: jax.jvp(lattice, (x,), (v,))[1], (None, 1))
    growth = jnp.log(jnp.linalg.norm(jax.vmap(push)(states, vectors), axis=-1))
    mine = ours()
    text = f"{distance(mine.exponents, growth.mean(axis=0))}, our error "
    text += f"{mine.stderr.max():.1g}"
    yield Row(f"{SITES} sites, covariant vectors", "pynamicalsys", *times, text)


SIDE, PERIODS, SUBSTEPS = 60, 110, 100  # of the forced oscillator with two wells
DAMPING, FORCE = 0.2, 0.15


def basins() -> Iterator[Row]:
    """Basins of the forced Duffing oscillator with six attractors."""
    from pynamicalsys import ContinuousDynamicalSystem

    h = 2 * np.pi / SUBSTEPS

    def field(x, t):
        force = x[0] - x[0] ** 3 - DAMPING * x[1] + FORCE * jnp.cos(t)
        return jnp.stack([x[1], force])

    def period(x):
        def substep(i, x):
            t = i * h
            k1 = field(x, t)
            k2 = field(x + h / 2 * k1, t + h / 2)
            k3 = field(x + h / 2 * k2, t + h / 2)
            k4 = field(x + h * k3, t + h)
            return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        return jax.lax.fori_loop(0, SUBSTEPS, substep, x)

    side = np.linspace(-2, 2, SIDE)
    search = dynamics.Search(4000)
    plane = dynamics.PlaneBasins(period, jnp.zeros(2), side, side, search=search)
    ours = lambda: plane.compute().basin.values
    peer = ContinuousDynamicalSystem("duffing")
    peer.integrator("rk4", time_step=h)
    starts = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    theirs = lambda: peer.basin_of_attraction(
        starts,
        10,
        parameters=[DAMPING, 1, 1, FORCE, 1.0],
        transient_time=(PERIODS - 10) * 2 * np.pi,
        sampling_time=2 * np.pi,
    )
    times = seconds(ours, theirs)
    labels, mine = theirs(), ours().ravel()
    same = sum(np.bincount(labels[mine == n]).max() for n in np.unique(mine))
    agreement = f"{len(mine) - same} of {len(mine)} points have another attractor"
    yield Row(f"Duffing, basins of {SIDE} × {SIDE}", "pynamicalsys", *times, agreement)


def pynamicalsys_spectrum(step, start, time_step, every):
    if step is henon:
        from pynamicalsys import DiscreteDynamicalSystem

        system, parameters = DiscreteDynamicalSystem(model="henon map"), [1.4, 0.3]
        times = dict(total_time=SPECTRUM + TRANSIENT, transient_time=TRANSIENT)
    else:
        from pynamicalsys import ContinuousDynamicalSystem

        system, parameters = ContinuousDynamicalSystem("lorenz system"), [10, 28, 8 / 3]
        system.integrator("rk4", time_step=time_step)
        total, transient = SPECTRUM + TRANSIENT, TRANSIENT
        times = dict(total_time=total * time_step, transient_time=transient * time_step)
    return lambda: system.lyapunov(list(start), parameters=parameters, **times)


def lyapax_spectrum(step, start, time_step, every):
    from lyapax import lyapunov_spectrum

    def exponents(start):
        options = dict(renorm_every=every, t_transient=TRANSIENT * time_step)
        return lyapunov_spectrum(step, start, time_step, SPECTRUM, **options).exponents

    call = jax.jit(exponents)
    return lambda: call(jnp.array(start))


def time_series() -> Iterator[Row]:
    """A largest exponent of a series, beside the one of the map itself."""
    series = orbit()
    ours = lambda: (
        dynamics.lyapunov_spectrum(
            henon, jnp.array([0.1, 0.1]), steps=SPECTRUM, transient=TRANSIENT
        ).exponents
    )
    theirs = lambda: dynamics.timeseries.largest_exponent(series, embedding=2).value
    times = seconds(ours, theirs)
    text = f"{float(ours()[0]):.3f}; of {len(series)} samples {theirs():.3f}"
    yield Row(
        "Hénon, largest exponent of the map, or of a series", "nolds", *times, text
    )


def orbit() -> np.ndarray:
    x, samples = np.array([0.1, 0.1]), []
    for _ in range(2000):
        x = np.array([1 - 1.4 * x[0] ** 2 + x[1], 0.3 * x[0]])
        samples.append(x[0])
    return np.array(samples)


# Learning


def learning() -> Iterator[Row]:
    for N in (10, 100, 1000):
        problem = published_problem().at(width=N)
        action = Action(problem)
        gradients = {"NumPy, Adam": action.gradient}
        if installed("torch"):
            gradients["torch, Adam"] = action.by_torch()
        solver = bpkr.NewtonSolver(tolerance=GRADIENT)
        ours = lambda: problem.solve(solver=solver).point
        for peer, gradient in gradients.items():
            job = lambda gradient=gradient: adam(gradient, action.size)
            times = seconds(ours, job)
            point, steps = job()
            F = action.factors(point)
            wide = np.kron(np.eye(2), np.kron(np.eye(2), F[2]) @ F[1]) @ F[0]
            apart = distance(problem.solve(solver=solver).U[0], wide @ wide.T)
            slope = np.linalg.norm(action.gradient(point))
            agreement = f"U₁ {apart}; {steps} steps, gradient {slope:.0e}"
            yield Row(f"four-path task, N = {N}", peer, *times, agreement)


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    versions = [
        f"{name} {importlib.metadata.version(name)}"
        for name in ("jax", "numpy", *PEERS)
        if installed(name)
    ]
    print(f"# {platform.machine()}, Python {platform.python_version()}")
    print("#", ", ".join(versions))
    for name in PEERS:
        if not installed(name):
            print(f"# {name} is not installed: its rows are left out")
    print("\n| task | peer | ours (ms) | theirs (ms) | theirs / ours | difference |")
    print("| --- | --- | --- | --- | --- | --- |")
    tables = [one_bit_map] if installed("autograd") else []
    tables += [spectra]
    tables += [kuramoto] if installed("lyapax") else []
    tables += [cycles, covariant_vectors, basins] if installed("pynamicalsys") else []
    tables += [learning, *([time_series] if installed("nolds") else [])]
    for row in itertools.chain.from_iterable(table() for table in tables):
        times = f"{1e3 * row.ours:.3g} | {1e3 * row.theirs:.3g}"
        ratio = f"{row.theirs / row.ours:.2g}"
        print(
            f"| {row.task} | {row.peer} | {times} | {ratio} | {row.agreement} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
