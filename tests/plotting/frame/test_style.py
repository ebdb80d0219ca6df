"""Colours that mean different things are told apart with any colour vision.

Machado, Oliveira, Fernandes, IEEE Trans. Vis. Comput. Graph. 15, 1291 (2009), at full
severity, on linear light; differences are those of CIE 1976, where 2.3 is just noticed.
"""

import itertools

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from statmech_attn.plotting.dynamics import continuation
from statmech_attn.plotting.dynamics.bifurcation import power_of_ten
from statmech_attn.plotting.dynamics.exponents import symbols
from statmech_attn.plotting.frame import axis_words as labels, notes, sheets, style


VISION = {
    "normal": np.eye(3),
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
}
TO_XYZ = [
    [0.4124564, 0.3575761, 0.1804375],
    [0.2126729, 0.7151522, 0.0721750],
    [0.0193339, 0.1191920, 0.9503041],
]
CURVES = ("fold", "period_doubling", "neimark_sacker")
GROUPS = {  # colours, and the least difference of any two
    "phases": (style.PHASE_COLOURS.values(), 15),
    "series": (style.SERIES, 15),
    "attractors and phases": (
        (*style.ATTRACTOR_COLOURS, *style.PHASE_COLOURS.values()),
        15,
    ),
    "curves of bifurcations": ([continuation.KINDS[kind][0] for kind in CURVES], 15),
    "samples over the phase ribbon": (
        (style.DOTS, style.PHASE_COLOURS["chaotic"], style.BLACK),
        30,
    ),
}


def lab(colour: str, vision: str) -> np.ndarray:
    """Lightness and colour as seen, for a white of daylight."""
    encoded = np.array(to_rgb(colour))
    light = np.where(
        encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4
    )
    seen = np.clip(VISION[vision] @ light, 0, 1)
    x = TO_XYZ @ seen / np.sum(TO_XYZ, axis=1)
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_the_simulation_takes_red_and_green_together():
    apart = lambda vision: np.linalg.norm(
        lab("#D55E00", vision) - lab("#009E73", vision)
    )
    assert apart("deuteranopia") < 0.6 * apart("normal")


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("group", GROUPS)
def test_colours_of_a_picture_are_told_apart(group, vision):
    colours, least = GROUPS[group]
    for one, other in itertools.combinations(colours, 2):
        apart = np.linalg.norm(lab(one, vision) - lab(other, vision))
        assert apart > least, f"{one} and {other}: {apart:.1f}"


def test_what_has_no_colour_of_its_own_takes_those_of_the_palette():
    with mpl.rc_context(style.SETTINGS):
        axis = Figure().subplots()
        bars = [axis.bar(0, 1).patches[0] for _ in style.SERIES]
    assert [to_hex(bar.get_facecolor()) for bar in bars] == [
        colour.lower() for colour in style.SERIES
    ]


def test_numbers_are_mathematical_text():
    assert power_of_ten(1e-3) == "$10^{-3}$"
    assert notes.number(127.0174) == "127.02"
    assert notes.number(np.inf) == r"\infty"


def test_symbols_have_their_indices():
    assert symbols([4, 5, 6]) == r"\lambda_{5},\dots,\lambda_{7}"
    signs = [labels.symbol(x) for x in ("a", "x_12", "dissipation")]
    assert signs == ["$a$", "$x_{12}$", "dissipation"]
    assert style.overlap("A", 3) == "$A_{3}$"
    assert labels.worded("driving", "F", "mV") == "driving $F$ (mV)"
    assert labels.worded("rate a", "a", "1") == "rate $a$"


def test_small_print_leaves_out_what_is_empty():
    assert notes.joined("100 runs", "", "$C = 4$") == "100 runs; $C = 4$"
    file = xr.Dataset(coords={"gamma": 127.017}, attrs={"context": 4})
    assert notes.network(file) == r"$C = 4$, $\gamma = 127.02$"
    lines = sheets.in_lines("100 runs, $P = 8, 9$, network a", 20)
    assert lines == "100 runs, $P = 8, 9$,\nnetwork a"


def test_dots_cells_and_text_on_colours_can_be_read():
    assert (style.dot(20, 0.9), style.dot(1000, 0.9)) == (4.0, 0.9)
    assert style.is_light(style.YELLOW) and not style.is_light(style.BLUE)
    assert style.cell_edges([0.0, 1.0, 3.0]).tolist() == [-0.5, 0.5, 2.0, 4.0]


def test_no_new_folder_without_a_picture_is_left(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    (tmp_path / "there").mkdir()
    for name in ("new", "there"):
        with pytest.raises(OSError, match="No space left"):
            style.save(Figure(), tmp_path / name, "picture")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
