"""Job arrays on a real SLURM."""

import pytest

from statmech_attn.scan import slurm


pytestmark = pytest.mark.slow
# Stops with code 75 when asked to, as long as it runs for the first time.
STAND_IN = """\
#!/bin/bash
trap 'echo asked to stop; exit 75' TERM
echo "up $SLURM_ARRAY_TASK_ID"
[ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] && exit 0
while :; do sleep 0.1; done
"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / 'Jörg\'s "β" #1 $HOME'
    folder.mkdir()
    (folder / "program").write_text(STAND_IN)
    (folder / "program").chmod(0o755)
    return folder


@pytest.fixture
def stand_in(cluster, folder):
    """Submits an array of the stand-in program."""

    def submit(tasks, time):
        array = slurm.Array(
            folder / "study.toml",
            folder / "scan.h5",
            tasks=tasks,
            time=time,
            cpus=1,
            python=str(folder / "program"),
        )
        slurm.write(array, folder / "scan.h5.sh")
        return cluster.submit(folder / "scan.h5.sh")

    return submit


def logs(folder, job):
    """What every task printed."""
    found = {}
    for path in (folder / "scan.h5.logs").glob(f"{job}_*.log"):
        found[path.stem.partition("_")[2]] = path.read_text()
    return found


def test_a_task_at_its_time_limit_requeues_itself_and_goes_on(
    cluster, folder, stand_in
):
    job = stand_in(2, "00:01:00")
    assert cluster.wait(job) == {"0": "COMPLETED", "1": "COMPLETED"}
    for task, printed in logs(folder, job).items():
        assert printed.count(f"up {task}") == 2
        assert printed.count("asked to stop") == 1


def test_a_cancelled_task_stays_cancelled(cluster, folder, stand_in):
    job = stand_in(2, "00:30:00")
    up = lambda: sum("up" in printed for printed in logs(folder, job).values())
    cluster.wait_until(lambda: up() == 2)
    cluster.call("scancel", f"{job}_0")
    cluster.call("scancel", "--batch", "--signal=TERM", f"{job}_1")
    assert cluster.wait(job) == {"0": "CANCELLED", "1": "COMPLETED"}
