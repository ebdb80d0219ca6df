"""Pages of the Python reference, written from the faces of the packages.

A page of a package has its docstring, a table of everything in its `__all__`, and the
objects in the groups of the modules that define them.  Types and defaults are shown as
the source writes them, so that an alias keeps its name.
"""

import ast
import functools
import importlib
import inspect
import io
import re
import tokenize
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure


ROOT = "statmech_attn"
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
    "statistics",
    "comparison",
    "studies",
    "storage",
    "plotting",
    "explore",
    "validation",
    "scan",
    "batches",
    "native",
    "kinds",
    "labels",
    "cli",
)
LONGEST_DEFAULT = 40


class Field(NamedTuple):
    """A parameter or an attribute as its source declares it."""

    type: str
    default: str | None = None
    words: str = ""


# --- what the source says ---


@functools.cache
def tree_of(module: str) -> tuple[ast.Module, dict[int, str]]:
    """Syntax of a module, and the comments at the ends of its lines."""
    text = inspect.getsource(importlib.import_module(module))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokens
        if token.type == tokenize.COMMENT and token.line.lstrip()[0] != "#"
    }
    return ast.parse(text), comments


def definition(value: Any) -> ast.AST | None:
    """The statement that defines a function or a class."""
    node: Any = tree_of(value.__module__)[0]
    for name in value.__qualname__.split("."):
        body = getattr(node, "body", [])
        matches = [x for x in body if getattr(x, "name", None) == name]
        if not matches:
            return None
        node = matches[-1]
    return node


def arguments(node: ast.FunctionDef) -> dict[str, Field]:
    """Parameters of a function, in order, by name."""
    spec = node.args
    positional = [*spec.posonlyargs, *spec.args]
    absent = [None] * (len(positional) - len(spec.defaults))
    pairs = [*zip(positional, [*absent, *spec.defaults])]
    pairs += [*zip(spec.kwonlyargs, spec.kw_defaults)]
    pairs += [(x, None) for x in (spec.vararg, spec.kwarg) if x]
    return {
        x.arg: Field(
            ast.unparse(x.annotation) if x.annotation else "",
            ast.unparse(default) if default else None,
        )
        for x, default in pairs
    }


def fields(cls: type) -> dict[str, Field]:
    """Declared attributes of a class and of its bases, with their comments."""
    result = {}
    for base in reversed(cls.__mro__):
        if not base.__module__.startswith(ROOT):
            continue
        node = definition(base)
        comments = tree_of(base.__module__)[1]
        for line in getattr(node, "body", ()):
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                name = line.target.id
                if not name.startswith("_"):
                    words = comments.get(line.end_lineno or 0, "")
                    kind = ast.unparse(line.annotation)
                    result[name] = Field(kind, None, words)
    return result


# --- signatures ---


def shortened(parameter: inspect.Parameter, source: Field) -> inspect.Parameter:
    """A parameter without its type, and with a default that fits on a line."""
    parameter = parameter.replace(annotation=inspect.Parameter.empty)
    if parameter.default is inspect.Parameter.empty:
        return parameter
    text = source.default or repr(parameter.default)
    short = len(text) <= LONGEST_DEFAULT and "<" not in text

    class Written:
        def __repr__(self) -> str:
            return text if short else "..."

    return parameter.replace(default=Written())


def signature(value: Any) -> tuple[str, str] | None:
    """Parameters and result of a callable as text; types of parameters stand below."""
    function = inspect.unwrap(value)
    try:
        spec = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    node = definition(function) if function.__module__.startswith(ROOT) else None
    is_function = isinstance(node, ast.FunctionDef)
    known = arguments(node) if is_function else {}
    parameters = [
        shortened(x, known.get(name, Field("")))
        for name, x in spec.parameters.items()
        if name != "self"
    ]
    text = spec.replace(
        parameters=parameters, return_annotation=inspect.Signature.empty
    )
    result = ast.unparse(node.returns) if is_function and node.returns else ""
    return str(text), result


def on_signature(app, what, name, obj, options, written, result):
    """Handler of `autodoc-process-signature`."""
    if what not in ("function", "class", "method") or not hasattr(obj, "__module__"):
        return None
    return signature(obj)


# --- docstrings: Markdown spans to reStructuredText, and the types of parameters ---

SPAN = re.compile(
    r"(``.+?``|(?<!`)`[^`\n]+(?:\n[^`\n]+)?`|(?<![\\$\w])\$[^$]+\$(?!\w))"
)


def escaped(text: str) -> str:
    r"""A docstring with formulas for its `$...$`; stars and bars are themselves."""

    def plain(part: str) -> str:
        part = re.sub(r"(?<!\\)([*|])", r"\\\1", part)
        part = re.sub(r"(?<=\w)_(?!\w)", r"\_", part)
        return re.sub(r"docs/([\w/]+)\.md", r":doc:`\1 </\1>`", part)

    def span(part: str) -> str:
        if part.startswith("$"):
            return ":math:`" + " ".join(part[1:-1].split()) + "`"
        if part.startswith("``"):
            return part
        return "``" + " ".join(part[1:-1].split()) + "``"

    parts = SPAN.split(text)
    written = [span(x) if i % 2 else plain(x) for i, x in enumerate(parts)]
    # A word that goes on after a literal would hide where the literal ends.
    for i in range(2, len(written), 2):
        if re.match(r"\w", written[i]):
            written[i] = "\\ " + written[i]
    return "".join(written)


def blocks(lines: list[str]) -> list[list[str]]:
    """Paragraphs of a docstring; examples and literal blocks are whole."""
    result: list[list[str]] = []
    literal = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent <= literal:
            literal = None
            result.append([])
        if not result or (not line.strip() and literal is None):
            result.append([])
        result[-1].append(line)
        if line.rstrip().endswith("::") and literal is None:
            literal = indent
            result.append([])
    return result


def is_code(block: list[str]) -> bool:
    text = [line for line in block if line.strip()]
    return bool(text) and text[0].lstrip().startswith((">>>", ".. "))


def set_off(block: list[str]) -> list[str]:
    """An indented block of a module's docstring: formulas, or a table of symbols."""
    text = "\n".join(block).strip("\n")
    if "$" not in text:
        return ["::", "", *("   " + line for line in text.split("\n")), ""]
    indent = min(len(x) - len(x.lstrip()) for x in text.split("\n"))
    whole = re.sub(r"\$[^$]+\$", lambda m: " ".join(m[0].split()), text)
    rows = [escaped(row[indent:]) for row in whole.split("\n")]
    return ["", *("   | " + row for row in rows), ""]


def on_docstring(app, what, name, obj, options, lines: list[str]) -> None:
    """Handler of `autodoc-process-docstring` before napoleon's."""
    result: list[str] = []
    literal = False
    for block in blocks(lines):
        raw = literal or is_code(block)
        literal = bool(block) and block[-1].rstrip().endswith("::")
        text = [line for line in block if line.strip()]
        indented = bool(text) and all(line.startswith("    ") for line in text)
        if raw:
            result += block
        elif what == "module" and indented:
            result += ["", *set_off(block)]
        else:
            result += escaped("\n".join(block)).split("\n")
    if (
        what == "function"
        and name.startswith(f"{ROOT}.plotting.")
        and (
            inspect.signature(obj).return_annotation is Figure
            and not any(line.strip() == "Example:" for line in lines)
        )
    ):
        link = f":ref:`in the gallery <gallery-{name.rpartition('.')[2]}>`"
        words = f"    The figure, with the commands that make it, is {link}."
        result += ["", "Example:", words, ""]
    lines[:] = result


FIELD = re.compile(r":(param|type|ivar|vartype) (\S+?):")


def on_fields(app, what, name, obj, options, lines: list[str]) -> None:
    """Handler of `autodoc-process-docstring` after napoleon's: types of parameters."""
    if what == "class":
        declared = fields(obj)
        role = ("ivar", "vartype")
        init = obj.__dict__.get("__init__")
        if init and getattr(init, "__module__", "").startswith(ROOT):
            node = definition(init)
            if isinstance(node, ast.FunctionDef):
                declared = arguments(node)
                declared.pop("self", None)
                role = ("param", "type")
    elif what in ("function", "method"):
        function = inspect.unwrap(obj)
        node = None
        if getattr(function, "__module__", "").startswith(ROOT):
            node = definition(function)
        declared = arguments(node) if isinstance(node, ast.FunctionDef) else {}
        declared = {k: v for k, v in declared.items() if k not in ("self", "cls")}
        role = ("param", "type")
    else:
        return
    described: dict[str, list[str]] = {}
    rest: list[str] = []
    place, current = None, None
    for line in lines:
        match = FIELD.match(line)
        if match:
            place = len(rest) if place is None else place
            key = match[2].replace("\\", "").lstrip("*")
            if match[1] in ("param", "ivar"):
                current = described.setdefault(key, [])
                current.append(line[match.end() :])
            else:
                current = []
        elif current is not None and (line.startswith("   ") or not line.strip()):
            current.append(line)
        else:
            current = None
            rest.append(line)
    if place is None:
        starts = (":raises", ":returns", ".. rubric::")
        places = [i for i, line in enumerate(rest) if line.startswith(starts)]
        place = places[0] if places else len(rest)
    new = [""]
    for key in [*declared, *(k for k in described if k not in declared)]:
        field = declared.get(key, Field(""))
        words = described.get(key) or [" " + escaped(field.words)]
        while words and not words[-1].strip():
            words.pop()
        if what == "class" and not described.get(key) and not field.words:
            words = [""]
        new.append(f":{role[0]} {key}:{words[0] if words else ''}")
        new += words[1:]
        if field.type:
            new.append(f":{role[1]} {key}: ``{field.type}``")
    if rest[place:] and not rest[place].startswith(":"):
        new.append("")
    if len(new) > 1:
        lines[:] = rest[:place] + new + rest[place:]


def on_member(app, what, name, obj, skip, options):
    """Handler of `autodoc-skip-member`: fields are listed with the class."""
    if what == "class" and type(obj).__name__ in ("_tuplegetter", "member_descriptor"):
        return True
    if isinstance(obj, property) and not obj.__doc__:
        return True
    return None


# --- pages ---


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
        self.page(package, module, full, objects, modules)
        for name in modules:
            inner = getattr(module, name)
            names = getattr(inner, "__all__", None) or public_names(inner)
            names = [n for n in names if not inspect.ismodule(getattr(inner, n))]
            self.page(f"{package}.{name}", inner, inner.__name__, names, [])

    def page(self, page, module, full, names, modules) -> None:
        names = sorted(names, key=lambda x: (is_class(getattr(module, x)), x.lower()))
        lines = [
            *heading(full.removeprefix(f"{ROOT}."), "="),
            f".. automodule:: {full}",
            "   :no-members:",
            "",
        ]
        table, body = [], []
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
        if modules:
            lines += [".. toctree::", "   :hidden:", ""]
            lines += [f"   {page}.{name}" for name in modules] + [""]
        self.write(page, [*lines, *body])


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
