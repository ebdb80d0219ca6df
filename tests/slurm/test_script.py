"""The job-array script, run by bash with stand-ins for SLURM and for Python."""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from statmech_attn.scan import slurm
from statmech_attn.scan.chunks.work import Pilot
from statmech_attn.scan.forecast import Forecast


STUDY = 'kind = "trajectory"\n\n[parameters]\nbeta = 1.3\n'
ODD = 'scans of Jörg\'s "β" #1 $HOME'


@pytest.fixture
def folder(tmp_path):
    """A folder with a name that shells and SLURM could trip over."""
    folder = tmp_path / ODD
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY)
    return folder


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Puts bash scripts in the place of programs; returns a function that does so."""
    bin = tmp_path / "bin"
    bin.mkdir()
    monkeypatch.setenv("PATH", f"{bin}{os.pathsep}{os.environ['PATH']}")

    def put(name, text):
        (bin / name).write_text(f"#!/bin/bash\n{text}\n")
        (bin / name).chmod(0o755)
        return str(bin / name)

    return put


def scontrol(put, state="RUNNING"):
    """A cluster where the task is in `state`; requeues are counted in a file."""
    put(
        "scontrol",
        f"case $1 in show) echo 'JobState={state} Reason=None' ;; "
        'requeue) echo "$2" >> requeued ;; esac',
    )


@pytest.fixture
def start(folder):
    """Starts the script of an array as task 3 of job 70, in a process of bash."""
    started = []

    def start(python, restarts=None, **values):
        array = slurm.Array(
            folder / "study.toml", folder / "scan.h5", python=python, **values
        )
        file = folder / "scan.h5.sh"
        file.write_text(slurm.script(array, file.name))
        task = {"SLURM_ARRAY_JOB_ID": "70", "SLURM_ARRAY_TASK_ID": "3"}
        count = {} if restarts is None else {"SLURM_RESTART_COUNT": str(restarts)}
        process = subprocess.Popen(
            ["bash", file],
            cwd=folder,
            env=os.environ | task | count | {"SLURM_CPUS_PER_TASK": "5"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def ended(process):
    """Exit code and what was printed."""
    printed = process.communicate(timeout=20)[0]
    return process.returncode, printed


def requeued(folder):
    file = folder / "requeued"
    return file.read_text().split() if file.exists() else []


def test_a_task_runs_the_study_with_its_settings_and_cpus(folder, programs, start):
    python = programs("python", 'printf "%s\\n" "$@"')
    text = 'network={ patterns = "it\'s" }'
    code, printed = ended(start(python, settings=("run.steps=5", text)))
    assert code == 0
    assert printed.splitlines() == [
        *("-P", "-m", "statmech_attn.cli", "run", str(folder / "study.toml")),
        *("--output", str(folder / "scan.h5"), "--workers", "5"),
        *("--set", "run.steps=5", "--set", text),
    ]


def test_the_directives_say_what_was_asked_for(folder):
    array = slurm.Array(
        folder / "study.toml",
        folder / "scan.h5",
        tasks=7,
        time="1-02:00:00",
        cpus=3,
        memory="9G",
        partition="long",
        account="physics",
        qos="high",
        gpus="a100:1",
    )
    lines = slurm.script(array, "scan.h5.sh").splitlines()
    assert [line for line in lines if line.startswith("#SBATCH")] == [
        "#SBATCH --job-name=scan",
        "#SBATCH --array=0-6",
        "#SBATCH --ntasks=1",
        "#SBATCH --cpus-per-task=3",
        "#SBATCH --time=1-02:00:00",
        "#SBATCH --mem=9G",
        "#SBATCH --partition=long",
        "#SBATCH --account=physics",
        "#SBATCH --qos=high",
        "#SBATCH --gpus=a100:1",
        '#SBATCH --output="{}"'.format(
            f"{folder}/scan.h5.logs/%A_%a.log".replace('"', '\\"')
        ),
        "#SBATCH --open-mode=append",
        "#SBATCH --requeue",
        "#SBATCH --signal=B:TERM@120",
    ]
    assert lines[0] == "#!/bin/bash"  # directives are read up to the first command


def test_a_task_sources_the_setup_first(folder, programs, start):
    setup = folder / "set up.sh"
    setup.write_text("export GREETING=hello\necho $unset_variable\n")
    python = programs("python", 'echo "$GREETING"')
    code, printed = ended(start(python, setup=setup))
    assert code == 0 and printed.split() == ["hello"]


def test_a_task_with_gpus_takes_as_many_threads_as_a_gpu_needs(folder, programs, start):
    python = programs("python", 'echo "$@"')
    _, printed = ended(start(python, gpus="1", settings=("run.steps=5",)))
    assert "--workers" not in printed and "--set run.steps=5" in printed


def test_the_folder_of_the_output_is_made(folder):
    output = folder / "new" / "scan.h5"
    slurm.check(slurm.Array(folder / "study.toml", output), folder / "scan.sh")
    assert output.parent.is_dir()


def test_memory_is_taken_from_the_forecast(folder):
    array = slurm.Array(folder / "study.toml", folder / "scan.h5")
    found = Forecast(1000, 100, 4, Pilot(0.1, 2**20), 3 * 2**30)
    assert "#SBATCH --mem=6G\n" in slurm.script(array, "scan.h5.sh", found)
    assert "--mem" not in slurm.script(array, "scan.h5.sh")


@pytest.mark.parametrize(
    "wrong",
    [{"account": "a b"}, {"qos": "$x"}, {"gpus": "0"}, {"gpus": "a100"}],
)
def test_options_that_slurm_could_not_read_are_refused(folder, wrong):
    with pytest.raises(ValueError, match="must be"):
        slurm.Array(folder / "study.toml", folder / "scan.h5", **wrong)


def test_a_short_task_is_asked_to_stop_at_half_of_its_time(folder):
    array = slurm.Array(folder / "study.toml", folder / "scan.h5", time="00:01:30")
    assert "--signal=B:TERM@45\n" in slurm.script(array, "scan.h5.sh")


def test_tasks_run_code_from_elsewhere_where_that_was_asked_for(folder):
    given = folder / "study.toml", folder / "scan.h5"
    assert "--allow-code" not in slurm.script(slurm.Array(*given), "s.sh")
    array = slurm.Array(*given, settings=("run.steps=5",), allow_code=True)
    assert "    --set run.steps=5 \\\n    --allow-code &\n" in slurm.script(
        array, "s.sh"
    )


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck here.")
def test_shellcheck_finds_nothing():
    array = slurm.Array(Path("it's.toml"), Path("ü.h5"), ("run.steps=5",))
    text = slurm.script(array, "ü.h5.sh")
    found = subprocess.run(
        ["shellcheck", "-"], input=text, text=True, capture_output=True
    )
    assert found.stdout == ""


def test_a_task_out_of_time_stops_its_process_and_requeues_itself(
    folder, programs, start
):
    scontrol(programs)
    python = programs(
        "python",
        "trap 'sleep 0.3; touch stopped; exit 75' TERM; sleep 0.2; echo up\n"
        "while :; do sleep 0.1; done",
    )
    process = start(python)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 0
    assert (folder / "stopped").exists()
    assert requeued(folder) == ["70_3"]


@pytest.mark.slow
def test_a_second_signal_changes_nothing(folder, programs, start):
    scontrol(programs)
    python = programs(
        "python",
        "trap 'sleep 0.5; exit 75' TERM; sleep 0.2; echo up\n"
        "while :; do sleep 0.1; done",
    )
    process = start(python)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 0
    assert requeued(folder) == ["70_3"]


@pytest.mark.parametrize("code", [0, 1, 130, 137])
def test_what_is_done_or_has_failed_is_not_requeued(folder, programs, start, code):
    scontrol(programs)
    assert ended(start(programs("python", f"exit {code}")))[0] == code
    assert requeued(folder) == []


def test_a_process_stopped_before_it_listens_is_requeued(folder, programs, start):
    scontrol(programs)
    assert ended(start(programs("python", "kill -TERM $$")))[0] == 0
    assert requeued(folder) == ["70_3"]


def test_a_cancelled_task_stays_cancelled(folder, programs, start):
    scontrol(programs, state="COMPLETING")
    assert ended(start(programs("python", "exit 75")))[0] == 75
    assert requeued(folder) == []


@pytest.mark.parametrize("restarts", [99, 100])
def test_restarts_have_a_limit(folder, programs, start, restarts):
    scontrol(programs)
    code, printed = ended(start(programs("python", "exit 75"), restarts))
    assert (code, requeued(folder)) == ((0, ["70_3"]) if restarts < 100 else (75, []))
    assert ("submit the script again" in printed) == (restarts == 100)


@pytest.mark.slow
def test_chunks_that_take_too_long_are_dropped_in_time(folder, programs, start):
    scontrol(programs)
    python = programs(
        "python",
        "trap '((++asked == 2)) && exit 75' TERM; sleep 0.2; echo up\n"
        "while :; do sleep 0.1; done",
    )
    programs("sleep", 'echo "$1" >> slept; exec /bin/sleep "${1/30/1}"')
    process = start(python, time="00:02:00")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 0
    assert "30" in (folder / "slept").read_text().split()
    assert requeued(folder) == ["70_3"]


CONFIG = "MaxArraySize            = 11"
PARTITION = "PartitionName={} Default={} MaxTime={} State=UP"


@pytest.fixture
def cluster(programs):
    """The answers of a cluster with two partitions and arrays of up to 11 tasks."""
    lines = [
        PARTITION.format("short", "YES", "04:00:00"),
        PARTITION.format("long", "NO", "7-00:00:00"),
        PARTITION.format("any", "NO", "UNLIMITED"),
    ]
    partitions = "\n".join(lines)
    programs(
        "scontrol",
        f"case $2 in config) echo '{CONFIG}' ;; partition) echo '{partitions}' ;; esac",
    )


@pytest.mark.parametrize(
    "values, message",
    [
        ({"tasks": 11}, None),
        ({"tasks": 12}, "tasks must be at most 11, the MaxArraySize of this cluster"),
        ({"time": "04:00:01"}, "time must be at most 04:00:00, the MaxTime of partit"),
        ({"time": "168:00:00", "partition": "long"}, None),
        ({"time": "168:00:01", "partition": "long"}, "at most 7-00:00:00, the MaxTime"),
        ({"time": "99-00:00:00", "partition": "any"}, None),
        ({"time": "09:00:00", "partition": "long,short"}, "MaxTime of partition short"),
        ({"partition": "gpu"}, "partition must be of short, long, any; got 'gpu'"),
    ],
)
def test_limits_of_the_cluster_are_honoured(folder, cluster, values, message):
    array = slurm.Array(folder / "study.toml", folder / "scan.h5", **values)
    if message is None:
        slurm.check_limits(array)
        return
    with pytest.raises(ValueError, match=message):
        slurm.check_limits(array)


def test_where_there_is_no_cluster_the_numbers_are_taken_as_given(
    folder, programs, monkeypatch
):
    array = slurm.Array(folder / "study.toml", folder / "scan.h5", tasks=10**6)
    programs("scontrol", "echo 'Unable to contact slurm controller'; exit 1")
    slurm.check_limits(array)
    monkeypatch.setenv("PATH", str(folder))
    slurm.check_limits(array)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"tasks": 0}, "tasks must be from 1 to 4000000; got 0"),
        ({"cpus": 0}, "cpus must be from 1 to 4000000; got 0"),
        ({"time": "90"}, "time must be HH:MM:SS or D-HH:MM:SS; got '90'"),
        ({"time": "00:70:00"}, "time must be HH:MM:SS or D-HH:MM:SS; got '00:70:00'"),
        ({"time": "00:00:59"}, "time must be a minute or more; got 00:00:59"),
        ({"memory": "8 GiB"}, "memory must be such as 8G; got '8 GiB'"),
        ({"partition": "a\n#SBATCH -x"}, "partition must be a name of SLURM's"),
        ({"output": Path("100%.h5")}, "output must do without '%'"),
        ({"output": Path("a\n.h5")}, "output must do without '.n'"),
    ],
)
def test_an_impossible_array_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        slurm.Array(**{"study": Path("x.toml"), "output": Path("x.h5")} | values)


def forecast(memory=2**30):
    """10^4 points of 1 s: an hour and a half for 2 workers, in chunks of 50 s."""
    return Forecast(10_000, 50, 2, Pilot(seconds=1.0, memory=0), memory)


def test_the_script_holds_the_forecast_in_its_comments(folder):
    array = slurm.Array(folder / "study.toml", folder / "scan.h5", tasks=7)
    lines = slurm.script(array, "scan.h5.sh", forecast()).splitlines()
    comments = " ".join(line[2:] for line in lines if line.startswith("# "))
    assert (
        "10000 points in 200 chunks of 50, by 2 workers: about 1 h 23 min" in comments
    )
    # 15 rounds of 14 chunks, and a second for the file
    assert "1.00 GiB of memory. All 7 at once: about 12 min 31 s." in comments
    assert "busy" not in comments
    assert any(line.strip(" \\") == "--chunk 50 &" for line in lines)
    assert all(len(line) <= 88 for line in lines if line.startswith("# "))
    larger = slurm.Array(folder / "study.toml", folder / "scan.h5", tasks=101)
    assert slurm.outlook(larger, forecast()).endswith(
        "All 101 at once: about 51 s. 200 chunks keep 100 of 101 tasks "
        "busy: --tasks 100 is as fast."
    )


@pytest.mark.parametrize(
    "memory, least",
    [("1024", 2**30), ("1048576K", 2**30), ("1G", 2**30), ("1T", 2**40), (None, None)],
)
def test_memory_that_is_too_small_for_the_study_is_refused(folder, memory, least):
    array = slurm.Array(folder / "study.toml", folder / "scan.h5", memory=memory)
    slurm.write(array, folder / "scan.h5.sh", forecast(least or 2**50))
    if least is None:
        return
    with pytest.raises(ValueError, match=f"forecast for one task; got {memory};"):
        slurm.write(array, folder / "scan.h5.sh", forecast(least + 1))
