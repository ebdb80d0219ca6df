"""Progress of the command line: points per second and time left, on stderr.

On a terminal a bar moves; elsewhere, such as in the log of a job, a line a minute says
the same.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, ExitStack
from datetime import datetime
from pathlib import Path
from typing import TextIO

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from statmech_attn.cli.terminal import Terminal, visible
from statmech_attn.reporting import duration, Reporter


INTERVAL = 60.0  # seconds between two lines outside a terminal
FREQUENT = 5.0  # with --verbose
PERIOD = 60.0  # seconds over which a bar takes the mean of its speed


class _Rate(ProgressColumn):
    """Finished work as points, and points per second."""

    def render(self, task: Task) -> Text:
        points = task.fields["points"]
        done = points * task.completed / max(task.total or 1.0, 1e-300)
        rate = (
            points
            * (task.finished_speed or task.speed or 0.0)
            / max(task.total or 1.0, 1e-300)
        )
        return Text(f"{done:,.0f}/{points:,} points {rate:,.3g}/s", no_wrap=True)


class Lines:
    """A `Reporter` that writes a line a minute, and its notes as they come.

    Args:
        write: takes a line.
    """

    def __init__(self, write: Callable[[str], None], interval: float = INTERVAL):
        self._write, self._interval = write, interval
        self._lock = threading.Lock()
        self._title, self._points, self._work, self._done = "", 0, 0.0, 0.0
        self._began = self._told = self._before = 0.0

    def note(self, text: str) -> None:
        self._write(text)

    def begin(self, description: str, points: int, work: float) -> None:
        with self._lock:
            self._title, self._points, self._work = description, points, work
            self._done, self._before = 0.0, 0.0
            self._began = self._told = time.monotonic()

    def advance(self, work: float) -> None:
        with self._lock:
            self._done += work
            now = time.monotonic()
            if now - self._began < 1.0:  # found done at the beginning
                self._before = self._done
            if now - self._told < self._interval:
                return
            self._told = now
            line = self._line(now)
        self._write(line)

    def finish(self) -> None:
        with self._lock:
            seconds = time.monotonic() - self._began
            line = f"{self._title}: {self._points:,} points in {duration(seconds)}"
        self._write(line)

    def _line(self, now: float) -> str:
        share = self._done / max(self._work, 1e-300)
        new = (self._done - self._before) / max(self._work, 1e-300)
        rate = new / (now - self._began)
        line = f"{self._title}: {share * self._points:,.0f}/{self._points:,} points"
        if rate > 0:
            left = max(1 - share, 0.0) / rate
            line += f", {rate * self._points:.3g}/s, about {duration(left)} left"
        return line


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
    """A `Reporter` that draws on a terminal; safe to call from worker threads."""

    def __init__(self, console: Terminal):
        self.console = console
        self._progress: Progress | None = None
        self._lock = threading.Lock()

    def note(self, text: str) -> None:
        self.console.say(text, style="dim")

    def begin(self, description: str, points: int, work: float) -> None:
        self.close()
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=12),
            _Rate(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=self.console,
            speed_estimate_period=PERIOD,
        )
        self._progress.start()
        self._task = self._progress.add_task(description, total=work, points=points)

    def advance(self, work: float) -> None:
        with self._lock:
            if self._progress is not None:
                self._progress.update(self._task, advance=work)

    def finish(self) -> None:
        if self._progress is not None:
            self._progress.update(self._task, completed=self._progress.tasks[0].total)
            self.close()

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


@contextmanager
def shown(
    console: Terminal,
    log_file: Path | None = None,
    *,
    quiet: bool = False,
    verbose: bool = False,
) -> Iterator[Reporter]:
    """What tells of a run: a bar or lines on a console, and lines in a file."""
    reports: list[Reporter] = []
    with ExitStack() as opened:
        if verbose:
            reports.append(Lines(console.say, FREQUENT))
        elif not quiet and console.is_terminal:
            bar = Bar(console)
            opened.callback(bar.close)
            reports.append(bar)
        elif not quiet:
            reports.append(Lines(console.say))
        if log_file is not None:
            file = opened.enter_context(log_file.open("a", encoding="utf-8"))
            reports.append(Lines(lambda line: _log(file, line)))
        yield Several(*reports)


def _log(file: TextIO, line: str) -> None:
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    file.write(f"{now} {visible(line)}\n")
    file.flush()


class DownloadBar:
    """Bytes of one file, drawn on a terminal; what `tasks.downloads` asks of a bar."""

    def __init__(self, console: Terminal, name: str):
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
        )
        self._progress = Progress(
            *columns, DownloadColumn(), TransferSpeedColumn(), console=console
        )
        self._progress.start()
        self._task = self._progress.add_task(name, total=None)

    @property
    def total(self) -> float | None:
        return self._progress.tasks[0].total

    @total.setter
    def total(self, size: int) -> None:
        self._progress.update(self._task, total=size)

    def update(self, size: int) -> None:
        self._progress.advance(self._task, size)

    def reset(self) -> None:
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        self._progress.stop()
