"""Covariant Lyapunov vectors: exact ones, covariance, angles and tangencies."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import subspace_angles

from statmech_attn import dynamics
from statmech_attn.dynamics.maps.catalogue import henon


CAT = np.array([[3.0, 1.0], [2.0, 1.0]])
START = jnp.array([0.1, 0.234])


def cat(x, bend=0.0):
    """A hyperbolic map of the torus; the bend keeps its area and moves its vectors."""
    sheared = x + jnp.array([0.0, bend]) * jnp.sin(2 * jnp.pi * x[0])
    return (jnp.asarray(CAT) @ sheared) % 1


def lattice(x):
    """Three logistic maps, each with its neighbours."""
    mapped = 3.9 * x * (1 - x)
    return 0.9 * mapped + 0.05 * (jnp.roll(mapped, 1) + jnp.roll(mapped, -1))


def same_direction(a, b):
    """Largest difference of columns of length one, whatever their signs."""
    return abs(a - b * np.sign(np.sum(a * b, axis=-2, keepdims=True))).max()


@pytest.fixture(scope="module")
def of_henon():
    return dynamics.covariant_vectors(
        henon, jnp.array([0.1, 0.2]), steps=100_000, transient=1000, piece=1
    )


def linear(x, matrix):
    return (matrix @ x) % 1


def test_vectors_of_a_linear_map_are_its_eigenvectors():
    vectors = dynamics.covariant_vectors(linear, START, jnp.array(CAT), steps=100)
    values, directions = np.linalg.eig(CAT)
    order = np.argsort(-values)
    directions = directions[:, order]
    assert vectors.exponents == pytest.approx(np.log(values[order]), abs=1e-13)
    assert same_direction(vectors.vectors, directions) < 1e-13
    angle = np.arccos(abs(directions[:, 0] @ directions[:, 1]))
    assert vectors.angles == pytest.approx(np.full(100, angle), abs=1e-13)


def test_the_map_takes_vectors_to_vectors(of_henon):
    x, v = of_henon.states, of_henon.vectors
    jacobian = np.zeros((len(x), 2, 2))
    jacobian[:, 0, 0], jacobian[:, 0, 1], jacobian[:, 1, 0] = -2.8 * x[:, 0], 1.0, 0.3
    pushed = jacobian @ v
    lengths = np.linalg.norm(pushed, axis=1)
    assert same_direction(pushed[:-1] / lengths[:-1, None], v[1:]) < 1e-10
    # Rounding of the contracting vector, whose neighbours grow away from it.
    assert of_henon.exponents == pytest.approx(np.log(lengths).mean(axis=0), abs=1e-11)


def test_exponents_are_those_of_the_spectrum_and_errors_their_scatter(of_henon):
    assert abs(of_henon.exponents[0] - 0.41922) < 4 * of_henon.stderr[0]
    # |det V| is the sine of the angle, at the ends of the window alone.
    ends = abs(np.log(np.sin(of_henon.angles.min()))) / len(of_henon.angles)
    assert sum(of_henon.exponents) == pytest.approx(np.log(0.3), abs=ends)


def test_angles_of_henon_come_near_zero_as_they_do_at_tangencies(of_henon):
    """Angles of the attractor come as close to zero as there are many of them."""
    power, error = of_henon.tangency()
    assert abs(power - 1) < 4 * error
    assert error < 0.1
    assert of_henon.angles.min() < 1e-3


@pytest.mark.slow
def test_tangencies_of_henon_and_none_of_a_bent_cat_map(of_henon):
    assert of_henon.tangency()[0] < 2
    bent = dynamics.covariant_vectors(lambda x: cat(x, 0.05), START, steps=100_000)
    power, error = bent.tangency()
    assert power > 10
    assert bent.angles.min() > 0.9 * bent.angles[:10_000].min() > 0.5


def test_powers_of_independent_angles_scatter_as_their_errors_say():
    """200 sets of 10^4 angles with the density 3 theta^2, of which 101 count."""
    none, draws = (
        np.zeros((1, 2, 1)),
        np.random.default_rng(1).uniform(size=(200, 10**4)),
    )
    line = none[0, 0], none[0, 0]
    rest = {"states": none[..., 0], "vectors": none, "split": 1, "piece": 1}
    powers, errors = np.transpose(
        [
            dynamics.CovariantVectors(*line, angles, **rest).tangency()
            for angles in draws ** (1 / 3)
        ]
    )
    scatter = powers.std(ddof=1)
    bias = 100 / 99  # of one over a mean of 100 exponential numbers
    assert abs(powers.mean() - 3 * bias) < 4 * scatter / np.sqrt(200)
    assert abs(errors.mean() / scatter - 1) < 4 / np.sqrt(2 * 199)


@pytest.mark.slow
def test_angles_of_subspaces_are_those_of_scipy_and_pieces_change_nothing():
    start = jnp.array([0.3, 0.31, 0.5])
    cut = {piece: _lattice(start, piece) for piece in (1, 7)}
    together, apart = cut[1], cut[7]
    for v, angle in zip(together.vectors[:50], together.angles[:50]):
        assert angle == pytest.approx(
            subspace_angles(v[:, :2], v[:, 2:]).min(), abs=1e-12
        )
    assert same_direction(together.vectors[:700:7], apart.vectors) < 1e-9
    assert together.angles == pytest.approx(apart.angles[:700], abs=1e-9)
    spectrum = dynamics.lyapunov_spectrum(lattice, start, steps=20_000, transient=100)
    allowed = 4 * np.hypot(together.stderr, np.asarray(spectrum.stderr))
    assert (abs(together.exponents - np.asarray(spectrum.exponents)) < allowed).all()


def _lattice(start, piece):
    options = {"steps": 700, "transient": 100, "split": 2, "piece": piece}
    return dynamics.covariant_vectors(lattice, start, **options)


def test_where_nothing_expands_there_is_no_angle():
    vectors = dynamics.covariant_vectors(linear, START, jnp.eye(2) / 2, steps=100)
    assert vectors.split == 0
    assert np.isnan(vectors.angles).all()
    assert np.isnan(vectors.tangency()).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"split": 2}, r"split must lie in 1\.\.1; got 2\."),
        ({"exponents": 3}, r"exponents must lie in 1\.\.2; got 3\."),
        ({"piece": 0}, "piece must be at least 1"),
    ],
)
def test_wrong_counts_are_refused_in_a_line(options, words):
    with pytest.raises(ValueError, match=words):
        dynamics.covariant_vectors(henon, START, steps=10, **options)


def test_a_direction_that_collapses_is_refused():
    flat = lambda x: jnp.stack([4 * x[0] * (1 - x[0]), 1.0])
    with pytest.raises(ValueError, match=r"exponents must lie in 1\.\.1"):
        dynamics.covariant_vectors(flat, START, steps=10, exponents=2)
    hidden = lambda x: jnp.stack([4 * x[0] * (1 - x[0]), 1e-18 * x[1]])
    with pytest.raises(ValueError, match="vector 2 has no direction"):
        dynamics.covariant_vectors(hidden, START, steps=10)
    with pytest.raises(ValueError, match="the orbit diverges"):
        dynamics.covariant_vectors(lambda x: x**3, jnp.array([2.0, 3.0]), steps=20)


def test_a_parameter_that_is_misspelt_is_refused():
    with pytest.raises(ValueError, match="asks for the parameter 'a'"):
        dynamics.covariant_vectors(lambda x, p: p["a"] * x, START, {"b": 1.4}, steps=10)
