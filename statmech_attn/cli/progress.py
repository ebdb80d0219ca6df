"""Progress bar of the command line: points per second and time left, on stderr."""

import threading

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

from statmech_attn.cli.terminal import Terminal


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


class Bar:
    """A `Reporter` that draws on a terminal; safe to call from worker threads."""

    def __init__(self, console: Terminal):
        self.console = console
        self._progress: Progress | None = None
        self._lock = threading.Lock()

    def note(self, text: str) -> None:
        self.console.say(text, style="dim")

    def begin(self, description: str, points: int, work: float) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=12),
            _Rate(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=self.console,
            speed_estimate_period=60.0,
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
