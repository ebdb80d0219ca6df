"""Pictures of a diagram of one's own system, labelled as the file is."""

import io

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import QuadMesh
from rich.console import Console

from statmech_attn import plotting
from statmech_attn.cli.texts.summary import print_summary
from statmech_attn.dynamics import diagram, PHASES, System
from statmech_attn.dynamics.diagrams import Plan


PLAN = Plan(transient=500, steps=500, exponents=2, max_doublings=0)


def henon(x, p):
    return jnp.stack([1 - p["a"] * x[0] ** 2 + x[1], p["dissipation"] * x[0]])


def drawn(grid, plan=PLAN, refine=0, **options):
    """The data set of a diagram, and its pictures by name."""
    scan = diagram(
        System(henon, **options), grid, jnp.array([0.1, 0.1]), plan, refine=refine
    )
    figures = dict(plotting.pictures(scan))
    for figure in figures.values():
        FigureCanvasAgg(figure).draw()
    return scan, figures


def dots(axis):
    return np.concatenate([line.get_xydata() for line in axis.lines])


def test_one_parameter_is_a_bifurcation_diagram_in_the_words_of_the_file():
    grid = {"a": 1.2, "dissipation": [0.1, 0.2, 0.3, 0.8]}
    scan, figures = drawn(grid, unit="kick")
    assert [*figures] == ["bifurcation"]
    ribbon, samples, spectrum = figures["bifurcation"].axes
    assert samples.get_ylabel() == "$x$"
    assert spectrum.get_xlabel() == "dissipation"
    assert spectrum.get_ylabel() == r"$\lambda_i$ (nat/kick)"
    (codes,) = (c.get_array() for c in ribbon.collections if isinstance(c, QuadMesh))
    np.testing.assert_array_equal(codes.ravel(), scan.phase)
    assert scan.phase[-1] == PHASES.index("diverged") and not codes.mask.any()
    kept = dots(samples)
    assert set(kept[:, 0]) == {0.1, 0.2, 0.3} and np.abs(kept[:, 1]).max() < 2
    (legend,) = figures["bifurcation"].legends
    words = [text.get_text() for text in legend.get_texts()]
    assert "every kick" in words and "diverged" in words


@pytest.mark.parametrize("tolerance", [None, 0.01])
def test_a_section_is_in_the_legend_where_it_was_met(tolerance):
    grid = {"a": [1.3, 1.4], "dissipation": 0.3}
    plan = Plan(400, 400, 0, section_tolerance=tolerance)
    scan, figures = drawn(grid, plan)
    (axis,) = figures["bifurcation"].axes
    found = {line.get_label(): line.get_xydata() for line in axis.lines}
    near = "" if tolerance is None else r", $\pm$ $10^{-2}$"
    assert len(found[f"on the section{near}"]) == scan.section_count.sum()
    assert ("every step" in found) == (tolerance is not None)
    assert axis.get_xlabel() == "$a$" and not axis.texts
    (asked,) = plotting.bifurcation_samples(scan, strobe=True).axes
    assert "every step" in [line.get_label() for line in asked.lines]


def test_two_parameters_are_a_phase_diagram():
    grid = {"dissipation": [0.1, 0.2, 0.3], "a": [0.2, 1.4]}
    scan, figures = drawn(grid)
    console = Console(file=io.StringIO(), width=100)
    print_summary(scan, console)
    assert "dissipation from" in console.file.getvalue()
    assert [*figures] == ["phase_diagram"]
    left, right, bar = figures["phase_diagram"].axes
    assert (left.get_xlabel(), left.get_ylabel()) == ("dissipation", "$a$")
    assert bar.get_ylabel() == r"$\lambda_1$ (nat/step)"
