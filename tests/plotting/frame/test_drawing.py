"""`draw` knows every kind of file, leaves matplotlib alone and clips nothing."""

import sys

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from statmech_attn import plotting
from statmech_attn.dynamics import PHASES
from statmech_attn.plotting.frame import style


EXPECTED = {
    "scan": {"bifurcation", "classifiers"},
    "branches": {"continuation", "critical_curves"},
    "plane": {"phase_diagram", "entropy_production"},
    "refined_plane": {"phase_diagram"},
    "responded": {"response"},
    "critical": {"finite_size"},
    "passing": {"finite_size"},
    "orbits": {"trajectories", "spectra", "planes"},
    "measured": {"running_lyapunov"},
    "simulation": {"simulation"},
    "agreeing": {"agreement", "differences"},
    "learned": {"accuracy", "order_parameters", "alignment", "kernels"},
    "sampled": {"accuracy", "order_parameters"},
    "side_by_side": {"finite_width"},
    "indicated": {"chaos_indicators", "finite_series"},
    "basins": {"basins", "lifetimes"},
    "scored": {"head_scores", "heads_together"},
    "ablated": {"ablation", "head_interactions", "greedy_pruning"},
    "directed": {"covariant_vectors"},
    "along_angles": {"angle_quantiles"},
    "cyclic": {"unstable_cycles"},
    "on_plane": {"plane_basins"},
    "selected": {"model_selection"},
    "swept": {"hysteresis"},
    "growing": {"overlaps", "crosstalk", "correlations"},
    "spins_of_growing": {"overlaps"},
    "loads": {"capacity"},
    "growing_compared": {"agreement"},
}


def test_every_picture_of_a_file_is_written_as_png_and_pdf(learned, tmp_path):
    before = dict(mpl.rcParams)
    paths = plotting.draw(learned, tmp_path / "new" / "folder")
    assert {path.stem for path in paths} == EXPECTED["learned"]
    assert {path.suffix for path in paths} == {".png", ".pdf"}
    assert all(path.stat().st_size > 1000 for path in paths)
    assert dict(mpl.rcParams) == before
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


@pytest.mark.parametrize("name", EXPECTED)
def test_every_file_has_its_figures_which_fit_a_page_unclipped(name, request):
    content = request.getfixturevalue(name)
    figures = list(plotting.pictures(content))
    assert {stem for stem, _ in figures} == EXPECTED[name]
    for _, figure in figures:
        assert figure.get_figwidth() <= style.DOUBLE
        canvas = FigureCanvasAgg(figure)
        figure.draw_without_rendering()
        drawn = figure.get_tightbbox(canvas.get_renderer())
        paper = figure.bbox_inches.padded(0.01)
        assert paper.contains(drawn.x0, drawn.y0), f"{name}: clipped, {drawn}"
        assert paper.contains(drawn.x1, drawn.y1), f"{name}: clipped, {drawn}"


def test_more_beta_than_fit_are_spread_over_pages(orbits):
    many = orbits.isel(beta=[0] * 8, time=slice(100)).assign_coords(beta=range(8))
    stems = {stem for stem, _ in plotting.pictures(many)}
    assert {"trajectories_1", "trajectories_2", "planes_1", "planes_2"} <= stems


def test_an_unknown_kind_is_refused_with_the_known_ones(scan, tmp_path):
    with pytest.raises(ValueError, match="'poem'.*trajectory.*bifurcation"):
        plotting.draw(scan.assign_attrs(kind="poem"), tmp_path)
    with pytest.raises(ValueError, match="known kinds"):
        plotting.draw(scan.drop_attrs(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_every_phase_has_a_colour_of_its_own():
    assert set(style.PHASE_COLOURS) == set(PHASES)
    assert len(set(style.PHASE_COLOURS.values())) == len(PHASES)
