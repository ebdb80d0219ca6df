"""Pages of the Python reference, written from the faces of the packages.

A page of a package has its docstring and a table of everything in its `__all__`.  Each
module that defines some of it has a page with them, of a length that can be read; those
of small packages stand on the package's own.
"""

import functools
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from autodoc import escaped, on_docstring, on_fields, on_member, on_signature, ROOT


# Packages in the order in which a reader meets them.
PACKAGES = (
    "interactive",
    "dmft",
    "dmft.extensive",
    "dynamics",
    "dynamics.diagrams",
    "dynamics.continuation",
    "bpkr",
    "tasks",
    "training",
    "montecarlo",
    "comparison",
    "studies",
    "storage",
    "plotting",
    "explore",
    "validation",
    "scan",
    "batches",
    "kinds",
    "labels",
    "cli",
)
LARGE = 12  # public names of a package whose modules have pages of their own


def heading(text: str, line: str) -> list[str]:
    return [text, line * len(text), ""]


def first_sentence(value: Any) -> str:
    text = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    sentence = re.split(r"(?<=[a-z0-9)`$\]][.:])(?<!sec[.]) ", text)[0].rstrip(":")
    return escaped(sentence)


def is_class(value: Any) -> bool:
    return inspect.isclass(value) and value.__module__.startswith(ROOT)


def is_documented(value: Any) -> bool:
    """Whether a value has a docstring of its own: functions and classes do."""
    return is_class(value) or inspect.isfunction(inspect.unwrap(value))


@functools.cache
def sources(package: str) -> str:
    """The text of all files of a package."""
    path = Path(inspect.getsourcefile(importlib.import_module(package)) or "")
    files = path.parent.rglob("*.py") if path.name == "__init__.py" else [path]
    return "\n".join(file.read_text("utf-8") for file in sorted(files))


def constant(full: str, name: str, value: Any) -> list[str]:
    """Data: its value where it is short, and its words where it names codes."""
    lines = [f".. py:data:: {full}.{name}", ""]
    pattern = rf"^{name}\b[^\n=]*=[^\n#]*# (.+)$"
    comment = re.search(pattern, sources(full), re.MULTILINE)
    if comment:
        lines += ["   " + escaped(comment[1][0].upper() + comment[1][1:] + "."), ""]
    if isinstance(value, tuple) and value and all(isinstance(x, str) for x in value):
        lines += [f"   {i}. {escaped(x)}" for i, x in enumerate(value)]
    elif isinstance(value, bool | int | float | str):
        lines.append(f"   Value: ``{value!r}``")
    else:
        alias = re.search(rf"^{name}(?:: [\w.]+)? = (.+)$", sources(full), re.MULTILINE)
        if alias and not alias[1].endswith(("(", "[", "{")):
            lines.append(f"   ``{alias[1].partition('  #')[0]}``")
        else:
            lines.append(f"   A ``{type(value).__name__}``.")
    return [*lines, ""]


def documented(full: str, name: str, value: Any) -> list[str]:
    """The directive of an object."""
    if is_class(value) and issubclass(value, BaseException):
        base = value.__mro__[1].__name__
        text = f"{inspect.getdoc(value)}  A `{base}`."
        return [f".. py:exception:: {full}.{name}", "", f"   {escaped(text)}", ""]
    if is_class(value):
        return [f".. autoclass:: {full}.{name}", "   :members:", ""]
    if is_documented(value):
        return [f".. autofunction:: {full}.{name}", ""]
    return constant(full, name, value)


def listed(full: str, name: str, value: Any, place: str) -> list[str]:
    """A row of the table of a package."""
    if inspect.ismodule(value):
        role = f":py:mod:`{name} <{place}>`"
    else:
        role = f":py:obj:`{name} <{place}>`"
    words = (
        first_sentence(value) if is_documented(value) or inspect.ismodule(value) else ""
    )
    return [f"   * - {role}", f"     - {words}"]


def groups(module: Any, names: list[str]) -> dict[str, list[str]]:
    """Names of a package by the module that defines them."""
    result: dict[str, list[str]] = {}
    for name in names:
        value = getattr(module, name)
        home = value.__module__ if is_documented(value) else ""
        result.setdefault(home, []).append(name)
    return dict(sorted(result.items(), key=lambda item: (item[0] == "", item[0])))


def titled(name: str) -> str:
    """A module's name as a heading."""
    return name[0].upper() + name[1:].replace("_", " ")


class Pages:
    """The reference, page by page; an object is described once."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.places: dict[tuple[str, str], str] = {}
        self.named: dict[str, list[tuple[str, str]]] = {}

    def write(self, name: str, lines: list[str]) -> None:
        path = self.folder / f"{name}.rst"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(lines).rstrip() + "\n"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")  # Sphinx reads only what changed.

    def place(self, full: str, name: str, value: Any) -> tuple[str, bool]:
        """Where an object is described, and whether that is here."""
        if not is_documented(value):
            return f"{full}.{name}", True
        key = (value.__module__, value.__qualname__)
        here = f"{full}.{name}"
        there = self.places.setdefault(key, here)
        return there, there == here

    def package(self, package: str) -> None:
        """The page of a package, and those of the modules in its face."""
        full = f"{ROOT}.{package}"
        module = importlib.import_module(full)
        names = getattr(module, "__all__", None) or public_names(module)
        modules = [
            n
            for n in names
            if inspect.ismodule(getattr(module, n))
            and getattr(module, n).__name__.removeprefix(f"{ROOT}.") not in PACKAGES
        ]
        objects = [n for n in names if not inspect.ismodule(getattr(module, n))]
        apart = self.page(package, module, full, objects, modules)
        for name in modules:
            inner = getattr(module, name)
            names = getattr(inner, "__all__", None) or public_names(inner)
            names = [n for n in names if not inspect.ismodule(getattr(inner, n))]
            more = apart.pop(inner.__name__, [])
            self.page(f"{package}.{name}", inner, inner.__name__, names, [], more)
        for home, described in apart.items():
            title = home.rpartition(".")[2]
            about = [f".. automodule:: {home}", "   :no-members:", "   :no-index:", ""]
            lines = [*heading(titled(title), "="), *about, *described]
            self.write(f"{package}.{title}", lines)

    def page(self, page, module, full, names, modules, more=()) -> dict[str, list[str]]:
        """Write a page, and say what stands apart from it, by defining module.

        Args:
            more: directives of objects that another package gives to users.
        """
        names = sorted(names, key=lambda x: (is_class(getattr(module, x)), x.lower()))
        lines = [
            *heading(full.removeprefix(f"{ROOT}."), "="),
            f".. automodule:: {full}",
            "   :no-members:",
            "",
        ]
        table, body, apart = [], [], {}
        homes = groups(module, names)
        for home, members in homes.items():
            described = []
            if home and len(homes) > 2:
                title = titled(home.rpartition(".")[2])
                words = first_sentence(importlib.import_module(home))
                table += [f"   * - **{title}**", f"     - {words}"]
            for name in members:
                value = getattr(module, name)
                place, here = self.place(full, name, value)
                table += listed(full, name, value, place)
                if here:
                    described += documented(full, name, value)
            if described and len(names) > LARGE and home not in ("", full):
                apart[home] = described
                continue
            if described and home not in ("", full):
                body += heading(titled(home.rpartition(".")[2]), "-")
                body += [first_sentence(importlib.import_module(home)), ""]
            elif described and not home:
                body += heading("Constants and types", "-")
            elif described:
                body += heading("Functions and classes", "-")
            body += described
        for name in modules:
            value = getattr(module, name)
            table += listed(full, name, value, value.__name__)
        if table:
            lines += [".. list-table::", "   :widths: 30 70", ""] + table + [""]
        shorts = dict.fromkeys([*(x.rpartition(".")[2] for x in apart), *modules])
        if shorts:
            lines += [".. toctree::", "   :hidden:", ""]
            lines += [f"   {page}.{name}" for name in shorts] + [""]
        self.write(page, [*lines, *body, *more])
        return apart


def public_names(module: Any) -> list[str]:
    """Classes that a module defines, and functions whose parameters are described."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and is_documented(value)
        and value.__module__ == module.__name__
        and inspect.getdoc(value)
        and (is_class(value) or "Args:" in inspect.getdoc(value))
    ]


def write_pages(folder: Path) -> None:
    pages = Pages(folder)
    for package in PACKAGES:
        pages.package(package)


def setup(app) -> None:
    """Sphinx calls this when it loads the extension."""
    write_pages(Path(__file__).resolve().parent / "generated" / "reference")
    app.connect("autodoc-process-signature", on_signature)
    app.connect("autodoc-process-docstring", on_docstring, priority=100)
    app.connect("autodoc-process-docstring", on_fields, priority=900)
    app.connect("autodoc-skip-member", on_member)
