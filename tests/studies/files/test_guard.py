"""Whatever code of a user does, the run names it: exit code 0 means a file is there."""

import importlib
import os
import subprocess
import sys
import threading
import time
from importlib.metadata import EntryPoint

import pytest
from typer.testing import CliRunner

from statmech_attn import kinds, studies
from statmech_attn.cli import app, errors
from statmech_attn.cli.terminal import Terminal
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
        ("import os\nos.fork()", "may not fork"),
        ("def __getattr__(name): raise OSError('no')", "ends in OSError: no"),
        ("print('\\x1b[31mred')", "has no 'step'"),
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


def test_what_callbacks_print_is_text(capsys):
    """JAX calls them from threads of its own, also after a function has returned."""
    terminal = Terminal()
    with guard.screened():
        thread = threading.Thread(target=print, args=("\x1b[31mred",))
        thread.start()
        thread.join()
        terminal.file.write("\x1b[1m")  # what a progress bar does
    print("\x1b[32m")  # noqa: T201
    assert capsys.readouterr().out == "\\x1b[31mred\n\x1b[1m\x1b[32m\n"


def test_in_python_the_same_error_is_raised(tmp_path):
    (tmp_path / "s.toml").write_text(STUDY)
    (tmp_path / "m.py").write_text(f"{PARTS}step = leave\n")
    study, text = studies.load(tmp_path / "s.toml")
    with pytest.raises(ValueError, match="m.py:step: line 6 .* SystemExit: 0"):
        studies.compute(study, text, tmp_path / "a.h5")
    assert not (tmp_path / "a.h5").exists()


@pytest.mark.slow
@pytest.mark.parametrize("leaves", ("sys.exit(0)", "os.fork()", "raise Odd"))
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


THREADS = """import os, sys, threading
def step(x, p):
    thread = threading.Thread(target={target})
    thread.start()
    thread.join()
    return p["r"] * x * (1 - x)
def leaves(): sys.exit(0)
def forks(): os.fork()
def starts():
    inner = threading.Thread(target=leaves)
    inner.start()
    inner.join()
"""


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("leaves", "line 7 of m.py ends in SystemExit: 0"),
        ("forks", "may not fork"),
        ("starts", "line 7 of m.py ends in SystemExit: 0"),
    ],
)
def test_a_thread_of_the_code_that_fails_ends_the_run(run, target, words):
    ended = run(THREADS.format(target=target))
    (line,) = ended.stderr.splitlines()
    assert ended.exit_code == 1 and line.startswith("statmech-attn: m.py:step: ")
    assert words in line


def starting(work):
    """A call of users' code that starts a thread, which is returned."""

    def start():
        thread = threading.Thread(target=work)
        thread.start()
        return thread

    return guard.call(lambda error: ValueError(f"m.py ends in {error}"), start)


def test_what_a_thread_prints_or_ends_in_after_the_call_is_text(capsys):
    returned = threading.Event()

    def late():
        print("\x1b[31mred")  # noqa: T201
        returned.wait(60)
        raise OSError("\x1b[31m")

    with guard.screened():
        thread = starting(late)
        returned.set()
    assert not thread.is_alive()
    printed = capsys.readouterr()
    assert printed.out == "\\x1b[31mred\n"
    assert printed.err == "m.py ends in \\x1b[31m\n"


def test_a_thread_that_never_ends_ends_with_the_command(capsys, monkeypatch):
    def endless():
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(guard, "GRACE", 0.1)
    with guard.screened():
        thread = starting(endless)
    thread.join(60)
    assert not thread.is_alive()
    assert "still ran 0.1 s after the end" in capsys.readouterr().err
