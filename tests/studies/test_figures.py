"""Every figure script runs from an empty folder, and its figures show its data."""

import importlib.util
import math
import pathlib
import re
import tomllib

import h5py
import numpy as np
import pytest
from script import Script

from statmech_attn import storage, studies
from statmech_attn.dynamics import PHASES
from statmech_attn.dynamics.diagrams.refinement import on_grid


ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = sorted({*ROOT.glob("paper_figs/*.py")} - {ROOT / "paper_figs/script.py"})
KEPT = ROOT / "paper_figs" / "results"
STUDIES = sorted([*ROOT.glob("analysis/*.toml"), *ROOT.glob("simulations/*.toml")])


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def run(data, tmp_path, monkeypatch):
    """Run a script at smoke size; returns its figures by name."""

    def go(name: str) -> dict:
        figures, save = {}, Script.save

        def keep(script, figure, title):
            figures[title] = figure
            save(script, figure, title)

        monkeypatch.setattr(Script, "save", keep)
        load(ROOT / "paper_figs" / f"{name}.py").main(
            ["--smoke", "--data", str(data), "--out", str(tmp_path)]
        )
        written = {path.name for path in tmp_path.iterdir()}
        assert written == {f"{x}.{end}" for x in figures for end in ("png", "pdf")}
        return figures

    return go


def load(path: pathlib.Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(folder: pathlib.Path, name: str):
    return storage.read(folder / f"{name}-smoke.h5")


@pytest.mark.slow
@pytest.mark.parametrize("part", ["full", "zoom"])
def test_bifurcation_figures_show_every_section_sample(run, data, part):
    (figure,) = run(f"bifurcation_{part}").values()
    scan = read(data, f"bifurcation_{part}")
    ribbon, diagram, spectrum, *_ = figure.axes
    strobe, section = diagram.lines
    assert len(section.get_xdata()) == int(np.isfinite(scan.section).sum()) > 24
    assert len(strobe.get_xdata()) == int(np.isfinite(scan.strobe).sum())
    shown = np.ravel(ribbon.collections[0].get_array())
    # Where orbits were transients, the upper one of two rows.
    np.testing.assert_array_equal(shown[-scan.phase.size :], scan.phase)
    expected = {"full": (0.0, 3.0), "zoom": (1.24, 1.28)}[part]
    assert spectrum.get_xlim() == expected


@pytest.mark.slow
def test_trajectory_titles_state_the_measured_phases(run, data):
    figures = run("trajectories")
    assert set(figures) == {"trajectories", "phase_planes", "spectra"}
    measured = read(data, "running_lyapunov")
    titles = [axis.get_title(loc="left") for axis in figures["trajectories"].axes]
    titles = [text for text in titles if r"\beta" in text]
    for text, beta in zip(titles, measured.beta.values, strict=True):
        point = measured.sel(beta=beta)
        assert f"{beta:g}$: {PHASES[int(point.phase)]}" in text
        assert (f"p = {int(point.period)}" in text) == bool(point.period)
    the_periods_hold_along_the_drawn_orbits(read(data, "trajectories"), measured)


def the_periods_hold_along_the_drawn_orbits(orbits, measured):
    periodic = measured.beta[measured.period.values > 0].values
    assert 1.27 in periodic
    for beta in periodic:
        p = int(measured.period.sel(beta=beta))
        A = orbits.A.sel(beta=beta).transpose("time", "pattern").values
        assert np.abs(A[-p:] - A[-2 * p : -p]).max() < 1e-3 * np.ptp(A)


@pytest.mark.slow
def test_running_averages_end_at_the_plain_exponents(run, data):
    (figure,) = run("running_lyapunov").values()
    measured = read(data, "running_lyapunov")
    np.testing.assert_allclose(
        measured.lyapunov_running.isel(block=-1), measured.lyapunov, atol=1e-12
    )
    line = figure.axes[0].lines[1]
    np.testing.assert_array_equal(
        line.get_ydata(), measured.lyapunov_running[0, :, 0].values
    )


@pytest.mark.slow
def test_finite_size_bands_follow_the_theory(run, data):
    figures = run("finite_size")
    theory, simulation = read(data, "finite_size_theory"), read(data, "finite_size")
    axis = figures["finite_size"].axes[0]
    n, beta = simulation.n_spins.values[0], simulation.beta.values[0]
    band = axis.collections[0].get_paths()[0].vertices
    noise = theory.m_o_se_noise_std.sel(beta=beta, pattern=1).values[5] / np.sqrt(n)
    at = band[np.isclose(band[:, 0], 5.0), 1]
    assert np.ptp(at) == pytest.approx(2 * noise)
    assert len(figures["finite_size_agreement"].axes) == 3


@pytest.mark.slow
def test_classifier_figures_cover_both_scans(run):
    assert len(run("classifier_disagreement")) == 2


@pytest.mark.slow
def test_the_phase_diagram_has_a_cell_for_every_point_of_the_finest_grid(run, data):
    (figure,) = run("phase_diagram").values()
    scan, curves = read(data, "phase_diagram"), read(data, "phase_boundary")
    axis = figure.axes[0]
    codes = axis.collections[0].get_array()
    # Of a transient what follows it is shown, with a dot.
    shown = on_grid(scan, "phase", "final_phase", "final_starts")
    np.testing.assert_array_equal(codes, shown.final_phase.values.T)
    assert codes.shape == (7, 9)
    lines = list(axis.lines)
    if transients := int((shown.final_starts >= 0).sum()):
        assert len(lines.pop(0).get_xydata()) == transients
    drawn = lines[0].get_xydata()
    np.testing.assert_array_equal(drawn[:, 0], curves.curve_beta[0])
    np.testing.assert_array_equal(drawn[:, 1], curves.curve_gamma[0])


@pytest.mark.slow
def test_fewer_redrawn_spins_have_their_phases_and_boundary(run, data):
    (figure,) = run("sequential").values()
    scan, curves = read(data, "sequential"), read(data, "sequential_boundary")
    assert scan.phase.squeeze().dims == ("beta", "redrawn")
    drawn = figure.axes[0].lines[0].get_xydata()
    np.testing.assert_array_equal(drawn[:, 1], curves.curve_redrawn[0])


@pytest.mark.slow
def test_a_long_context_has_phases_and_exponents(run, data):
    (figure,) = run("long_context").values()
    scan = read(data, "long_context")
    assert scan.attrs["context"] == scan.attrs["clock_period"] == 32
    settled = scan.period.values[scan.phase.values == PHASES.index("fixed")]
    assert (settled == 32).all() and settled.size
    assert len(figure.axes) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "task",
    ["hidden_markov", "hidden_markov_noisy"],
)
def test_learning_figures_show_theory_samples_and_kernels(run, data, task):
    figures = run(task)
    theory, exact = read(data, task), read(data, f"{task}_exact")
    axis = figures[f"{task}_accuracy"].axes[0]
    lines = {str(line.get_label()): line.get_ydata() for line in axis.lines}
    np.testing.assert_array_equal(lines["saddle point"], theory.accuracy)
    drawn = [points.get_ydata() for points, _, _ in axis.containers]
    np.testing.assert_array_equal(drawn[0], exact.accuracy)
    assert len(drawn) == (2 if task == "hidden_markov" else 1)
    matrices = [x for x in figures[f"{task}_order_parameters"].axes if x.images]
    for axis, width in zip(matrices, (10, 100, 1000), strict=True):
        U = theory.U_1.sel(width=width)
        np.testing.assert_array_equal(axis.images[0].get_array(), U)
    kernels = [x for x in figures[f"{task}_kernels"].axes if x.images]
    assert len(kernels) == theory.sizes["path_1"] + 2


@pytest.mark.slow
def test_continuation_figures_mark_every_bifurcation(run, data):
    figures = run("continuation")
    first, locking = (read(data, f"continuation{x}") for x in ("", "_locking"))
    axis, _ = figures["continuation"].axes
    marked = [line for line in axis.lines if line.get_marker() in ("o", "v", "D")]
    there = [file.sizes.get("special", 0) for file in (first, locking)]
    assert there[0] == 1 and len(marked) == sum(there)
    assert float(first.special_beta[0]) == pytest.approx(1.24344454782, abs=1e-10)
    plane = figures["critical_curves"].axes[0]
    np.testing.assert_array_equal(plane.lines[0].get_xdata(), first.curve_beta[0])
    np.testing.assert_array_equal(plane.lines[0].get_ydata(), first.curve_epsilon[0])


@pytest.mark.slow
def test_finite_width_figure_has_all_estimates(run):
    figure = run("learning_at_finite_width")["learning_at_finite_width"]
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    expected = ["saddle point", "saddle point + $1/N$", "exact law", "weights (NUTS)"]
    assert words[:4] == expected


@pytest.mark.slow
def test_series_of_finite_runs_are_drawn_beside_the_exact_exponents(run, data):
    figures = run("chaos_indicators")
    assert set(figures) == {"chaos_indicators", "finite_series"}
    measured = read(data, "chaos_indicators")
    exact = measured.lyapunov.sel(exponent=1)
    lines = figures["finite_series"].axes[0].lines
    levels = [line.get_ydata()[0] for line in lines if len(line.get_xdata()) == 2]
    assert set(exact.values) <= set(levels)
    # One seed for every finite size, stored with what was computed from it.
    keys = storage.info(data / "chaos_indicators-smoke.h5").keys
    finite = measured.n_spins.values[:-1].astype(int)
    assert keys == {f"runs, N = {n}": int(np.log10(n)) for n in finite}
    # Torus, cycle and chaos by the map; series of 3000 spins call all of them chaos.
    # Cycles of 28 and 56 tokens coexist at 1.27, with these exponents from
    # `cycle_spectrum`; rounding decides which one a chaotic transient leads to.  An
    # average of 10^4 tokens that cuts a cycle short is off by less than a thousandth.
    cycles = np.array([-0.04780016, -0.00353146])
    assert abs(exact[0]) < 1e-3 and exact[2] > 0.05
    assert np.abs(float(exact[1]) - cycles).min() < 1e-3
    assert (measured.lyapunov_rosenstein.isel(size=0) > 0.03).all()


@pytest.mark.slow
def test_basin_figures_show_every_set_and_both_sweeps(run, data):
    figures = run("basins")
    found = read(data, "basins")
    stacked = figures["basin_fractions"].axes[0]
    heights = [bar.get_height() for bar in stacked.patches]
    assert sum(heights) == pytest.approx(found.sizes["beta"])
    assert len(figures["lifetimes"].axes[0].lines) >= 2
    for axis, way in zip(figures["hysteresis"].axes, ("up", "down"), strict=False):
        scan = read(data, f"sweep_{way}")
        np.testing.assert_array_equal(axis.lines[0].get_ydata(), np.ravel(scan.strobe))


@pytest.fixture(scope="module")
def images(made_images, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("images")
    made_images.write_omniglot(folder)
    return made_images.write_digits(folder, counts=(11, 8))


LEARNT = {"accuracy", "order_parameters", "alignment"}
PRUNED = {"pruned_heads", "pruning_ranks", "cumulative_pruning"}
ONE_SHOT = {
    "one_shot": {f"one_shot_{name}" for name in LEARNT | {"learning_curves"}},
    "one_shot_pruning": {
        f"one_shot{variant}_{name}"
        for variant in ("", "_exact", "_wide")
        for name in PRUNED
    },
    "one_shot_deep": {f"one_shot_deep_{name}" for name in LEARNT | PRUNED},
}


TURNED = {
    "one_shot_turned": {
        f"one_shot_turned_{name}" for name in LEARNT | PRUNED | {"learning_curves"}
    }
}


FIVE_BITS = {f"pe5_{part}" for part in ("full", "torus", "locking")}
FROM_KEPT = ONE_SHOT | {"pe5": FIVE_BITS, "million_points": {"million_points"}}


@pytest.mark.slow
def test_sweeps_of_five_bits_have_phases_both_ways_and_branches(run, data):
    figures = run("pe5")
    assert set(figures) == FIVE_BITS
    ribbon, upward, *_ = figures["pe5_full"].axes
    scan = read(data, "pe5_full")
    assert scan.sizes["start"] == 2 and scan.attrs["context"] == 32
    codes = ribbon.collections[0].get_array()
    np.testing.assert_array_equal(codes, scan.phase.transpose("start", "beta"))
    assert {"stable", "unstable"} <= set(upward.get_legend_handles_labels()[1])


@pytest.mark.slow
@pytest.mark.parametrize("script", ONE_SHOT | TURNED)
def test_one_shot_figures_from_made_images(run, data, images, monkeypatch, script):
    monkeypatch.setenv("STATMECH_ATTN_DATA", str(images))
    assert set(run(script)) == (ONE_SHOT | TURNED)[script]
    for result in data.glob("one_shot*-smoke*.h5"):
        task = tomllib.loads(storage.info(result).study)["task"]
        assert not pathlib.PurePath(task.get("trained", "")).is_absolute()


@pytest.mark.slow
@pytest.mark.parametrize("script", FROM_KEPT)
def test_figures_are_drawn_from_kept_results(script, monkeypatch, tmp_path):
    """Without images, and without computing anything."""
    monkeypatch.delenv("STATMECH_ATTN_DATA", raising=False)
    monkeypatch.setattr("statmech_attn.studies.files.results.compute", pytest.fail)
    monkeypatch.setattr("statmech_attn.plotting.frame.style.PDF_DPI", 50)
    load(ROOT / "paper_figs" / f"{script}.py").main(["--out", str(tmp_path)])
    written = {path.stem for path in tmp_path.iterdir()}
    assert written == FROM_KEPT[script]


@pytest.mark.slow
def test_kept_results_are_small_and_clean():
    """At most 8 MB in all, each from a commit, with no places.

    Beside these a plane of a million points and eight wide networks with their theory.
    """
    kept = sorted(KEPT.glob("*.h5"))
    sizes = {path.stem: path.stat().st_size for path in kept}
    assert 0 < sizes.pop("million_points-laptop") <= 5_000_000
    turned = [sizes.pop(name) for name in list(sizes) if "_turned" in name]
    assert 0 < sum(turned) <= 10_000_000
    assert sizes and sum(sizes.values()) <= 8_000_000
    for path in kept:
        describe = storage.info(path).git_describe
        assert describe and not describe.endswith("-dirty")
        assert places(path) == {}


ABSOLUTE = re.compile(r"""(?:^|[\s"'=:,(\[])(?:~?/|[A-Za-z]:[\\/]+)[\w.]""")


def places(path: pathlib.Path) -> dict[str, str]:
    """Attributes of a file that hold an absolute path."""
    with h5py.File(path) as file:
        words = {name: str(value) for name, value in file.attrs.items()}
    return {name: text for name, text in words.items() if ABSOLUTE.search(text)}


@pytest.mark.parametrize(
    ("attribute", "is_place"),
    [
        ("one_shot.py --out results ../data/x.h5", False),
        ("Linux-6.1-x86_64, 1/sqrt(N), m / s, https://example.org/a", False),
        ("one_shot.py --out /home/me/results", True),
        ("/data/images", True),
        ('trained = "/data/trained.h5"', True),
        ("--data=~/images", True),
        ('{"file": "C:\\\\images"}', True),
    ],
)
def test_places_on_a_disk_are_found_in_files(tmp_path, attribute, is_place):
    path = tmp_path / "result.h5"
    with h5py.File(path, "w") as file:
        file.attrs["word"] = attribute
    assert places(path) == ({"word": attribute} if is_place else {})


def test_every_script_is_tested():
    tested = {
        "basins",
        "bifurcation_full",
        "bifurcation_zoom",
        "chaos_indicators",
        "classifier_disagreement",
        "continuation",
        "finite_size",
        "hidden_markov",
        "hidden_markov_noisy",
        "learning_at_finite_width",
        "long_context",
        "pe5",
        "phase_diagram",
        "running_lyapunov",
        "sequential",
        "trajectories",
        "million_points",
        *ONE_SHOT,
        *TURNED,
    }
    assert {path.stem for path in SCRIPTS} == tested


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.stem)
def test_every_study_is_valid_at_every_size(study):
    sizes = tomllib.loads((ROOT / "paper_figs" / "sizes.toml").read_text())
    settings = sizes.get(study.stem, {})
    assert set(settings) in ({"smoke", "laptop", "paper"}, set())
    for changed in [[], *settings.values()]:
        assert studies.load(study, changed)[0].kind
    assert study.read_text().startswith("# ")


def test_the_published_resolution_is_the_published_one():
    sizes = tomllib.loads((ROOT / "paper_figs" / "sizes.toml").read_text())
    for part, steps in (("full", 75_000), ("zoom", 10_000)):
        name = f"bifurcation_{part}"
        settings = sizes[name]["paper"]
        found, _ = studies.load(ROOT / "analysis" / f"{name}.toml", settings)
        assert found.parameters.beta.num == 4001
        assert (found.run.transient, found.run.steps) == (100_000, steps)
        assert found.run.exponents == "all"


def test_the_published_one_shot_networks_are_the_published_ones():
    sizes = tomllib.loads((ROOT / "paper_figs" / "sizes.toml").read_text())
    variants = {"": ([4, 4], 128), "_wide": ([8, 8], 64), "_deep": ([3, 3, 3], 170)}
    for variant, (heads, key_size) in variants.items():
        name = f"one_shot_training{variant}"
        path = ROOT / "simulations" / f"{name}.toml"
        found, _ = studies.load(path, sizes[name]["paper"])
        assert (found.network.heads, found.network.key_size) == (heads, key_size)
        assert (found.task.split, found.task.channels) == ("vinyals", 3)
        assert (found.network.width, found.run.learning_rate) == (512, 3e-4)
        assert (found.run.batch, found.run.weight_decay) == (128, 5e-5)
        assert (found.run.gain, found.run.patience) == (1, None)
        # Ten passes over all pairs of the 1028 characters, in whole batches.
        assert found.run.steps == 10 * (math.comb(1028, 2) // 128)
    for name in ("one_shot_theory", "one_shot_theory_deep"):
        found, _ = studies.load(
            ROOT / "analysis" / f"{name}.toml", sizes[name]["paper"]
        )
        widths, temperatures = found.network.width, found.network.temperature
        assert widths == [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000]
        published = {0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5}
        assert published <= set(temperatures)
        assert (found.task.n_train, found.task.n_test) == (600, 1000)
