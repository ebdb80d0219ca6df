"""Commands in processes of their own, of which time and memory are measured.

Run as a script this is a server: it imports everything once and then forks a process
for each command that it reads.  Runs stop where computing would begin.
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import statmech_attn.cli.main
import statmech_attn.cli.texts.dynamics_summary
import statmech_attn.cli.texts.summary
from statmech_attn.scan import jobs
from statmech_attn.scan.chunks.signals import Unfinished


STOPPED = 99  # a run that would compute now


class Ended(NamedTuple):
    """A command that has ended.

    Attributes:
        code: exit code; negative: the signal that ended it, SIGALRM if it was late.
        said: what it printed, stdout and stderr.
        seconds: of a processor.
        megabytes: of memory at its largest.
    """

    words: list[str]
    code: int
    said: str
    seconds: float
    megabytes: float

    def orderly(self) -> "Ended":
        """Fails unless the command did its work or was refused in one line, quickly.

        A study that is ready to be computed may have compiled for longer, and holds no
        more memory than its forecast says.
        """
        lines = self.said.splitlines()
        assert self.code in (0, 1, STOPPED), self
        assert "Traceback" not in self.said, self
        assert all(line.isprintable() for line in lines), self
        assert self.code != 1 or lines[-1].startswith("statmech-attn: "), self
        assert self.megabytes < max(1000, self._forecast()), self
        assert self.seconds < 10 or self.code == STOPPED, self
        return self

    def _forecast(self) -> float:
        """Megabytes at most that a run which is ready said to need, in few digits."""
        said = re.search(r"([\d.]+) GiB of memory", self.said)
        if not said or self.code != STOPPED:
            return 0.0
        half_a_digit = 0.5 * 10.0 ** -len(said[1].partition(".")[2])
        return 1024 * (float(said[1]) + half_a_digit)


class Server:
    """Starts commands, and ends those that take longer than `seconds`."""

    def __init__(self, seconds: int = 120):
        self._seconds = seconds
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words, at: Path = Path(".")) -> Ended:
        """Run a command in a folder; bytes in paths may be anything."""
        assert self._process.stdin is not None and self._process.stdout is not None
        order = {"words": [str(word) for word in words], "at": str(at)}
        order["seconds"] = self._seconds
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        self._process.communicate()


def _serve() -> None:
    jobs._compute_chunks = _stop
    for offered in (getattr(statmech_attn, name) for name in statmech_attn.__all__):
        for name in getattr(offered, "__sources__", ()):
            getattr(offered, name)  # imports it
    for line in sys.stdin:
        order = json.loads(line)
        sys.stdout.write(json.dumps(_ended(**order)._asdict()) + "\n")
        sys.stdout.flush()


def _stop(*_) -> None:
    raise Unfinished("would compute now.", STOPPED)


def _ended(words: list[str], at: str, seconds: int) -> Ended:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        if not (pid := os.fork()):
            os.chdir(at)
            _run(words, log, seconds)
        _, status, used = os.wait4(pid, 0)
        said = log.read_text(errors="replace")
    code = os.waitstatus_to_exitcode(status)
    seconds = used.ru_utime + used.ru_stime
    return Ended(words, code, said, seconds, used.ru_maxrss / 1024)


def _run(words: list[str], log: Path, seconds: int) -> None:
    handle = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(handle, standard)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    code = 70
    try:
        statmech_attn.cli.main.app(words)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
