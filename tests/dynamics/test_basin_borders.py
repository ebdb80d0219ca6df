"""Entropy, uncertainty and merging of basins against exact and published values."""

import numpy as np
import pytest

from statmech_attn import dynamics


FIVE = 1 - np.log(3) / np.log(5)  # three branches of slope five


def five_branched(x):
    """Where points of [-1, 1] leave a map of three branches of slope 5 with two gaps.

    Those that never leave are a Cantor set, the border of both gaps' basins.
    """
    label = np.full(x.shape, -1)
    while (inside := label < 0).any():
        y = x[inside]
        code = np.where(
            abs(y) > 1, -1, np.where((abs(y) > 0.2) & (abs(y) < 0.6), 2, -1)
        )
        side = (y > 0).astype(int)
        label[inside] = np.where(code == 2, side, np.where(abs(y) > 1, side, -1))
        x = np.where(label < 0, 5 * (x - 0.8 * np.round(x / 0.8)), x)
    return label


def newton(n):
    """Roots of z^3 = 1 that Newton's method finds from a square."""
    axis = np.linspace(-2, 2, n) + 1e-3
    z = axis + 1j * axis[:, None]
    for _ in range(60):
        z = z - (z**3 - 1) / (3 * z**2)
    return np.argmin(abs(z[..., None] - np.exp(2j * np.pi * np.arange(3) / 3)), axis=2)


def test_entropy_of_a_straight_border_is_that_of_its_boxes():
    basin = np.zeros((20, 30), int)
    basin[:, 13:] = 1  # in the boxes of five columns 10 to 14, three of one basin
    of_box = -(0.6 * np.log(0.6) + 0.4 * np.log(0.4))
    entropy = dynamics.basin_entropy(basin, box=5)
    assert entropy.border == pytest.approx(of_box, rel=1e-14)
    assert entropy.share == pytest.approx(1 / 6, rel=1e-14)
    assert entropy.entropy == pytest.approx(of_box / 6, rel=1e-14)
    basin[0, 10] = -1  # one box is left out
    assert dynamics.basin_entropy(basin, box=5).share == pytest.approx(3 / 23)


def test_a_straight_border_has_the_exponent_one():
    basin = np.zeros((64, 512), int)
    basin[:, 200:] = 1
    border = dynamics.uncertainty_exponent(basin, longest=16)
    assert border.exponent == pytest.approx(1.0, abs=1e-12)
    assert border.dimension == pytest.approx(1.0, abs=1e-12)
    assert border.share == pytest.approx(2 * border.distance / (512 - 2 * 16))
    unknown = basin.copy()
    unknown[:, 200:210] = -1  # has no basin, and is no border
    with pytest.raises(ValueError, match="no border"):
        dynamics.uncertainty_exponent(unknown, longest=8)


def test_exponent_of_a_cantor_border_and_its_error():
    """Of 100 grids that know nothing of the powers of five."""
    random = np.random.default_rng(0)
    deviations = []
    for before, after in random.uniform(0, 0.1, (100, 2)):
        basin = five_branched(np.linspace(-1 - before, 1 + after, 20_000))
        border = dynamics.uncertainty_exponent(basin)
        deviations.append((border.exponent - FIVE) / border.stderr)
    assert np.mean(np.square(deviations)) < 1.5
    assert np.abs(deviations).max() < 4
    assert border.stderr < 0.1
    assert border.dimension == 1 - border.exponent


def test_errors_by_blocks_are_the_scatter_over_independent_grids():
    """Labels that know nothing of each other: shares of 1/2 at every distance."""
    random = np.random.default_rng(0)
    borders = [
        dynamics.uncertainty_exponent(random.integers(2, size=4000), longest=32)
        for _ in range(100)
    ]
    scatter = np.std([border.exponent for border in borders], ddof=1)
    errors = np.mean([border.statistical for border in borders])
    assert abs(errors / scatter - 1) < 4 / np.sqrt(2 * 99)


def test_errors_of_stripes_do_not_depend_on_their_direction():
    """Stripes beside each other scatter, one stripe along itself does not."""
    columns = np.random.default_rng(0).integers(2, size=400)
    basin = np.repeat(columns[None], 300, axis=0)
    along, across = map(dynamics.uncertainty_exponent, (basin, basin.T))
    alone = dynamics.uncertainty_exponent(columns, longest=32)
    assert along.exponent == across.exponent
    assert along.statistical == across.statistical == alone.statistical > 0.01


def test_an_exponent_that_changes_with_distance_has_an_error():
    """Stripes: one at short distances, and none beyond their width."""
    stripes = np.repeat(np.arange(300) % 2, 48)
    border = dynamics.uncertainty_exponent(stripes, longest=256)
    assert border.statistical < 0.02
    assert abs(border.exponent - 1) < 4 * border.stderr
    assert border.stderr > 0.2


def test_basins_of_newton_are_wada_and_fractal_and_stripes_are_not():
    fine, coarse = newton(400), newton(200)
    assert dynamics.wada_distance(fine) < 6
    assert dynamics.wada_distance(coarse) < 6
    assert dynamics.basin_entropy(fine).border > np.log(2)
    stripes = np.repeat([[0, 1, 2]], 40, axis=0).repeat(30, axis=1)
    # Borders are two cells wide: from the far one of one to the near one of the other.
    assert dynamics.wada_distance(stripes) == 30
    assert dynamics.wada_distance(stripes.T) == 30


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda x: dynamics.basin_entropy(x, box=1), r"box must lie in 2\.\.8; got 1"),
        (lambda x: dynamics.basin_entropy(x, box=9), r"box must lie in 2\.\.8; got 9"),
        (dynamics.uncertainty_exponent, "need 3, each twice"),
        (dynamics.wada_distance, "basin must have three labels or more; got 1"),
    ],
)
def test_grids_that_tell_nothing_are_refused_in_a_line(ask, words):
    with pytest.raises(ValueError, match=words):
        ask(np.zeros((8, 8), int))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "ask",
    [dynamics.basin_entropy, dynamics.uncertainty_exponent, dynamics.wada_distance],
)
def test_labels_that_are_missing_are_no_basin(ask):
    missing = np.where(np.eye(64), np.nan, 1.0)
    with pytest.raises(ValueError, match="basin must hold whole numbers.*of float64"):
        ask(missing)
    with pytest.raises(ValueError, match="basin must"):
        dynamics.basin_entropy(np.zeros(64, int))
