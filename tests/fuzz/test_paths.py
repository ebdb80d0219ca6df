"""Every command with every odd path in the place of every path: done, or one line.

The commands and their paths are read from the program, so that a new one is tried too.
"""

import inspect
import os
import random
import shutil
import socket
import stat
import typing
from pathlib import Path

import pytest

from statmech_attn import storage
from statmech_attn.cli import app


STUDY = 'kind = "trajectory"\n[parameters]\nbeta = 0.5\n[run]\nsteps = 5\n'
RESULTS = Path(__file__).resolve().parents[2] / "paper_figs" / "results"
RESULT = RESULTS / "pe5_locking-laptop.h5"
COMMANDS = {f.__name__: f for c in app.registered_commands if (f := c.callback)}
# What stands for the other words of a command, by the name of its parameter.
GOOD = {"study": "s.toml", "output": "out.h5", "kind": "trajectory", "name": "nothing"}
GOOD |= {"names": "mnist"}
FOLDERS = {"figure output", "score figures", "download data"}  # which "/" may be
SECONDS = {"hysteresis", "figure", "slurm", "grid", "compare"}  # take some
QUICK = {name: name not in SECONDS for name in COMMANDS}
ALWAYS = {  # before the words that are tried
    "explore": ["--no-browser", "--export", "page.html"],
    "figure": ["--format", "png"],
    "run": ["--output", "out.h5"],
    "validate": ["--only", "rotation"],
}


def flags(command: str) -> list[str]:
    parameters = inspect.signature(COMMANDS[command]).parameters
    return [*ALWAYS.get(command, []), *["--overwrite"] * ("overwrite" in parameters)]


def places(command: str):
    """Name of each parameter that takes paths, or a word, and the words around it."""
    callback = COMMANDS[command]
    hints = typing.get_type_hints(callback, include_extras=True)
    needed, odd = [], []
    for name, parameter in inspect.signature(callback).parameters.items():
        kind, how = typing.get_args(hints[name])[:2]
        argument = type(how).__name__ == "ArgumentInfo"
        word = [] if argument else [f"--{name.strip('_').replace('_', '-')}"]
        if argument or parameter.default is parameter.empty:
            needed.append((name, [*word, GOOD.get(name, "r.h5")]))
        if argument or "Path" in str(kind):
            odd.append((name, word))
    for name, word in odd:
        before = [w for other, words in needed if other != name for w in words]
        at = [other for other, _ in needed].index(name) if not word else len(before)
        first = [w for _, words in needed[:at] for w in words] if not word else before
        rest = [w for _, words in needed[at + 1 :] for w in words] if not word else []
        yield name, lambda path, a=first, w=word, b=rest: [*a, *w, path, *b]


def odd_paths(folder: Path) -> list[str]:
    """Paths that are there, some of things that no command reads or replaces."""
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to(folder / "nowhere" / "x.h5")
    (folder / "folder.h5").mkdir()
    os.mkfifo(folder / "fifo.h5")
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.relpath(folder / "socket"))
    server.close()
    (folder / "closed.h5").write_bytes(b"closed")
    (folder / "closed.h5").chmod(0)
    (folder / "text.toml").write_text("Dear all,\nthis is a letter.\n")
    (folder / "empty").touch()
    (folder / "bytes.h5").write_bytes(bytes(range(256)))
    there = sorted(os.listdir(folder))
    there += ["", "/", ".", "..", "text.toml/x", "absent/x.h5", "x" * 300, "~", "-"]
    there += ["a\0b", "\udcff.h5", "\x1b[31m", "\n", "s.toml", "r.h5", "/dev/null"]
    return [*there, "/dev/zero", "/dev/full", "/proc/self/mem", "/proc/self/fd/0"]


def state(folder: Path) -> dict:
    """What is in a folder: the kind of each thing, and the content of each file."""
    found = {}
    for name in sorted(os.listdir(folder)):
        path = folder / name
        mode = path.lstat().st_mode
        content = b""
        if stat.S_ISREG(mode) and name != "empty":  # which may be filled
            content = path.read_bytes()
        found[name] = (stat.S_IFMT(mode), content)
    return found


@pytest.fixture(scope="module")
def result(tmp_path_factory) -> Path:
    """A few points of a scan."""
    found = storage.read(RESULT).isel(beta=slice(20))
    path = tmp_path_factory.mktemp("result") / "r.h5"
    storage.write(path, found, study=found.attrs["study"])
    return path


@pytest.fixture
def folder(result, tmp_path, monkeypatch):
    """A folder in another, with a study, a result and whatever odd there is."""
    folder = tmp_path / "inside"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "s.toml").write_text(STUDY)
    shutil.copy(result, folder)
    return folder


@pytest.mark.parametrize(
    ("name", "few"),
    [
        pytest.param(name, few, marks=() if few and quick else pytest.mark.slow)
        for few in (True, False)
        for name, quick in QUICK.items()
    ],
)
def test_any_path_anywhere(command, folder, name, few):
    """Few: one path in each place."""
    paths, chance = odd_paths(folder), random.Random(name)
    before = state(folder)
    for place, words in places(name):
        for path in chance.sample(paths, 1 if few else len(paths)):
            if path == "/" and f"{name} {place}" in FOLDERS:
                continue
            ended = command(name, *flags(name), *words(path), at=folder)
            if ended.code != 2:  # words that the command line itself refuses
                ended.orderly()
            lines = ended.said.splitlines()
            said = [line for line in lines if line.startswith("statmech-attn: ")]
            assert ended.code != 1 or len(said) == 1, ended
            after = state(folder)
            assert {kept: after.get(kept) for kept in before} == before, ended
            for new in after.keys() - before.keys():
                thing = folder / new
                shutil.rmtree(thing) if thing.is_dir() else thing.unlink()
