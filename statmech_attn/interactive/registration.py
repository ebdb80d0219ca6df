"""What a session shows: the accessor of data sets, figures as pictures in a notebook.

The accessor is registered when xarray is imported and not before:
xarray and pandas take as long to import as JAX, and much of a session needs neither.
"""

import importlib.util
import sys
from importlib.abc import MetaPathFinder
from types import ModuleType

from statmech_attn.presentation import png


XARRAY = "xarray"


def show_figures() -> None:
    """Let a notebook show figures, which `plotting` makes without pyplot."""
    IPython = sys.modules.get("IPython")
    shell = IPython.get_ipython() if IPython else None
    if shell is not None:
        formatter = shell.display_formatter.formatters["image/png"]
        formatter.for_type_by_name("matplotlib.figure", "Figure", png)


def register() -> None:
    """Let data sets of xarray have the accessor, from now or from its import on."""
    if XARRAY in sys.modules:
        from statmech_attn.interactive.accessor import register_accessor

        register_accessor()
    elif not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())


class Finder(MetaPathFinder):
    """Finds xarray once, as the other finders do, and registers when it is executed."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != XARRAY:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                register()

            spec.loader.exec_module = exec_module
        return spec
