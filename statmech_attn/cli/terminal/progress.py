"""Progress of the command line: points per second and time left, on stderr.

On a terminal a bar moves; elsewhere, such as in the log of a job, a line a minute says
the same, whether or not something has been finished in it.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, ExitStack
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from statmech_attn import storage
from statmech_attn.cli.terminal.screen import Terminal
from statmech_attn.reporting import duration, Reporter, visible


INTERVAL = 60.0  # seconds between two lines outside a terminal
FREQUENT = 5.0  # with --verbose
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]"  # of a line in a file


class Pace:
    """How fast a run is, and when it ends.

    Work is told in pieces, some of which take minutes.  Between two of them the time
    left falls by the time that passes, as long as the speed so far gives it.
    """

    def __init__(self, points: int, work: float):
        self.points, self._work = points, max(work, 1e-300)
        self._done = self._before = 0.0
        self._began = self._last = time.monotonic()

    def advance(self, work: float) -> None:
        self._done += work
        self._last = time.monotonic()
        if self._last - self._began < 1.0:  # computed by an earlier run
            self._before = self._done

    @property
    def done(self) -> float:
        """Finished work in points."""
        return self._done / self._work * self.points

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._began

    @property
    def rate(self) -> float:
        """Points per second."""
        new = (self._done - self._before) / self._work * self.points
        return max(new, 0.0) / max(self._last - self._began, 1e-9)

    @property
    def remaining(self) -> float | None:
        """Seconds to the end; None where nothing is known of it."""
        if not self.rate:
            return None
        seconds = (self.points - self.done) / self.rate
        seconds -= time.monotonic() - self._last
        return seconds if seconds > 0 else None


class _Rounds:
    """The rounds of a run: most have one, refined scans have several."""

    def __init__(self) -> None:
        self._title, self._paces = "", []

    def begin(self, title: str, pace: Pace) -> None:
        self._title = self._title or title  # later rounds have a number in theirs
        self._paces.append(pace)

    def __len__(self) -> int:
        return len(self._paces)

    def whole(self) -> str:
        """Points and time of all rounds."""
        points = f"{sum(pace.points for pace in self._paces):,} points"
        if len(self) > 1:
            points += f" of {len(self)} rounds"
        return f"{self._title}: {points} in {duration(self._paces[0].seconds)}"


class _Rate(ProgressColumn):
    """Finished work as points, and points per second."""

    def render(self, task: Task) -> Text:
        pace = task.fields["pace"]
        text = f"{pace.done:,.0f}/{pace.points:,} points {pace.rate:,.3g}/s"
        return Text(text, no_wrap=True)


class _Left(ProgressColumn):
    """Column of a progress bar: time left."""

    def render(self, task: Task) -> Text:
        seconds = task.fields["pace"].remaining
        return Text(duration(seconds) if seconds else "-", no_wrap=True)


class Lines:
    """A `Reporter` that writes a line every `interval` seconds, and all notes."""

    def __init__(self, write: Callable[[str], None], interval: float = INTERVAL):
        self._write, self._interval = write, interval
        self._lock, self._ended = threading.RLock(), threading.Event()
        self._thread: threading.Thread | None = None
        self._title, self._pace = "", Pace(0, 0.0)
        self._rounds = _Rounds()

    def note(self, text: str) -> None:
        self._write(text)

    def begin(self, description: str, points: int, work: float) -> None:
        with self._lock:
            self._title, self._pace = description, Pace(points, work)
            self._rounds.begin(description, self._pace)
        if self._thread is None:
            self._ended.clear()
            self._thread = threading.Thread(target=self._tell_regularly, daemon=True)
            self._thread.start()

    def advance(self, work: float) -> None:
        with self._lock:
            self._pace.advance(work)

    def finish(self) -> None:
        self.close()
        self._write(self._rounds.whole())
        self._rounds = _Rounds()

    def close(self) -> None:
        """Write no more lines by itself."""
        if self._thread is not None:
            self._ended.set()
            self._thread.join()
            self._thread = None

    def tell(self) -> None:
        """Write how far the run is."""
        with self._lock:
            pace, remaining = self._pace, self._pace.remaining
            line = f"{self._title}: {pace.done:,.0f}/{pace.points:,} points"
            line += f" after {duration(pace.seconds)}"
            if pace.rate:
                ending = (
                    f"about {duration(remaining)} left" if remaining else "slower now"
                )
                line += f", {pace.rate:.3g}/s, {ending}"
        self._write(line)

    def _tell_regularly(self) -> None:
        while not self._ended.wait(self._interval):
            self.tell()


class Several:
    """A `Reporter` that tells several."""

    def __init__(self, *reports: Reporter):
        self._reports = reports

    def note(self, text: str) -> None:
        for report in self._reports:
            report.note(text)

    def begin(self, description: str, points: int, work: float) -> None:
        for report in self._reports:
            report.begin(description, points, work)

    def advance(self, work: float) -> None:
        for report in self._reports:
            report.advance(work)

    def finish(self) -> None:
        for report in self._reports:
            report.finish()


class Bar:
    """A `Reporter` that draws on a terminal; safe to call from worker threads.

    A notebook without ipywidgets has no bar, and one line when all rounds are over.
    """

    def __init__(self, console: Terminal):
        self.console = console
        self._drawn = not console.is_jupyter or find_spec("ipywidgets") is not None
        self._progress: Progress | None = None
        self._lock = threading.Lock()
        self._rounds = _Rounds()

    def note(self, text: str) -> None:
        self.console.say(text, style="dim")

    def begin(self, description: str, points: int, work: float) -> None:
        self.close()
        self._pace = Pace(points, work)
        self._rounds.begin(description, self._pace)
        if not self._drawn:
            return
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=12),
            _Rate(),
            TimeElapsedColumn(),
            TextColumn("left"),
            _Left(),
            console=self.console,
        )
        self._progress.start()
        self._task = self._progress.add_task(description, total=work, pace=self._pace)

    def advance(self, work: float) -> None:
        with self._lock:
            if self._progress is not None:
                self._pace.advance(work)
                self._progress.update(self._task, advance=work)

    def finish(self) -> None:
        if self._progress is not None:
            self._progress.update(self._task, completed=self._progress.tasks[0].total)
            self.close()
        if len(self._rounds) > 1 or not self._drawn:  # a bar shows one round
            self.console.say(self._rounds.whole())
        self._rounds = _Rounds()

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


@contextmanager
def reporter(
    console: Terminal,
    log_file: Path | None = None,
    *,
    quiet: bool = False,
    verbose: bool = False,
) -> Iterator[Reporter]:
    """Reporters of a run: a bar or lines on a console, and lines in a file.

    Args:
        console: it has a bar where it is a terminal, otherwise lines.
        log_file: has lines, after what is in it; none when omitted.
        quiet: nothing on the console.
        verbose: frequent lines on it in place of a bar.

    Example:
        `with reporter(Terminal(stderr=True)) as report: ...`
    """
    reports: list[Bar | Lines] = []
    with ExitStack() as opened:
        if verbose:
            reports.append(Lines(console.say, FREQUENT))
        elif not quiet and console.is_terminal:
            reports.append(Bar(console))
        elif not quiet:
            reports.append(Lines(console.say))
        if log_file is not None:
            _check_log(log_file)
            file = opened.enter_context(log_file.open("ab", buffering=0))
            reports.append(Lines(_logger(file, log_file, console)))
        for report in reports:
            opened.callback(report.close)
        yield Several(*reports)


def _check_log(path: Path) -> None:
    """Refuse to append to what is no log of this command."""
    if not storage.check_place(path):
        return
    first = storage.begins(path).partition("\n")[0]
    if path.stat().st_size and not re.match(STAMP, first):
        raise storage.StorageError(
            f"{path}: is no log of this command and stays; choose another --log-file."
        )


def _logger(file: IO[bytes], path: Path, console: Terminal) -> Callable[[str], None]:
    """What appends lines to a log, until its disk is full: a run is worth more."""
    broken = False

    def log(line: str) -> None:
        nonlocal broken
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        try:
            if not broken:
                file.write(f"{now} {visible(line)}\n".encode())
        except OSError as error:
            broken = True
            console.say(
                f"{storage.unwritable(path, error)} The run goes on without it."
            )

    return log
