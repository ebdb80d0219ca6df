"""Whatever code of a user does, the run names it: exit code 0 means a file is there."""

import importlib
import os
import signal
import subprocess
import sys
import threading
import warnings
from importlib.metadata import EntryPoint

import pytest
from typer.testing import CliRunner

from statmech_attn import kinds, studies
from statmech_attn.cli import app
from statmech_attn.cli.terminal import errors
from statmech_attn.studies.files import user_code


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


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a study of some code in this process."""
    monkeypatch.chdir(tmp_path)

    def run(code, *words):
        (tmp_path / "s.toml").write_text(STUDY)
        (tmp_path / "m.py").write_text(code)
        ended = CliRunner().invoke(app, ["run", "s.toml", "-o", "a.h5", *words])
        assert (ended.exit_code == 0) == (tmp_path / "a.h5").exists()
        return ended

    return run


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys\ndef step(x, p): sys.exit(0)", "SystemExit: 0"),
        (f"{ODD}def step(x, p): raise Odd('\\x1b[31m\\n' * 99)", "ends in Odd"),
        ("def step(x, p): raise GeneratorExit", "ends in GeneratorExit."),
        ("def __getattr__(name): raise OSError('no')", "ends in OSError: no"),
        ("", "has no 'step'"),
    ],
)
def test_code_that_ends_otherwise_is_named_in_one_line(run, code, words):
    ended = run(code)
    line = ended.stderr.splitlines()[-1]
    assert ended.exit_code == 1 and "\x1b" not in ended.output
    assert line.startswith("statmech-attn: m.py:step: ") and words in line
    assert "Traceback" not in ended.output


@pytest.mark.slow
def test_a_process_ends_with_code_1(tmp_path):
    (tmp_path / "s.toml").write_text(STUDY)
    (tmp_path / "m.py").write_text("import sys\nsys.exit(0)\n")
    command = [sys.executable, "-m", "statmech_attn.cli", "run", "s.toml", "-o", "a.h5"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and not (tmp_path / "a.h5").exists()
    assert done.stderr == (
        "statmech-attn: m.py:step: line 2 of m.py ends in SystemExit: 0\n"
    )


PARTS = """import sys
import jax
from statmech_attn.dynamics import System
class Odd(BaseException): pass
def map(x, p): return p["r"] * x * (1 - x)
def leave(*a): sys.exit(0)
def raises(*a): raise Odd("\x1b[31m")
def ends(*a): raise GeneratorExit
def later(x, p):
    jax.debug.callback(leave)
    return map(x, p)
"""


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("System(map, observe=leave)", "line 6 of m.py ends in SystemExit: 0"),
        ("System(map, tangent=raises)", r"line 7 of m.py ends in Odd: \x1b[31m"),
        ("System(map, display=ends)", "line 8 of m.py ends in GeneratorExit."),
        ("later", "a callback ends in SystemExit: 0"),
    ],
)
def test_every_function_of_a_user_is_named_in_one_line(run, step, words):
    ended = run(f"{PARTS}step = {step}\n")
    assert ended.exit_code == 1 and "\x1b" not in ended.output
    assert [line.endswith(words) for line in ended.stderr.splitlines()] == [True]


def test_in_python_the_same_error_is_raised(tmp_path):
    (tmp_path / "s.toml").write_text(STUDY)
    (tmp_path / "m.py").write_text(f"{PARTS}step = leave\n")
    study, text = studies.load(tmp_path / "s.toml")
    with pytest.raises(ValueError, match="m.py:step: line 6 .* SystemExit: 0"):
        studies.compute(study, text, tmp_path / "a.h5")
    assert not (tmp_path / "a.h5").exists()


@pytest.mark.slow
@pytest.mark.parametrize("leaves", ("sys.exit(0)", "raise Odd"))
def test_code_that_ends_a_worker_of_dask_is_named(run, monkeypatch, leaves):
    monkeypatch.setenv("PARENT", str(os.getpid()))
    code = f"{PARTS}import os\nif os.environ['PARENT'] != str(os.getpid()):\n    "
    ended = run(f"{code}{leaves}\nstep = map\n", "--engine", "dask", "--workers", "1")
    assert ended.exit_code == 1
    (line,) = [x for x in ended.stderr.splitlines() if x.startswith("statmech-attn: ")]
    assert "m.py:step: line 14 of m.py ends in " in line


@pytest.mark.parametrize("error", (SystemExit(0), GeneratorExit(), KeyError("x")))
def test_a_plug_in_is_named(tmp_path, monkeypatch, error):
    (tmp_path / "walks_of_test.py").write_text("def fail(error):\n    raise error\n")
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("walk", "walks_of_test:KIND", "statmech_attn.kinds")
    monkeypatch.setattr(kinds, "installed", lambda group: (entry,))
    with pytest.raises(BaseException) as raised:
        importlib.import_module("walks_of_test").fail(error)
    line, code = errors.described(raised.value)
    assert code == errors.INPUT and type(error).__name__ in line
    assert line.startswith("line 2 of walks_of_test.py (an unknown distribution) ends")


@pytest.mark.parametrize("field", ("entry", "work"))
def test_a_plug_in_that_leaves_on_import_cannot_be_loaded(tmp_path, monkeypatch, field):
    (tmp_path / "leaves_of_test.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("leave", "leaves_of_test:KIND", "statmech_attn.kinds")
    monkeypatch.setattr(kinds, "installed", lambda group: (entry,))
    with pytest.raises(ValueError, match="kind 'leave' .* loaded: .*SystemExit"):
        if field == "entry":
            kinds.KINDS.named("leave")
        else:
            kinds.KINDS.part(kinds.Kind("leave", work="leaves_of_test:Work"), "work")


def test_an_interrupt_is_no_error_of_the_code(tmp_path):
    (tmp_path / "m.py").write_text("def step(x, p): raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        user_code.function(f"{tmp_path}/m.py:step")(0.1, {})


def test_a_run_changes_nothing_in_the_process(tmp_path, monkeypatch):
    """The first run imports, which adds filters; Ctrl-C is handled during a run."""

    def settings():
        hooks = sys.excepthook, threading.excepthook
        return threading.Thread.start, sys.stdout, sys.stderr, *hooks

    hooks = []
    monkeypatch.setattr(sys, "addaudithook", hooks.append)
    (tmp_path / "m.py").write_text(
        "def step(x, p):\n"
        "    seen.append(settings())\n"
        "    return p['r'] * x * (1 - x)\n"
    )
    (tmp_path / "s.toml").write_text(STUDY)
    before, environment, seen = settings(), dict(os.environ), []
    interrupt = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("builtins.seen", seen, raising=False)
    monkeypatch.setattr("builtins.settings", settings, raising=False)
    study, text = studies.load(tmp_path / "s.toml")
    studies.compute(study, text, tmp_path / "a.h5")
    filters = warnings.filters[:]
    studies.compute(study, text, tmp_path / "b.h5")
    assert warnings.filters == filters and dict(os.environ) == environment
    assert signal.getsignal(signal.SIGINT) == interrupt and not hooks
    assert seen and {*seen, settings()} == {before}


def test_a_reference_is_a_file_and_a_name():
    assert user_code.split("my_model.py:step") == ("my_model.py", "step")
    assert user_code.brief("/home/me/my_model.py:step") == "my_model.py:step"
