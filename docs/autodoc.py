"""What Sphinx is told of an object: its signature, its docstring, types and defaults.

Types and defaults are shown as the source writes them, so that an alias keeps its name.
"""

import ast
import functools
import importlib
import inspect
import io
import re
import tokenize
from typing import Any, NamedTuple

from matplotlib.figure import Figure


ROOT = "statmech_attn"
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

EMPHASIS = r"(?<![\w*])(\*[A-Za-z][^*|]*[A-Za-z]\*)(?![\w*])"


def escaped(text: str) -> str:
    r"""A docstring with formulas for `$...$`, and *words*; other stars are stars."""

    def plain(part: str) -> str:
        pieces = re.split(EMPHASIS, part)  # which keeps its stars
        pieces[::2] = [re.sub(r"(?<!\\)([*|])", r"\\\1", x) for x in pieces[::2]]
        part = "".join(pieces)
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
            written = escaped("\n".join(block))
            if text and text[0].lstrip().startswith("* "):
                written = re.sub(r"(?m)^( *)\\\*(?= )", r"\1*", written)
            result += written.split("\n")
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
    if what not in ("class", "function", "method"):
        return
    declared, (words_role, type_role) = declarations(what, obj)
    described, rest, place = fields_apart(lines)
    new = [""]
    for key in [*declared, *(k for k in described if k not in declared)]:
        field = declared.get(key, Field(""))
        words = described.get(key) or [" " + escaped(field.words)]
        while words and not words[-1].strip():
            words.pop()
        if what == "class" and not described.get(key) and not field.words:
            words = [""]
        new.append(f":{words_role} {key}:{words[0] if words else ''}")
        new += words[1:]
        if field.type:
            new.append(f":{type_role} {key}: ``{field.type}``")
    if rest[place:] and not rest[place].startswith(":"):
        new.append("")
    if len(new) > 1:
        lines[:] = rest[:place] + new + rest[place:]


def declarations(what: str, obj: Any) -> tuple[dict[str, Field], tuple[str, str]]:
    """Parameters or attributes by name, and the roles of their words and types."""
    if what != "class":
        function = inspect.unwrap(obj)
        ours = getattr(function, "__module__", "").startswith(ROOT)
        node = definition(function) if ours else None
        known = arguments(node) if isinstance(node, ast.FunctionDef) else {}
        known = {k: v for k, v in known.items() if k not in ("self", "cls")}
        return known, ("param", "type")
    init = obj.__dict__.get("__init__")
    if init and getattr(init, "__module__", "").startswith(ROOT):
        node = definition(init)
        if isinstance(node, ast.FunctionDef):
            known = arguments(node)
            known.pop("self", None)
            return known, ("param", "type")
    return fields(obj), ("ivar", "vartype")


def fields_apart(lines: list[str]) -> tuple[dict[str, list[str]], list[str], int]:
    """Words of the fields of a docstring, its other lines, and the fields' place."""
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
    return described, rest, place


def on_member(app, what, name, obj, skip, options):
    """Handler of `autodoc-skip-member`: fields are listed with the class."""
    if what == "class" and type(obj).__name__ in ("_tuplegetter", "member_descriptor"):
        return True
    if isinstance(obj, property) and not obj.__doc__:
        return True
    return None
