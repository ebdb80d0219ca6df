"""Do spins of the published network move where the theory with crosstalk says so?

The published network carries alpha N further patterns, as in `crosstalk.py`.  From its
first pattern the script runs samples of N spins, and compares the attention vectors
A(t) with the theory

- token by token over the first ones: the root mean square difference of a sample,
- by how much they move in one window of tokens, the same of theory and spins, with the
  variance in time at equal places of the clock,

    motion^2 = mean over patterns and places of the clock of var_t A_a(t),

which at rest is zero in the theory, and of order 1/N for spins: a line in 1/N through
motion^2 at all N gives its limit.

The kinds of the further patterns are independent, so that their entries act through
Gaussian sums alone.  Given the spins so far, the overlaps of a pattern have the
covariance of the spins, and given those, the field u_i(t) = sum_mu o^mu_i m^v_mu(t) of
a spin has that of the overlaps:

    w^x_mu(t) = N^{-1/2} sum_i x^mu_i x_i(t),  x = v, q, k
    < w^x_mu(t) w^x_mu(t') > = C(t,t'),  < u_i(t) u_i(t') > = alpha S^{vv}(t,t')

`gaussian_spins` draws them instead of the patterns, given the newest MEMORY tokens; all
spins are drawn.  With --spins literal the patterns themselves are drawn.  With --spins
noisy the theory stands in place of spins, with the noise of N spins in the mean of
every site class, white in time: what finite N does to an orbit, at any N.

    python analysis/crosstalk_spins.py --output crosstalk_spins.h5 [--sizes 3000 12000]

prints a table, and writes a file that plotting.phases_against_load(phases, spins)
draws.
"""

import argparse
import itertools
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import statmech_attn
from statmech_attn import dmft, dynamics, montecarlo, storage
from statmech_attn.dmft import extensive
from statmech_attn.storage import toml
from statmech_attn.studies import records


PRESET = "poclopez-pe2"
BETAS = (1.255, 1.26451, 1.266, 1.27, 1.28, 1.4)
EARLY = 32  # tokens that are compared one by one
MEMORY = 8  # tokens, as in crosstalk.py
LINE = "motion_limit", "motion_limit_stderr", "motion_slope", "motion_chi2"
RUNS = {
    "gaussian": "gaussian_spins",
    "literal": "literal_spins",
    "noisy": "noisy_theory",
}
WINDOWS = 9  # of the theory: the one of the spins, and the next for its error


def motion(A: np.ndarray, period: int) -> np.ndarray:
    """Spread of A (..., time, M) at equal places of the clock."""
    turns = A[..., : A.shape[-2] // period * period, :]
    turns = turns.reshape(*A.shape[:-2], -1, period, A.shape[-1])
    return np.sqrt(turns.var(-3, ddof=1).mean((-2, -1)))


def limit(sizes, squares: np.ndarray) -> dict[str, float]:
    """The line in 1/N through means over samples of squares (sizes, samples)."""
    inverse, mean = 1 / np.array(sizes), squares.mean(1)
    error = squares.std(1, ddof=1) / np.sqrt(squares.shape[1])
    line, covariance = np.polyfit(inverse, mean, 1, w=1 / error, cov="unscaled")
    slope_error, limit_error = np.sqrt(np.diag(covariance))
    return {
        "motion_limit": line[1],
        "motion_limit_stderr": limit_error,
        "motion_slope": line[0],
        "motion_slope_stderr": slope_error,
        "motion_chi2": (((mean - np.polyval(line, inverse)) / error) ** 2).sum(),
    }


def place_of(beta: float, alpha: float, n_spins: int) -> tuple[int, int, int]:
    """Whole numbers of a point, so that no two points share random numbers."""
    return n_spins, round(1e6 * alpha), round(1e6 * beta)


def key_of(seed: int, beta: float, alpha: float, n_spins: int) -> jax.Array:
    """The key of a point."""
    key = jax.random.key(seed)
    for number in place_of(beta, alpha, n_spins):
        key = jax.random.fold_in(key, number)
    return key


class Gaussian:
    """Gaussian numbers of the newest tokens, those of a token alike and independent.

    Attributes:
        rows: the numbers, (tokens, ...), token t in row t mod tokens.
        covariance: of two tokens.
    """

    def __init__(self, *shape: int) -> None:
        self.rows = np.zeros(shape, np.float32)
        self.covariance = np.zeros((shape[0], shape[0]))

    def draw(self, t: int, covariance: np.ndarray, rng: np.random.Generator) -> None:
        """Draw those of token t given the others, by their covariance with all rows."""
        memory = len(self.rows)
        slot, past = t % memory, np.arange(max(0, t - memory + 1), t) % memory
        self.covariance[slot] = self.covariance[:, slot] = covariance
        weights = np.zeros(memory)
        known = self.covariance[np.ix_(past, past)]
        weights[past] = np.linalg.solve(known, covariance[past])
        width = np.sqrt(max(covariance[slot] - weights @ covariance, 0.0))
        fresh = rng.standard_normal(self.rows.shape[1:], np.float32)
        mean = np.tensordot(weights.astype(np.float32), self.rows, 1)
        self.rows[slot] = mean + np.float32(width) * fresh


class Published:
    """The published network, its parameters, and its spins."""

    def __init__(self) -> None:
        file = dmft.load(PRESET)
        self.patterns, self.period = file.patterns, file.context
        self.net = dmft.network(file.patterns, context=file.context)
        self.fixed = {"gamma": file.gamma, "epsilon": file.epsilon}
        self.kinds = extensive.independent()
        fresh = multiprocessing.get_context("spawn")
        self.workers = ProcessPoolExecutor(mp_context=fresh)

    def theory(self, beta: float, alpha: float, tokens: int) -> np.ndarray:
        """A of tokens MEMORY, MEMORY + 1, ..., (tokens, M)."""
        given = {"alpha": alpha, "beta": beta} | self.fixed
        start = extensive.system_start(self.net, self.kinds, given, memory=MEMORY)
        loaded = extensive.system(self.net, self.kinds)
        return np.asarray(dynamics.orbit(loaded, start, given, samples=tokens))

    def problem(self, beta: float, alpha: float) -> extensive.LoadedNetwork:
        """The network with a load."""
        given = {"alpha": alpha, "beta": beta} | self.fixed
        return extensive.loaded_network(self.net, self.kinds, **given)

    def literal_spins(
        self, beta: float, alpha: float, n_spins: int, tokens: int, samples, seed
    ) -> np.ndarray:
        """A of all tokens, (samples, tokens, M), of patterns that are drawn."""
        result = montecarlo.simulate_extensive(
            self.problem(beta, alpha),
            self.patterns,
            self.net.output[0],
            n_spins=n_spins,
            samples=samples,
            steps=tokens - 1,
            key=key_of(seed, beta, alpha, n_spins),
        )
        return np.asarray(result.samples.A)

    def noisy_theory(
        self, beta: float, alpha: float, n_spins: int, tokens: int, samples, seed
    ) -> np.ndarray:
        """The same of the theory with noise in class means, from token MEMORY on."""
        given = {"alpha": alpha, "beta": beta} | self.fixed
        start = extensive.system_start(self.net, self.kinds, given, memory=MEMORY)
        step = extensive.system(self.net, self.kinds).step
        width = 1 / np.sqrt(n_spins * step.sites.share)

        def next_token(state, key):
            noise = width * jax.random.normal(key, width.shape)
            state = step(state, given, noise)
            return state, state.order.A[-1]

        def orbit(key):
            keys = jax.random.split(key, tokens - MEMORY)
            later = jax.lax.scan(next_token, start, keys)[1]
            return jnp.concatenate([start.order.A, later])

        keys = jax.random.split(key_of(seed, beta, alpha, n_spins), samples)
        return np.asarray(jax.jit(jax.vmap(orbit))(keys))

    def gaussian_spins(
        self, beta: float, alpha: float, n_spins: int, tokens: int, samples, seed
    ) -> np.ndarray:
        """The same of Gaussian crosstalk."""
        plan = montecarlo.extensive_plan(
            self.problem(beta, alpha),
            self.patterns,
            self.net.output[0],
            n_spins=n_spins,
            steps=tokens,
        )
        parameters = self.fixed | {"alpha": alpha, "beta": beta}
        given = self.net, parameters, np.bincount(plan.classes), tokens
        place = place_of(beta, alpha, n_spins)
        seeds = [[seed, s, *place] for s in range(samples)]
        return np.array(list(self.workers.map(partial(gaussian_sample, *given), seeds)))


def gaussian_sample(
    net: dmft.Network, given: dict, counts: np.ndarray, tokens: int, seed: list[int]
) -> np.ndarray:
    """A of all tokens, (tokens, M), of spins in site classes with these counts."""
    epsilon, context, n_spins = given["epsilon"], net.context, counts.sum()
    output, weighted, positional = map(
        np.asarray, (net.output, net.weighted, net.positional)
    )
    rng = np.random.default_rng(seed)
    edges = np.append(0, np.cumsum(counts)[:-1])
    extra = round(given["alpha"] * n_spins)
    spins = np.zeros((MEMORY, n_spins), np.float32)
    overlaps = Gaussian(MEMORY, 3, extra)  # of v, q, k
    fields = Gaussian(MEMORY, n_spins)
    m = np.zeros((MEMORY, *weighted.shape[:2]))
    A = np.zeros((tokens, net.n_patterns))
    x = np.repeat(output[0], counts).astype(np.float32)
    for t in range(tokens):
        slot = t % MEMORY
        spins[slot] = x
        overlaps.draw(t, spins @ x / n_spins, rng)
        w_v, w_q, w_k = np.moveaxis(overlaps.rows, 1, 0)
        fields.draw(t, given["alpha"] * (w_v @ w_v[slot]) / extra, rng)
        means = np.add.reduceat(x, edges, dtype=float) / counts
        m[slot] = (1 - epsilon) * (weighted @ means) + epsilon * positional[t % context]
        read = np.arange(t, max(t - context, -1), -1) % MEMORY
        crosstalk = (1 - epsilon) ** 2 * (w_k[read] @ w_q[slot]) / n_spins
        score = given["gamma"] * (m[read, 3] @ m[slot, 2] + crosstalk)
        p = np.exp(score - score.max())
        p = p / p.sum()
        A[t] = p @ m[read, 1]
        weights = np.zeros(MEMORY, np.float32)
        weights[read] = (1 - epsilon) * p
        h = np.repeat((output.T @ A[t]).astype(np.float32), counts)
        mean = np.tanh(np.float32(given["beta"]) * (h + weights @ fields.rows))
        up = 2 * rng.random(n_spins, np.float32) - 1 < mean
        x = 2 * up.astype(np.float32) - 1
    return A


def of_point(network: Published, alpha: float, beta: float, options) -> dict:
    """Motion of theory and spins, and early differences, with standard errors."""
    begin, end = options.window
    length, period = end - begin, network.period
    orbit = network.theory(beta, alpha, begin - MEMORY + WINDOWS * length)
    late = orbit[begin - MEMORY :].reshape(WINDOWS, length, -1)
    theory = motion(late, period)
    run = getattr(network, RUNS[options.spins])
    moves, early = [], []
    for n_spins in options.sizes:
        A = run(beta, alpha, n_spins, end, options.samples, options.seed)
        deviation = A[:, MEMORY : MEMORY + EARLY] - orbit[:EARLY]
        moves.append(motion(A[:, begin:], period))
        early.append(np.sqrt((deviation**2).mean((1, 2))))
    squares, early = np.square(moves), np.array(early)
    root, count = np.sqrt(squares.mean(1)), np.sqrt(options.samples)
    point = {
        "motion": theory[0],
        "motion_stderr": theory[1:].std(ddof=1),
        "motion_spins": root,
        "motion_spins_stderr": squares.std(1, ddof=1) / (2 * root * count),
        "difference": early.mean(1),
        "difference_stderr": early.std(1, ddof=1) / count,
    }
    if len(options.sizes) > 1:
        point |= limit(options.sizes, squares)
    pairs = [point[f"motion{s}"] for s in ("_spins", "_spins_stderr")]
    words = "  ".join(f"{m:.4f} ± {s:.4f}" for m, s in zip(*pairs))
    bare = f"{point['motion']:.4f} ± {point['motion_stderr']:.4f}"
    line = "  ".join(f"{point[name]:.2e}" for name in LINE if name in point)
    print(f"{alpha:g} | {beta:g} | {bare} | {words} | {line}", flush=True)
    return point


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("crosstalk_spins.h5"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[3000, 12000, 48000])
    parser.add_argument("--loads", type=float, nargs="+", default=[0.01, 0.05, 0.1])
    parser.add_argument("--betas", type=float, nargs="+", default=list(BETAS))
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--window", type=int, nargs=2, default=[4000, 6000])
    parser.add_argument("--spins", choices=RUNS, default="gaussian")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    statmech_attn.setup()
    network = Published()
    print(f"alpha | beta | motion: theory | N = {options.sizes} | line in 1/N")
    points = [
        of_point(network, alpha, beta, options)
        for alpha, beta in itertools.product(options.loads, options.betas)
    ]
    dims, shape = ("alpha", "beta"), (len(options.loads), len(options.betas))
    variables = {}
    for name in points[0]:
        values = np.array([p[name] for p in points])
        sizes = ("n_spins",) * (values.ndim - 1)
        variables[name] = (*dims, *sizes), values.reshape(*shape, *values.shape[1:])
    coordinates = {
        "alpha": np.array(options.loads),
        "beta": np.array(options.betas),
        "n_spins": np.array(options.sizes),
    }
    dataset = records.MOTION.labelled(variables, coordinates).assign_attrs(
        kind="crosstalk-spins", samples=options.samples, window=options.window
    )
    chosen = {k: v for k, v in vars(options).items() if k != "output"}
    rows = (f"{name} = {toml.inline(value)}\n" for name, value in chosen.items())
    study = f'kind = "{dataset.attrs["kind"]}"\n' + "".join(rows)
    storage.write(options.output, dataset, study=study)


if __name__ == "__main__":
    main()
