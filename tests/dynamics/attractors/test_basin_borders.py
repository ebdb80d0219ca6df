"""Entropy of basins against exact values."""

import numpy as np
import pytest

from statmech_attn import dynamics


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


def test_basins_of_newton_have_a_fractal_border():
    assert dynamics.basin_entropy(newton(400)).border > np.log(2)


@pytest.mark.parametrize("box", [1, 9])
def test_boxes_that_do_not_fit_are_refused_in_a_line(box):
    with pytest.raises(ValueError, match=rf"box must lie in 2\.\.8; got {box}"):
        dynamics.basin_entropy(np.zeros((8, 8), int), box=box)


@pytest.mark.usefixtures("unchecked")
def test_labels_that_are_missing_are_no_basin():
    missing = np.where(np.eye(64), np.nan, 1.0)
    with pytest.raises(ValueError, match="basin must be an array of whole numbers"):
        dynamics.basin_entropy(missing)
    with pytest.raises(ValueError, match="basin must"):
        dynamics.basin_entropy(np.zeros(64, int))
