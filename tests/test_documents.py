"""What the documents name exists: tests, messages, pages, studies."""

import ast
import functools
import re
import tomllib
from pathlib import Path

import pytest

from statmech_attn import studies


ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
THEORY = [page for page in DOCS.glob("theory/*.md") if page.stem != "notation"]
PAGES = [*DOCS.glob("*.md"), *DOCS.glob("howto/*.md"), *DOCS.glob("decisions/*.md")]


@functools.cache
def words() -> str:
    """All texts of the library; parts of one text follow each other."""
    texts = [
        node.value
        for path in (ROOT / "statmech_attn").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
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


def test_commands_of_the_documents_are_commands_with_these_options():
    from statmech_attn.cli import app

    known = {command.callback.__name__ for command in app.registered_commands}
    used = {
        name
        for page in [ROOT / "README.md", *PAGES]
        for name in re.findall(r"^statmech-attn (\w+)", page.read_text("utf-8"), re.M)
    }
    assert used and used <= known


@pytest.mark.parametrize("page", [*PAGES, *THEORY], ids=lambda page: page.stem)
def test_files_that_a_page_names_exist(page):
    folders = "analysis|benchmarks|paper_figs|simulations|statmech_attn|tests"
    pattern = rf"`((?:{folders})/[\w./-]+\.(?:py|toml|md|json))"
    files = re.findall(pattern, page.read_text("utf-8"))
    assert not [file for file in files if not (ROOT / file).exists()]
