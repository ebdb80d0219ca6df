"""What the documents name exists: tests, messages, pages, studies."""

import ast
import datetime
import functools
import importlib.util
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from statmech_attn import __version__, cli, kinds, studies


ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
THEORY = [page for page in DOCS.glob("theory/*.md") if page.stem != "notation"]
PAGES = [*DOCS.glob("*.md"), *DOCS.glob("howto/*.md"), *DOCS.glob("decisions/*.md")]


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@functools.cache
def words() -> str:
    """All texts of the library; parts of one text follow each other."""
    texts = [
        node.value
        for path in (ROOT / "statmech_attn").rglob("*.py")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return "\n".join(texts)


@pytest.mark.parametrize("page", THEORY, ids=lambda page: page.stem)
def test_every_derivation_names_a_test_that_exists(page):
    _, _, table = page.read_text("utf-8").partition("\n## Tests\n")
    rows = re.findall(r"^\| .* \| `(.+)` \| `(.+)` \|$", table, re.MULTILINE)
    assert len(rows) >= 8
    for file, name in rows:
        source = (ROOT / "tests" / f"{file}.py").read_text("utf-8")
        assert f"def test_{name}(" in source, f"{page.name}: {file} has no {name}"


def test_messages_in_the_page_on_errors_are_those_of_the_library():
    rows = re.findall(r"^\| `([^`]+)`", (DOCS / "errors.md").read_text("utf-8"), re.M)
    assert len(rows) > 10
    assert not [message for message in rows if message not in words()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_between_pages_lead_somewhere_on_disk_too(page):
    """Readers of the repository follow the same links as those of the site.

    But for pages that the site generates, tutorials among them from their sources.
    """
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\((?!https?:|#|generated/)([^)#]+)", text)
    tutorial = (r"generated/tutorials/(\w+)\.rst", r"tutorials/\1.py")
    sources = [re.sub(*tutorial, link) for link in links]
    assert not [source for source in sources if not (page.parent / source).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_whole_studies_of_the_documents_are_valid(page):
    blocks = re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    for block in blocks:
        tree = tomllib.loads(block)
        if "kind" in tree:
            assert studies.parse(tree).kind == tree["kind"]


def public_statements() -> Iterator[tuple[str, ast.stmt]]:
    """Functions and classes on the faces of packages, by the module they are in."""
    for face in (ROOT / "statmech_attn").rglob("__init__.py"):
        imports = [x for x in ast.walk(tree(face)) if isinstance(x, ast.ImportFrom)]
        for node in imports:
            module = ROOT.joinpath(*(node.module or "").split(".")).with_suffix(".py")
            names = {alias.name for alias in node.names if alias.asname}
            for definition in tree(module).body if module.exists() else ():
                if getattr(definition, "name", None) in names:
                    parts = module.with_suffix("").relative_to(ROOT).parts
                    yield ".".join(parts[1:]), definition


def public_functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for module, statement in public_statements():
        if isinstance(statement, ast.FunctionDef):
            yield module, statement


def module_functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Described functions of modules that are themselves on the face of a package."""
    for face in (ROOT / "statmech_attn").rglob("__init__.py"):
        for node in ast.walk(tree(face)):
            if not isinstance(node, ast.ImportFrom):
                continue
            for alias in filter(lambda alias: alias.asname, node.names):
                path = ROOT.joinpath(*(node.module or "").split("."), alias.name)
                module = path.with_suffix(".py")
                for definition in tree(module).body if module.exists() else ():
                    if not isinstance(definition, ast.FunctionDef):
                        continue
                    described = "Args:" in (ast.get_docstring(definition) or "")
                    if described and definition.name[0] != "_":
                        yield f"{face.parent.name}.{alias.name}", definition


def public_methods() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Those of public classes that a docstring describes, by class.

    What computations redefine of `scan.Points` is described there.
    """
    described = {
        method.name
        for module in ("points", "chunks/work")
        for method in ast.walk(tree(ROOT / "statmech_attn" / "scan" / f"{module}.py"))
        if isinstance(method, ast.FunctionDef) and ast.get_docstring(method)
    }
    for module, statement in public_statements():
        if isinstance(statement, ast.ClassDef):
            inherited = (
                described
                if "Points" in " ".join(map(ast.unparse, statement.bases))
                else set()
            )
            for method in statement.body:
                if isinstance(method, ast.FunctionDef) and method.name[0] != "_":
                    if ast.get_docstring(method) and method.name not in inherited:
                        yield f"{module}.{statement.name}", method


def test_every_parameter_of_a_public_function_is_described():
    """And of a public method, or of a function of a public module, with a docstring."""
    functions = (*public_functions(), *public_methods(), *module_functions())
    silent, count = [], 0
    for module, function in functions:
        text = ast.get_docstring(function) or ""
        spec = function.args
        for parameter in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            if parameter.arg in ("self", "cls"):
                continue
            count += 1
            named = rf"^ *([*\w]+, )*\*{{0,2}}{parameter.arg}(, [*\w]+)*( \(.*\))?:"
            if not re.search(named, text, re.MULTILINE):
                silent.append(f"{module}.{function.name}: {parameter.arg}")
    assert count > 900 and not silent


def test_every_public_function_has_an_example():
    """In its docstring; that of a figure may be in the gallery."""
    path = DOCS / "gallery.py"
    rows = [x for x in ast.walk(tree(path)) if isinstance(x, ast.Call) and x.args]
    calls = [(ast.unparse(x.func), x.args[0]) for x in rows]
    gallery = {ast.literal_eval(first) for name, first in calls if name == "Row"}
    without, count = [], 0
    for module, function in public_functions():
        count += 1
        drawn = module.startswith("plotting.") and function.name in gallery
        if not drawn and "\nExample:\n" not in ast.get_docstring(function):
            without.append(f"{module}.{function.name}")
    assert count > 180 and len(gallery) > 30 and not without


def test_every_value_error_of_a_public_function_is_described():
    silent, count = [], 0
    for module, function in (*public_functions(), *public_methods()):
        raised = [x.exc for x in ast.walk(function) if isinstance(x, ast.Raise)]
        calls = [x.func for x in raised if isinstance(x, ast.Call)]
        if any(isinstance(x, ast.Name) and x.id == "ValueError" for x in calls):
            count += 1
            if "Raises:" not in ast.get_docstring(function):
                silent.append(f"{module}.{function.name}")
    assert count > 80 and not silent


def test_results_of_several_parts_are_described():
    """What a tuple, a dictionary, a data set or an object of the package holds."""
    classes = {x.name for _, x in public_statements() if isinstance(x, ast.ClassDef)}
    parts = {"tuple", "dict", "xr.Dataset", *classes}
    silent, count = [], 0
    for module, function in public_functions():
        text, result = ast.get_docstring(function), function.returns
        kind = ast.unparse(result).strip("'") if result else ""
        name = re.split(r"[\[ ]", kind)[0]
        if not module.startswith(("cli", "plotting")) and name in parts:
            count += 1
            if not re.search("^(Returns|Yields):", text, re.MULTILINE):
                silent.append(f"{module}.{function.name}")
    assert count > 90 and not silent


def test_fields_of_what_public_functions_return_are_described():
    """`help` of a class shows its docstring, not the comments beside its fields."""
    returns = [x.returns for _, x in public_functions() if x.returns]
    returned = set(re.findall(r"\w+", " ".join(map(ast.unparse, returns))))
    silent, count = [], 0
    for module, statement in public_statements():
        if isinstance(statement, ast.ClassDef) and statement.name in returned:
            named = [x.target for x in statement.body if isinstance(x, ast.AnnAssign)]
            fields = [x.id for x in named if isinstance(x, ast.Name)]
            text = ast.get_docstring(statement) or ""
            told = re.findall(r"^ {4}([\w, ]+)(?: \(.*\))?:", text, re.MULTILINE)
            names = ", ".join(told).split(", ")
            count += len(fields)
            public = [x for x in fields if x[0] != "_" and x not in names]
            silent += [f"{module}.{statement.name}: {x}" for x in public]
    assert count > 300 and not silent


def test_commands_of_the_documents_are_commands_with_these_options():
    script = importlib.util.spec_from_file_location("commands", DOCS / "commands.py")
    commands = importlib.util.module_from_spec(script)
    script.loader.exec_module(commands)
    known = dict(
        re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", commands.page(), re.M | re.S)
    )
    wrong, count = [], 0
    for page in [ROOT / "README.md", *PAGES]:
        text = page.read_text("utf-8").replace("\\\n", " ")
        for name, words in re.findall(r"^statmech-attn (\w+)(.*)$", text, re.M):
            for option in re.findall(r"(?<= )--?[a-z][a-z-]*", words.partition("#")[0]):
                count += 1
                if f"`{option}`" not in known[name]:
                    wrong.append(f"{page.name}: {name} {option}")
    assert count > 50 and not wrong


def commands_of(page: Path) -> Iterator[list[str]]:
    """Words of every `statmech-attn COMMAND` in the shell blocks of a page."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        for line in re.findall(r"^statmech-attn ([a-z].*)$", block, re.MULTILINE):
            yield shlex.split(line, comments=True)


def test_commands_of_the_documents_have_these_arguments():
    """As the command line reads them, with the study of the repository they name."""
    app, count = typer.main.get_command(cli.app), 0
    assert isinstance(app, TyperGroup)
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]:
        for name, *words in commands_of(page):
            count += 1
            given = app.commands[name].make_context(name, [*words]).params
            study = ROOT / str(given.get("study"))
            if name == "run" and study.exists():
                studies.load(study, given["set_"] or ())
    assert count > 40


def test_parts_of_studies_in_the_documents_have_known_keys():
    tables = (DOCS / "keys.md").read_text("utf-8")
    known, count = set(re.findall(r"^\| `([\w.]+)`", tables, re.MULTILINE)), 0
    for page in PAGES:
        text = page.read_text("utf-8")
        for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL):
            tree = tomllib.loads(block)
            if "kind" in tree or "project" in tree:
                continue
            for name, keys in tree.items():
                if name in ("parameters", "labels"):  # of the reader's own naming
                    continue
                for key, value in keys.items():
                    inner = value if isinstance(value, dict) else ()
                    paths = {f"{name}.{key}.{x}" for x in inner} or {f"{name}.{key}"}
                    count += len(paths)
                    assert paths <= known, page.name
    assert count > 20


@pytest.mark.parametrize(
    "page",
    [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *PAGES, *THEORY],
    ids=lambda page: page.stem,
)
def test_files_that_a_page_names_exist(page):
    folders = "analysis|benchmarks|paper_figs|simulations|statmech_attn|tests"
    pattern = rf"`((?:{folders})/[\w./-]+\.(?:py|json|js|toml|md))"
    files = re.findall(pattern, page.read_text("utf-8"))
    assert not [file for file in files if not (ROOT / file).exists()]


def test_every_generator_of_patterns_stands_in_the_guide_with_its_sizes():
    guide = (DOCS / "howto" / "studies.md").read_text("utf-8")
    rows = re.findall(r'^# patterns = "([\w-]+)" *# (.*), context, seed$', guide, re.M)
    described = {name: tuple(sizes.split(", ")) for name, sizes in rows}
    assert described == {row.name: row.sizes for row in kinds.GENERATORS}


def test_the_citation_is_of_this_version_and_its_day():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.M) == [__version__]
    (day,) = re.findall(r"^date-released: (.*)$", citation, re.M)
    dated = re.findall(rf"^## {__version__} \((.*)\)$", changes, re.M)
    assert datetime.date.fromisoformat(day) and dated in (["unreleased"], [day])
