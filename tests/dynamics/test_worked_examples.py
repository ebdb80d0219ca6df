"""Examples of the documentation run as printed, and each block by itself."""

import ast
import builtins
import re
from pathlib import Path

import numpy as np
import pytest

import statmech_attn
from statmech_attn import dmft


DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "theory" / "indicators.md"


@pytest.mark.slow
def test_lorenz_and_rossler_go_through_every_call_of_the_page():
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    names = {}
    exec(compile(example, str(PAGE), "exec"), names)
    assert names["diffusion"].shape == names["error"].shape == (4, 1)


def test_patterns_of_the_guide_become_networks_and_come_back(monkeypatch):
    monkeypatch.setattr(statmech_attn, "setup", lambda: None)  # the tests' own settings
    text = (DOCS / "howto" / "networks.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.S)
    names = {}
    exec(example, names)
    assert names["net"].n_patterns == 3
    given = dmft.even_correlations(names["like_the_paper"])
    rebuilt = dmft.even_correlations(names["rebuilt"])
    assert all(np.allclose(given[key], rebuilt[key]) for key in given)


@pytest.mark.parametrize(
    "page", sorted((DOCS / "howto").glob("*.md")), ids=lambda x: x.stem
)
def test_blocks_of_the_guide_define_every_name_they_use(page):
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        nodes = list(ast.walk(ast.parse(block)))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        used = {n.id for n in names if isinstance(n.ctx, ast.Load)}
        known = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        known |= {n.arg for n in nodes if isinstance(n, ast.arg)}
        known |= {
            n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)
        }
        known |= {
            (alias.asname or alias.name).partition(".")[0]
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        assert used - known - set(dir(builtins)) == set(), block
