"""Sphinx configuration of the documentation; `make docs` builds it."""

import importlib
import inspect
import os
import re
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
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "gallery",
]
exclude_patterns = ["build", "**/GALLERY_HEADER.rst"]
nitpicky = False
keep_warnings = True

# --- appearance ---

html_theme = "furo"
html_title = f"statmech_attn {release}"
html_theme_options = {"navigation_with_keys": True}
copybutton_exclude = ".linenos, .gp, .go"

# --- Markdown ---

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

# --- reference ---

autosummary_generate = False
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
napoleon_google_docstring, napoleon_numpy_docstring = True, False
napoleon_use_ivar = True
napoleon_use_rtype = False
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
    "plot_gallery": True,
    "image_scrapers": ("scraper.figures",),
    "capture_repr": ("_repr_html_",),
    "ignore_repr_types": r"statmech_attn\.interactive",
    "first_notebook_cell": "%matplotlib inline",
}

# Packages whose public objects the reference shows, in the order of data flow.
PACKAGES = (
    "dmft",
    "dynamics",
    "dynamics.continuation",
    "dynamics.diagrams",
    "bpkr",
    "tasks",
    "training",
    "montecarlo",
    "statistics",
    "studies",
    "scan",
    "storage",
    "comparison",
    "validation",
    "plotting",
    "batches",
)


def write(path: Path, text: str) -> None:
    """Write a generated page, unless it is there: Sphinx reads only what changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def titled(name: str) -> list[str]:
    return [name, "=" * len(name), ""]


def object_page(package: str, name: str, value: object, indexed: bool) -> str:
    """The page of an object: a function, a class with its members, or data."""
    options = [] if indexed else ["   :no-index:"]
    if inspect.ismodule(value):
        directive, options = f".. automodule:: {value.__name__}", ["   :members:"]
    elif inspect.isclass(value):
        directive = f".. autoclass:: {package}.{name}"
        options += ["   :members:", "   :exclude-members: count, index"]
    elif callable(value):
        directive = f".. autofunction:: {package}.{name}"
    else:
        directive = f".. autodata:: {package}.{name}"
        options += ["   :no-value:"]
    return "\n".join([*titled(f"{package}.{name}"), directive, *options, ""])


def write_reference() -> None:
    """A page for every package, and one for every object that it offers."""
    folder = HERE / "generated" / "reference"
    shown = set()
    for package in PACKAGES:
        full = f"statmech_attn.{package}"
        module = importlib.import_module(full)
        names = sorted(module.__all__, key=lambda name: (name.lower(), name))
        lines = [*titled(full), f".. automodule:: {full}", "   :no-members:", ""]
        lines += [f".. currentmodule:: {full}", "", ".. autosummary::", ""]
        lines += [f"   {name}" for name in names]
        lines += ["", ".. toctree::", "   :hidden:", ""]
        for name in names:
            value = getattr(module, name)
            identity = getattr(value, "__module__", full), getattr(
                value, "__qualname__", f"{full}.{name}"
            )
            page = f"objects/{full}.{page_name(name)}"
            text = object_page(full, name, value, identity not in shown)
            shown.add(identity)
            write(folder / f"{page}.rst", text)
            lines.append(f"   {page}")
        write(folder / f"{package}.rst", "\n".join(lines) + "\n")


def page_name(name: str) -> str:
    """Names that differ in case only get files that differ on every file system."""
    return name if name.islower() or name.isupper() else f"{name}-class"


MATH = re.compile(r"(?<![\\$\w])\$([^$\n]+(?:\n[^$\n]+)*?)\$(?!\w)")


def with_mathematics(app, what, name, obj, options, lines: list[str]) -> None:
    r"""Docstrings write formulas as Markdown does; Sphinx reads :math:`...`."""
    text = "\n".join(lines)
    blocks = MATH.sub(lambda m: ":math:`" + " ".join(m[1].split()) + "`", text)
    lines[:] = blocks.split("\n")


def setup(app) -> None:
    write_reference()
    app.connect("autodoc-process-docstring", with_mathematics, priority=900)
