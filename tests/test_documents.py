"""What the documents name exists: tests, messages, pages, studies."""

import ast
import functools
import importlib.util
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from statmech_attn import __version__, studies


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
    """Readers of the repository follow the same links as those of the site."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\((?!https?:|#|generated/)([^)#]+)", text)
    assert not [link for link in links if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", sorted(DOCS.glob("howto/*.md")), ids=lambda x: x.stem)
def test_whole_studies_of_the_guide_are_valid(page):
    blocks = re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    for block in blocks:
        tree = tomllib.loads(block)
        if "kind" in tree:
            studies.parse(tree)


def public_functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions on the faces of packages, by the module that defines them."""
    for face in (ROOT / "statmech_attn").rglob("__init__.py"):
        imports = [x for x in ast.walk(tree(face)) if isinstance(x, ast.ImportFrom)]
        for node in imports:
            module = ROOT.joinpath(*(node.module or "").split(".")).with_suffix(".py")
            names = {alias.name for alias in node.names}
            for definition in tree(module).body if module.exists() else ():
                if isinstance(definition, ast.FunctionDef) and definition.name in names:
                    yield module.stem, definition


def test_every_parameter_of_a_public_function_is_described():
    silent, count = [], 0
    for module, function in public_functions():
        text = ast.get_docstring(function) or ""
        spec = function.args
        for parameter in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            count += 1
            named = rf"^ *([*\w]+, )*\*{{0,2}}{parameter.arg}(, [*\w]+)*( \(.*\))?:"
            if not re.search(named, text, re.MULTILINE):
                silent.append(f"{module}.{function.name}: {parameter.arg}")
    assert count > 500 and not silent


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


@pytest.mark.parametrize("page", [*PAGES, *THEORY], ids=lambda page: page.stem)
def test_files_that_a_page_names_exist(page):
    folders = "analysis|benchmarks|paper_figs|simulations|statmech_attn|tests"
    pattern = rf"`((?:{folders})/[\w./-]+\.(?:py|toml|md|json))"
    files = re.findall(pattern, page.read_text("utf-8"))
    assert not [file for file in files if not (ROOT / file).exists()]


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.M) == [__version__]
