"""A study that costs next to nothing, and processes that run it.

Run as a script this is a server: it imports everything once and then forks a process
for each command line it reads, so that a test may start and kill many of them.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import statmech_attn.cli.main
import statmech_attn.cli.texts.summary
from statmech_attn import batches, kinds, scan, storage, studies
from statmech_attn.scan.chunks import claims
from statmech_attn.scan.chunks.work import Assembled, Pilot
from statmech_attn.studies.tables import StudyTable


class ToyStudy(StudyTable):
    """Random rows by number; a later round adds the mean of the one before.

    Attributes:
        seconds: that a point takes.
        raises, nan: points that cannot be computed, those without finite numbers.
    """

    kind: str = "toy"
    points: int = 40
    width: int = 3
    rounds: int = 1
    seconds: float = 0.0
    raises: list[int] = []
    nan: list[int] = []
    memory: int = 1000
    stored: int = 24

    @property
    def seeds(self) -> dict[str, int]:
        return {}


class ToyWork:
    """`ToyStudy` as a `scan.work.Work`."""

    title = "toy"
    unit = 1
    alone = False
    keeps_blocks = False
    empty = {"number": -1}

    def __init__(self, study: ToyStudy, batch: int | None = None):
        self.study, self.batch = study, batch or 1

    @property
    def total(self) -> int | None:
        return self.study.points if self.study.rounds == 1 else None

    def points(self, round, earlier):
        if round:  # as where results decide which points come next
            earlier.column("x", round - 1)
        return self.study.points if round < self.study.rounds else None

    def payload(self, chunk, earlier):
        if chunk.round == 0:
            return 0.0
        return np.nanmean(earlier.column("x", chunk.round - 1))

    def rows(self, chunk, payload, tick, folder):
        rows = []
        for number in range(chunk.first, chunk.stop):
            if number in self.study.raises:
                raise RuntimeError(f"point {number} cannot be computed\nsecond line")
            time.sleep(self.study.seconds)
            generator = np.random.Generator(np.random.Philox(key=number))
            rows.append(generator.normal(size=self.study.width) + payload)
            if number in self.study.nan:
                rows[-1][1] = np.nan
            tick(1.0)
        return {"x": np.stack(rows), "number": np.arange(chunk.first, chunk.stop)}

    def not_finite(self, arrays):
        return ~np.isfinite(arrays["x"]).all(axis=1)

    def outlook(self, points, chunks, workers):
        return ""

    def pilot(self):
        return Pilot(self.study.seconds or 1e-6, self.study.memory, self.study.stored)

    def assemble(self, results):
        words = lambda name: {"long_name": name, "units": "1", "symbol": name}
        dims = {"x": ("point", "column"), "number": ("point",)}
        data: dict[str, Any] = {
            name: (dims[name], results.column(name), words(name)) for name in dims
        }
        dataset = xr.Dataset(data, attrs={"kind": "toy"})
        failure = results.failure()
        if failure.any():
            dataset["failure"] = (("point",), failure, words("failure"))
            dataset.attrs["failure_reasons"] = results.reasons()
        return Assembled(dataset)


def install() -> None:
    """Make the study known."""
    kinds.KINDS.add(kinds.Kind("toy", table=ToyStudy, work=ToyWork, batched=True))


class Server:
    """Starts command lines; `close` ends what is left."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, *words, **patches) -> "Run":
        """`statmech-attn WORDS` in a process of its own.

        Args:
            patches: values of `setting`s below.
        """
        return Run(self, [str(word) for word in words], patches)

    def ask(self, *request):
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        return json.loads(stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Run:
    """One process.

    Attributes:
        code: its exit code, once it has ended; negative: the signal that killed it.
        said: what it wrote on stdout and stderr.
    """

    logs = 0

    def __init__(self, server: Server, words: list[str], patches: dict[str, Any]):
        Run.logs += 1
        self._log = Path(os.environ["TOY_LOGS"]) / f"{Run.logs}.txt"
        self._server = server
        self.pid = server.ask("start", words, str(self._log), patches)

    def log(self) -> str:
        return self._log.read_text()

    def alive(self) -> bool:
        """Whether it has not ended; also true of one that nobody has waited for."""
        return (
            Path(f"/proc/{self.pid}/stat").read_text().split(")")[-1].split()[0] != "Z"
        )

    def kill(self, number: int = signal.SIGKILL) -> "Run":
        os.kill(self.pid, number)
        return self

    def wait(self, code: int | None = None) -> "Run":
        """Wait for its end, which a code may be demanded of."""
        self.code = self._server.ask("wait", self.pid)
        # A process that is killed early enough has not opened it.
        self.said = self._log.read_text() if self._log.exists() else ""
        assert code is None or self.code == code, f"{self.code}: {self.said}"
        return self

    def until(self, condition, seconds: float = 60.0) -> "Run":
        """Wait until something holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.002)
        return self


def _serve() -> None:
    for package in (batches, scan, storage, studies):
        for name in package.__sources__:
            getattr(package, name)  # imports it
    install()
    for line in sys.stdin:
        verb, *rest = json.loads(line)
        answer = _fork(*rest) if verb == "start" else _status(*rest)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _fork(words: list[str], log: str, patches: dict[str, Any]) -> int:
    if pid := os.fork():
        return pid
    handle = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(handle, standard)
    code = 1
    try:
        _patch(**patches)
        statmech_attn.cli.main.app(words)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        sys.stdout.flush()
        os._exit(code)


def _patch(
    machine: str = "",
    beat: float = claims.BEAT,
    silence: float = claims.SILENCE,
    pause_before: str = "",
    pause: float = 1.0,
) -> None:
    """Settings of a process that tests change.

    Args:
        machine: what it takes itself to run on.
        pause_before, pause: seconds before a file or folder gets its name, or loses it.
    """
    claims.BEAT, claims.SILENCE = beat, silence
    if machine:
        claims.machine = lambda: machine

    def paused(move):
        def moved(source, target):
            if any(str(path).endswith(pause_before) for path in (source, target)):
                time.sleep(pause)
            move(source, target)

        return moved

    if pause_before == "chunks":
        os.rename = paused(os.rename)
    elif pause_before:
        os.replace = paused(os.replace)


def _status(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    _serve()
