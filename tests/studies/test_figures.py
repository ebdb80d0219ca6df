"""Every figure script runs from an empty folder, and its figures show its data."""

import importlib.util
import math
import pathlib
import re
import tomllib

import h5py
import numpy as np
import pytest

from statmech_attn import storage, studies


ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = sorted({*ROOT.glob("paper_figs/*.py")} - {ROOT / "paper_figs/script.py"})
KEPT = ROOT / "paper_figs" / "results"
STUDIES = sorted([*ROOT.glob("analysis/*.toml"), *ROOT.glob("simulations/*.toml")])


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    return tmp_path_factory.mktemp("data")


def load(path: pathlib.Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def images(made_images, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("images")
    made_images.write_omniglot(folder)
    return made_images.write_digits(folder, counts=(11, 8))


def of(script: str, *names: str) -> dict[str, set[str]]:
    return {script: {f"{script}_{name}" for name in names}}


LEARNT = ("accuracy", "order_parameters", "alignment")
PRUNED = ("pruned_heads", "pruning_ranks", "cumulative_pruning")
FROM_KEPT = {
    **of("one_shot", *LEARNT, "learning_curves"),
    **of("one_shot_deep", *LEARNT, *PRUNED),
    **of("pe5", "full", "torus", "locking"),
    "million_points": {"million_points"},
    "one_shot_pruning": {
        f"one_shot{variant}_{name}"
        for variant in ("", "_exact", "_wide")
        for name in PRUNED
    },
}
ALONE = (
    "bifurcation_full bifurcation_zoom learning_at_finite_width long_context "
    "phase_diagram running_lyapunov sequential"
).split()
FIGURES = {
    **FROM_KEPT,
    **{name: {name} for name in ALONE},
    **of("hidden_markov", *LEARNT, "evidence", "head_scores", "kernels"),
    **of("hidden_markov_noisy", *LEARNT, "evidence", "head_scores", "kernels"),
    **of("one_shot_turned", *LEARNT, *PRUNED, "learning_curves"),
    **of("classifier_disagreement", "full", "zoom"),
    "basins": {"basin_fractions", "lifetimes", "hysteresis"},
    "chaos_indicators": {"chaos_indicators", "finite_series"},
    "continuation": {"continuation", "critical_curves"},
    "finite_size": {"finite_size", "finite_size_agreement"},
    "trajectories": {"trajectories", "phase_planes", "spectra"},
}


def test_every_script_is_tested():
    assert {path.stem for path in SCRIPTS} == set(FIGURES)


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(set(FIGURES) - {"million_points"}))
def test_a_script_draws_its_figures_from_an_empty_folder(
    script, data, images, tmp_path, monkeypatch
):
    """At smoke size; made images stand for those of the one-shot networks."""
    monkeypatch.setenv("STATMECH_ATTN_DATA", str(images))
    words = ["--smoke", "--data", str(data), "--out", str(tmp_path)]
    load(ROOT / "paper_figs" / f"{script}.py").main(words)
    drawn = FIGURES[script]
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {f"{x}.{end}" for x in drawn for end in ("png", "pdf")}
    for result in data.glob("one_shot*-smoke*.h5"):
        task = tomllib.loads(storage.info(result).study)["task"]
        assert not pathlib.PurePath(task.get("trained", "")).is_absolute()
    if script == "chaos_indicators":
        series_of_few_spins_call_all_chaos(data / "chaos_indicators-smoke.h5")


def series_of_few_spins_call_all_chaos(path):
    """Torus, cycle and chaos by the map; one stored seed for every finite size."""
    measured = storage.read(path)
    finite = measured.n_spins.values[:-1].astype(int)
    keys = {f"runs, N = {n}": int(np.log10(n)) for n in finite}
    assert storage.info(path).keys == keys
    exact = measured.lyapunov.sel(exponent=1)
    # Cycles of 28 and 56 tokens coexist at 1.27, with these exponents from
    # `cycle_spectrum`; rounding decides which one a chaotic transient leads to.  An
    # average of 10^4 tokens that cuts a cycle short is off by less than a thousandth.
    cycles = np.array([-0.04780016, -0.00353146])
    assert abs(exact[0]) < 1e-3 and exact[2] > 0.05
    assert np.abs(float(exact[1]) - cycles).min() < 1e-3
    assert (measured.lyapunov_rosenstein.isel(size=0) > 0.03).all()


@pytest.mark.slow
@pytest.mark.parametrize("script", FROM_KEPT)
def test_figures_are_drawn_from_kept_results(script, monkeypatch, tmp_path):
    """Without images, and without computing anything."""
    monkeypatch.delenv("STATMECH_ATTN_DATA", raising=False)
    monkeypatch.setattr("statmech_attn.studies.files.results.compute", pytest.fail)
    monkeypatch.setattr("statmech_attn.plotting.frame.style.PDF_DPI", 50)
    load(ROOT / "paper_figs" / f"{script}.py").main(["--out", str(tmp_path)])
    assert {path.stem for path in tmp_path.iterdir()} == FROM_KEPT[script]


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
