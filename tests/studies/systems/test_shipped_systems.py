"""Worked examples of systems of one's own, simulations/systems: what each must show."""

import importlib.util
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import iv

from statmech_attn import dynamics, statistics, studies


FOLDER = pathlib.Path(__file__).resolve().parents[3] / "simulations" / "systems"
FLIP = 1.27846454276  # of the square, at gamma = 1
QUICK = ["run.transient=300", "run.steps=300", "run.exponents=0"]
SMALL = {  # overrides that leave a second of work, and no exponents to compile
    "henon": [*QUICK, "parameters.a.num=2", "run.refine=0"],
    "standard_map": [
        *QUICK,
        "parameters.K.num=2",
        "run.starts=3",
    ],
    "logistic_lattice": ["run.transient=300", "run.steps=50"],
    "lorenz": [*QUICK, "parameters.rho=[24.0, 28.0]", "run.steps=2000"],
    "tanh_network": [
        *QUICK,
        "parameters.g.num=2",
        "run.transient=1000",
        "run.compiler=xla",
    ],
    "repulsive_attention": [
        *QUICK,
        "parameters.beta=[0.5, 3.0]",
        "parameters.gamma=1.0",
        "system.shown=R",
        "run.refine=0",
    ],
    "equiangular_attention": [*QUICK, "parameters.beta=[0.0, 6.0]"],
    "noisy_attention": [*QUICK, "parameters.noise=[0.2, 0.5]", "run.compiler=xla"],
}


def run(name, *settings):
    return studies.run(studies.load(FOLDER / f"{name}.toml", settings)[0])


def points_of(samples) -> int:
    """Different values of a recorded observable."""
    return len(np.unique(np.round(samples, 9)))


def henon_has_a_cycle_of_four_and_chaos(found):
    assert points_of(found.strobe[0]) == 4 and points_of(found.strobe[1]) == 64


def a_kick_of_zero_keeps_the_momentum(found):
    assert [points_of(start) for start in found.strobe[0]] == [1, 1, 1]
    assert min(points_of(start) for start in found.strobe[1]) > 1
    assert found.strobe.dims == ("K", "start", "strobe_sample")


def sites_of_the_lattice_stay_bounded_and_differ(found):
    assert found.observed.dims == ("a", "time", "observable")
    assert (np.abs(found.observed) <= 1).all()
    assert found.sizes["observable"] == 64
    assert len(np.unique(found.observed[-1, -1])) == 64
    assert str(found.observable.values[63]) == "x_64"


def lorenz_crosses_the_section_in_both_wings(found):
    crossings = found.section.sel(rho=28.0).values
    assert 50 < float(found.section_count.sel(rho=28.0))
    assert (crossings > 0).any() and (crossings < 0).any()
    assert np.nanmax(np.abs(crossings)) < 20


def the_network_is_silent_at_half_the_gain(found):
    silent, active = found.strobe.values
    assert np.abs(silent).max() < 1e-9 < np.ptp(active)


def the_square_has_no_mean_below_the_flip(found):
    assert np.abs(found.strobe.sel(beta=0.5)).max() < 1e-9


def tokens_on_the_sphere_meet(found):
    np.testing.assert_allclose(found.strobe, 1.0, atol=1e-9)


def noisy_tokens_are_as_ordered_as_their_density_at_rest(found):
    np.testing.assert_allclose(found.strobe.sel(noise=0.2), at_rest(0.2)[0], atol=1e-9)
    assert np.abs(found.strobe.sel(noise=0.5)).max() < 1e-6


def at_rest(noise: float, modes: int = 1) -> np.ndarray:
    """⟨cos kθ⟩ of a density f ∝ (e^cos * f)^(1/noise), iterated until it is at rest."""
    angles = 2 * np.pi * np.arange(64) / 64
    kernel, f = np.exp(np.cos(angles[:, None] - angles)), 1 + np.cos(angles)
    for _ in range(20_000):
        f = (kernel @ f / f.sum()) ** (1 / noise)
    return np.cos(np.outer(np.arange(1, 1 + modes), angles)) @ f / f.sum()


CLAIMS = [
    ("henon", henon_has_a_cycle_of_four_and_chaos),
    ("standard_map", a_kick_of_zero_keeps_the_momentum),
    ("logistic_lattice", sites_of_the_lattice_stay_bounded_and_differ),
    ("lorenz", lorenz_crosses_the_section_in_both_wings),
    ("tanh_network", the_network_is_silent_at_half_the_gain),
    ("repulsive_attention", the_square_has_no_mean_below_the_flip),
    ("equiangular_attention", tokens_on_the_sphere_meet),
    ("noisy_attention", noisy_tokens_are_as_ordered_as_their_density_at_rest),
]


FIRST = ("henon", "standard_map", "logistic_lattice")


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        pytest.param(*row, marks=() if row[0] in FIRST else pytest.mark.slow)
        for row in CLAIMS
    ],
)
def test_each_shows_what_is_known_of_it(name, claim):
    claim(run(name, *SMALL[name]))


def module_of(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def attention():
    return module_of("repulsive_attention")


def test_modes_of_the_polygon_flip_where_the_formula_says(attention, tokens=5):
    polygon = 2 * jnp.pi * jnp.arange(1, tokens) / tokens
    step = jax.jit(attention.step)
    jacobian = jax.jit(jax.jacfwd(attention.step))
    for mode in range(1, tokens // 2 + 1):
        gamma = attention.flip(tokens, mode, 0.8)
        after = step(polygon, {"beta": 0.8, "gamma": gamma})
        np.testing.assert_allclose(after, polygon, atol=1e-14)
        multipliers = np.linalg.eigvals(
            jacobian(polygon, {"beta": 0.8, "gamma": gamma})
        )
        flipped = np.abs(multipliers + 1) < 1e-10
        assert flipped.sum() == (1 if 2 * mode == tokens else 2)


def test_the_square_flips_at_the_number_of_the_issue(attention):
    beta = brentq(lambda beta: float(attention.flip(4, 2, beta)) - 1, 0.5, 2.0)
    assert beta == pytest.approx(FLIP, abs=1e-11)


@pytest.mark.slow
def test_continuation_finds_the_flip_and_its_curve(attention):
    found = run("repulsive_attention_flip")
    kinds = found.special_kind.attrs["flag_meanings"].split()
    assert kinds[int(found.special_kind[0])] == "period_doubling"
    assert float(found.special_beta[0]) == pytest.approx(FLIP, abs=1e-10)
    curve = found.isel(curve=0)
    beta, gamma = curve.curve_beta.values, curve.curve_gamma.values
    there = np.isfinite(beta)
    expected = [float(attention.flip(4, 2, b)) for b in beta[there]]
    np.testing.assert_allclose(gamma[there], expected, rtol=1e-9)
    assert there.sum() > 10
    assert found.branch_period.values.tolist() == [1, 2]
    assert float(found.beta.max()) == pytest.approx(3.0)
    ends = found.branch_result.attrs["flag_meanings"].split()
    met = {ends[int(end)] for end in found.branch_result.values.ravel()}
    assert met == {"left_range", "closed"}


def test_rates_of_tokens_that_meet_on_the_sphere():
    """-2, or -2 e^β not normalised; at the simplex, and of the tokens themselves."""
    sphere, p = module_of("equiangular_attention"), {"beta": 1.3, "tokens": 4.0}
    near = lambda found, expected: np.testing.assert_allclose(
        found, expected, atol=1e-9
    )
    slope = lambda field, at: jax.jit(jax.jacfwd(field))(at, p)
    near(slope(sphere.field, 1.0), -2)
    near(slope(sphere.unnormalised, 1.0), -2 * np.exp(1.3))
    weight = np.exp(-1.3 / 3)
    near(slope(sphere.field, -1 / 3), 8 * weight / (np.exp(1.3) + 3 * weight))
    met = np.tile([0.0, 0.6, 0.8], (4, 1))  # turned together, apart, in length
    rates = np.linalg.eigvals(slope(sphere.tokens, met).reshape(12, 12))
    near(np.sort_complex(rates)[::-1], 2 * [0] + 6 * [-1] + 4 * [-2])


def test_tokens_with_equal_products_keep_them_equal():
    sphere, p = module_of("equiangular_attention"), {"beta": 1.3, "tokens": 4.0}
    flow = lambda field: dynamics.flow(field, time=0.7, substeps=20)
    product = flow(sphere.field).step(jnp.array(0.0), p)
    x = flow(sphere.tokens).step(jnp.eye(4), p)
    expected = np.full((4, 4), product) + (1 - product) * np.eye(4)
    np.testing.assert_allclose(x @ x.T, expected, atol=1e-10)


def test_modes_of_uniform_noisy_tokens_have_the_rates_of_the_formula():
    circle, k = module_of("noisy_attention"), np.arange(1, 17)
    slope = jax.jit(jax.jacfwd(circle.field))
    for beta in (0.5, 3.0):
        expected = k**2 * (iv(k, beta) / iv(0, beta) / beta - 0.2)
        slopes = slope(np.zeros(16), {"beta": beta, "noise": 0.2})
        np.testing.assert_allclose(slopes, np.diag(expected), atol=1e-9)


def test_a_density_at_rest_does_not_move():
    circle, m = module_of("noisy_attention"), at_rest(0.2, modes=16)
    rates = jax.jit(circle.field)(m, {"beta": 1.0, "noise": 0.2})
    np.testing.assert_allclose(rates, 0, atol=1e-9)


def test_order_of_noisy_tokens_begins_as_the_expansion_says():
    """Continuously; what is left out is of the next order in the distance."""
    kappa = iv(np.arange(1, 3), 1.0) / iv(0, 1.0)
    errors = []
    for distance in (0.002, 0.001):
        p = 1 / (kappa[0] - distance)
        bracket = p + 2 - (p - 1) * p * kappa[1] / (1 - p * kappa[1])
        squared = (p * kappa[0] - 1) * 2 * p**2 / (p - 1) / bracket
        errors.append(at_rest(kappa[0] - distance)[0] ** 2 / squared - 1)
    assert abs(errors[1]) < 0.01
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.05)


@pytest.mark.slow
def test_order_of_noisy_tokens_is_that_of_their_density():
    """Of 50 and 100 tokens, the difference being of order 1/N."""
    circle = module_of("noisy_attention")
    system = dynamics.System(circle.step, observe=circle.order)
    means, errors = [], []
    for n in (50, 100):
        state = (jnp.zeros(n), jnp.array(0))
        series = dynamics.orbit(
            system, state, {"beta": 1.0, "noise": 0.2}, samples=40_000, transient=1000
        )
        means.append(float(series.mean()))
        errors.append(float(statistics.block_stderr(np.asarray(series)[:, 0])))
    error = np.hypot(errors[0], 2 * errors[1])
    off = (2 * means[1] - means[0] - at_rest(0.2)[0]) / error
    assert abs(off) < statistics.threshold(1)
