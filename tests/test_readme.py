"""What the README shows works."""

import pathlib
import re
import subprocess
import sys


README = pathlib.Path(__file__).resolve().parents[1] / "README.md"
ROOT = README.parent


def test_the_python_example_runs_and_finds_chaos():
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    command = [sys.executable, "-W", "error", "-c", example]
    # From the checkout, so that it runs without an installation too.
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "chaotic" in done.stdout
    assert len([x for x in example.splitlines() if x.strip()]) <= 15


def test_every_folder_and_document_it_names_exists():
    text = README.read_text()
    links = re.findall(r"\]\((?!https?:)([^)]+)\)", text)
    tops = "statmech_attn|tests|docs|analysis|simulations|paper_figs|benchmarks"
    folders = re.findall(rf"`((?:{tops})/[^`]*)`", text)
    missing = [name for name in links + folders if not (ROOT / name).exists()]
    assert missing == []
