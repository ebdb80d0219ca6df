"""What a run tells: lines outside a terminal, a log file, nothing, or more."""

import io
import threading
import time
import types

import pytest

from statmech_attn.cli.terminal import progress
from statmech_attn.cli.terminal.screen import Terminal


@pytest.fixture
def clock(monkeypatch):
    clock = types.SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(progress, "time", clock)
    return clock


def told(clock) -> list[str]:
    """Lines of a run of 1000 points at 2/s, of which 200 were there already."""
    lines = []
    report = progress.Lines(lines.append)
    report.note("a note")
    report.begin("diagram", 1000, 1000.0)
    report.advance(200.0)
    while clock.now < 400:
        clock.now += 10
        report.advance(20.0)
        if clock.now % 60 == 0:
            report.tell()
    report.finish()
    return lines


def test_a_line_says_the_rate_and_the_time_left(clock):
    lines = told(clock)
    assert lines[0] == "a note" and len(lines) == 8
    assert lines[1] == (
        "diagram: 320/1,000 points after 1 min 0 s, 2/s, about 5 min 40 s left"
    )
    assert lines[6] == "diagram: 920/1,000 points after 6 min 0 s, 2/s, about 40 s left"
    assert lines[7] == "diagram: 1,000 points in 6 min 40 s"


def test_the_time_left_falls_as_fast_as_time_passes(clock):
    """At a steady rate, from one line to the next."""
    minutes = [line.split("about ")[1] for line in told(clock)[1:6]]
    assert minutes == [f"{n} min 40 s left" for n in (5, 4, 3, 2, 1)]


def test_a_piece_of_work_that_takes_minutes_has_its_lines(clock):
    """Before it, while it lasts, and where it is slower than what came before."""
    lines = []
    report = progress.Lines(lines.append)
    report.begin("diagram", 100, 100.0)
    clock.now = 60
    report.tell()
    report.advance(25.0)
    for clock.now in (120, 180, 300):
        report.tell()
    assert [line.removeprefix("diagram: ") for line in lines] == [
        "0/100 points after 1 min 0 s",
        "25/100 points after 2 min 0 s, 0.417/s, about 2 min 0 s left",
        "25/100 points after 3 min 0 s, 0.417/s, about 1 min 0 s left",
        "25/100 points after 5 min 0 s, 0.417/s, slower now",
    ]
    report.close()


def test_lines_come_by_themselves_until_the_run_ends():
    lines, several = [], threading.Event()

    def write(line):
        lines.append(line)
        if len(lines) == 3:
            several.set()

    report = progress.Lines(write, interval=0.01)
    report.begin("diagram", 100, 100.0)
    assert several.wait(10.0)
    report.finish()
    assert lines[-1].startswith("diagram: 100 points in")
    count = len(lines)
    time.sleep(0.05)
    assert len(lines) == count


def refined(report, clock) -> None:
    """A run whose second round takes 30 of 100 seconds."""
    for title, points, seconds in (("diagram", 65, 70), ("diagram 1", 12, 30)):
        report.begin(title, points, points)
        clock.now += seconds
        report.advance(points)
    report.finish()


def test_the_last_line_speaks_of_all_rounds(clock):
    lines = []
    refined(progress.Lines(lines.append), clock)
    assert lines == ["diagram: 77 points of 2 rounds in 1 min 40 s"]


def test_bars_of_several_rounds_end_with_a_line_about_all(clock):
    console = Terminal(file=io.StringIO(), force_terminal=True, width=100)
    refined(progress.Bar(console), clock)
    assert "diagram: 77 points of 2 rounds in 1 min 40 s" in console.file.getvalue()


@pytest.mark.parametrize("installed", [True, False])
def test_a_notebook_without_widgets_has_one_line_in_place_of_the_bar(
    clock, monkeypatch, installed
):
    monkeypatch.setattr(progress, "find_spec", lambda name: installed or None)
    console = Terminal(file=io.StringIO(), force_jupyter=True, width=100)
    monkeypatch.setattr(console, "say", (lines := []).append)
    report = progress.Bar(console)
    assert report._drawn is installed
    if not installed:
        report.begin("diagram", 65, 65)
        clock.now += 70
        report.finish()
        assert lines == ["diagram: 65 points in 1 min 10 s"]


def shown(**options) -> str:
    """What a console says of a run of one point."""
    console = Terminal(file=io.StringIO())
    with progress.reporter(console, **options) as report:
        report.note("a note")
        report.begin("diagram", 1, 1.0)
        report.advance(1.0)
        report.finish()
    return console.file.getvalue()


def test_a_run_is_quiet_when_asked_and_logs_all_the_same(tmp_path):
    log = tmp_path / "run.log"
    assert shown(quiet=True, log_file=log) == ""
    first, last = log.read_text().splitlines()
    assert first.endswith(" a note") and "diagram: 1 points in" in last
    assert first[:4].isdigit() and "T" in first.split()[0]
    shown(log_file=log)
    assert len(log.read_text().splitlines()) == 4  # appended
    assert "a note" in shown(verbose=True) and "a note" in shown()


def test_quiet_and_verbose_exclude_each_other(call, tmp_path):
    refused = call("run", "s.toml", "-o", "o.h5", "--quiet", "--verbose", code=2)
    assert "exclude each other" in refused.stderr
