"""The gallery: every figure of `plotting`, with the commands that make it.

Results are computed by the studies of the repository at reduced size, or are those kept
in `paper_figs/results`; both the figures and what they are drawn from stay in
`docs/generated/gallery` and are made anew when this file changes.
"""

import hashlib
import inspect
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import statmech_attn
from statmech_attn import bpkr, cli, comparison, dynamics, plotting, storage, studies
from statmech_attn.explore import export
from statmech_attn.tasks import arrays


HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
KEPT = ROOT / "paper_figs" / "results"
DPI = 200
COLUMNS = 3
LETTERS = "abcdefgh"  # names of the files of a figure
VIEWS = Path("pages", "views")  # of the site, below its root


class Study(NamedTuple):
    """A study of the repository, with what differs from it here."""

    path: str
    settings: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        return f"{Path(self.path).stem}.h5"

    @property
    def command(self) -> str:
        words = ["statmech-attn run", self.path, "--output", self.file]
        return " \\\n    ".join(
            [" ".join(words), *(f"--set {x}" for x in self.settings)]
        )

    def compute(self, folder: Path) -> None:
        studies.produce(ROOT / self.path, folder / self.file, self.settings)


class Analysis(NamedTuple):
    """A program of the repository that writes a file, maybe from that of a study."""

    path: str
    arguments: tuple[str, ...] = ()
    study: Study | None = None

    @property
    def file(self) -> str:
        return f"{Path(self.path).stem}.h5"

    @property
    def command(self) -> str:
        words = ["python", self.path, *self.arguments, "--output", self.file]
        return " ".join(words)

    def compute(self, folder: Path) -> None:
        words = [*self.arguments, "--output", self.file]
        call = [sys.executable, str(ROOT / self.path), *words]
        subprocess.run(call, cwd=folder, check=True, stdout=subprocess.DEVNULL)


class Comparison(NamedTuple):
    """The comparison of two files."""

    theory: Study
    simulation: Study
    file: str

    @property
    def command(self) -> str:
        files = f"{self.theory.file} {self.simulation.file}"
        return f"statmech-attn compare {files} --output {self.file}"

    def compute(self, folder: Path) -> None:
        files = (self.theory.file, self.simulation.file)
        found = comparison.compare(*(storage.read(folder / name) for name in files))
        found.statmech.save(folder / self.file)


class Kept(NamedTuple):
    """A result that lies in the repository."""

    name: str

    @property
    def file(self) -> str:
        return f"paper_figs/results/{self.name}-laptop.h5"

    command = ""

    def compute(self, folder: Path) -> None:
        """It is there."""


class Scores(NamedTuple):
    """Scores of the heads of the example file of arrays."""

    file: str = "scores.h5"
    command = (
        "statmech-attn new arrays --output study.toml\n"
        "statmech-attn score arrays.npz --output scores.h5"
    )

    def compute(self, folder: Path) -> None:
        file, output = arrays.write_example(folder), folder / self.file
        cli.app(["score", str(file), "-o", str(output)], standalone_mode=False)


class Ablated(NamedTuple):
    """Losses of a small network without its heads, two of which see the same."""

    file: str = "ablation.h5"
    command = (
        "# ablation.h5: losses of a network without its heads, "
        "see the page on your own data"
    )

    def compute(self, folder: Path) -> None:
        random = np.random.default_rng(0)
        seen = random.normal(size=(8, 400))  # what heads add, by example
        seen[5] = seen[1]
        reads = np.array([0.1, 0.6, 0.3, 0.05, 0.4, 0.6, 0.2, 0.02])
        Y = np.clip(reads @ seen, -1, 1) + 0.3 * random.normal(size=400)
        f = lambda gates: np.clip((reads * np.concatenate(gates)) @ seen, -1, 1)
        outside = abs(reads @ seen) > 1
        slopes = 2 * (f((np.ones(8),)) - Y) * ~outside * reads[:, None] * seen
        ablation = bpkr.ablate(
            lambda gates: (f(gates) - Y) ** 2,
            (4, 4),
            gradient=lambda _: [slopes[:4].T, slopes[4:].T],
            pairs=True,
            greedy=True,
        )
        storage.write(
            folder / self.file, ablation.to_dataset(), study="", kind="ablation"
        )


class Vectors(NamedTuple):
    """Covariant vectors along an orbit of Hénon's map."""

    file: str = "vectors.h5"
    command = "# vectors.h5: see the page on attractors"

    def compute(self, folder: Path) -> None:
        henon = lambda x: jnp.stack([1 - 1.4 * x[0] ** 2 + x[1], 0.3 * x[0]])
        vectors = dynamics.covariant_vectors(
            henon, jnp.array([0.1, 0.2]), steps=100_000, transient=1000, piece=10
        )
        storage.write(
            folder / self.file, vectors.to_dataset(), study="", kind="covariant-vectors"
        )


class OnPlane(NamedTuple):
    """Basins of Newton's method for the roots of z^3 = 1."""

    file: str = "plane.h5"
    command = "# plane.h5: see the page on attractors"

    def compute(self, folder: Path) -> None:
        def newton(x):
            z = x[0] + 1j * x[1]
            z = z - (z**3 - 1) / (3 * z**2)
            return jnp.stack([z.real, z.imag])

        x, search = np.linspace(-2, 2, 600), dynamics.Search(2000, record=64)
        plane = dynamics.PlaneBasins(newton, jnp.zeros(2), x, x, search=search)
        plane.run(folder / self.file, overwrite=True)


class Signal(NamedTuple):
    """Random blocks of a width, or those of infinite width."""

    file: str
    width: int | None = None

    @property
    def command(self) -> str:
        blocks = "RandomBlocks(tokens=8, attention=3.0, scale=0.5)"
        call = "mean_field_signal(blocks, layers=12)"
        if self.width is not None:
            call = (
                f"sampled_signal(key, blocks, layers=12, width={self.width}, draws=32)"
            )
        return f"# {self.file}: dynamics.{call}\n# of dynamics.{blocks}"

    def compute(self, folder: Path) -> None:
        blocks = dynamics.RandomBlocks(tokens=8, attention=3.0, scale=0.5)
        if self.width is None:
            signal = dynamics.mean_field_signal(blocks, layers=12)
        else:
            key, size = jax.random.key(self.width), self.width
            signal = dynamics.sampled_signal(
                key, blocks, layers=12, width=size, draws=32
            )
        storage.write(
            folder / self.file, signal.to_dataset(), study="", kind="signal-propagation"
        )


class SeveralSets(NamedTuple):
    """Order parameters of the example of arrays, its test set cut into two."""

    file: str = "sets.h5"
    command = (
        "# sets.npz: arrays with a second test set, see the page on your own data\n"
        "statmech-attn run sets.toml --output sets.h5"
    )

    def compute(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory() as place:
            given = dict(np.load(arrays.write_example(place)))
            for name in [name for name in given if name.endswith("_test")]:
                axis = name.startswith("attention")  # heads come first
                given[name], given[f"{name}_validation"] = np.split(
                    given[name], 2, axis
                )
            study = Path(place) / "sets.toml"
            np.savez(study.with_suffix(".npz"), **given)
            study.write_text(
                'kind = "order-parameter"\n[task]\nname = "arrays"\nfile = "sets.npz"\n'
                "[network]\nwidth = [10, 20, 50, 100]\ntemperature = [0.1, 0.3, 1.0]\n"
            )
            studies.produce(study, folder / self.file)


Drawn = Scores | Ablated | Vectors | OnPlane | Signal | SeveralSets
Source = Study | Analysis | Comparison | Kept | Drawn


class Row(NamedTuple):
    """A figure: the files it is drawn from, and how.

    Attributes:
        function: name in `plotting`.
        sources: files, which are called a, b, c, ... in the call.
        call: of `plotting`; the function of all files when omitted.
        tutorial: where the figure is explained.
    """

    function: str
    sources: Sequence[Source]
    call: str = ""
    tutorial: str = ""


ZOOM = Study(
    "analysis/bifurcation_zoom.toml",
    (
        "parameters.beta.num=129",
        "run.transient=20000",
        "run.steps=4000",
        "run.max_doublings=1",
    ),
)
PLANE = Study(
    "analysis/phase_diagram.toml",
    (
        "parameters.beta.num=16",
        "parameters.gamma.num=12",
        "run.transient=1000",
        "run.steps=1000",
        "run.extend=false",
        "run.refine=1",
    ),
)
BOUNDARY = Study(
    "analysis/phase_boundary.toml",
    ("run.transient=20000", "run.largest_step=0.05", "curves.max_points=20"),
)
SEQUENTIAL = Study(
    "analysis/sequential.toml",
    (
        "parameters.beta.num=9",
        "parameters.redrawn.num=8",
        "run.transient=2000",
        "run.steps=2000",
        "run.extend=false",
    ),
)
SEQUENTIAL_BOUNDARY = Study(
    "analysis/sequential_boundary.toml",
    ("run.largest_step=0.1", "curves.max_points=20"),
)
CURVES = Study(
    "analysis/continuation.toml",
    ("run.transient=20000", "run.largest_step=0.05", "curves.max_points=25"),
)
ORBITS = Study(
    "analysis/trajectories.toml",
    ("parameters.beta=[1.255, 1.27, 1.28]", "run.transient=20000", "run.steps=2000"),
)
RUNNING = Analysis(
    "analysis/running_lyapunov.py",
    ("trajectories.h5", "--steps", "20000", "--blocks", "100", "--max-doublings", "1"),
    ORBITS,
)
BASINS = Study(
    "analysis/basins.toml",
    (
        "parameters.beta.num=7",
        "run.starts=32",
        "run.horizon=80000",
        "run.transient=20000",
        "run.steps=4000",
    ),
)
SWEEP = (
    "parameters.beta.num=31",
    "run.transient=6000",
    "run.steps=3000",
    "run.exponents=1",
    "run.max_doublings=0",
)
UP, DOWN = (Study(f"analysis/sweep_{way}.toml", SWEEP) for way in ("up", "down"))
BETAS = "parameters.beta=[0.5, 1.0, 1.4]"
THEORY = Study("analysis/demo_theory.toml", (BETAS,))
SIMULATION = Study(
    "simulations/demo_simulation.toml",
    (BETAS, "run.runs=300", "run.n_spins=[300000, 30000000, 3000000000]"),
)
AGREEMENT = Comparison(THEORY, SIMULATION, "agreement.h5")
INDICATORS = Analysis(
    "analysis/chaos_indicators.py",
    ("--length", "500", "--points", "4000", "--runs", "2"),
)
SADDLE = Study(
    "analysis/hidden_markov.toml", ("network.width=[10, 30, 50, 100, 300, 1000]",)
)
EXACT = Study(
    "simulations/hidden_markov_exact.toml",
    (
        "network.width=[10, 30]",
        "run.draws=200",
        "run.warmup=200",
        "run.chains=2",
        "run.evidence=false",
    ),
)
WIDTHS = Comparison(SADDLE, EXACT, "widths.h5")
DESCENT = Study(
    "simulations/hidden_markov_training.toml",
    ("network.width=[10, 100]", "run.steps=400", "run.restarts=2"),
)
CURVE = Study(
    "analysis/learning_curve.toml",
    ("task.n_test=300", "network.temperature=0.001", "run.training_sets=4"),
)
SELECTION = Analysis("benchmarks/model_selection.py")
GROWING = Study("analysis/extensive.toml")
GROWING_SPINS = Study(
    "simulations/extensive_spins.toml",
    ("run.n_spins=[500, 1000, 2000]", "parameters.alpha=[0.15, 0.25, 0.4]"),
)
GROWING_COMPARED = Comparison(GROWING, GROWING_SPINS, "extensive_agreement.h5")
CROSSTALK = Kept("crosstalk")
RESPONSES = Study("analysis/response.toml")
CRITICAL_SPINS = Study(
    "analysis/critical_spins.toml",
    ("run.n_spins=[29997, 99999, 999999]", "run.runs=16"),
)
CAPACITIES = Study(
    "analysis/capacity.toml",
    ("parameters.beta=[5.0, 2.5]", "parameters.gamma.num=4", "run.contexts=[1, 2]"),
)
PE5 = Kept("pe5_continuation"), Kept("pe5_continuation_locking")
TORUS = Kept("pe5_torus")
SCANS = ZOOM, PLANE, SEQUENTIAL, UP, DOWN, TORUS  # each has a page to move in
UPWARD = lambda scan: scan.isel(start=0, drop=True)
SHOT = [Kept(f"one_shot_theory-{i}") for i in range(4)]
SAMPLES = [Kept(f"one_shot_{of}-0") for of in ("exact", "weights")]
TRAINED, PRUNED = Kept("one_shot_training"), Kept("one_shot_pruning")

DYNAMICS = (
    Row("bifurcation_diagram", [ZOOM], tutorial="02_poclopez_aguilera"),
    Row("bifurcation_samples", [ZOOM], tutorial="10_own_map"),
    Row("lyapunov_spectrum", [ZOOM], tutorial="05_continuation"),
    Row("entropy_production", [ZOOM]),
    Row("phase_ribbon", [ZOOM], tutorial="04_phases"),
    Row("classifier_disagreement", [ZOOM], tutorial="02_poclopez_aguilera"),
    Row("phase_diagram", [PLANE, BOUNDARY], tutorial="11_cluster"),
    Row("phase_map", [SEQUENTIAL, SEQUENTIAL_BOUNDARY]),
    Row("exponent_map", [PLANE], tutorial="11_cluster"),
    Row("entropy_map", [PLANE]),
    Row(
        "trajectory_windows",
        [ORBITS, RUNNING],
        "trajectory_windows(a, phases=b)",
        "02_poclopez_aguilera",
    ),
    Row(
        "phase_planes",
        [ORBITS, RUNNING],
        "phase_planes(a, phases=b)",
        "02_poclopez_aguilera",
    ),
    Row(
        "spectra",
        [ORBITS, RUNNING],
        "spectra(a, phases=b)",
        "02_poclopez_aguilera",
    ),
    Row("response_curves", [RESPONSES], tutorial="15_arrow_of_time"),
    Row("finite_size_collapse", [CRITICAL_SPINS], tutorial="15_arrow_of_time"),
    Row(
        "signal_propagation",
        [Signal("infinite_width.h5"), Signal("narrow.h5", 8), Signal("wide.h5", 32)],
        "signal_propagation(a, [b, c])",
        "16_transformer_block",
    ),
    Row("running_lyapunov", [RUNNING], tutorial="02_poclopez_aguilera"),
    Row("continuation_diagram", PE5, tutorial="05_continuation"),
    Row("branches", PE5[1:], tutorial="05_continuation"),
    Row(
        "bifurcation_points",
        PE5[1:],
        "branches(a, ax=plotting.bifurcation_points(a).axes[0])",
        "05_continuation",
    ),
    Row("critical_curves", [CURVES], tutorial="05_continuation"),
    Row("bifurcation_curves", [CURVES], tutorial="05_continuation"),
    Row("sweep_diagram", [TORUS, *PE5], tutorial="02_poclopez_aguilera"),
    Row("basin_fractions", [BASINS], tutorial="04_phases"),
    Row("lifetimes", [BASINS], tutorial="04_phases"),
    Row(
        "hysteresis",
        [UP, DOWN],
        "hysteresis(dynamics.diagrams.compare_sweeps(a, b))",
        "04_phases",
    ),
    Row(
        "sweep_samples",
        [UP, DOWN],
        "sweep_samples(dynamics.diagrams.compare_sweeps(a, b))",
        "04_phases",
    ),
    Row("chaos_indicators", [INDICATORS]),
    Row("covariant_vectors", [Vectors()]),
    Row("plane_basins", [OnPlane()]),
    Row(
        "finite_size",
        [SIMULATION, THEORY],
        "finite_size(a, b, tokens=60)",
        "06_theory_and_simulation",
    ),
    Row("agreement", [AGREEMENT], tutorial="06_theory_and_simulation"),
    Row("differences_in_time", [AGREEMENT], tutorial="06_theory_and_simulation"),
    Row("finite_series", [INDICATORS]),
    Row(
        "overlaps_in_time",
        [GROWING, GROWING_SPINS],
        tutorial="13_growing_patterns",
    ),
    Row("crosstalk_in_time", [GROWING], tutorial="13_growing_patterns"),
    Row("two_times", [GROWING], tutorial="13_growing_patterns"),
    Row("extensive_agreement", [GROWING_COMPARED]),
    Row(
        "capacities",
        [CAPACITIES, Kept("capacity_spins")],
        tutorial="13_growing_patterns",
    ),
    Row(
        "phases_against_load",
        [CROSSTALK, Kept("crosstalk_spins")],
        tutorial="13_growing_patterns",
    ),
)
LEARNING = (
    Row(
        "accuracy_against_width",
        [SADDLE, EXACT],
        "accuracy_against_width(a, [b])",
        "07_tiberi",
    ),
    Row("evidence_against_width", [SADDLE], tutorial="09_exact_law"),
    Row("order_parameter_matrices", [SADDLE], tutorial="07_tiberi"),
    Row("alignment", [SADDLE], tutorial="07_tiberi"),
    Row("path_kernels", [SADDLE], tutorial="07_tiberi"),
    Row("finite_width", [WIDTHS], tutorial="09_exact_law"),
    Row("error_against_examples", [CURVE]),
    Row("variance_against_examples", [CURVE]),
    Row("evidence_and_validation", [SELECTION]),
    Row("training", [DESCENT, SADDLE]),
    Row("learning_curves", [TRAINED]),
    Row(
        "one_shot_accuracy",
        [*SHOT, TRAINED],
        "one_shot_accuracy([a, b, c, d], trained=e)",
        "07_tiberi",
    ),
    Row(
        "one_shot_matrices",
        [SHOT[0], *SAMPLES, TRAINED],
        "one_shot_matrices(a, [b, c], d)",
        "07_tiberi",
    ),
    Row("one_shot_alignment", [SHOT[0]], tutorial="07_tiberi"),
    Row("pruned_heads", [PRUNED], tutorial="07_tiberi"),
    Row("pruning_ranks", [PRUNED], tutorial="07_tiberi"),
    Row("cumulative_pruning", [PRUNED], tutorial="07_tiberi"),
    Row("accuracy_on_sets", [SeveralSets()]),
    Row("head_scores", [Scores()]),
    Row("heads_together", [Scores()]),
    Row("ablation", [Ablated()]),
    Row("head_interactions", [Ablated()]),
    Row("greedy_pruning", [Ablated()]),
)
SECTIONS = {"Dynamics": DYNAMICS, "Learning": LEARNING}


def write(folder: Path, drawn: bool = True) -> None:
    """Draw what is missing, and write the page `gallery.rst` of a folder.

    Args:
        drawn: whether figures are computed; the page has its commands in either case.
    """
    pictures, data = folder / "gallery", folder / "gallery" / "data"
    data.mkdir(parents=True, exist_ok=True)
    stamp, digest = pictures / "digest", hashlib.sha256(Path(__file__).read_bytes())
    current = stamp.exists() and stamp.read_text() == digest.hexdigest()
    if drawn and not current:
        _draw(pictures, data)
        _export(data, folder / VIEWS)
        stamp.write_text(digest.hexdigest())
    page = _page(drawn or current)
    path = folder / "gallery.rst"
    if not path.exists() or path.read_text("utf-8") != page:
        path.write_text(page, "utf-8")


def _draw(pictures: Path, data: Path) -> None:
    statmech_attn.setup()
    for rows in SECTIONS.values():
        for row in rows:
            for source in _needed(row.sources):
                if not (data / source.file).exists():
                    source.compute(data)
            files = [_read(source, data) for source in row.sources]
            names = dict(zip(LETTERS, files))
            modules = {"dynamics": dynamics, "plotting": plotting}
            figure = eval(f"plotting.{_call(row)}", modules, names)
            plotting.save(figure, pictures, row.function, formats=("png",), dpi=DPI)
    jax.clear_caches()


def _export(data: Path, views: Path) -> None:
    """Write the pages of the scans, which need no server."""
    views.mkdir(parents=True, exist_ok=True)
    for scan in SCANS:
        target = views / _view(scan)
        export(_path(scan, data), target, overwrite=True)


def _view(scan: Source) -> str:
    """File name of the page of a scan."""
    return f"{Path(scan.file).stem}.html"


def _path(source: Source, data: Path) -> Path:
    """Where the file of a source is."""
    return ROOT / source.file if isinstance(source, Kept) else data / source.file


def _needed(sources: Sequence[Source]) -> list[Source]:
    """Sources with those that they are made from, first things first."""
    needed: list[Source] = []
    for source in sources:
        if isinstance(source, Comparison):
            needed += [source.theory, source.simulation]
        if isinstance(source, Analysis) and source.study:
            needed.append(source.study)
        needed.append(source)
    return list(dict.fromkeys(needed))


def _read(source: Source, data: Path) -> xr.Dataset:
    return storage.read(_path(source, data))


def _page(drawn: bool) -> str:
    lines = ["Gallery", "=======", "", inspect.cleandoc(INTRODUCTION), ""]
    for title, rows in SECTIONS.items():
        lines += [title, "-" * len(title), ""]
        lines += _thumbnails(rows) if drawn else []
        for row in rows:
            lines += _section(row, drawn)
    return "\n".join(lines) + "\n"


INTRODUCTION = """
Every figure of :mod:`statmech_attn.plotting`, with the commands that make it.  The
small pictures lead to the commands.  Sizes are reduced, so that all can be drawn while
this site is built; the scripts of ``paper_figs`` draw the same at publication size
(:doc:`/figures`).

``statmech-attn figure FILE.h5 --output figures`` draws all figures of a file at once;
the calls below draw one.  Every function takes ``ax=`` or ``axes=`` and then draws its
panels on axes of yours.

``statmech-attn explore``, the last command of each, shows the same files in the
browser, to move in and to compute further (:doc:`/howto/explorer`).  Below a scan is a
link to its page, which moves as well but computes nothing.

Not drawn here are ``growth``, of a benchmark (:doc:`/performance`), and
``one_shot_kernels``, which is ``path_kernels`` of trained heads and needs a file with
``run.kernels = true``.
"""


def _thumbnails(rows: Sequence[Row]) -> list[str]:
    lines = [".. list-table::", f"   :widths: {' '.join(['1'] * COLUMNS)}", ""]
    for first in range(0, len(rows), COLUMNS):
        cells = [*rows[first : first + COLUMNS], *[None] * COLUMNS][:COLUMNS]
        for number, row in enumerate(cells):
            lines.append("   * -" if number == 0 else "     -")
            if row is not None:
                lines[-1] += f" .. image:: gallery/{row.function}.png"
                lines += [
                    f"          :alt: {row.function}",
                    f"          :target: gallery-{row.function}_",
                ]
    return [*lines, ""]


def _section(row: Row, drawn: bool) -> list[str]:
    function = getattr(plotting, row.function)
    words = inspect.getdoc(function).split("\n\n")[0].replace("\n", " ")
    lines = [
        f".. _gallery-{row.function}:",
        "",
        row.function,
        "~" * len(row.function),
        "",
    ]
    where = (
        f"  Explained in :doc:`/generated/tutorials/{row.tutorial}`."
        if row.tutorial
        else ""
    )
    lines += [f"{words}{where}", ""]
    commands = [source.command for source in _needed(row.sources) if source.command]
    commands.append(" ".join(["statmech-attn explore", *(x.file for x in row.sources)]))
    lines += [".. code-block:: sh", ""]
    lines += [f"    {line}" for text in commands for line in text.split("\n")]
    lines += ["", ".. code-block:: python", ""]
    lines += [f"    {line}" for line in _program(row)] + [""]
    if drawn:
        lines += [f".. image:: gallery/{row.function}.png", f"    :alt: {words}", ""]
        scans = [source for source in row.sources if source in SCANS]
        pages = [f"`{Path(x.file).stem} <../{VIEWS.name}/{_view(x)}>`__" for x in scans]
        lines += [f"Move in the scan: {', '.join(pages)}.", ""] if pages else []
    return lines


def _call(row: Row) -> str:
    return row.call or f"{row.function}({', '.join(LETTERS[: len(row.sources)])})"


def _program(row: Row) -> list[str]:
    """The lines of Python that draw a row."""
    call = _call(row)
    used = ("dynamics, " if "dynamics." in call else "") + "plotting, storage"
    read = [
        f'{letter} = storage.read("{source.file}")'
        for letter, source in zip(LETTERS, row.sources)
    ]
    return [f"from statmech_attn import {used}", "", *read, f"plotting.{call}"]


def setup(app) -> None:
    """As an extension of Sphinx: the page is there before sources are read."""

    def begin(app) -> None:
        generated = HERE / "generated"
        write(generated, bool(app.config.sphinx_gallery_conf["plot_gallery"]))
        if (generated / VIEWS).exists():
            app.config.html_extra_path.append(str((generated / VIEWS).parent))

    app.connect("builder-inited", begin)
