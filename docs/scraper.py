"""Figures of the tutorials and of the gallery, for sphinx-gallery.

Its own scraper sees figures of pyplot only.  Those of this package belong to no
window: they are the value of the last line of a block, or stand in a dictionary there.
"""

from pathlib import Path
from weakref import WeakSet

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

from statmech_attn import plotting


DPI = 100  # a figure of two columns fills the page
LAST_VALUE = "___"  # name that sphinx-gallery gives the value of the last line
SHARP = 2  # times as many pixels for screens that have them

_shown: WeakSet[Figure] = WeakSet()


def figures(block, block_vars, gallery_conf) -> str:
    """Save the figures that a block made; the text that shows them."""
    drawn = [plt.figure(number) for number in plt.get_fignums()]
    drawn += _package_figures(block_vars["example_globals"].get(LAST_VALUE))
    text = ""
    for figure in drawn:
        if figure not in _shown:
            _shown.add(figure)
            path = Path(next(block_vars["image_path_iterator"]))
            sharp = path.with_stem(f"{path.stem}_2_00x")
            for file, times in ((path, 1), (sharp, SHARP)):
                plotting.save(figure, file.parent, file.stem, ("png",), DPI * times)
            both = [{0: str(path), float(SHARP): str(sharp)}]
            text += figure_rst([str(path)], gallery_conf["src_dir"], srcsetpaths=both)
    plt.close("all")
    return text


def _package_figures(value) -> list[Figure]:
    """A figure, or those of a dictionary."""
    values = value.values() if isinstance(value, dict) else [value]
    return [x for x in values if isinstance(x, Figure)]
