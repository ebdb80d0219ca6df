"""Sphinx configuration of the documentation; `make docs` builds it."""

import os
import sys
from pathlib import Path


sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")

import statmech_attn  # noqa: E402


HERE = Path(__file__).resolve().parent

project = "statmech_attn"
author = "the authors of statmech_attn"
release = version = statmech_attn.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",  # formulas need no internet
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api",
    "commands",
    "gallery",
    "packages",
]
exclude_patterns = ["build", "**/GALLERY_HEADER.rst"]

# --- appearance ---

html_theme = "furo"
html_title = f"statmech_attn {release}"
html_show_copyright = False
html_split_index = True  # a page for every letter
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["static"]
html_css_files, html_js_files = ["site.css"], ["site.js"]
smartquotes_action = "D"  # dashes; quotation marks stay what they are
copybutton_exclude = ".linenos, .gp, .go"

# --- Markdown ---

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

# --- reference ---

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
napoleon_google_docstring, napoleon_numpy_docstring = True, False
napoleon_use_ivar = True
napoleon_use_rtype = False
# Short names such as `bytes` are attributes of several classes.
suppress_warnings = ["ref.python"]
default_role = "literal"
python_maximum_signature_line_length = 80

# --- tutorials ---

sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "generated/tutorials",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1,
    "image_scrapers": ("scraper.figures",),
    "capture_repr": ("_repr_html_",),
    "ignore_repr_types": r"statmech_attn\.interactive",
    "first_notebook_cell": "%matplotlib inline",
    "plot_gallery": not tags.has("unexecuted"),  # noqa: F821  (Sphinx gives tags)
}
