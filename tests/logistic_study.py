"""A scan of the logistic map that tests of several folders compute by one program."""

import pathlib


MAP = "def step(x, p):\n    return p['a'] * x * (1 - x)\n"
STUDY = """
# A scan.
kind = "bifurcation"
[system]
function = "logistic.py:step"
initial = 0.3
[parameters]
a = { start = 3.2, stop = 4.0, num = 5 }
[run]
transient = 100
steps = 512
exponents = 1
extend = false
"""


def write(folder: pathlib.Path) -> pathlib.Path:
    """The study, logistic.toml, with its map beside it."""
    (folder / "logistic.py").write_text(MAP)
    study = folder / "logistic.toml"
    study.write_text(STUDY)
    return study
