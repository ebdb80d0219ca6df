"""What the README shows works."""

import pathlib
import re
import subprocess
import sys

import pytest

import statmech_attn


README = pathlib.Path(__file__).resolve().parents[1] / "README.md"
ROOT = README.parent


@pytest.fixture
def example() -> str:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    return example


def test_the_python_example_is_short_and_has_names_that_exist(example):
    assert len([x for x in example.splitlines() if x.strip()]) <= 15
    names = re.findall(r"\b(dmft|dynamics|statmech_attn)\.(\w+)", example)
    assert {name for name, _ in names} == {"dmft", "dynamics", "statmech_attn"}
    for module, name in names:
        assert callable(getattr(getattr(statmech_attn, module, statmech_attn), name))


@pytest.mark.slow
def test_the_python_example_runs_and_finds_chaos(example):
    command = [sys.executable, "-W", "error", "-c", example]
    # From the checkout, so that it runs without an installation too.
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    # As printed there, but for digits, which chaos makes those of the machine.
    (printed,) = re.findall(r"```text\n(.*?)```", README.read_text(), re.DOTALL)
    words = lambda text: re.sub(r"[-\d][\d.]*", "#", text).split()
    assert words(done.stdout) == words(printed)


def test_every_folder_and_document_it_names_exists():
    text = README.read_text()
    links = re.findall(r"\]\((?!https?:)([^)]+)\)", text)
    tops = "statmech_attn|tests|docs|analysis|simulations|paper_figs|benchmarks"
    folders = re.findall(rf"`((?:{tops})/[^`]*)`", text)
    missing = [name for name in links + folders if not (ROOT / name).exists()]
    assert missing == []
