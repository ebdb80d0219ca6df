"""The explorer: a page on which result files are seen, questioned and computed further.

A small server on this computer reads the files that the command line names, counts
densities, and computes what the page asks for from the study that a file holds.
"""

from typing import TYPE_CHECKING

from statmech_attn import lazy


if TYPE_CHECKING:
    from statmech_attn.explore.explorer import explore as explore, Explorer as Explorer
    from statmech_attn.explore.standalone_page import export as export


lazy.attach(__name__)
