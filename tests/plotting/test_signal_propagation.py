"""Signal propagation: lines of theory and marks of samples show their numbers."""

import numpy as np

from statmech_attn import plotting


def test_states_stand_at_0_and_growth_at_the_layer_that_it_leads_through(propagated):
    axes = plotting.signal_propagation(propagated, [propagated.assign(width=16)]).axes
    for axis, name, first in zip(axes, ("norm", "overlap", "growth"), (0, 0, 1)):
        values = propagated[name].values
        line, marks = axis.lines[0], axis.containers[0]
        for drawn in (line, marks[0]):
            np.testing.assert_array_equal(drawn.get_ydata(), values)
            expected = np.arange(len(values)) + first
            np.testing.assert_array_equal(drawn.get_xdata(), expected)
        ends = np.array(marks[2][0].get_segments())[:, :, 1]
        errors = propagated[f"{name}_stderr"].values
        np.testing.assert_allclose(np.ptp(ends, axis=1), 2 * errors, atol=1e-12)
    labels = axes[0].get_legend_handles_labels()[1]
    assert labels == ["infinite width", "$N = 16$"]
