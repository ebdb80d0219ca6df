"""Job arrays for SLURM: a script in which every task works on the same study.

Every task of the array runs the same `statmech-attn run`: it claims chunks until none
are left, and the one that finds all of them done writes the file.  A task whose time
ends first is told so by SLURM, stops with code 75 and puts itself back into the queue.
"""

import math
import re
import shlex
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from string import Template

from statmech_attn import inputs, storage
from statmech_attn.reporting import duration, size
from statmech_attn.scan.forecast import Forecast


LEAD = 120  # seconds before the time limit at which a task is asked to stop
MARGIN = 2  # memory that is asked for over that of the forecast
MOST = 4_000_000  # tasks of an array: no cluster allows more (MaxArraySize)
RESTARTS = 100  # of one task
_MARK = "# Written by `statmech-attn slurm`"
_SCRIPT = Template(
    _MARK
    + """: a job array whose tasks share the chunks of a study.
# The task that finds all chunks done writes the file.  Submit it, as often as needed,
#     sbatch $script
# Options given to sbatch, such as --time=08:00:00, override these.
$forecast#
$directives

${setup}set -u
python=$python
study=$study
output=$output
task=$${SLURM_ARRAY_JOB_ID}_$${SLURM_ARRAY_TASK_ID}

# Before the time limit: finish the chunks at hand; if they take too long, drop them.
trap 'kill -TERM "$$worker"
    (sleep $grace && kill -TERM "$$worker") >/dev/null 2>&1 &' TERM

"$$python" -P -m statmech_attn.cli run "$$study" --output "$$output"$settings &
worker=$$!

# A signal ends `wait` early: go on until the process itself has ended.
wait "$$worker"
code=$$?
while [ "$$code" -gt 128 ] && kill -0 "$$worker" 2>/dev/null; do
    wait "$$worker"
    code=$$?
done
trap '' TERM

# 75, or 143 while it began or merged: stopped before the end.  A task that was
# cancelled is no longer running, and stays cancelled.  Its job id alone would requeue
# the whole array.
if { [ "$$code" -eq 75 ] || [ "$$code" -eq 143 ]; } &&
    scontrol show job "$$task" | grep -q JobState=RUNNING; then
    if [ "$${SLURM_RESTART_COUNT:-0}" -ge $restarts ]; then
        echo "task $$task: restarted $restarts times; submit the script again." >&2
    elif scontrol requeue "$$task"; then
        code=0
    fi
fi
exit "$$code"
"""
)


@dataclass(frozen=True)
class Array:
    """A job array for one study.

    Attributes:
        settings: overrides of the study's keys, such as "run.steps=500".
        tasks: how many of them.
        time: limit of one task, [D-]HH:MM:SS.
        cpus: of one task.
        memory: of one task as SLURM writes it, such as "8G"; None: from the forecast,
            if there is one.
        partition, account, qos: None: the cluster's default.
        gpus: of one task, such as "1" or "a100:2".
        setup: shell script that each task sources first: modules, environments.
        python: the interpreter of the tasks.
        allow_code: whether the tasks may run code that lies outside the study's folder.
    """

    study: Path
    output: Path
    settings: tuple[str, ...] = ()
    tasks: int = 10
    time: str = "04:00:00"
    cpus: int = 4
    memory: str | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    gpus: str | None = None
    setup: Path | None = None
    python: str = sys.executable
    allow_code: bool = False

    def __post_init__(self):
        for name in ("tasks", "cpus"):
            if not 1 <= getattr(self, name) <= MOST:
                raise ValueError(
                    f"{name} must be from 1 to {MOST}; got {getattr(self, name)}."
                )
        if seconds(self.time) < 60:
            raise ValueError(f"time must be a minute or more; got {self.time}.")
        if self.memory is not None and not re.fullmatch(
            r"[1-9]\d*[KMGT]?", self.memory
        ):
            raise ValueError(f"memory must be such as 8G; got {self.memory!r}.")
        for name in ("partition", "account", "qos"):
            value = getattr(self, name)
            if value is not None and not re.fullmatch(r"[\w.,@/-]+", value):
                raise ValueError(f"{name} must be a name of SLURM's; got {value!r}.")
        if self.gpus is not None and not re.fullmatch(
            r"([\w.-]+:)?[1-9]\d*", self.gpus
        ):
            raise ValueError(f"gpus must be such as 1 or a100:2; got {self.gpus!r}.")
        for path in filter(None, (self.study, self.output, self.setup)):
            inputs.require_unicode(path)
        if self.setup is not None:
            inputs.require_regular(self.setup)
        if unwritable := re.search(r"[%\\\x00-\x1f]", str(self.logs)):
            raise ValueError(
                f"output must do without {unwritable[0]!r}, which SLURM does not take "
                f"in a path; got {str(self.logs.parent)!r}."
            )

    @property
    def logs(self) -> Path:
        """Folder of what the tasks print."""
        output = self.output.absolute()
        return output.parent / f"{output.name}.logs"


def seconds(limit: str) -> int:
    """A time limit in seconds."""
    parts = re.fullmatch(r"(?:(\d+)-)?(\d+):([0-5]\d):([0-5]\d)", limit)
    if parts is None:
        raise ValueError(f"time must be HH:MM:SS or D-HH:MM:SS; got {limit!r}.")
    days, hours, minutes, rest = (int(part or 0) for part in parts.groups())
    return 60 * (60 * (24 * days + hours) + minutes) + rest


def script(array: Array, name: str, forecast: Forecast | None = None) -> str:
    """Text of the script that is to be submitted as `name`."""
    lead = min(LEAD, seconds(array.time) // 2)
    comments = textwrap.fill(outlook(array, forecast), 86) + "\n" if forecast else ""
    log = str(array.logs / "%A_%a.log").replace('"', '\\"')
    options = {
        "job-name": re.sub(r"[^\w.-]+", "-", array.output.stem, flags=re.ASCII),
        "array": f"0-{array.tasks - 1}",
        "ntasks": 1,
        "cpus-per-task": array.cpus,
        "time": array.time,
        "mem": array.memory or (forecast and memory_for(forecast)),
        "partition": array.partition,
        "account": array.account,
        "qos": array.qos,
        "gpus": array.gpus,
        "output": f'"{log}"',
        "open-mode": "append",
        "requeue": "",
        "signal": f"B:TERM@{lead}",
    }
    directives = [
        f"#SBATCH --{option}={value}".removesuffix("=")
        for option, value in options.items()
        if value is not None
    ]
    words = [] if array.gpus else ['--workers "$SLURM_CPUS_PER_TASK"']
    if forecast and not array.gpus:
        words += [f"--chunk {forecast.points_per_chunk}"]
    words += [f"--set {shlex.quote(setting)}" for setting in array.settings]
    words += ["--allow-code"] if array.allow_code else []
    return "#!/bin/bash\n" + _SCRIPT.substitute(
        script=shlex.quote(name),
        directives="\n".join(directives),
        forecast=textwrap.indent(comments, "# "),
        python=shlex.quote(array.python),
        study=shlex.quote(str(array.study.absolute())),
        output=shlex.quote(str(array.output.absolute())),
        settings="".join(f" \\\n    {word}" for word in words),
        setup=f"source {shlex.quote(str(array.setup.absolute()))}\n"
        if array.setup
        else "",
        grace=lead // 2,
        restarts=RESTARTS,
    )


def check(array: Array, path: Path, overwrite: bool = True) -> None:
    """Whether the cluster takes an array, and nothing is in its way."""
    check_limits(array)
    storage.check_place(path)
    if storage.check_place(array.output):
        raise ValueError(f"{array.output} is there already; name another output.")
    if path.absolute() == array.output.absolute():
        raise ValueError(f"{path}: is the output; name another script.")
    like = lambda path: _MARK in storage.begins(path)
    storage.require_replaceable(path, overwrite, like, "script of this command")


def write(array: Array, path: Path, forecast: Forecast | None = None) -> None:
    """Write the script and make the folder of its logs."""
    check(array, path)
    if forecast and forecast.memory > _bytes(array.memory):
        raise ValueError(
            f"memory must be at least {size(forecast.memory)}, the forecast for one "
            f"task; got {array.memory}; fewer --cpus need less."
        )
    text = script(array, path.name, forecast)
    array.logs.mkdir(exist_ok=True)
    storage.write_text(path, text)


def outlook(array: Array, forecast: Forecast) -> str:
    """What is to be expected, given the forecast of one task."""
    text = f"A task alone, forecast on the computer that wrote this: {forecast.text()}."
    together = forecast._replace(workers=forecast.workers * array.tasks).seconds
    if together is not None:
        text += f" All {array.tasks} at once: about {duration(together)}."
    chunks = -(-forecast.points // forecast.points_per_chunk)
    busy = -(-chunks // forecast.workers)
    if busy < array.tasks:
        text += (
            f" {chunks} chunks keep {busy} of {array.tasks} tasks busy: --tasks {busy} "
            "is as fast."
        )
    return text


def memory_for(forecast: Forecast) -> str:
    """Memory to ask for: the forecast and as much again for what it cannot see."""
    return f"{math.ceil(MARGIN * forecast.memory / 2**30)}G"


def _bytes(memory: str | None) -> float:
    """Memory in SLURM's writing; MiB where no unit is given."""
    if memory is None:
        return math.inf
    power = "KMGT".find(memory[-1]) + 1 or 2
    return int(memory.rstrip("KMGT")) * 1024**power


def check_limits(array: Array) -> None:
    """Hold an array against the limits of the cluster, if this is one."""
    size = re.search(r"^MaxArraySize\s*=\s*(\d+)", _scontrol("config"), re.MULTILINE)
    if size and array.tasks > int(size[1]):
        raise ValueError(
            f"tasks must be at most {size[1]}, the MaxArraySize of this cluster; "
            f"got {array.tasks}."
        )
    partitions = {
        fields["PartitionName"]: fields
        for line in _scontrol("partition", "--oneliner").splitlines()
        if (fields := dict(re.findall(r"(\w+)=(\S*)", line))).get("PartitionName")
    }
    for name in _chosen(array, partitions):
        limit = partitions[name].get("MaxTime", "UNLIMITED")
        if limit != "UNLIMITED" and seconds(array.time) > seconds(limit):
            raise ValueError(
                f"time must be at most {limit}, the MaxTime of partition {name}; "
                f"got {array.time}."
            )


def _chosen(array: Array, partitions: dict[str, dict[str, str]]) -> list[str]:
    """The partitions of an array, as far as the cluster is known."""
    if not partitions:
        return []
    if array.partition is None:
        return [name for name, of in partitions.items() if of.get("Default") == "YES"]
    names = array.partition.split(",")
    for name in names:
        if name not in partitions:
            known = ", ".join(partitions)
            raise ValueError(f"partition must be of {known}; got {name!r}.")
    return names


def _scontrol(*words: str) -> str:
    """What SLURM says of itself; nothing where there is none or it does not answer."""
    try:
        done = subprocess.run(
            ["scontrol", "show", *words], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
