"""Samples on a section: the first of each lane, the same on every device."""

import jax
import numpy as np
import pytest

from statmech_attn.dynamics.diagrams.stages.recorded_sections import (
    crossings,
    DeviceBuffer,
    SectionBuffer,
    taken,
)
from statmech_attn.dynamics.options import Plan


def test_a_buffer_keeps_the_first_samples_and_counts_all():
    buffer = SectionBuffer(Plan(section_tolerance=0.5, section_samples=3), 2)
    values = np.arange(10.0).reshape(5, 2)
    hit = np.array([[1, 0], [1, 0], [0, 1], [1, 0], [1, 0]], bool)
    for _ in range(2):
        buffer.add(values, np.where(hit, 0.0, 1.0), len(values))
    assert buffer.count.tolist() == [8, 2]
    assert buffer.values[:, 0].tolist() == [0.0, 2.0, 6.0]
    assert buffer.values[:2, 1].tolist() == [5.0, 5.0] and np.isnan(buffer.values[2, 1])


@pytest.mark.parametrize("tolerance", [0.3, None])
def test_an_accelerator_takes_the_samples_of_the_cpu(tolerance):
    """Also from one record to the next, of a shorter last one, and of lost orbits."""
    plan = Plan(section_tolerance=tolerance, section_samples=38, level=0.1)
    lanes, steps = 24, 50
    one = SectionBuffer(plan, lanes)
    other = DeviceBuffer(plan, lanes, jax.jit(taken(plan)))
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, 4, steps, lanes))
    second[2, 10:, 3] = np.nan
    for x, y, length in zip(first, second, [steps, steps, steps, 7], strict=True):
        one.add(x, y, length)
        other.add(x, y, length)
    assert one.count.min() < 38 < one.count.max()
    np.testing.assert_array_equal(one.count, other.count)
    np.testing.assert_array_equal(one.values, other.values)


def test_a_crossing_is_interpolated_between_two_steps():
    found, hit = crossings(*np.array([[-1.0], [3.0], [0.0], [1.0]]))
    assert found.tolist() == [0.25] and hit.tolist() == [True]
