"""The gallery: every figure of `plotting`, with the commands that make it.

Both the figures and what they are drawn from (`gallery_sources`) stay in
`docs/generated/gallery` and are made anew when one of these two files changes.
"""

import hashlib
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gallery_sources
import jax
import xarray as xr
from gallery_sources import (
    ABLATED,
    AGREEMENT,
    Analysis,
    ANGLES,
    BASINS,
    BOUNDARY,
    CAPACITIES,
    Comparison,
    CRITICAL_SPINS,
    CROSSTALK,
    CURVE,
    CURVES,
    DESCENT,
    DOWN,
    EXACT,
    GROWING,
    GROWING_COMPARED,
    GROWING_SPINS,
    INDICATORS,
    Kept,
    ON_PLANE,
    ORBITS,
    PE5,
    PLANE,
    PRUNED,
    RESPONSES,
    RETURNS,
    ROOT,
    RUNNING,
    SADDLE,
    SAMPLES,
    SCANS,
    SCORES,
    SELECTION,
    SEVERAL_SETS,
    SHOT,
    SIMULATION,
    Source,
    THEORY,
    TORUS,
    TRAINED,
    UNSTABLE,
    UP,
    VECTORS,
    WIDTHS,
    ZOOM,
)
from PIL import Image

import statmech_attn
from statmech_attn import dynamics, plotting, storage
from statmech_attn.explore import export
from statmech_attn.kinds import KINDS
from statmech_attn.plotting.frame.drawing import of_modules


HERE = Path(__file__).resolve().parent
DPI = 200
SMALL = 480  # pixels of a picture of the wall
COLUMNS = "2 3 4 4"  # of the wall, from a phone to a desktop
LETTERS = "abcdefgh"  # names of the files of a figure
VIEWS = Path("pages", "views")  # of the site, below its root
UPWARD = lambda scan: scan.isel(start=0, drop=True)


class Row(NamedTuple):
    """A figure: the files it is drawn from, and how.

    Attributes:
        name: of a function of `plotting`, or of the picture of a file.
        sources: files, which are called a, b, c, ... in the call.
        call: of `plotting`; the function of all files, or the picture of the first one,
            when omitted.
        tutorial: where the figure is explained.
    """

    name: str
    sources: Sequence[Source]
    call: str = ""
    tutorial: str = ""


DYNAMICS = (
    Row("bifurcation_diagram", [ZOOM], tutorial="02_poclopez_aguilera"),
    Row("bifurcation_samples", [RETURNS], tutorial="10_own_map"),
    Row("lyapunov_spectrum", [ZOOM], tutorial="05_continuation"),
    Row("phase_ribbon", [ZOOM], tutorial="04_phases"),
    Row("classifiers", [ZOOM], tutorial="02_poclopez_aguilera"),
    Row("phase_diagram", [PLANE, BOUNDARY], tutorial="11_cluster"),
    Row("entropy_production", [PLANE]),
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
    Row("response", [RESPONSES], tutorial="15_arrow_of_time"),
    Row(
        "finite_size_collapse",
        [CRITICAL_SPINS],
        'figure(a, "finite_size")',
        tutorial="15_arrow_of_time",
    ),
    Row("running_lyapunov", [RUNNING], tutorial="02_poclopez_aguilera"),
    Row("continuation_diagram", PE5, tutorial="05_continuation"),
    Row("critical_curves", [CURVES], tutorial="05_continuation"),
    Row("bifurcation_curves", [CURVES], tutorial="05_continuation"),
    Row(
        "sweep_diagram",
        [TORUS, *PE5],
        "sweep_diagram(a, [b, c])",
        "02_poclopez_aguilera",
    ),
    Row("basins", [BASINS], tutorial="04_phases"),
    Row("lifetimes", [BASINS], tutorial="04_phases"),
    Row(
        "hysteresis",
        [UP, DOWN],
        "hysteresis(dynamics.diagrams.compare_sweeps(a, b))",
        "04_phases",
    ),
    Row("chaos_indicators", [INDICATORS]),
    Row("covariant_vectors", [VECTORS]),
    Row("angle_quantiles", [ANGLES]),
    Row("unstable_cycles", [UNSTABLE]),
    Row("plane_basins", [ON_PLANE]),
    Row(
        "finite_size",
        [SIMULATION, THEORY],
        "finite_size(a, b, tokens=60)",
        "06_theory_and_simulation",
    ),
    Row("agreement", [AGREEMENT], tutorial="06_theory_and_simulation"),
    Row("differences", [AGREEMENT], tutorial="06_theory_and_simulation"),
    Row("finite_series", [INDICATORS]),
    Row(
        "overlaps",
        [GROWING, GROWING_SPINS],
        'figure(a, "overlaps", simulation=b)',
        tutorial="13_growing_patterns",
    ),
    Row("crosstalk", [GROWING], tutorial="13_growing_patterns"),
    Row("correlations", [GROWING], tutorial="13_growing_patterns"),
    Row("extensive_agreement", [GROWING_COMPARED], 'figure(a, "agreement")'),
    Row(
        "capacities",
        [CAPACITIES, Kept("capacity_spins")],
        tutorial="13_growing_patterns",
    ),
    Row("thresholds", [Kept("capacity_spins")]),
    Row("motion", [Kept("crosstalk_spins")]),
    Row(
        "phases_against_load",
        [CROSSTALK, Kept("crosstalk_spins")],
        tutorial="13_growing_patterns",
    ),
)
LEARNING = (
    Row(
        "accuracy",
        [SADDLE, EXACT],
        'figure(a, "accuracy", posteriors=[b])',
        tutorial="07_tiberi",
    ),
    Row("evidence", [SADDLE], tutorial="09_exact_law"),
    Row("order_parameters", [SADDLE], tutorial="07_tiberi"),
    Row("alignment", [SADDLE], tutorial="07_tiberi"),
    Row("kernels", [SADDLE], tutorial="07_tiberi"),
    Row("finite_width", [WIDTHS], tutorial="09_exact_law"),
    Row("error_against_examples", [CURVE]),
    Row("posterior_variance", [CURVE]),
    Row("model_selection", [SELECTION]),
    Row("training", [DESCENT, SADDLE], 'figure(a, "training", theory=b)'),
    Row("learning_curves", [TRAINED]),
    Row(
        "one_shot_accuracy",
        [*SHOT, TRAINED],
        'dict(plotting.one_shot_pictures([a, b, c, d], trained=e))["accuracy"]',
        tutorial="07_tiberi",
    ),
    Row(
        "one_shot_matrices",
        [SHOT[0], *SAMPLES, TRAINED],
        'dict(plotting.one_shot_pictures([a], [b, c], d))["order_parameters"]',
        tutorial="07_tiberi",
    ),
    Row(
        "one_shot_alignment", [SHOT[0]], 'figure(a, "alignment")', tutorial="07_tiberi"
    ),
    Row("pruned_heads", [PRUNED], tutorial="07_tiberi"),
    Row("pruning_ranks", [PRUNED], tutorial="07_tiberi"),
    Row("cumulative_pruning", [PRUNED], tutorial="07_tiberi"),
    Row("test_sets", [SEVERAL_SETS]),
    Row("head_scores", [SCORES]),
    Row("heads_together", [SCORES]),
    Row("ablation", [ABLATED]),
    Row("head_interactions", [ABLATED]),
    Row("greedy_pruning", [ABLATED]),
)
SECTIONS = {"Dynamics": DYNAMICS, "Learning": LEARNING}


def write(folder: Path, drawn: bool = True) -> None:
    """Draw what is missing, and write the wall `gallery.rst` and the pages of figures.

    Args:
        drawn: whether figures are computed; the page has its commands in either case.
    """
    pictures, data = folder / "gallery", folder / "gallery" / "data"
    data.mkdir(parents=True, exist_ok=True)
    files = [Path(__file__), Path(gallery_sources.__file__)]
    content = b"".join(file.read_bytes() for file in files)
    stamp, digest = pictures / "digest", hashlib.sha256(content)
    current = stamp.exists() and stamp.read_text() == digest.hexdigest()
    if drawn and not current:
        _draw(pictures, data)
        _export(data, folder / VIEWS)
        stamp.write_text(digest.hexdigest())
    for name, page in _pages(drawn or current).items():
        path = folder / name
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
            figure = eval(_call(row), modules, names)
            plotting.save(figure, pictures, row.name, formats=("png",), dpi=DPI)
            with Image.open(pictures / f"{row.name}.png") as picture:
                picture.thumbnail((SMALL, SMALL))
                picture.save(pictures / _small(row))
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


def _pages(drawn: bool) -> dict[str, str]:
    """Texts by path: the wall of small pictures, and a page for every figure."""
    lines = ["Gallery", "=======", "", inspect.cleandoc(INTRODUCTION), ""]
    pages = {}
    for title, rows in SECTIONS.items():
        lines += [title, "-" * len(title), "", *_wall(rows, drawn)]
        for row in rows:
            pages[f"gallery/{row.name}.rst"] = "\n".join(_section(row, drawn)) + "\n"
    tree = [f"   {name.removesuffix('.rst')}" for name in pages]
    lines += [".. toctree::", "   :hidden:", "", *tree]
    return pages | {"gallery.rst": "\n".join(lines) + "\n"}


INTRODUCTION = """
Every figure of :mod:`statmech_attn.plotting`; a small picture leads to the figure and
the commands that make it.  Sizes are reduced, so that all can be drawn while this site
is built; the scripts of ``paper_figs`` draw the same at publication size
(:doc:`/figures`).

``statmech-attn figure FILE.h5 --output figures`` draws all figures of a file at once;
the calls below draw one.  With ``ax=`` or ``axes=`` its panels are drawn on axes of
yours.

``statmech-attn explore``, the last command of each, shows the same files in the
browser, to move in and to compute further (:doc:`/howto/explorer`).  Below a scan is a
link to its page, which moves as well but computes nothing.

Not drawn here are ``one_shot_kernels``, the picture ``kernels`` of trained heads, which
needs a file with ``run.kernels = true``, and ``trajectories`` of systems of your own.
"""


def _wall(rows: Sequence[Row], drawn: bool) -> list[str]:
    lines = [f".. grid:: {COLUMNS}", "   :gutter: 2", ""]
    for row in rows:
        lines += [
            "   .. grid-item-card::",
            f"      :link: gallery-{row.name}",
            "      :link-type: ref",
            "      :text-align: center",
        ]
        if drawn:
            lines.append(f"      :img-top: gallery/{_small(row)}")
        lines += ["", f"      {row.name.replace('_', ' ')}", ""]
    return lines


def _small(row: Row) -> str:
    """File name of the small picture of a row."""
    return f"{row.name}_small.png"


def _section(row: Row, drawn: bool) -> list[str]:
    words = inspect.getdoc(_drawing(row)).split("\n\n")[0].replace("\n", " ")
    lines = [
        f".. _gallery-{row.name}:",
        "",
        row.name,
        "=" * len(row.name),
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
        lines += [f".. image:: {row.name}.png", f"    :alt: {words}", ""]
        scans = [source for source in row.sources if source in SCANS]
        pages = [
            f"`{Path(x.file).stem} <../../{VIEWS.name}/{_view(x)}>`__" for x in scans
        ]
        lines += [f"Move in the scan: {', '.join(pages)}.", ""] if pages else []
    return lines


def _drawing(row: Row) -> Callable[..., Any]:
    """The function that draws a row."""
    if row.name in plotting.__all__:
        return getattr(plotting, row.name)
    named = [x for x in KINDS if isinstance(x.pictures, str)]
    every = [x for kind in named for x in of_modules(kind.name, kind.pictures)]
    return next(x.draw for x in every if row.name in (x.function, x.name))


def _call(row: Row) -> str:
    """The call in `plotting` that draws a row."""
    of_face = row.name in plotting.__all__
    files = ", ".join(LETTERS[: len(row.sources)])
    default = f"{row.name}({files})" if of_face else f'figure(a, "{row.name}")'
    call = row.call or default
    return call if "plotting." in call else f"plotting.{call}"


def _program(row: Row) -> list[str]:
    """The lines of Python that draw a row."""
    call = _call(row)
    used = ("dynamics, " if "dynamics." in call else "") + "plotting, storage"
    read = [
        f'{letter} = storage.read("{source.file}")'
        for letter, source in zip(LETTERS, row.sources)
    ]
    return [f"from statmech_attn import {used}", "", *read, call]


def setup(app) -> None:
    """As an extension of Sphinx: the page is there before sources are read."""

    def begin(app) -> None:
        generated = HERE / "generated"
        write(generated, bool(app.config.sphinx_gallery_conf["plot_gallery"]))
        if (generated / VIEWS).exists():
            app.config.html_extra_path.append(str((generated / VIEWS).parent))

    app.connect("builder-inited", begin)
