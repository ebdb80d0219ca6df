"""Python of the site runs page by page, in a folder with the files that it reads."""

import re
from pathlib import Path

import matplotlib
import pytest

import statmech_attn


ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# Pages whose Python runs in tests of their own, or cannot run here.
ELSEWHERE = {
    "clusters": "begins a cluster of PBS",
    "data": "tests/bpkr/attention/test_attention_weights.py",
    "images": "a test of its own below, which needs the image data",
    "indicators": "tests/dynamics/test_worked_examples.py",
    "networks": "tests/dynamics/test_worked_examples.py",
    "plugins": "tests/studies/test_plugins.py",
    "recipes": "tests/test_recipes.py",
    "transformer_heads": "tests/bpkr/test_ablation_in_pytorch.py, with PyTorch",
}


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def pages() -> list[Path]:
    every = [*DOCS.glob("*.md"), *DOCS.glob("howto/*.md"), *DOCS.glob("theory/*.md")]
    return sorted(page for page in every if blocks(page))


def run(page: Path, monkeypatch) -> dict:
    """Run the blocks of a page one after the other; the names they leave."""
    monkeypatch.setattr(statmech_attn, "setup", lambda: None)  # the tests' own settings
    matplotlib.use("Agg")
    names = {}
    for number, block in enumerate(blocks(page), 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)
    return names


def scan(**parameters):
    run = {"transient": 200, "steps": 500, "exponents": 2, "max_doublings": 0}
    if len(parameters) == 2:
        run["refine"] = 1
    study = {"kind": "bifurcation", "parameters": parameters, "run": run}
    return statmech_attn.run(study, progress=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With the results and studies that pages name."""
    folder = tmp_path_factory.mktemp("snippets")
    beta = {"start": 1.2, "stop": 1.4, "num": 5}
    scan(beta=beta).statmech.save(folder / "scan.h5")
    plane = scan(beta=beta, gamma={"start": 100.0, "stop": 127.0, "num": 3})
    plane.statmech.save(folder / "plane.h5")
    (folder / "analysis").symlink_to(ROOT / "analysis")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [x for x in pages() if x.stem not in ELSEWHERE], ids=lambda page: page.stem
)
def test_python_of_a_page_runs(page, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert run(page, monkeypatch).keys() - {"__builtins__"}


@pytest.mark.slow
def test_python_of_the_page_on_images_runs(image_data, tmp_path, monkeypatch):
    (tmp_path / "images").symlink_to(image_data)
    monkeypatch.chdir(tmp_path)
    names = run(DOCS / "howto" / "images.md", monkeypatch)
    assert len(names["x"]) == len(names["Y"]) == 1000


def test_pages_that_run_elsewhere_have_python():
    assert set(ELSEWHERE) <= {page.stem for page in pages()}
