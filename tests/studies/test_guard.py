"""Whatever code of a user does, the run names it: exit code 0 means a file is there."""

import subprocess
import sys

import pytest

from statmech_attn.studies import guard


STUDY = """kind = "bifurcation"
[system]
function = "m.py:step"
initial = [0.1]
[parameters]
r = { start = 3.0, stop = 3.5, num = 4 }
[run]
steps = 100
"""
ODD = "class Odd(BaseException): pass\n"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys\ndef step(x, p): sys.exit(0)", "SystemExit: 0"),
        (f"{ODD}def step(x, p): raise Odd('\\x1b[31m\\n' * 99)", "ends in Odd"),
        ("def step(x, p): raise GeneratorExit", "ends in GeneratorExit."),
        ("import os\nos.fork()", "may not fork"),
        ("def __getattr__(name): raise OSError('no')", "ends in OSError: no"),
        ("print('\\x1b[31mred')", "has no 'step'"),
    ],
)
def test_code_that_ends_otherwise_is_named_in_one_line(tmp_path, code, words):
    (tmp_path / "s.toml").write_text(STUDY)
    (tmp_path / "m.py").write_text(code)
    command = [sys.executable, "-m", "statmech_attn.cli", "run", "s.toml", "-o", "a.h5"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and not (tmp_path / "a.h5").exists()
    line = done.stderr.splitlines()[-1]
    assert line.startswith("statmech-attn: m.py:step: ") and words in line
    assert "\x1b" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_code_that_does_not_return_is_ended(monkeypatch):
    def endless():
        while True:
            pass

    monkeypatch.setattr(guard, "LONGEST", 0.2)
    with pytest.raises(ValueError, match="longer than 0.2 s"):
        guard.call(lambda error: ValueError(str(error)), endless)


def test_an_interrupt_is_no_error_of_the_code():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guard.call(ValueError, interrupted)
