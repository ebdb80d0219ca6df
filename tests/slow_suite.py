"""The slow suite: which eighth a commit runs, and when every test of it ran last.

`tests/slow_suite.json` holds the last result of every slow test: seconds, outcome,
date, commit.  `make test-slow` brings it up to date, and the table of
docs/validation.md that is made from it.

    python tests/slow_suite.py        the part that this commit runs, such as 3/8
    python tests/slow_suite.py 32     of so many, such as 19/32
"""

import collections
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
from typing import NamedTuple

import pytest


ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORD = ROOT / "tests" / "slow_suite.json"
PAGE = ROOT / "docs" / "validation.md"
PARTS = 8
BEGIN = "<!-- slow suite: written by `make test-slow` -->\n"
END = "<!-- end of the slow suite -->\n"
# Examples of docstrings that compile for seconds.
EXAMPLES = {
    "statmech_attn.bpkr.attention.networks.forward",
    "statmech_attn.bpkr.attention.networks.forward_paths",
    "statmech_attn.bpkr.grids.learning_curves.LearningCurves",
    "statmech_attn.bpkr.grids.learning_curves.learning_curve",
    "statmech_attn.bpkr.theory.evidence.evidence",
    "statmech_attn.bpkr.grids.pruned_networks.prune_networks",
    "statmech_attn.bpkr.problem.Problem.posterior",
    "statmech_attn.bpkr.heads.scores.score",
    "statmech_attn.bpkr.grids.selection.model_selection",
    "statmech_attn.dmft.continuous_time.continuous",
    "statmech_attn.dmft.extensive.grids.capacities.capacities",
    "statmech_attn.dmft.extensive.closed_recursion.closed",
    "statmech_attn.dmft.extensive.finite_memory.system",
    "statmech_attn.dmft.extensive.grids.order_parameters.OrderParameters",
    "statmech_attn.dmft.extensive.effective_process.sampled",
    "statmech_attn.dmft.extensive.effective_process.solve",
    "statmech_attn.dmft.extensive.stationary.capacity",
    "statmech_attn.dmft.extensive.stationary.stationary",
    "statmech_attn.dmft.mean_field.jacobian",
    "statmech_attn.dmft.system.system",
    "statmech_attn.dynamics.attractors.settled_orbits.settle",
    "statmech_attn.dynamics.along_parameter.attractor_matching.match_attractors",
    "statmech_attn.dynamics.diagrams.diagram.diagram",
    "statmech_attn.dynamics.exponents.of_flows.flow_spectrum",
    "statmech_attn.dynamics.exponents.of_flows.per_unit_time",
    "statmech_attn.dynamics.motion.classification.Classification.explain",
    "statmech_attn.dynamics.motion.phases.paper_phase",
    "statmech_attn.dynamics.motion.classification.classify",
    "statmech_attn.dynamics.motion.rotation.series_rotation",
    "statmech_attn.montecarlo.finite_networks.extensive.simulate_extensive",
    "statmech_attn.montecarlo.finite_networks.extensive_samples.ExtensiveSamples",
    "statmech_attn.montecarlo.finite_networks.finite_size.FiniteSizes",
    "statmech_attn.montecarlo.posterior_samples.posteriors.Posteriors",
    "statmech_attn.montecarlo.finite_networks.simulation.simulate",
    "statmech_attn.studies.files.running.work",
    "statmech_attn.tasks.hidden_markov.draw",
    "statmech_attn.training.one_shot_networks.OneShotNetworks",
}


class Result(NamedTuple):
    """How a test ended when it ran last."""

    seconds: float  # of processors, those of the processes that it began included
    outcome: str  # passed, failed, or skipped with the reason
    date: str
    commit: str


def read(path: pathlib.Path = RECORD) -> dict[str, Result]:
    return {test: Result(*row) for test, row in json.loads(path.read_text()).items()}


def write(results: dict[str, Result], path: pathlib.Path = RECORD) -> None:
    rows = (f"  {json.dumps(k)}: {json.dumps(results[k])}" for k in sorted(results))
    path.write_text("{\n" + ",\n".join(rows) + "\n}\n")


# --- parts ---


def parts(seconds: dict[str, float], number: int = PARTS) -> list[list[str]]:
    """Tests in parts of nearly equal time.

    Each test, the longest first, goes to the part that has the least so far: no part
    is longer than the shortest by more than one test.
    """
    dealt, lengths = [[] for _ in range(number)], [0.0] * number
    for test in sorted(seconds, key=lambda test: (-seconds[test], test)):
        least = lengths.index(min(lengths))
        dealt[least].append(test)
        lengths[least] += seconds[test]
    return dealt


def chosen(tests: list[str], results: dict[str, Result], part: str) -> set[str]:
    """Those of `tests` in a part such as "3/7".

    What has not passed yet says nothing of the time that it takes; it counts as much as
    the median of the others.

    Raises:
        ValueError: a part that is not of the form k/n with 1 <= k <= n.
    """
    try:
        k, n = (int(word) for word in part.split("/"))
    except ValueError:
        k, n = 0, 0
    if not 1 <= k <= n:
        raise ValueError(f"a part is k/n with 1 <= k <= n, such as 3/8; got {part!r}.")
    passed = [t for t in tests if t in results and results[t].outcome == "passed"]
    seconds = {test: results[test].seconds for test in passed}
    usual = statistics.median(seconds.values()) if seconds else 1.0
    return set(parts({test: seconds.get(test, usual) for test in tests}, n)[k - 1])


def part_of_commit(root: pathlib.Path = ROOT, number: int = PARTS) -> str:
    """The part that a commit runs: its number in the history, modulo `number`.

    The number counts first parents, so that a merge is one step.  Where the history is
    cut off (a shallow clone) the day of the commit takes its place, and where there is
    no repository the present day; days are counted from 1970-01-01, UTC.
    """
    git = lambda *words: _output("git", "-C", str(root), *words)
    day = 24 * 3600
    if git("rev-parse", "--show-toplevel") != str(root):
        count = int(datetime.datetime.now(datetime.UTC).timestamp()) // day
    elif git("rev-parse", "--is-shallow-repository") == "true":
        count = int(git("log", "-1", "--format=%ct")) // day
    else:
        count = int(git("rev-list", "--count", "--first-parent", "HEAD"))
    return f"{count % number + 1}/{number}"


def _output(*words: str) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    except FileNotFoundError:  # no git
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


# --- results ---


def commit(root: pathlib.Path = ROOT) -> str:
    """The commit that is checked out; "+" marks changes beside those of a record."""
    written = tuple(str(path.relative_to(ROOT)) for path in (RECORD, PAGE))
    status = _output("git", "-C", str(root), "status", "--porcelain", "-uno")
    changed = any(not line.endswith(written) for line in status.splitlines())
    head = _output("git", "-C", str(root), "rev-parse", "--short=7", "HEAD")
    return head + "+" * changed


class Clock:
    """A plugin of pytest: reports carry the processor time that was used for them.

    Unlike the time of a clock on the wall it says what a test costs on a machine that
    does other things as well.
    """

    def __init__(self):
        self._before = self._used()

    def _used(self) -> float:
        return sum(os.times()[:4])  # of this process and of those that it waited for

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        report = yield
        used = self._used()
        report.processor_seconds, self._before = used - self._before, used
        return report


class Recorder:
    """A plugin of pytest that records the results of slow tests."""

    def __init__(self):
        self.seconds = collections.Counter()
        self.outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report):
        if "slow" not in report.keywords:
            return
        self.seconds[report.nodeid] += report.processor_seconds
        outcome = report.outcome
        if report.skipped:
            outcome += f" ({str(report.longrepr[2]).removeprefix('Skipped: ')})"
        # Set-up, call and tear-down: a test has passed if all three have.
        if self.outcomes.get(report.nodeid, "passed") == "passed":
            self.outcomes[report.nodeid] = outcome

    def pytest_sessionfinish(self):
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        head = commit()
        results = read() | {
            test: Result(round(self.seconds[test], 1), outcome, today, head)
            for test, outcome in self.outcomes.items()
        }
        exists = lambda test: (ROOT / test.partition("::")[0]).is_file()
        results = {test: result for test, result in results.items() if exists(test)}
        write(results)
        PAGE.write_text(with_table(PAGE.read_text(), table(results)))


def table(results: dict[str, Result]) -> str:
    """A row for every folder: when its tests ran, on which commits, how they ended."""
    groups = collections.defaultdict(list)
    for test, result in results.items():
        groups[pathlib.PurePosixPath(test.partition("::")[0]).parent].append(result)
    rows = [
        "| tests | dates | commits | results | CPU-s |",
        "| --- | --- | --- | --- | --- |",
    ]
    for folder, ran in sorted(groups.items()):
        dates = sorted({result.date for result in ran})
        commits = ", ".join(sorted({result.commit for result in ran}))
        counts = collections.Counter(result.outcome for result in ran)
        said = ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
        when = " to ".join(dict.fromkeys((dates[0], dates[-1])))
        seconds = sum(result.seconds for result in ran)
        rows.append(f"| `{folder}` | {when} | {commits} | {said} | {seconds:.0f} |")
    return "\n".join(rows) + "\n"


def with_table(page: str, table: str) -> str:
    """The page with the table between its two marks replaced."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


if __name__ == "__main__":
    print(part_of_commit(number=int([*sys.argv, PARTS][1])))  # noqa: T201
