r"""Networks of N spins with M = M_c + alpha N patterns (docs/theory/extensive.md, 5).

Signs of patterns are kept as bits, in words of 64 sites for the overlaps and in words
of 64 patterns for the fields, and counted; all sums are whole numbers.  As the weights
do not depend on the pattern, what attention passes on is a mean over tokens of one
vector for each,

    u_i(t) = sum_mu o^mu_i m^v_mu(t)
    h_i(t) = sum_a W^o_{a,i} A_a(t) + (1 - epsilon) sum_d p_d(t) u_i(t - d)

so a token costs one pass over each distinct kind of pattern, for every run.

    x     (N, R)         spins of R runs of one sample of patterns
    w     (M, R)         overlaps sum_i x^mu_i x_i, whole numbers
    u     (C, N, R)      by slot: token time mod C
"""

import itertools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int8, Int32, Key, UInt64

from statmech_attn import presentation
from statmech_attn.batches import require_memory
from statmech_attn.dmft import extensive, Patterns
from statmech_attn.labels import Variable
from statmech_attn.montecarlo.finite_networks.collapsed import class_counts
from statmech_attn.options import Count, Means, Several
from statmech_attn.statistics import standard_error


ROWS = 128  # patterns that are drawn at once
WORD = 64  # signs of a word
EXACT = 2**24  # signs whose sum single precision holds


class Overlaps(NamedTuple):
    """Overlaps measured on tokens 0, ..., T of every run.

    Attributes:
        m_o_se: semantic overlaps with the outputs of the condensed patterns.
        A: attention vector after each token.
        weights: attention weights by age.
        C: correlations of the spins.
        S: correlations of the value overlaps of the other patterns.
    """

    m_o_se: Float[Array | np.ndarray, "*runs n M"]
    A: Float[Array | np.ndarray, "*runs n M"]
    weights: Float[Array | np.ndarray, "*runs n C"]
    C: Float[Array | np.ndarray, "*runs n n"]
    S: Float[Array | np.ndarray, "*runs n n"]


def _row(name: str, words: str, dims: str, symbol: str) -> Variable:
    value, error = f"mean.{name}", f"stderr.{name}"
    return Variable(name, dims, words, symbol=symbol, value=value, error=error)


class ExtensiveSimulation(NamedTuple):
    """Means over samples of patterns, of what is first averaged over runs.

    Attributes:
        mean: means over the samples.
        stderr: their standard errors, from the spread over samples.
        samples: averages over the runs of every sample, arrays (samples, ...).
        n_spins: number N of spins.
        patterns: number alpha N of patterns besides the condensed ones.
        runs: runs of every sample.
    """

    mean: Overlaps
    stderr: Overlaps
    samples: Overlaps
    n_spins: int
    patterns: int
    runs: int

    _shown = (
        Variable("n_spins", "", "spins", symbol="N"),
        Variable("patterns", "", "patterns besides the condensed ones", symbol="αN"),
        Variable("runs", "", "runs of a sample"),
        _row("m_o_se", "semantic overlap with the outputs", "time pattern", "m^o"),
        _row("A", "attention vector", "time pattern", "A"),
        _row("weights", "attention weights", "time age", "p_d"),
        _row("C", "correlations of the spins", "time time_2", "C"),
        _row("S", "correlations of the value overlaps", "time time_2", "S^{vv}"),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


@presentation.knows_given
def simulate_extensive(
    problem: extensive.LoadedNetwork,
    patterns: Patterns,
    start: Means,
    *,
    n_spins: Count,
    samples: Several,
    steps: Count,
    key: Key[Array, ""],
    runs: Count = 1,
) -> ExtensiveSimulation:
    """Simulate networks of N spins whose patterns are drawn anew for every sample.

    Args:
        problem: of any ensemble, as for the theory; alpha N must be a whole number.
        patterns: the condensed ones, from which the network was built.
        start: mean of the first token in every site class.
        n_spins: number of spins, divisible by the class fractions.
        samples: draws of the patterns, at least 2.
        steps: tokens to generate.
        key: random key of JAX; sample s depends on (key, s) alone.
        runs: runs of every sample.

    Returns:
        Means over samples with standard errors, and the average of every sample.

    Raises:
        ValueError: an argument out of range, alpha N that is no whole number, or more
            memory than there is.

    Example:
        >>> from statmech_attn import dmft
        >>> from statmech_attn.dmft import extensive
        >>> one = dmft.site_classes(np.ones((4, 1, 1)))
        >>> net = dmft.network(one, context=1)
        >>> problem = extensive.loaded_network(
        ...     net, extensive.cycle(), alpha=0.1, beta=2.0)
        >>> result = simulate_extensive(problem, one, [1.0], n_spins=200, samples=4,
        ...     steps=2, key=jax.random.key(0))
        >>> result.mean.C.shape, result.patterns
        ((3, 3), 20)
    """
    plan = extensive_plan(
        problem, patterns, start, n_spins=n_spins, steps=steps, runs=runs
    )
    samples_of_patterns = [
        plan.sample(jax.random.fold_in(key, s)) for s in range(samples)
    ]
    stacked = jax.tree.map(lambda *x: np.stack(x), *samples_of_patterns)
    return ExtensiveSimulation(
        jax.tree.map(lambda x: x.mean(0), stacked),
        jax.tree.map(lambda x: standard_error(x, 0), stacked),
        stacked,
        n_spins,
        plan.patterns,
        runs,
    )


class ExtensivePlan(NamedTuple):
    """A checked simulation, of which samples are drawn one by one.

    Attributes:
        problem: the network.
        classes: site class of every spin.
        start: mean of the first token in every site class.
        betas: inverse temperatures of all tokens.
        patterns: number alpha N of patterns besides the condensed ones.
        steps: tokens to generate.
        runs: runs of every sample.
        bytes: of memory that a sample takes.
    """

    problem: extensive.LoadedNetwork
    classes: Int[np.ndarray, " N"]
    start: Float[np.ndarray, " S"]
    betas: Float[np.ndarray, " n"]
    patterns: int
    steps: int
    runs: int
    bytes: int

    def sample(self, key: Key[Array, ""]) -> Overlaps:
        """Averages over the runs of one sample of the patterns."""
        return _sample(
            self.problem,
            _columns(self.problem.ensemble),
            jnp.asarray(self.classes),
            jnp.asarray(self.start),
            jnp.asarray(self.betas),
            key,
            self.patterns,
            self.steps,
            self.runs,
        )


def extensive_plan(
    problem: extensive.LoadedNetwork,
    patterns: Patterns,
    start: Means,
    *,
    n_spins: Count,
    steps: Count,
    runs: Count = 1,
) -> ExtensivePlan:
    """Check a simulation of which samples are drawn one by one.

    Args:
        problem: as for `simulate_extensive`, and so the others.
        patterns: the condensed ones, from which the network was built.
        start: mean of the first token in every site class.
        n_spins: number of spins, divisible by the class fractions.
        steps: tokens to generate.
        runs: runs of every sample.

    Returns:
        The plan, whose `sample` draws one.

    Raises:
        ValueError: as `simulate_extensive`.

    Example:
        >>> from statmech_attn import dmft
        >>> from statmech_attn.dmft import extensive
        >>> one = dmft.site_classes(np.ones((4, 1, 1)))
        >>> net = dmft.network(one, context=1)
        >>> problem = extensive.loaded_network(
        ...     net, extensive.cycle(), alpha=0.1, beta=2.0)
        >>> extensive_plan(problem, one, [1.0], n_spins=200, steps=2).patterns
        20
    """
    counts = class_counts(patterns, n_spins)
    extra = round(float(problem.alpha) * n_spins)
    needed = _checked_bytes(problem, n_spins, extra, steps, runs)
    start = np.asarray(start, float)
    if start.shape != counts.shape or not (np.abs(start) <= 1).all():
        raise ValueError(
            f"start must have one mean in [-1, 1] per site class ({counts.size})."
        )
    betas = np.broadcast_to(problem.beta, steps)
    return ExtensivePlan(
        problem,
        np.repeat(np.arange(counts.size), counts),
        start,
        np.append(betas, betas[-1]),
        extra,
        steps,
        runs,
        needed,
    )


def _checked_bytes(
    problem: extensive.LoadedNetwork, n_spins, extra, steps, runs
) -> int:
    """Memory of a sample, where there is enough and all else is in range."""
    n_patterns = float(problem.alpha) * n_spins
    if abs(extra - n_patterns) > 1e-9 * n_spins:
        raise ValueError(f"alpha N must be a whole number; got {n_patterns:g}.")
    if not 1 <= extra < EXACT or n_spins >= EXACT:
        raise ValueError(
            f"alpha N must be at least 1, and N below {EXACT}; got {extra} and "
            f"{n_spins}."
        )
    if problem.beta.ndim and problem.beta.size != steps:
        raise ValueError(
            f"beta must have one value per step ({steps}); got {problem.beta.size}."
        )
    sites = n_spins * runs * (5 * (steps + 1) + 4 * problem.net.context)
    kinds = len(_columns(problem.ensemble).signs)
    needed = (kinds + 1) * n_spins * extra // 8
    needed += sites + 4 * extra * runs * (steps + 1)
    require_memory(f"{n_spins} spins with {extra} patterns", needed)
    return needed


class _Tokens(eqx.Module):
    """Tokens so far: of all times, and what attention reads, by slot."""

    spins: Int8[Array, "n N R"]
    values: Float[Array, "n M R"]  # overlaps w^v of the other patterns
    m: Float[Array, "n 4 M_c R"]
    keys: Float[Array, "C M R"]
    passed: Float[Array, "C N R"]


@eqx.filter_jit
def _sample(
    problem: extensive.LoadedNetwork,
    columns: "_Columns",
    classes,
    start,
    betas,
    key,
    extra: int,
    steps: int,
    runs: int,
) -> Overlaps:
    """One sample of the patterns; averages over its runs."""
    net, epsilon = problem.net, problem.epsilon
    n, context, n_spins = steps + 1, net.context, len(classes)
    pattern_key, start_key, spin_key = jax.random.split(key, 3)
    bits = _draw(columns, pattern_key, extra, n_spins)
    shares = jnp.abs(net.weighted[0, 0])
    ones = jnp.zeros((net.n_classes, n_spins)).at[classes, jnp.arange(n_spins)].set(1)
    class_mean = (ones / (shares[:, None] * n_spins)).astype(jnp.float32)
    positional = lambda t: net.positional[t % context][..., None]
    age = jnp.arange(context)

    def draw(key, mean):
        uniform = jax.random.uniform(key, (n_spins, runs), jnp.float32)
        return jnp.where(uniform < (1 + mean) / 2, 1.0, -1.0).astype(jnp.float32)

    def read(tokens: _Tokens, t, x):
        """Put token t where attention finds it, and attend."""
        w_v, w_q, w_k = _overlaps(columns, bits, x)
        u = _fields(columns, bits, w_v) / n_spins
        semantic = jnp.einsum("kas,sr->kar", net.weighted, class_mean @ x)
        m = (1 - epsilon) * semantic + epsilon * positional(t)
        tokens = _Tokens(
            tokens.spins.at[t].set(x.astype(jnp.int8)),
            tokens.values.at[t].set(w_v),
            tokens.m.at[t].set(m),
            tokens.keys.at[t % context].set(w_k),
            tokens.passed.at[t % context].set(u),
        )
        time = t - age
        m_k = tokens.m[time, 3]
        score = jnp.einsum("ar,dar->dr", m[2], m_k)
        query_key = jnp.einsum("mr,dmr->dr", w_q, tokens.keys[time % context])
        score = score + (1 - epsilon) ** 2 * query_key / n_spins**2
        filled = (time >= 0)[:, None]
        p = jax.nn.softmax(problem.gamma * score, axis=0, where=filled)
        p = jnp.where(filled, p, 0.0)
        A = jnp.einsum("dr,dar->ar", p, tokens.m[time, 1])
        slots = tokens.passed[time % context]
        crosstalk = jnp.einsum("dr,dir->ir", p.astype(jnp.float32), slots)
        h = (net.output.T @ A)[classes] + (1 - epsilon) * crosstalk
        m_o_se = (m[0] - epsilon * positional(t)[0]) / (1 - epsilon)
        return tokens, h, (m_o_se, A, p)

    def generate(carry, t):
        tokens, x = carry
        tokens, h, records = read(tokens, t, x)
        beta = betas[t]
        cold = jnp.isinf(beta)
        mean = jnp.where(cold, jnp.sign(h), jnp.tanh(jnp.where(cold, 1.0, beta) * h))
        after = draw(jax.random.fold_in(spin_key, t), mean.astype(jnp.float32))
        return (tokens, after), records

    empty = _Tokens(
        jnp.zeros((n, n_spins, runs), jnp.int8),
        jnp.zeros((n, extra, runs), jnp.float32),
        jnp.zeros((n, 4, net.n_patterns, runs)),
        jnp.zeros((context, extra, runs), jnp.float32),
        jnp.zeros((context, n_spins, runs), jnp.float32),
    )
    first = draw(start_key, start[classes][:, None])
    (tokens, _), records = jax.lax.scan(generate, (empty, first), jnp.arange(n))
    m_o_se, A, p = (x.mean(-1) for x in records)
    spins = tokens.spins.astype(jnp.float32)
    C = jnp.einsum("tir,sir->ts", spins, spins).astype(float) / (n_spins * runs)
    values = tokens.values / np.sqrt(n_spins)
    S = jnp.einsum("tmr,smr->ts", values, values).astype(float) / (extra * runs)
    return Overlaps(m_o_se, A, p, C, S)


class _Columns(NamedTuple):
    """Entries of a pattern at a site; those of kinds that are the same stand once."""

    signs: Int8[np.ndarray, "kinds columns"]
    chances: Float[np.ndarray, " columns"]
    place: tuple[int, ...]  # of o, v, q, k among the distinct kinds
    is_cycle: bool


def _columns(ensemble: extensive.Ensemble) -> _Columns:
    if ensemble.is_cycle:
        signs, chances = np.array([[1, -1]]), np.array([0.5, 0.5])
        return _Columns(signs.astype(np.int8), chances, (0,) * 4, True)
    signs = np.array(list(itertools.product((1, -1), repeat=4)), np.int8).T
    same_as = np.argmax(ensemble.correlations == 1, axis=1)
    distinct, place = np.unique(same_as, return_inverse=True)
    chances = extensive.column_probabilities(ensemble)
    present = chances > 0
    kinds = signs[distinct][:, present]
    return _Columns(kinds, chances[present], tuple(place.tolist()), False)


class _Bits(NamedTuple):
    """Signs of the patterns, a bit for each that is one for +1; filled up with zeros.

    `by_site` are words of 64 sites of every kind, `by_pattern` words of 64 patterns of
    the outputs; `surplus` is the sum of the outputs of all patterns at a site.
    """

    by_site: UInt64[Array, "kinds M site_words"]
    by_pattern: UInt64[Array, "pattern_words N"]
    surplus: Int32[Array, " N"]


def _draw(columns: _Columns, key, extra: int, n_spins: int) -> _Bits:
    edges = jnp.cumsum(columns.chances)[:-1]

    def block(b):
        shape = ROWS, n_spins
        uniform = jax.random.uniform(jax.random.fold_in(key, b), shape, jnp.float32)
        place = sum((uniform >= edge).astype(jnp.int8) for edge in edges)
        inside = b * ROWS + jnp.arange(ROWS) < extra
        up = (jnp.asarray(columns.signs) > 0)[:, place] & inside[:, None]
        return _words(up), _words(up[columns.place[0]].T).T

    by_site, by_pattern = jax.lax.map(block, jnp.arange(-(-extra // ROWS)))
    by_site = jnp.moveaxis(by_site, 0, 1)
    by_site = by_site.reshape(len(by_site), -1, by_site.shape[-1])[:, :extra]
    by_pattern = by_pattern.reshape(-1, n_spins)[: -(-extra // WORD)]
    return _Bits(by_site, by_pattern, 2 * _count(by_pattern, 0) - extra)


def _overlaps(columns: _Columns, bits: _Bits, x: Float[Array, "N R"]):
    """Sums w of v, q and k with the spins, (M, R) each; spins that differ count -1."""

    def of_kind(kind):
        differ = lambda up: _count(bits.by_site[kind] ^ up, 1)
        w = len(x) - 2 * jax.lax.map(differ, _words(x.T > 0))
        return w.T.astype(jnp.float32)

    w = {kind: of_kind(kind) for kind in set(columns.place[1:])}
    return tuple(w[kind] for kind in columns.place[1:])


def _fields(
    columns: _Columns, bits: _Bits, w: Float[Array, "M R"]
) -> Float[Array, "N R"]:
    """Sum of the outputs times the overlaps; those of a cycle with the next pattern.

    Overlaps are the lowest and twice a number of spins, which is added bit by bit:
    sum_mu o w = low sum_mu o + 2 (2 sum_{o = 1} h - sum_mu h).
    """
    if columns.is_cycle:
        w = jnp.roll(w, 1, axis=0)

    def of_run(w):
        low = w.min()
        h = (w - low) >> 1

        def add(carry):
            bit, total = carry
            plane = _words((h >> bit) & 1 == 1)
            return bit + 1, total + (_count(bits.by_pattern & plane[:, None], 0) << bit)

        def is_left(carry):
            return (h >> carry[0]).any()

        start = jnp.int32(0), jnp.zeros_like(bits.surplus)
        _, total = jax.lax.while_loop(is_left, add, start)
        return low * bits.surplus + 2 * (2 * total - h.sum(dtype=jnp.int32))

    return jax.lax.map(of_run, w.T.astype(jnp.int32)).T.astype(jnp.float32)


def _words(bits: Bool[Array, "*rows n"]) -> UInt64[Array, "*rows words"]:
    """Bits of the last axis in words, the first the lowest."""
    missing = -bits.shape[-1] % WORD
    bits = jnp.pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, missing)])
    bits = bits.reshape(*bits.shape[:-1], -1, WORD).astype(jnp.uint64)
    return (bits << jnp.arange(WORD, dtype=jnp.uint64)).sum(-1, dtype=jnp.uint64)


def _count(words: UInt64[Array, "..."], axis: int) -> Int32[Array, "..."]:
    ones = jax.lax.population_count(words).astype(jnp.int32)
    return ones.sum(axis, dtype=jnp.int32)
