"""Tutorials and gallery use what the package offers; the docs build executes them."""

import ast
import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import statmech_attn
from statmech_attn import kinds, plotting, studies
from statmech_attn.plotting.frame.drawing import of_modules


DOCS = Path(__file__).resolve().parents[1] / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.py"))
GALLERY = [DOCS / f"{name}.py" for name in ("gallery", "gallery_sources")]
NOT_DRAWN = {"one_shot_kernels", "trajectories"}  # as the page itself says


def named(tree: ast.AST) -> dict[str, ModuleType]:
    """Names that a script binds to packages; every name it imports must exist."""
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "statmech_attn":
                    modules["statmech_attn"] = importlib.import_module(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module.split(".")[0] == "statmech_attn":
                face = importlib.import_module(node.module)
                for alias in node.names:
                    offered = getattr(face, "__all__", dir(face))
                    assert alias.name in offered, f"{node.module}.{alias.name}"
                    value = getattr(face, alias.name)
                    if inspect.ismodule(value):
                        modules[alias.asname or alias.name] = value
    return modules


def chains(tree: ast.AST):
    """Names with their attributes, as `dynamics.continuation.switch`."""
    for node in ast.walk(tree):
        attributes = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        if attributes and isinstance(node, ast.Name):
            yield node.id, attributes[::-1]


def require_attributes(tree, modules):
    for name, attributes in chains(tree):
        value = modules.get(name)
        for attribute in attributes:
            if not inspect.ismodule(value):
                break
            assert hasattr(value, attribute), f"{name}.{'.'.join(attributes)}"
            value = getattr(value, attribute)


@pytest.mark.parametrize("path", [*TUTORIALS, *GALLERY], ids=lambda p: p.stem)
def test_every_name_of_the_package_exists(path):
    tree = ast.parse(path.read_text("utf-8"))
    require_attributes(tree, named(tree))


def test_a_name_that_is_gone_is_noticed():
    tree = ast.parse("from statmech_attn import dmft, lost")
    with pytest.raises(AssertionError, match="statmech_attn.lost"):
        named(tree)


def test_links_lead_to_pages():
    tutorials = {path.stem for path in TUTORIALS}
    for path in [*TUTORIALS, *GALLERY]:
        for link in re.findall(r":doc:`(.*?)`", path.read_text("utf-8")):
            page = re.sub(r".*<(.*)>", r"\1", link)  # words <page>
            page = page.replace("/generated/tutorials/", "")
            known = page in tutorials or (DOCS / f"{page.lstrip('/')}.md").exists()
            assert known or "{" in page, f"{path.name}: {link}"
    assert all("Where to go next" in path.read_text("utf-8") for path in TUTORIALS)


@pytest.fixture(scope="module")
def gallery():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        yield importlib.import_module("gallery")


def test_what_the_gallery_computes_is_valid(gallery):
    rows = [row for section in gallery.SECTIONS.values() for row in section]
    for source in {x for row in rows for x in gallery._needed(row.sources)}:
        if isinstance(source, gallery.gallery_sources.Study):
            studies.load(gallery.ROOT / source.path, source.settings)
        if isinstance(source, gallery.Kept):
            assert (gallery.ROOT / source.file).exists()


def test_the_gallery_has_every_figure(gallery):
    rows = [row for section in gallery.SECTIONS.values() for row in section]
    named = [row for row in kinds.KINDS if isinstance(row.pictures, str)]
    every = [x for row in named for x in of_modules(row.name, row.pictures)]
    drawn = {gallery._drawing(row).__name__ for row in rows}
    whole = {x.function for x in every} - NOT_DRAWN
    assert whole <= drawn <= whole | set(plotting.__all__)
    tutorials = {path.stem for path in TUTORIALS}
    assert {row.tutorial for row in rows} <= {"", *tutorials}
    pages = gallery._pages(drawn=False)
    for row in rows:
        page = pages[f"gallery/{row.name}.rst"]
        assert f".. _gallery-{row.name}:" in page
        assert f":link: gallery-{row.name}\n" in pages["gallery.rst"]
    assert all(f"``{name}``" in pages["gallery.rst"] for name in NOT_DRAWN)


def test_calls_of_the_gallery_are_of_functions_that_exist(gallery):
    for rows in gallery.SECTIONS.values():
        for row in rows:
            tree = ast.parse("\n".join(gallery._program(row)))
            require_attributes(tree, named(tree))


def test_the_gallery_leads_to_the_pages_of_its_scans(gallery):
    for scan in gallery.SCANS:
        if isinstance(scan, gallery.gallery_sources.Study):
            study, _ = studies.load(gallery.ROOT / scan.path, scan.settings)
            assert study.kind == "bifurcation"
    undrawn, page = (
        "\n".join(gallery._pages(drawn).values()) for drawn in (False, True)
    )
    for file in ("bifurcation_zoom", "sweep_up", "pe5_torus-laptop"):
        link = f"`{file} <../../views/{file}.html>`__"
        assert link in page and link not in undrawn
    explored = "statmech-attn explore phase_diagram.h5 phase_boundary.h5"
    assert explored in undrawn


@pytest.mark.slow
def test_a_tutorial_runs(tmp_path):
    script = DOCS / "tutorials" / "06_theory_and_simulation.py"
    root = str(Path(statmech_attn.__file__).resolve().parents[1])
    environment = os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": root}
    call = [sys.executable, "-W", "ignore", str(script)]
    done = subprocess.run(
        call, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "with β wrong by 0.1 %: differs" in done.stdout
