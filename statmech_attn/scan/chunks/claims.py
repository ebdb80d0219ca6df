"""Who computes which chunk, among processes that share a folder.

Before a process computes a chunk it creates the chunk's claim, which succeeds for one
of them only.  Claims save work and decide nothing: a chunk computed twice has the same
bits and replaces itself.  So a claim may be taken over whenever its owner seems dead,

* on the same machine when the owner's file is not locked any more (the kernel drops
  the lock with the process, however it ends),
* elsewhere when the owner's counter has stood still for `SILENCE` seconds of the
  observer's own steady clock.  Clocks of different machines are never compared.

A claim is a hard link to a file that holds the owner's name, so it never lacks it.
Among those that find the same owner dead, one is the heir: it made `CLAIM.OWNER.part`,
which stays, and it alone may replace that owner's claim.
"""

import contextlib
import fcntl
import os
import re
import socket
import stat
import threading
import time
import uuid
from pathlib import Path

from statmech_attn.inputs import require_regular


BEAT = 5.0  # seconds between two counts of a living process
NAME = re.compile(r"\d+-[0-9a-f]{12}")
SILENCE = 60.0  # seconds without a count after which a process counts as dead


def machine() -> str:
    """Name of this machine, equal for processes that see each other's locks."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()}/{boot}"


class Claims:
    """Claims of this process in a folder; use as a context manager."""

    def __init__(self, folder: Path):
        self._folder = Path(folder)
        self._workers = self._folder / "workers"
        self.name = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._named = self._folder / f".claim.{self.name}.part"
        self._machine = machine()
        self._seen: dict[str, tuple[str, float]] = {}
        self._over = threading.Event()

    def __enter__(self) -> "Claims":
        self._workers.mkdir(exist_ok=True)
        hidden = self._folder / f".worker.{self.name}.part"  # until it is locked
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        self._file = os.open(hidden, flags, 0o644)
        with contextlib.suppress(OSError):  # without locks the counter alone tells
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._count(0)
        os.rename(hidden, self._workers / self.name)
        self._create(self._named)
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        os.close(self._file)
        self._named.unlink(missing_ok=True)
        (self._workers / self.name).unlink(missing_ok=True)

    def take(self, path: Path) -> bool:
        """Claim a chunk; False when another process has it."""
        try:
            os.link(self._named, path)
        except FileExistsError:
            return False
        except OSError:  # no hard links on this file system
            return self._create(path)
        return True

    def take_over(self, path: Path) -> bool:
        """Claim a chunk whose owner seems dead; False when it lives."""
        owner = owner_of(path)
        if owner is None or not self.dead(owner):
            return False
        heir = path.with_name(f"{path.name}.{owner}.part")
        mine = self.take(heir) or self.take_over(heir) or owner_of(heir) == self.name
        if not mine or owner_of(path) != owner:
            return False
        claim = path.with_name(f".{path.name}.{self.name}.part")
        claim.unlink(missing_ok=True)
        self.take(claim)
        os.replace(claim, path)
        return True

    @staticmethod
    def release(path: Path) -> None:
        path.unlink(missing_ok=True)

    def dead(self, worker: str) -> bool:
        """Whether a worker has ended, as far as can be seen from here and now."""
        if worker == self.name:
            return False
        try:
            require_regular(self._workers / worker)
            with open(self._workers / worker, errors="replace") as file:
                where, _, count = file.read().partition("\n")
                locked = _locked(file) if where == self._machine else None
        except FileNotFoundError:
            return True
        except OSError:  # it tells nothing now; its silence will
            count, locked = "", None
        if locked is not None:
            return not locked
        last, since = self._seen.get(worker, (None, 0.0))
        if last != count:
            self._seen[worker] = (count, time.monotonic())
            return False
        return time.monotonic() - since > SILENCE

    def living(self) -> set[str]:
        """Workers that have not ended, as far as can be seen from here."""
        try:
            return {p.name for p in self._workers.iterdir() if not self.dead(p.name)}
        except FileNotFoundError:
            return set()

    def clean(self) -> int:
        """Remove what dead workers left: claims, half-written chunks, their files."""
        gone = {p.name for p in self._workers.iterdir()} - self.living() - {self.name}
        for part in self._folder.glob(".*.part"):
            if part.name.split(".")[-2] in gone:
                part.unlink(missing_ok=True)
        claims = [c for c in self._folder.glob("chunk-*.claim") if self.take_over(c)]
        for claim in claims:
            self.release(claim)
        for worker in gone:
            (self._workers / worker).unlink(missing_ok=True)
        return len(claims)

    def _create(self, path: Path) -> bool:
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            return False
        try:
            os.write(handle, self.name.encode())
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)
        return True

    def _beat(self) -> None:
        number = 0
        while not self._over.wait(BEAT):
            number += 1
            self._count(number)

    def _count(self, number: int) -> None:
        with contextlib.suppress(OSError):  # a full disk: others may take over
            os.pwrite(self._file, f"{self._machine}\n{number}\n".encode(), 0)


def owner_of(path: Path) -> str | None:
    """The worker that made a claim; None when there is none any more.

    A claim that is empty or holds no name is nobody's: its owner died writing it.  So
    is one that is no regular file, which is not read.
    """
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
        text = path.read_text(errors="replace") if regular else ""
    except OSError:
        return None
    return text if NAME.fullmatch(text) else "nobody"


def _locked(file) -> bool | None:
    """Whether a process holds the lock; None where the file system has no locks.

    Shared, so that two that look at once do not take each other for the owner.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False
