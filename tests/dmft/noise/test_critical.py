"""Critical fluctuations: exact laws, noisy maps, linear noise, spins of the network."""

import itertools
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import gamma, log_ndtr, pbdv

from statmech_attn import dmft
from statmech_attn.dmft.network import next_means
from statmech_attn.dynamics.continuation import find_cycle, follow_cycle, Problem
from statmech_attn.montecarlo.finite_networks.binomial import any_count
from statmech_attn.montecarlo.finite_networks.collapsed import class_counts
from statmech_attn.montecarlo.finite_networks.randomness import address, seed_words
from statmech_attn.statistics.agreement import threshold


SKEW = np.array([[1.0, 0.3], [-0.5, 2.0]])  # coordinates that are not those of z
STRAIGHT = np.linalg.inv(SKEW)


def first_special(problem, x, start, end):
    low, high = sorted((start, end))
    branch = follow_cycle(
        problem, x, start, direction=np.sign(end - start), within=(low, high)
    )
    return next(point for point in branch if point.special).special[0]


def turned(x, p):
    """z -> e^{i theta} z (1 + mu - (2 + i) |z|^2), in skew coordinates."""
    y = STRAIGHT @ x
    z = y[0] + 1j * y[1]
    z = jnp.exp(0.7j) * z * (1 + p["mu"] - (2 + 1j) * (y @ y))
    return SKEW @ jnp.array([z.real, z.imag])


def cubic(x, p):
    """sign (x + mu (constant + slope x) + square x^2 - cube x^3)."""
    driven = p["mu"] * (p["constant"] + p["slope"] * x)
    return p["sign"] * (x + driven + p["square"] * x**2 - p["cube"] * x**3)


PLAIN = dict.fromkeys(("constant", "slope", "square", "cube"), 0.0) | {"sign": 1.0}
MAPS = {
    "pitchfork": (cubic, PLAIN | {"slope": 1.0, "cube": 2.0}),
    "period_doubling": (cubic, PLAIN | {"sign": -1.0, "slope": 1.0, "cube": 2.0}),
    "neimark_sacker": (turned, {}),
    "fold": (cubic, PLAIN | {"constant": 1.0, "square": 2.0}),
    "transcritical": (cubic, PLAIN | {"slope": 1.0, "square": 2.0}),
}
BOUNDED = "pitchfork", "period_doubling", "neimark_sacker"
NOISE = {1: np.array([[3.0]]), 2: np.array([[3.0, 1.0], [1.0, 2.0]])}  # N covariance


@cache
def law_of(kind):
    """Of a map whose normal form is written down, with mu = 0 the bifurcation."""
    dimension = 2 if kind == "neimark_sacker" else 1
    step, given = MAPS[kind]
    problem = Problem(step, jnp.zeros(dimension), given | {"mu": 0.0}, "mu")
    x = np.full(dimension, -np.sqrt(0.025) if kind == "fold" else 0.0)
    special = first_special(problem, x, -0.05, 0.05)
    return dmft.critical_fluctuations(problem, special, NOISE[dimension])


@partial(jax.jit, static_argnames=("step", "samples"))
def noisy(step, x, factor, key, stride, samples):
    """States (samples, d, runs) of a map with Gaussian noise, so many steps apart."""

    def one(x, key):
        def turn(t, x):
            draws = jax.random.normal(jax.random.fold_in(key, t), x.shape)
            return jax.vmap(step, 1, 1)(x) + factor @ draws

        x = jax.lax.fori_loop(0, stride, turn, x)
        return x, x

    return jax.lax.scan(one, x, jax.random.split(key, samples))[1]


def deviations(law, amplitudes, value, n_spins, bins=12):
    """Of a histogram and of the mean square, in standard errors of independent runs.

    `amplitudes` are (samples, runs).
    """
    r = np.abs(amplitudes)
    mean = float(law.mean_square(value, n_spins))
    edges = np.linspace(0, 2 * mean**0.5, bins + 1)
    signs = 3 - law.components  # p is of both signs where it is real
    expected = [
        signs * quad(lambda r: float(law.density(r, value, n_spins)), *pair)[0]
        for pair in itertools.pairwise(edges)
    ]
    counted = np.array([np.histogram(x, edges)[0] for x in r.T]) / len(r)
    seen = np.column_stack([counted, (r**2).mean(0)])
    often = np.append(np.array(expected) > 0.005, True)
    seen, expected = seen[:, often], np.append(expected, mean)[often]
    return (seen.mean(0) - expected) / (seen.std(0, ddof=1) / len(seen) ** 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("mu", [-0.002, 0.0, 0.004])
@pytest.mark.parametrize("kind", BOUNDED)
def test_a_noisy_map_has_the_density(kind, mu):
    """Histograms of 300 runs; corrections are of the relative order 10^-3."""
    law, n = law_of(kind), 10**6
    noise = NOISE[len(law.x)]
    step = lambda x: MAPS[kind][0](x, MAPS[kind][1] | {"mu": mu})
    start = jnp.zeros((len(law.x), 300))
    factor = np.linalg.cholesky(noise / n)
    states = noisy(step, start, factor, jax.random.key(1), 80, 200)[40:]
    amplitudes = law.amplitude(np.moveaxis(np.asarray(states), 1, 0))
    z = deviations(law, amplitudes, mu, n)
    assert np.abs(z).max() < threshold(z.size * 9), z


@pytest.mark.parametrize("kind", BOUNDED)
def test_coefficients_do_not_depend_on_coordinates(kind):
    """a and D of z, of which q in the coordinates of the map is another multiple."""
    law = law_of(kind)
    noise, unit = NOISE[len(law.x)], 1.0
    if kind == "neimark_sacker":
        noise = np.linalg.solve(SKEW, np.linalg.solve(SKEW, noise).T)
        unit = np.linalg.norm(SKEW @ [1, 1j]) / 2  # of z, with q of length one
    diffusion = np.trace(noise) / len(noise) / 2
    assert law.coefficient * unit**2 == pytest.approx(2, rel=1e-9)
    assert law.diffusion / unit**2 == pytest.approx(diffusion, rel=1e-9)
    assert law.growth == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("kind", BOUNDED)
def test_scaling_is_exact(kind):
    law, r = law_of(kind), np.linspace(0, 3, 40)
    wide, narrow = law.rounding(10**4), law.rounding(10**8)
    assert wide / narrow == pytest.approx(100, rel=1e-12)
    for k in (-3, 0, 2):
        densities = [
            law.density(r / n**0.25, k * law.rounding(n), n) / n**0.25
            for n in (10**4, 10**8)
        ]
        np.testing.assert_allclose(*densities, rtol=1e-9, atol=1e-300)
        squares = [law.mean_square(k * law.rounding(n), n) for n in (10**4, 10**8)]
        assert squares[0] / squares[1] == pytest.approx(100, rel=1e-9)


def test_scaling_at_folds_is_exact():
    for kind, exponent in (("fold", 2 / 3), ("transcritical", 1 / 3)):
        law, sizes = law_of(kind), np.array([10.0**6, 10.0**9])
        widths = law.rounding(sizes)
        assert widths[0] / widths[1] == pytest.approx(1000**exponent, rel=1e-12)
        rates = law.escape_rate(-widths, sizes)
        assert rates[0] / rates[1] == pytest.approx(10, rel=1e-9)


@pytest.mark.parametrize("kind", BOUNDED)
def test_moments_are_their_closed_forms(kind):
    law, n = law_of(kind), 10**10
    a, D, components = law.coefficient, law.diffusion, law.components
    length = (D / a / n) ** 0.5
    point = {1: 2 * gamma(3 / 4) / gamma(1 / 4), 2: 2 / np.pi**0.5}[components]
    assert law.mean_square(0.0, n) == pytest.approx(point * length, rel=1e-12)
    kappa = np.linspace(-12, 12, 49)
    if components == 1:
        z = -kappa / 2**0.5
        expected = pbdv(-1.5, z)[0] / pbdv(-0.5, z)[0] / 2**0.5
    else:  # |z|^2 is Gaussian, cut off at zero
        z = kappa / 2**0.5
        ratio = np.exp(-(z**2) / 2 - log_ndtr(z)) / (2 * np.pi) ** 0.5
        expected = kappa + 2**0.5 * ratio
    found = law.mean_square(kappa * law.rounding(n), n)
    np.testing.assert_allclose(found / length, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", BOUNDED)
def test_far_from_the_point_it_is_a_gaussian_or_a_ring(kind):
    law, n, mu = law_of(kind), 10**9, 0.02
    linear = law.components * law.diffusion / n / mu
    assert law.mean_square(-mu, n) == pytest.approx(linear, rel=1e-3)
    assert law.mean_square(mu, n) == pytest.approx(mu / law.coefficient, rel=1e-3)
    for value in (-mu, 0.0, mu):
        mean = law.mean_square(value, n)
        r = np.linspace(0, 9 * mean**0.5, 200_001)
        p = (3 - law.components) * law.density(r, value, n)  # of both signs where real
        assert np.trapezoid(p, r) == pytest.approx(1, rel=1e-6)
        assert np.trapezoid(r**2 * p, r) == pytest.approx(mean, rel=1e-6)
    ring = law.density((mu / law.coefficient) ** 0.5, mu, n)
    width = (law.diffusion / n / (2 * mu)) ** 0.5
    assert ring * width * (3 - law.components) == pytest.approx(
        (2 * np.pi) ** -0.5, rel=1e-3
    )


@pytest.mark.parametrize("kind", ["pitchfork", "fold"])
def test_diffusion_is_half_the_variance_that_is_given(kind):
    """The critical mode is x itself, so that D = C / 2."""
    assert law_of(kind).diffusion == pytest.approx(NOISE[1].item() / 2, rel=1e-9)


def test_few_spins_and_distances_are_refused_with_the_limit():
    with pytest.raises(ValueError, match="multiplier changes by 0.2 .at most"):
        law_of("pitchfork").density(0.1, 0.2, 10**9)
    with pytest.raises(ValueError, match="holds from"):
        law_of("fold").escape_rate(0.0, 100)


def test_rates_of_escape_are_those_of_the_diffusion():
    """1 / mean time from -inf to inf, the limit of Kramers, and a way without noise."""
    law, n = law_of("fold"), 10**9
    b, noise = law.coefficient, law.diffusion / n
    unit = (noise / b) ** (1 / 3)
    for k in (-1.0, 0.0, 1.5):
        drive = k * law.rounding(n)
        V = lambda x, drive=drive: -(drive * x + b * x**3 / 3) / noise
        time = lambda z, y, V=V: np.exp(V(y * unit) - V(z * unit)) * unit**2 / noise
        expected = dblquad(time, -12, 12, -12, lambda y: y)[0]
        # 1 / x of the way beyond +-12 units is left out, at both ends.
        expected += 2 / (12 * unit * b)
        assert 1 / law.escape_rate(drive, n) == pytest.approx(expected, rel=2e-3)
    far = 12 * law.rounding(n)
    kramers = (far * b) ** 0.5 / np.pi * np.exp(-4 / 3 * (far**3 / b) ** 0.5 / noise)
    assert law.escape_rate(-far, n) == pytest.approx(kramers, rel=5e-3)
    assert law.escape_rate(far, n) == pytest.approx((far * b) ** 0.5 / np.pi, rel=5e-3)
    crossing = law_of("transcritical")
    wide = 2 * (law.rounding(n) * b) ** 0.5
    for value in (wide, -wide):
        expected = law.escape_rate(-law.rounding(n), n)
        assert crossing.escape_rate(value, n) == pytest.approx(expected, rel=1e-9)


def test_a_passage_between_two_amplitudes_takes_its_time():
    """The double integral of the diffusion, and the escape where both are far away."""
    law, n = law_of("fold"), 10**8
    unit = law.coefficient * law.length(n)
    for kappa, (start, end) in ((-1.5, (-3, 3)), (0.0, (-1, 0.5)), (2.0, (0, 4))):
        value = kappa * law.rounding(n)
        inside = lambda z, y, k=kappa: np.exp(k * (z - y) + (z**3 - y**3) / 3)
        expected, _ = dblquad(inside, start, end, lambda y: -8.0, lambda y: y)
        time = float(law.passage_time(value, n, start, end))
        assert time * unit == pytest.approx(expected, rel=1e-6)
        wide = law.passage_time(value, n, -1e5, 1e5) * law.escape_rate(value, n)
        assert wide == pytest.approx(1, abs=3e-5)
    with pytest.raises(ValueError, match="that of a fold; got a pitchfork"):
        law_of("pitchfork").passage_time(0.0, n, -3, 3)


@pytest.mark.parametrize("sign", [1, -1])
def test_amplitudes_beside_a_fold_grow_on_the_way_out(sign):
    """Whichever way the map bends."""
    given = PLAIN | {"constant": 1.0, "square": 2.0 * sign}
    problem = Problem(cubic, jnp.zeros(1), given | {"mu": 0.0}, "mu")
    rest = np.array([-sign * np.sqrt(0.025)])
    special = first_special(problem, rest, -sign * 0.05, sign * 0.05)
    law = dmft.critical_fluctuations(problem, special, np.eye(1))
    assert np.sign(law.growth) == sign and law.coefficient == pytest.approx(2)
    x = np.array([[sign * 0.1, sign * 0.2]])
    assert law.amplitude(x) == pytest.approx([0.1, 0.2], rel=1e-6)
    assert law.vector @ law.adjoint == pytest.approx(1)


@cache
def published():
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    parameters = {"beta": 1.2, "gamma": file.gamma, "epsilon": file.epsilon}
    turn = dmft.strobe(net, file.epsilon)
    problem = Problem(turn, jnp.zeros(12), parameters, "beta")
    start = find_cycle(problem, jnp.zeros(12), 1.2)
    return file.patterns, net, problem, first_special(problem, start.x, 1.2, 1.3)


@cache
def opposed():
    """Two patterns of eight classes, the values mostly opposed to the outputs."""
    rng = np.random.default_rng(49)
    signs = rng.choice([-1.0, 1.0], (4, 2, 8))
    signs[1] = np.where(rng.random((2, 8)) < 0.8, -signs[0], signs[1])
    code = rng.choice([-1.0, 1.0], (4, 2, 2))
    patterns = dmft.site_classes(signs, positional=code)
    net = dmft.network(patterns, context=2)
    parameters = {"beta": 0.0, "gamma": 20.0, "epsilon": 0.3}
    problem = Problem(dmft.strobe(net, 0.3), jnp.zeros(4), parameters, "beta")
    start = find_cycle(problem, jnp.zeros(4), 0.0)
    return patterns, net, problem, first_special(problem, start.x, 0.0, 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("network", [published, opposed])
def test_below_the_point_it_is_the_linear_noise(network):
    """Of the overlaps: mu times the variance tends to its critical part."""
    patterns, net, problem, special = network()
    law = dmft.critical_fluctuations(problem, special)
    n, given = 10**14, {k: float(v) for k, v in problem.parameters.items()}
    found, critical = [], np.zeros(0)
    for distance in (0.02, 0.01):
        beta = special.value - distance / law.growth
        cycle = find_cycle(problem, special.x, beta)
        params = dmft.parameters(beta, given["gamma"], given["epsilon"])
        window = cycle.x.reshape(net.context, -1)
        state = dmft.from_window(net, params, window, 0)
        band = dmft.linear_noise(net, patterns, params, state, steps=800 * law.steps)
        variance = np.asarray(band.std.m_o_se)[-law.steps :] ** 2
        critical = n * law.overlap_variance(beta, n)
        found.append(variance / critical)
    large = critical > 0.05 * critical.max()
    limit = (2 * found[1] - found[0])[large]
    assert np.abs(found[1][large] - 1).max() < 0.1
    assert np.abs(limit - 1).max() < 5e-4


@pytest.mark.slow
def test_a_doubling_is_a_pitchfork_of_the_map_taken_twice():
    _, _, problem, special = opposed()
    once = dmft.critical_fluctuations(problem, special)
    twice = problem.with_period(2)
    start = find_cycle(twice, special.x, special.value - 0.1)
    found = first_special(twice, start.x, special.value - 0.1, special.value + 0.1)
    law = dmft.critical_fluctuations(twice, found)
    assert (once.kind, law.kind) == ("period_doubling", "pitchfork")
    assert law.steps == 2 * once.steps
    n, values = 10**7, special.value + np.array([-0.001, 0.0, 0.002])
    squares = law.mean_square(values, n), once.mean_square(values, n)
    np.testing.assert_allclose(*squares, rtol=1e-6)
    rates = law.coefficient / law.diffusion, once.coefficient / once.diffusion
    assert rates[0] == pytest.approx(rates[1], rel=1e-6)
    assert law.diffusion == pytest.approx(2 * once.diffusion, rel=1e-6)


@partial(jax.jit, static_argnames="samples")
def windows_of_spins(net, params, state, counts, key, stride, samples):
    def draw(state, key):
        chance = (1 + next_means(net, params, state.newest, None)) / 2
        lanes = address(seed_words(key), jnp.arange(chance.size, dtype=jnp.uint32))
        lanes = tuple(x.reshape(chance.shape) for x in lanes)
        means = 2 * any_count(lanes, counts[:, None], chance) / counts[:, None]
        overlaps = dmft.token_overlaps(net, params, means - 1, state.clock)
        return dmft.receive(net, params, state, overlaps)

    def one(state, key):
        turn = lambda t, state: draw(state, jax.random.fold_in(key, t))
        state = jax.lax.fori_loop(0, stride, turn, state)
        return state, dmft.window(state).reshape(net.dimension, -1)

    return jax.lax.scan(one, state, jax.random.split(key, samples))[1]


@pytest.mark.slow
def test_spins_of_the_published_network_have_the_law_at_its_torus():
    """10^6 spins, about: 48 runs over 20 relaxation times after 4."""
    patterns, net, problem, special = published()
    law, n = dmft.critical_fluctuations(problem, special), 999_999
    assert law.coefficient == pytest.approx(2.60775, rel=1e-5)
    gamma_, epsilon = (float(problem.parameters[k]) for k in ("gamma", "epsilon"))
    params = dmft.parameters(np.full(48, special.value), gamma_, epsilon)
    state = dmft.from_window(net, params, special.x.reshape(4, 3, 1), 0)
    counts = class_counts(patterns, n).astype(float)
    stride = 4 * int(0.1 / law.growth / law.rounding(n))
    given = net, params, state, counts, jax.random.key(5), stride
    windows = np.asarray(windows_of_spins(*given, samples=240))[40:]
    amplitudes = law.amplitude(np.moveaxis(windows, 1, 0))
    z = deviations(law, amplitudes, special.value, n, bins=8)
    assert np.abs(z).max() < threshold(z.size), z


@pytest.mark.slow
def test_what_has_no_law_is_refused():
    subcritical = lambda x, p: (1 + p["mu"]) * x + 2 * x**3
    saddle = lambda x, p: jnp.array([(1 + p["mu"]) * x[0] - x[0] ** 3, 2 * x[1]])
    for step, d, words in ((subcritical, 1, "supercritical"), (saddle, 2, "no other")):
        problem = Problem(step, jnp.zeros(d), {"mu": 0.0}, "mu")
        special = first_special(problem, np.zeros(d), -0.05, 0.05)
        with pytest.raises(ValueError, match=words):
            dmft.critical_fluctuations(problem, special, np.eye(d))
    with pytest.raises(ValueError, match="noise must be given"):
        step, given = MAPS["pitchfork"]
        problem = Problem(step, jnp.zeros(1), given | {"mu": 0.0}, "mu")
        special = first_special(problem, np.zeros(1), -0.05, 0.05)
        dmft.critical_fluctuations(problem, special)
    with pytest.raises(ValueError, match="noise must be a covariance matrix"):
        dmft.critical_fluctuations(problem, special, np.eye(2))
    law = law_of("fold")
    with pytest.raises(ValueError, match="take escape_rate"):
        law.density(0.0, 0.0, 10**9)
    with pytest.raises(ValueError, match="take escape_rate"):
        law.mean_square(0.0, 10**9)
    with pytest.raises(ValueError, match="that of a fold"):
        law_of("pitchfork").escape_rate(0.0, 10**9)
    with pytest.raises(ValueError, match="of a network"):
        law_of("pitchfork").overlap_variance(0.0, 10**9)


def test_beside_a_fold_no_amplitude_is_made_up():
    """The cycle has no slope in the parameter there, and none is taken for zero."""
    law = law_of("fold")
    assert np.isfinite(law.amplitude(law.x))
    assert np.isnan(law.amplitude(law.x, law.value + 0.01))
