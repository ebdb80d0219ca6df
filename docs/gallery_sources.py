"""Files that the gallery draws from: studies of the repository at reduced size, results
that lie in `paper_figs/results`, and small examples of functions of the package.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from statmech_attn import bpkr, cli, comparison, dynamics, scan, storage, studies
from statmech_attn.tasks import arrays


ROOT = Path(__file__).resolve().parents[1]


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


class Made(NamedTuple):
    """A file that functions of the package write."""

    file: str
    command: str
    write: Callable[[Path], None]

    def compute(self, folder: Path) -> None:
        self.write(folder / self.file)


Source = Study | Analysis | Comparison | Kept | Made


def write_result(path: Path, result: Any) -> None:
    """Write the data set of a result, of the kind that it names."""
    dataset = result.to_dataset()
    storage.write(path, dataset, study="", kind=dataset.attrs["kind"])


def write_scores(path: Path) -> None:
    """Scores of the heads of the example file of arrays."""
    file = arrays.write_example(path.parent)
    cli.app(["score", str(file), "-o", str(path)], standalone_mode=False)


def write_ablation(path: Path) -> None:
    """Losses of a small network without its heads, two of which see the same."""
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
    write_result(path, ablation)


def write_vectors(path: Path) -> None:
    """Covariant vectors along an orbit of Hénon's map."""
    henon = lambda x: jnp.stack([1 - 1.4 * x[0] ** 2 + x[1], 0.3 * x[0]])
    vectors = dynamics.covariant_vectors(
        henon, jnp.array([0.1, 0.2]), steps=100_000, transient=1000, piece=10
    )
    write_result(path, vectors)


def write_angles(path: Path) -> None:
    """Covariant vectors of Hénon's map along its parameter."""

    def henon(x, p):
        return jnp.stack([1 - p["a"] * x[0] ** 2 + x[1], 0.3 * x[0]])

    vectors = lambda p: dynamics.covariant_vectors(
        henon, jnp.array([0.1, 0.2]), p, steps=10_000, transient=2000
    )
    angles = scan.over(
        vectors,
        {"a": np.linspace(1.0, 1.4, 201)},
        kind="covariant-diagram",
        keep=["covariant_exponent", "smallest_angle", "angle_quantile"],
    )
    angles.run(path, overwrite=True)


def write_cycles(path: Path) -> None:
    """Cycles of Hénon's map, those in its attractor."""
    henon = lambda x: jnp.stack([1 - 1.4 * x[0] ** 2 + x[1], 0.3 * x[0]])
    cycles = dynamics.unstable_cycles(henon, jnp.array([0.1, 0.2]), period=13)
    write_result(path, cycles.where(cycles.distance < 0.02))


def write_plane(path: Path) -> None:
    """Basins of Newton's method for the roots of z^3 = 1."""

    def newton(x):
        z = x[0] + 1j * x[1]
        z = z - (z**3 - 1) / (3 * z**2)
        return jnp.stack([z.real, z.imag])

    x, search = np.linspace(-2, 2, 600), dynamics.Search(2000, record=64)
    plane = dynamics.PlaneBasins(newton, jnp.zeros(2), x, x, search=search)
    plane.run(path, overwrite=True)


def write_returns(path: Path) -> None:
    """Rössler's flow where it crosses y = 0 upwards, over c."""

    def rossler(u, p):
        x, y, z = u
        return jnp.stack([-y - z, x + 0.2 * y, 0.2 + z * (x - p["c"])])

    plane = dynamics.section(dynamics.flow(rossler, time=1.0, substeps=20), (1, 0.0))
    plan = dynamics.diagrams.Plan(
        transient=400,
        steps=500,
        exponents=2,
        strobe_samples=128,
        **dynamics.diagrams.WITHOUT_SECTION,
    )
    dynamics.diagram(
        plane,
        {"c": np.linspace(2, 6, 257)},
        jnp.array([1.0, 1.0, 0.0]),
        plan,
        confirm=dynamics.diagrams.Confirm(0),
        file=path,
        overwrite=True,
    )


def write_several_sets(path: Path) -> None:
    """Order parameters of the example of arrays, its test set cut into two."""
    with tempfile.TemporaryDirectory() as place:
        given = dict(np.load(arrays.write_example(place)))
        for name in [name for name in given if name.endswith("_test")]:
            axis = name.startswith("attention")  # heads come first
            given[name], given[f"{name}_validation"] = np.split(given[name], 2, axis)
        study = Path(place) / "sets.toml"
        np.savez(study.with_suffix(".npz"), **given)
        study.write_text(
            'kind = "order-parameter"\n[task]\nname = "arrays"\nfile = "sets.npz"\n'
            "[network]\nwidth = [10, 20, 50, 100]\ntemperature = [0.1, 0.3, 1.0]\n"
        )
        studies.produce(study, path)


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
THEORY = Study("analysis/demo_theory.toml", (BETAS, "parameters.gamma=10.0"))
SIMULATION = Study(
    "simulations/demo_simulation.toml",
    (
        *(BETAS, "parameters.gamma=10.0"),
        *("run.runs=5000", "run.n_spins=[15000, 60000, 300000, 3000000]"),
    ),
)
AGREEMENT = Comparison(THEORY, SIMULATION, "agreement.h5")
INDICATORS = Analysis(
    "analysis/chaos_indicators.py",
    ("--length", "500", "--points", "4000", "--runs", "2"),
)
SADDLE = Study(
    "analysis/hidden_markov.toml",
    ("network.width=[10, 15, 20, 30, 50, 100, 300, 1000]",),
)
EXACT = Study(
    "simulations/hidden_markov_exact.toml",
    (
        "network.width=[10, 15, 20, 30, 100]",
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
SCANS = ZOOM, PLANE, UP, DOWN, TORUS  # each has a page to move in
SHOT = [Kept(f"one_shot_theory-{i}") for i in range(4)]
SAMPLES = [Kept(f"one_shot_{of}-0") for of in ("exact", "weights")]
TRAINED, PRUNED = Kept("one_shot_training"), Kept("one_shot_pruning")
SCORES = Made(
    "scores.h5",
    "statmech-attn new arrays --output study.toml\n"
    "statmech-attn score arrays.npz --output scores.h5",
    write_scores,
)
ABLATED = Made(
    "ablation.h5",
    "# ablation.h5: losses of a network without its heads, "
    "see the page on your own data",
    write_ablation,
)
ANGLES = Made("angles.h5", "# angles.h5: see the page on attractors", write_angles)
VECTORS = Made("vectors.h5", "# vectors.h5: see the page on attractors", write_vectors)
UNSTABLE = Made("cycles.h5", "# cycles.h5: see the page on attractors", write_cycles)
ON_PLANE = Made("plane.h5", "# plane.h5: see the page on attractors", write_plane)
RETURNS = Made("rossler.h5", "# rossler.h5: see the page on maps", write_returns)
SEVERAL_SETS = Made(
    "sets.h5",
    "# sets.npz: arrays with a second test set, see the page on your own data\n"
    "statmech-attn run sets.toml --output sets.h5",
    write_several_sets,
)
