"""Refined grids on labels that are known everywhere."""

import numpy as np
import pytest

from statmech_attn.dynamics.diagrams.refinement import Cells, fill, Grid, refine_axis


def disc(grid):
    """1 inside a disc, 2 on a thin ring around it, 0 outside."""
    axes = [np.linspace(-1, 1, n) for n in grid.finest]
    radius = np.sqrt(sum(x**2 for x in np.meshgrid(*axes, indexing="ij")))
    return np.where(radius < 0.6, 1, np.where(radius < 0.66, 2, 0))


def refine(grid, compute):
    """Indices of the points that are computed until no halved cell is left undone."""
    cells, new, computed = Cells(grid), grid.coarse(), []
    while len(new):
        cells.put(new, compute(new))
        computed.append(new)
        new = cells.halve()
    return np.concatenate(computed)


def refined(grid, labels, chunk=None, seed=0):
    """Refine known labels, each request in random chunks."""
    rng, asked = np.random.default_rng(seed), []

    def compute(index):
        parts = (
            [index]
            if chunk is None
            else np.array_split(
                rng.permutation(len(index)), max(1, len(index) // chunk)
            )
        )
        if chunk is None:
            asked.append(index)
        else:
            asked.extend(index[part] for part in parts)
        return labels[tuple(index.T)][:, None]

    return refine(grid, compute), asked


@pytest.mark.parametrize("grid", [Grid((9, 7), 3), Grid((17,), 4), Grid((3, 3, 4), 2)])
def test_no_cell_is_left_with_two_labels_unless_it_is_finest(grid):
    labels = disc(grid)
    index, _ = refined(grid, labels)
    assert len(np.unique(index, axis=0)) == len(index)
    known = np.zeros(grid.finest, bool)
    known[tuple(index.T)] = True
    # Every two neighbours on the finest grid that differ and bound a computed cell
    # are both computed, and what was filled in is right wherever the rule holds.
    filled = fill(grid, index, labels[tuple(index.T)])
    np.testing.assert_array_equal(filled[known], labels[known])
    for axis in range(labels.ndim):
        a, b = (np.take(known, r, axis) for r in _pairs(labels.shape[axis]))
        fa, fb = (np.take(filled, r, axis) for r in _pairs(labels.shape[axis]))
        assert ((fa == fb) | (a & b)).all()
    assert len(index) < labels.size


def _pairs(n):
    return np.arange(n - 1), np.arange(1, n)


def test_a_boundary_is_found_in_full_and_the_cost_is_that_of_a_line():
    fractions = []
    for levels in (2, 3, 4, 5):
        grid = Grid((11, 11), levels)
        labels = disc(grid)
        index, _ = refined(grid, labels)
        filled = fill(grid, index, labels[tuple(index.T)])
        np.testing.assert_array_equal(filled, labels)
        fractions.append(len(index) / labels.size)
    # Twice as many points on a line, four times as many on the plane.
    ratios = np.divide(fractions[1:], fractions[:-1])
    assert (ratios < 0.75).all() and ratios[-1] == pytest.approx(0.5, abs=0.1)


def test_a_boundary_is_followed_through_cells_whose_corners_agree():
    """A channel that leaves a coarse cell through one edge, between its corners."""
    grid = Grid((3, 3), 3)
    labels = np.zeros(grid.finest, int)
    labels[:9, 4] = 1  # crosses the cells on the left between their corners
    labels[8, :5] = 1  # and reaches corners of the coarse grid at (8, 0)
    index, _ = refined(grid, labels)
    np.testing.assert_array_equal(fill(grid, index, labels[tuple(index.T)]), labels)


def test_uniform_labels_cost_the_coarse_grid_only():
    grid = Grid((5, 4), 4)
    index, _ = refined(grid, np.zeros(grid.finest, int))
    np.testing.assert_array_equal(index, grid.coarse())


def test_noise_costs_the_whole_fine_grid_and_never_a_point_twice():
    grid = Grid((4, 5), 2)
    index, _ = refined(grid, np.arange(grid.size).reshape(grid.finest))
    assert len(index) == len(np.unique(index, axis=0)) == grid.size


def test_any_of_several_labels_makes_a_difference():
    grid = Grid((5,), 2)
    two = np.stack([np.zeros(17, int), np.arange(17) > 6], axis=1)
    index = refine(grid, lambda i: two[i[:, 0]])
    only = refine(grid, lambda i: two[i[:, 0], 1:])
    np.testing.assert_array_equal(index, only)
    assert {6, 7} <= set(index[:, 0].tolist()) and len(index) < 17


def test_points_belong_to_the_first_level_that_holds_them():
    grid = Grid((3, 3), 2)
    index, _ = refined(grid, disc(grid))
    level = grid.level_of(index)
    for point, found in zip(index, level, strict=True):
        step = 2 ** (grid.levels - found)
        assert (point % step == 0).all()
        assert found == 0 or (point % (2 * step) != 0).any()


@pytest.mark.parametrize("levels", [1, 3])
def test_evenly_spaced_axes_stay_linspace_to_the_last_bit(levels):
    for start, stop, num in ((0.0, 3.0, 301), (1.24, 1.28, 41), (200.0, 4.0, 50)):
        finer = refine_axis(np.linspace(start, stop, num), levels)
        again = np.linspace(start, stop, (num - 1) * 2**levels + 1)
        assert np.array_equal(finer, again)
        assert np.array_equal(finer[:: 2**levels], np.linspace(start, stop, num))


def test_other_axes_take_midpoints():
    finer = refine_axis([1.0, 2.0, 10.0], 2)
    np.testing.assert_array_equal(
        finer, [1.0, 1.25, 1.5, 1.75, 2.0, 4.0, 6.0, 8.0, 10.0]
    )
