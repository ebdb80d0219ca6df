"""Seven commits run the whole slow suite; the page says when it ran last."""

import datetime
import random
import re
import subprocess

import pytest


# --- parts ---


def test_parts_are_disjoint_whole_and_balanced(slow_suite):
    chance = random.Random(0)
    seconds = {f"test {n:03}": chance.expovariate(1) for n in range(200)}
    parts = slow_suite.parts(seconds)
    assert sorted(test for part in parts for test in part) == sorted(seconds)
    lengths = [sum(seconds[test] for test in part) for part in parts]
    assert max(lengths) - min(lengths) <= max(seconds.values())


def test_every_part_of_the_suite_fits_into_twenty_minutes(slow_suite):
    """One after the other; two workers need half of that."""
    results = slow_suite.read()
    for k in range(1, slow_suite.PARTS + 1):
        part = slow_suite.chosen(list(results), results, f"{k}/{slow_suite.PARTS}")
        assert sum(results[test].seconds for test in part) < 20 * 60


def test_tests_without_a_result_are_shared_out_too(slow_suite):
    """Each counts as much as the median of those that passed."""
    result = lambda seconds, outcome: slow_suite.Result(seconds, outcome, "", "")
    results = {"long": result(3.0, "passed"), "failed": result(0.1, "failed")}
    tests = ["long", "failed", "new", "newer"]
    parts = [slow_suite.chosen(tests, results, f"{k}/2") for k in (1, 2)]
    assert parts[0] | parts[1] == set(tests)
    assert [len(part) for part in parts] == [2, 2]


@pytest.mark.parametrize("part", ("0/7", "8/7", "3", "x/7"))
def test_what_is_no_part_is_refused(slow_suite, part):
    with pytest.raises(ValueError, match="a part is k/n"):
        slow_suite.chosen([], {}, part)


def git(folder, *words) -> None:
    author = ("-c", "user.name=x", "-c", "user.email=x@y")
    words = ["git", "-C", folder, *author, *words]
    subprocess.run(words, check=True, capture_output=True)


def test_eight_commits_run_the_whole(slow_suite, tmp_path):
    git(tmp_path, "init")
    parts = []
    for number in range(9):
        git(tmp_path, "commit", "--allow-empty", "-m", str(number))
        parts.append(slow_suite.part_of_commit(tmp_path))
    assert sorted(parts[:8]) == [f"{k}/8" for k in range(1, 9)]
    assert parts[8] == parts[0]


def test_a_smaller_share_goes_round_as_well(slow_suite, tmp_path):
    git(tmp_path, "init")
    git(tmp_path, "commit", "--allow-empty", "-m", "x")
    assert slow_suite.part_of_commit(tmp_path, 32) == "2/32"


def days(number: int) -> str:
    return f"{number % 8 + 1}/8"


def test_without_a_history_the_day_chooses(slow_suite, tmp_path):
    """The day of the commit in a shallow clone, the present one without git."""
    whole, clone, export = (tmp_path / name for name in ("whole", "clone", "export"))
    for folder in (whole, export):
        folder.mkdir()
    git(whole, "init")
    for _ in range(2):
        git(whole, "commit", "--allow-empty", "-m", "x")
    git(tmp_path, "clone", "--depth", "1", f"file://{whole}", str(clone))
    committed = subprocess.check_output(
        ["git", "-C", clone, "log", "-1", "--format=%ct"], text=True
    )
    assert slow_suite.part_of_commit(clone) == days(int(committed) // 86400)
    today = int(datetime.datetime.now(datetime.UTC).timestamp()) // 86400
    # It may be midnight between the two.
    assert slow_suite.part_of_commit(export) in (days(today), days(today + 1))


# --- results ---


def test_a_commit_is_marked_by_changes_other_than_those_of_a_record(
    slow_suite, tmp_path
):
    (tmp_path / "tests").mkdir()
    (tmp_path / "docs").mkdir()
    files = [tmp_path / n for n in ("tests/slow_suite.json", "docs/validation.md")]
    for path in (*files, tmp_path / "code.py"):
        path.touch()
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "x")
    clean = slow_suite.commit(tmp_path)
    assert len(clean) == 7
    for path in files:
        path.write_text("a record")
    assert slow_suite.commit(tmp_path) == clean
    (tmp_path / "code.py").write_text("a change")
    assert slow_suite.commit(tmp_path) == clean + "+"


def test_the_page_holds_the_last_results(slow_suite):
    table = slow_suite.table(slow_suite.read())
    assert table in slow_suite.PAGE.read_text(), "make test-slow writes the table"


def test_results_are_of_files_that_have_slow_tests(slow_suite):
    for file, _, name in (test.partition("::") for test in slow_suite.read()):
        if name in slow_suite.EXAMPLES:
            continue
        text = (slow_suite.ROOT / file).read_text()
        assert re.search(r"\bpytest\.mark\.slow\b", text), file


class Report:
    def __init__(self, outcome, longrepr=None, keywords=("slow",)):
        self.nodeid, self.processor_seconds = "tests/test_x.py::test", 1.5
        self.outcome, self.longrepr, self.keywords = outcome, longrepr, keywords
        self.skipped = outcome == "skipped"


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([Report("passed")] * 3, "passed"),
        ([Report("passed"), Report("failed"), Report("passed")], "failed"),
        ([Report("passed"), Report("passed"), Report("failed")], "failed"),
        ([Report("skipped", ("f", 1, "Skipped: no GPU"))], "skipped (no GPU)"),
    ],
)
def test_a_test_has_passed_if_all_its_phases_have(slow_suite, reports, expected):
    recorder = slow_suite.Recorder()
    for report in reports:
        recorder.pytest_runtest_logreport(report)
    assert recorder.outcomes == {"tests/test_x.py::test": expected}
    assert recorder.seconds["tests/test_x.py::test"] == 1.5 * len(reports)


def test_fast_tests_are_not_recorded(slow_suite):
    recorder = slow_suite.Recorder()
    recorder.pytest_runtest_logreport(Report("passed", keywords=()))
    assert recorder.outcomes == {}
