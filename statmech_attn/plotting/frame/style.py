"""One look for every figure, without touching matplotlib's global state.

Sizes are those of a printed page: a figure is drawn at the size at which it is read, so
that a font size here is a font size there.  Colours are those of Okabe and Ito, which
readers with any colour vision tell apart (tests/plotting/frame/test_style.py measures
it); phases also differ in lightness, and attractors have colours that no phase has.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib import rcsetup
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import BoundaryNorm, ListedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from statmech_attn.dynamics import PHASES
from statmech_attn.options import Positive
from statmech_attn.storage import replaced, require_replaceable


SINGLE = 3.4  # inches, one column
DOUBLE = 7.0  # inches, two columns
PNG_DPI = 200
PDF_DPI = 400  # of the rasterised parts

MAKER = "drawn by statmech_attn"  # what the pictures say of themselves

FORMATS: dict[str, tuple[int, dict[str, Any]]] = {  # dpi, without dates
    "png": (PNG_DPI, {"Software": MAKER}),
    "pdf": (PDF_DPI, {"Creator": MAKER, "CreationDate": None}),
    "svg": (PDF_DPI, {"Creator": MAKER, "Date": None}),
    "eps": (PDF_DPI, {"Creator": MAKER}),
}

BLACK, GREY, PALE = "#000000", "#8c8c8c", "#d4d4d4"
DARK, DOTS = "#5f5f5f", "#b5b5b5"
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
PALETTE = (BLACK, BLUE, VERMILION, GREEN, PURPLE, GREY, ORANGE)  # of estimates
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
OPEN: dict[str, Any] = {  # markers with error bars
    "ms": 3.2,
    "mew": 0.7,
    "mfc": "white",
    "elinewidth": 0.8,
    "capsize": 1.5,
}
ATTRACTOR_COLOURS = ("#420089", "#A9A95E", "#875B2D", "#8C0077")  # of no phase
ATTRACTOR_COLOURS += ("#B4F177", "#CCD9FF", "#492800", "#E7DDAA")
PHASE_COLOURS = {
    "fixed": SKY,
    "periodic": BLUE,
    "quasiperiodic": GREEN,
    "chaotic": VERMILION,
    "hyperchaotic": PURPLE,
    "transient": YELLOW,
    "undetermined": DARK,
    "diverged": BLACK,
}
SETTINGS: dict[Any, Any] = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.columnspacing": 1.2,
    "axes.prop_cycle": rcsetup.cycler("color", SERIES),
    "axes.linewidth": 0.6,
    "axes.xmargin": 0.0,
    "axes.unicode_minus": True,
    "axes.formatter.use_mathtext": True,
    "axes.formatter.limits": (-4, 5),
    "lines.linewidth": 0.8,
    "lines.markersize": 3,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "xtick.top": True,
    "ytick.right": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "image.cmap": "cividis",
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
    "pdf.fonttype": 42,
    "svg.hashsalt": MAKER,  # the same file from the same figure
}
WORDS = {
    "beta": r"output inverse temperature $\beta$",
    "gamma": r"attention inverse temperature $\gamma$",
    "epsilon": r"positional weight $\epsilon$",
    "redrawn": r"redrawn spins $\Delta$",
    "index": r"point of the list $i$",
    "time": r"token $t$",
    "lyapunov": r"$\lambda_i$ (nat/token)",
    "section": r"$m^{o,\mathrm{SE}}_1$",
    "frequency": r"frequency $f$ (cycles/token)",
    "lag": r"lag $\ell$ (tokens)",
    "n_spins": r"number of spins $N$",
    "width": r"width $N$",
}
OVERLAPS = {
    "m_o_se": r"m^{o,\mathrm{SE}}",
    "A": "A",
    "m_v": "m^v",
    "m_q": "m^q",
    "m_k": "m^k",
}

Drawing = TypeVar("Drawing", bound=Callable[..., Any])


def styled(function: Drawing) -> Drawing:
    """Run a drawing function under the settings of this module."""

    @wraps(function)
    def inside(*args, **kwargs):
        with mpl.rc_context(SETTINGS):
            return function(*args, **kwargs)

    return inside  # type: ignore[return-value]


def figure(width: float, height: float) -> Figure:
    """An empty figure, in inches, that lays itself out."""
    return Figure(figsize=(width, height), layout="constrained")


def overlap(name: str, pattern: int) -> str:
    """Symbol of an observable of one pattern, counted from 1."""
    symbol = OVERLAPS.get(name, name)
    base, caret, upper = symbol.partition("^")
    return f"${base}_{{{pattern}}}{caret}{upper}$"


def save(
    drawn: Figure,
    folder: str | Path,
    name: str,
    formats: Sequence[str] = ("png", "pdf"),
    dpi: Positive | None = None,
) -> list[Path]:
    """Write NAME.png and NAME.pdf into a folder, which is made if it is missing.

    A picture that this function has written before is replaced.

    Args:
        drawn: a figure.
        folder: where to write; made if it is missing.
        name: of the files, without an ending.
        formats: any of `FORMATS`.
        dpi: pixels per inch; `PNG_DPI`, or `PDF_DPI` in the rasterised parts of vector
            graphics, when omitted.

    Returns:
        Paths of the files.

    Raises:
        StorageError: a file of that name is there that this function has not written,
            or it cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = save(Figure(), folder, "empty", formats=("pdf",))
        >>> files[0].name
        'empty.pdf'
    """
    folder = Path(folder)
    with ExitStack() as undone:
        if not folder.exists():
            folder.mkdir(parents=True)
            undone.callback(_remove_empty, folder)  # of a full disk, for example
        paths = [folder / f"{name}.{form}" for form in formats]
        for path in paths:
            require_replaceable(path, True, _is_ours, "picture of this package")
        with mpl.rc_context(SETTINGS):
            for path, form in zip(paths, formats, strict=True):
                default, metadata = FORMATS[form]
                with replaced(path) as part:
                    drawn.savefig(part, dpi=dpi or default, metadata=metadata)
        undone.pop_all()
    return paths


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # something is in it
        folder.rmdir()


def _is_ours(path: Path) -> bool:
    """Whether `save` has written a file."""
    return path.is_file() and MAKER.encode() in path.read_bytes()


def legend_above(axis: Axes, handles, labels) -> None:
    """A legend in one row on top of an axis, where it covers no data."""
    axis.legend(
        handles,
        labels,
        ncols=len(handles),
        loc="lower right",
        borderpad=0.1,
        bbox_to_anchor=(1.0, 0.99),
        borderaxespad=0.0,
    )


def matrix_ticks(axis: Axes, names) -> None:
    """Name the rows and columns of a matrix, if they are few."""
    positions = range(len(names)) if len(names) <= 16 else []
    axis.set_xticks(positions, names[: len(positions)], rotation=90, fontsize=7)
    axis.set_yticks(positions, names[: len(positions)], fontsize=7)
    axis.tick_params(length=0)


def with_errors(image: AxesImage, errors: np.ndarray) -> None:
    """Errors of the entries of a matrix, which the page of the explorer tells."""
    image.errors = errors  # type: ignore[attr-defined]


def floors(axis: Axes, values) -> None:
    """A line across each bar of a head: the score where f does not read the head.

    The bars of `values` stand at 0, 1, 2 and so on.
    """
    places = np.arange(len(values))
    axis.hlines(values, places - 0.38, places + 0.38, color=BLACK, lw=1, label="floor")


def log_ticks(axis: Axis) -> None:
    """Numbers at 1, 2 and 5 times powers of ten, where an axis has few decades."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def dot(count: int, least: float) -> float:
    """Size of a dot where so many stand side by side, readable where they are few."""
    return float(np.clip(300 / count, least, 4.0))


def is_light(colour: str) -> bool:
    """Whether black is easier to read on a colour than white."""
    return float(np.dot(to_rgb(colour), (0.299, 0.587, 0.114))) > 0.6


def cell_edges(centres) -> np.ndarray:
    """Edges of the cells around sorted values, half way between neighbours."""
    centres = np.asarray(centres, float)
    if centres.size == 1:
        return centres[0] + np.array([-0.5, 0.5])
    middle = (centres[1:] + centres[:-1]) / 2
    return np.concatenate(
        [[2 * centres[0] - middle[0]], middle, [2 * centres[-1] - middle[-1]]]
    )


def phase_colours() -> tuple[ListedColormap, BoundaryNorm]:
    """Colour map of the phases' codes."""
    cmap = ListedColormap([PHASE_COLOURS[name] for name in PHASES])
    return cmap, BoundaryNorm(np.arange(len(PHASES) + 1) - 0.5, len(PHASES))


def phase_entries(axis: Axes, *codes) -> None:
    """Legend entries of the phases that occur in arrays of codes, masked or not."""
    for code in np.unique(np.concatenate([np.ma.compressed(c) for c in codes])):
        patch(axis, PHASES[int(code)], PHASE_COLOURS[PHASES[int(code)]])


def patch(axis: Axes, words: str, colour: str, **look: Any) -> None:
    """A legend entry of a colour."""
    axis.fill_between([], [], color=colour, lw=0, label=words, **look)
