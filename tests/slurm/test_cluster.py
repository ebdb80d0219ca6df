"""Job arrays on a real SLURM."""

import contextlib
import os
import signal
import stat
import sys
from pathlib import Path

import pytest

from statmech_attn import storage
from statmech_attn.scan import slurm
from statmech_attn.scan.jobs import chunks_of
from statmech_attn.studies import produce


pytestmark = pytest.mark.slow
TASK = "SLURM_ARRAY_TASK_ID"
# Stops with code 75 when asked to, as long as it runs for the first time.
STAND_IN = """\
#!/bin/bash
trap 'echo asked to stop; exit 75' TERM
echo "up $SLURM_ARRAY_TASK_ID"
[ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] && exit 0
while :; do sleep 0.1; done
"""
# Several seconds on one core, in chunks of a fraction of a second.
STUDY = """\
kind = "bifurcation"

[network]
patterns = "poclopez-pe2"

[parameters]
beta = { start = 1.24, stop = 1.28, num = 480 }

[run]
transient = 20000
steps = 20000
extend = false
exponents = 0
"""
SMALL_CHUNKS = f'#!/bin/bash\nexec {sys.executable} "$@" --chunk 24\n'


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The study, computed here and uninterrupted."""
    folder = tmp_path_factory.mktemp("local")
    (folder / "study.toml").write_text(STUDY)
    return produce(folder / "study.toml", folder / "scan.h5")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / 'Jörg\'s "β" #1 $HOME'
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY)
    return folder


@pytest.fixture
def submit(cluster, folder):
    """Submits an array that runs a program in the place of Python."""

    def submit(program, tasks, time="00:30:00"):
        python = folder / "program"
        python.write_text(program)
        python.chmod(python.stat().st_mode | stat.S_IXUSR)
        array = slurm.Array(
            folder / "study.toml",
            folder / "scan.h5",
            tasks=tasks,
            time=time,
            cpus=1,
            python=str(python),
        )
        slurm.write(array, folder / "scan.h5.sh")
        return cluster.submit(folder / "scan.h5.sh")

    yield submit
    cluster.cancel_all()


def logs(folder, job):
    """What every task printed."""
    found = {}
    for path in (folder / "scan.h5.logs").glob(f"{job}_*.log"):
        found[path.stem.partition("_")[2]] = path.read_text()
    return found


def at_work(folder):
    """The processes that compute a chunk now: number of the task -> process id."""
    found = {}
    for claim in chunks_of(folder / "scan.h5").glob("chunk-*.claim"):
        with contextlib.suppress(OSError):
            process = claim.read_text().partition("-")[0]
            told = Path("/proc", process, "environ").read_text().split("\0")
            found[dict(x.split("=", 1) for x in told if x)[TASK]] = int(process)
    return found


def assert_equals(file, local):
    """Equal to the last bit, and nothing left of the run."""
    found = storage.read(file)
    assert set(found.variables) == set(local.variables)
    for name, values in local.variables.items():
        assert found[name].dtype == values.dtype
        assert found[name].values.tobytes() == values.values.tobytes(), name
    assert not chunks_of(file).exists()


def test_a_task_asked_to_stop_goes_on_where_it_was(cluster, folder, submit, local):
    job = submit(SMALL_CHUNKS, 1)
    cluster.wait_until(lambda: at_work(folder))
    cluster.call("scancel", "--batch", "--signal=TERM", f"{job}_0")
    assert cluster.wait(job) == {"0": "COMPLETED"}
    assert "Restarts=1 " in cluster.call("scontrol", "show", "job", f"{job}_0")
    printed = logs(folder, job)["0"]
    assert printed.count("the same command goes on") == 1
    assert_equals(folder / "scan.h5", local)


def test_tasks_that_are_killed_lose_nothing(cluster, folder, submit, local):
    """By scancel; by the kernel; and one whose watching process is killed."""
    job = submit(SMALL_CHUNKS, 4)
    cluster.wait_until(lambda: len(at_work(folder)) == 4)
    cluster.call("scancel", "--signal=KILL", f"{job}_0")
    os.kill(at_work(folder)["1"], signal.SIGKILL)
    os.kill(cluster.stepd(job, 2), signal.SIGKILL)
    cluster.wait_until(lambda: cluster.states(job)["3"] == "COMPLETED", 120)
    states = cluster.states(job)
    assert (states["0"], states["1"]) == ("CANCELLED", "FAILED")
    assert_equals(folder / "scan.h5", local)


def test_a_task_at_its_time_limit_requeues_itself_and_goes_on(cluster, folder, submit):
    job = submit(STAND_IN, 2, "00:01:00")
    assert cluster.wait(job) == {"0": "COMPLETED", "1": "COMPLETED"}
    for task, printed in logs(folder, job).items():
        assert printed.count(f"up {task}") == 2
        assert printed.count("asked to stop") == 1


def test_a_cancelled_task_stays_cancelled(cluster, folder, submit):
    job = submit(STAND_IN, 2)
    up = lambda: sum("up" in printed for printed in logs(folder, job).values())
    cluster.wait_until(lambda: up() == 2)
    cluster.call("scancel", f"{job}_0")
    cluster.call("scancel", "--batch", "--signal=TERM", f"{job}_1")
    assert cluster.wait(job) == {"0": "CANCELLED", "1": "COMPLETED"}


def test_the_largest_array_is_the_one_that_slurm_takes(
    cluster, folder, submit, monkeypatch
):
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
    with pytest.raises(ValueError, match="at most 21, the MaxArraySize"):
        submit(STAND_IN, 22)
    with pytest.raises(ValueError, match="at most 01:00:00, the MaxTime of .* work"):
        submit(STAND_IN, 21, "01:00:01")
    job = submit(STAND_IN, 21, "01:00:00")
    assert len(cluster.states(job)) == 21
    script = folder / "scan.h5.sh"
    script.write_text(script.read_text().replace("--array=0-20", "--array=0-21"))
    with pytest.raises(AssertionError, match="Invalid job array specification"):
        cluster.submit(script)
