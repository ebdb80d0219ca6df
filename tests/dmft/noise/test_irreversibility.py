"""Entropy production: enumerated paths, the fluctuation theorem, spins, reversals."""

import itertools

import jax
import numpy as np
import pytest
import scipy

from statmech_attn import dmft, dynamics
from statmech_attn.dmft import advance_with_entropy, empty_window
from statmech_attn.dmft.network import next_means
from statmech_attn.dmft.noise import irreversibility
from statmech_attn.dynamics import diagrams


def random_network(seed, n_patterns=2, n_sites=3, context=2, gamma=3.0, **changes):
    """A network in which every spin is a class of its own."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (4, n_patterns, n_sites))
    patterns = dmft.site_classes(signs)
    net = dmft.network(patterns, context=context)
    return net, dmft.parameters(1.3, gamma, 0.1, **changes)


def fields(net, params, means, clock=0):
    """Fields (T, S) of tokens with given class means, forwards and backwards, in NumPy.

    The first token has this place in the code.  The first and the last C tokens lack
    one of the two, which is NaN.
    """
    means, C = np.asarray(means), net.context
    n, (beta, gamma) = len(means), (float(params.beta), float(params.gamma))
    _, v, q, k = np.einsum("ams,ts->atm", np.asarray(net.weighted), means)
    epsilon, code = float(params.epsilon), np.asarray(net.positional)
    rows = (clock + np.arange(n)) % C
    v, q, k = (
        (1 - epsilon) * x + epsilon * code[rows, i]
        for i, x in zip((1, 2, 3), (v, q, k), strict=True)
    )

    def field(query, window):
        logits = gamma * k[window] @ q[query]
        odds = np.exp(logits - logits.max())
        attention = odds @ v[window] / odds.sum()
        return beta * np.asarray(net.output).T @ attention

    forwards, backwards = np.full((2, n, means.shape[1]), np.nan)
    for t in range(n):
        if t >= C:
            forwards[t] = field(t - 1, np.arange(t - C, t))
        if t + C < n:
            backwards[t] = field(t + 1, np.arange(t + 1, t + C + 1))
    return forwards, backwards


def log_probability(x, h):
    return x * h - np.log(2 * np.cosh(h))


@jax.jit
def of_tokens(net, params, state, means):
    """Rates of sampled tokens by the library; token t is read when t + C has come."""
    turn = lambda carry, row: advance_with_entropy(net, params, *carry, row)
    return jax.lax.scan(turn, (state, empty_window(net, state)), means)[1]


@pytest.mark.parametrize("context", [1, 2, 3])
def test_rates_of_sampled_tokens_are_logarithms_of_probabilities(context):
    net, params = random_network(1, context=context)
    rng = np.random.default_rng(1)
    means = rng.choice([-1.0, 1.0], (12, net.n_classes))
    start = dmft.from_row(net, params, 0)
    rates = of_tokens(net, params, start, means)[2 * context :]
    forwards, backwards = fields(net, params, means, int(start.clock))
    logs = log_probability(means, forwards) - log_probability(means, backwards)
    expected = logs.mean(1)[context:-context]
    np.testing.assert_allclose(rates, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("seed", "context", "n_sites"),
    [
        (1, 1, 3),
        (2, 2, 2),
    ],
)
def test_the_integral_fluctuation_theorem_holds(seed, context, n_sites):
    """<exp(-Sigma)> = 1 over all paths of C + 2 tokens of a few spins.

    Sigma is of the two tokens that either direction draws from a uniform window.
    """
    net, params = random_network(seed, context=context, n_sites=n_sites)
    total, tokens = 0.0, list(itertools.product([-1.0, 1.0], repeat=n_sites))
    for path in itertools.product(tokens, repeat=context + 2):
        means = np.array(path)
        forwards, backwards = fields(net, params, means)
        there = log_probability(means, forwards)[context:].sum()
        back = log_probability(means, backwards)[:2].sum()
        total += 0.5 ** (n_sites * context) * np.exp(there) * np.exp(back - there)
    assert total == pytest.approx(1, abs=1e-12)


BETAS = np.array([1.2, 1.26451, 1.28, 2.5])


def published(betas, **changes):
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(betas, file.gamma, file.epsilon, **changes)
    return net, params, dmft.from_checkpoint(net, params, file)


@pytest.mark.slow
@pytest.mark.parametrize("redrawn", [None, 1.0, 0.9])
def test_rates_of_the_map_are_divergences_of_paths(redrawn):
    """Of the spin of every class, whose paths are enumerated with the map's fields."""
    net, params, state = published(2.5, redrawn=redrawn)
    C, steps, transient = net.context, 32, 2000
    given = dict(steps=steps, transient=transient)
    result = dmft.entropy_production(net, params, state, **given)
    start = dmft.advance(net, params, state, transient + C)
    tokens = np.asarray(irreversibility.rates(net, params, start, steps))
    assert np.std(tokens) > 0.1  # no fixed point
    state = dmft.advance(net, params, state, transient)
    clock, means = int(state.clock), []
    for _ in range(steps + 3 * C):
        means.append(next_means(net, params, state.newest, state.means))
        state = dmft.step(net, params, state)
    forwards, backwards = fields(net, params, np.array(means), clock)
    change = redrawn or 1.0

    def probability(x, y, h):
        return change * np.exp(log_probability(x, h)) + (1 - change) * (x == y)

    first, last = C + 9, C + 15  # of the tokens that are enumerated
    total = 0.0
    for path in itertools.product([-1.0, 1.0], repeat=last - first + 2):
        chance, logs = (1 + path[0] * means[first - 1]) / 2, 0.0
        for t, (y, x, z) in enumerate(
            zip(path, path[1:], path[2:], strict=False), first
        ):
            there = probability(x, y, forwards[t])
            chance = chance * there
            logs = logs + np.log(there / probability(x, z, backwards[t]))
        chance = chance * probability(path[-1], path[-2], forwards[last])
        total += np.mean(chance * logs)
    found = tokens[first - C : last - C].sum()
    assert found == pytest.approx(float(total), abs=1e-12)
    assert float(result.mean) == pytest.approx(float(tokens.mean()), rel=1e-12)


@pytest.mark.slow
def test_the_published_network_has_the_rates_of_another_program():
    """Tokens 12 000 to 24 000; in chaos the rates of two windows differ by chance."""
    net, params, start = published(BETAS)
    rate = dmft.entropy_production(net, params, start, steps=12_000, transient=12_000)
    expected = np.array([1.28e-6, 0.012968, 0.1405, 1.2246])
    errors = np.array([5e-9, 1e-6, 0.0032, 0.0012])
    z = (rate.mean - expected) / np.hypot(errors, rate.stderr)
    assert (abs(z) < 3.5).all(), z


def in_turn(period, context=1):
    """A network that recalls so many patterns one after another."""
    signs, turn = scipy.linalg.hadamard(4).astype(float), np.arange(4)
    turn[:period] = np.roll(turn[:period], -1)
    return dmft.network(dmft.site_classes([signs[turn], *3 * [signs]]), context=context)


def rate_in_turn(beta):
    """beta m^2 with m = tanh(beta m), of three patterns or more."""
    m = scipy.optimize.brentq(lambda m: np.tanh(beta * m) - m, 0.5, 1, xtol=1e-15)
    return beta * m**2


@pytest.mark.parametrize(
    ("period", "context"), [(1, 1), (2, 1), (3, 1), (4, 1), (1, 3)]
)
def test_patterns_in_turn_have_an_exact_rate(period, context):
    """One pattern, whatever the window, and two in turn have no arrow."""
    net, betas = in_turn(period, context), np.array([1.3, 1.5])
    params = dmft.parameters(betas, 1.0, 0.0)
    start = dmft.from_row(net, params, 0)
    rate = dmft.entropy_production(net, params, start, steps=48, transient=400)
    exact = [rate_in_turn(beta) if period > 2 else 0.0 for beta in betas]
    np.testing.assert_allclose(rate.mean, exact, atol=1e-13)


def test_blocks_of_a_scan_have_the_rate_of_patterns_in_turn():
    net, betas = in_turn(3), np.array([1.3, 1.5])
    params = dmft.parameters(betas, 1.0, 0.0)
    state = dmft.advance(net, params, dmft.from_row(net, params, 0), 400)
    produced = lambda state: dmft.system(net).produced(state, params, 3)
    blocks, weighted = jax.jit(produced)(state)
    exact = [*map(rate_in_turn, betas)]
    np.testing.assert_allclose(blocks, np.tile(exact, (len(blocks), 1)), atol=1e-13)
    np.testing.assert_allclose(weighted, exact, atol=1e-13)


def test_jit_and_vmap_give_the_rates_of_patterns_in_turn():
    net, betas = in_turn(3), np.array([1.3, 1.5])

    def rate(beta):
        params = dmft.parameters(beta, 1.0, 0.0)
        start = dmft.from_row(net, params, 0)
        return dmft.entropy_production(net, params, start, steps=48, transient=400).mean

    found = jax.jit(jax.vmap(rate))(betas)
    np.testing.assert_allclose(found, [*map(rate_in_turn, betas)], atol=1e-13)


@pytest.mark.slow
def test_scans_of_copied_spins_have_their_rate():
    """Blocks of three tokens each, of an orbit that has not come to rest."""
    net, params, state = published(np.array([1.4, 1.5]), redrawn=0.5)
    values = {name: getattr(params, name) for name in ("beta", "gamma", "epsilon")}
    values["redrawn"] = params.redrawn
    produced = lambda state: dmft.sequential(net).produced(state, values, 3)
    blocks, _ = jax.jit(produced)(state)
    tokens = irreversibility.rates(net, params, state, 3 * len(blocks))
    expected = np.asarray(tokens).reshape(len(blocks), 3, 2).mean(1)
    np.testing.assert_allclose(blocks, expected, rtol=1e-6)
    assert (expected > 1e-3).all()


@pytest.mark.slow
def test_every_token_of_redrawn_spins_produces_entropy():
    net, params, start = published(np.linspace(1.2, 3, 12))
    rate = dmft.entropy_production(net, params, start, steps=800, transient=2000)
    start = dmft.advance(net, params, start, 2000 + net.context)
    assert (irreversibility.rates(net, params, start, 800) > -1e-15).all()
    assert (abs(rate.mean - rate.weighted) < 5 * rate.stderr + 1e-12).sum() >= 11


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["llvm", "xla"])
def test_scans_average_the_rate_of_the_attractor(compiler):
    """At rest at two temperatures, on a cycle of 16 tokens, and in chaos."""
    net, params, start = published(np.array([1.0, 1.2, 1.25, 1.4]))
    file = dmft.load("poclopez-pe2")
    grid = {"beta": params.beta, "gamma": file.gamma, "epsilon": file.epsilon}
    at = lambda p: published(p["beta"])[2]
    plan = diagrams.Plan(20_000, 4000, exponents=1, compiler=compiler)
    given = grid, at, plan
    scan = dynamics.diagram(dmft.system(net), *given, confirm=diagrams.Confirm(0))
    rate = dmft.entropy_production(net, params, start, steps=8000, transient=20_000)
    apart = np.abs(scan.entropy_production.values - rate.mean)
    error = np.hypot(scan.entropy_production_stderr.values, rate.stderr)
    assert scan.period.values.tolist() == [4, 4, 16, 0]
    assert (apart[:3] < 1e-12).all() and rate.mean[2] > 0.003
    assert 0 < error[3] < 0.02 and apart[3] < 4 * error[3]
    np.testing.assert_allclose(
        scan.entropy_production_weighted[:3], rate.weighted[:3], rtol=0, atol=1e-12
    )


@pytest.mark.slow
def test_scans_without_exponents_or_by_request_have_no_rate():
    net, params, start = published(1.2)
    grid = {name: float(getattr(params, name)) for name in ("gamma", "epsilon")}
    for left_out in ({"exponents": 0}, {"entropy_production": False}):
        plan = diagrams.Plan(transient=64, steps=64, **{"exponents": 1, **left_out})
        given = {"beta": [1.1, 1.2], **grid}, lambda p: start, plan
        scan = dynamics.diagram(dmft.system(net), *given, confirm=diagrams.Confirm(0))
        assert not [name for name in scan if "entropy" in str(name)]


@pytest.mark.slow
def test_trajectories_have_the_rate_of_every_token():
    net, params, _ = published(1.28)
    grid = {"beta": [1.28, 1.4], "gamma": params.gamma, "epsilon": params.epsilon}
    start = lambda params: dmft.from_row(net, params, 0)
    orbits = dmft.trajectories(net, grid, start, steps=33, entropy_production=True)
    rates = orbits.compute().entropy_production.transpose("beta", "time")
    draw = lambda state, _: (
        dmft.step(net, params, state),
        next_means(net, params, state.newest, state.means),
    )
    C, first = net.context, start(params)
    means = np.asarray(jax.lax.scan(draw, first, None, length=33 + C)[1])
    known = slice(C, 33)  # of tokens whose past and future are on record
    h, r = (x[known] for x in fields(net, params, means, int(first.clock)))
    cosh = lambda x: np.logaddexp(x, -x)
    weights = np.abs(np.asarray(net.weighted)[0, 0])
    expected = (means[known] * (h - r) - cosh(h) + cosh(r)) @ weights
    np.testing.assert_allclose(rates[0][known], expected, atol=1e-13)
    assert (expected > 1e-6).all()


def test_the_rate_of_a_token_does_not_depend_on_where_reading_begins():
    """The first token after a state was copied from those of the state, too."""
    net, params = random_network(2, redrawn=0.5)
    state = dmft.from_random(net, params, jax.random.key(0))
    later = dmft.advance(net, params, state, 3)
    rates, others = (irreversibility.rates(net, params, x, 9) for x in (state, later))
    np.testing.assert_allclose(rates[3:], others[:6], rtol=1e-10)


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"steps": 0}, "steps"), ({"steps": 10, "blocks": 3}, "blocks")],
)
def test_counts_out_of_range_are_named(changes, named):
    net, params, start = published(1.0)
    with pytest.raises(ValueError, match=named):
        dmft.entropy_production(net, params, start, **changes)
