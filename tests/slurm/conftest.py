"""A SLURM of one node on this machine: its daemons, started by hand."""

import contextlib
import getpass
import os
import secrets
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest


PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
# A requeued job waits for as long as a credential holds, and 5 s is the least.
CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=sched_interval=1,sched_min_interval=0
MaxArraySize=21
KillWait=2
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=4000 State=UNKNOWN
PartitionName=work Nodes=ALL Default=YES MaxTime=01:00:00 State=UP
"""


class Cluster:
    """What the tests ask of SLURM."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}

    def call(self, *words, check=True):
        found = subprocess.run(
            [str(word) for word in words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert not check or found.returncode == 0, f"{words}: {found.stderr}"
        return found.stdout.strip()

    def submit(self, script, *options):
        """The id of the array."""
        return self.call("sbatch", "--parsable", *options, script)

    def states(self, job):
        """State of every task of an array that is not forgotten: number -> state."""
        lines = self.call("squeue", "-r", "-h", "-t", "all", "-j", job, "-o", "%K %T")
        return dict(line.split() for line in lines.splitlines())

    def wait(self, job, timeout=180):
        """Wait for the end of an array; its final states.

        Between two runs of a task that requeues itself it is pending.
        """
        until(lambda: not {*self.states(job).values()} & ACTIVE, timeout)
        return self.states(job)

    def wait_until(self, condition, timeout=60):
        """Wait for something that the tasks do; returns what the condition said."""
        return until(condition, timeout)

    def stepd(self, job, task):
        """Id of the process that watches over a task."""
        id = self.call("squeue", "-h", "-j", f"{job}_{task}", "-o", "%A")
        title = f"slurmstepd: [{id}.batch]"
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if path.read_text().startswith(title):
                    return int(path.parent.name)
        raise AssertionError(f"no {title}")

    def cancel_all(self):
        self.call("scancel", "--signal=KILL", "--full", "--user", getpass.getuser())
        self.call("scancel", "--user", getpass.getuser())
        until(lambda: not self.call("squeue", "-h"), 60)


ACTIVE = {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED"}


def until(condition, timeout=60, pause=0.25):
    """Wait until a condition holds, and return what it said."""
    end = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {timeout} s in vain."
        time.sleep(pause)
    return found


def install():
    """Install SLURM where it is missing, if that is allowed here; else skip."""
    if all(shutil.which(program) for program in PROGRAMS):
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("no SLURM here, and installing it needs root and apt-get.")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    wait = ("-o", "DPkg::Lock::Timeout=300")
    install = ("install", "--yes", "--no-install-recommends", *PACKAGES)
    for words in (("update",), install):
        done = subprocess.run(
            ["apt-get", *wait, *words], env=quiet, capture_output=True, text=True
        )
        if done.returncode:
            last = (done.stderr.splitlines() or ["?"])[-1]
            pytest.skip(f"no SLURM here, and apt-get {words[0]} failed: {last}")


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A SLURM that is idle; all of it is killed at the end."""
    install()
    folder = tmp_path_factory.mktemp("cluster")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.touch(0o600)
    key.write_bytes(secrets.token_bytes(1024))
    config = CONFIG.format(
        folder=folder,
        host=socket.gethostname().partition(".")[0],
        ports=free_ports(2),
        user=getpass.getuser(),
    )
    (folder / "slurm.conf").write_text(config)
    cluster = Cluster(folder)
    munge = [
        *("munged", "--foreground", "--force", f"--key-file={key}"),
        *(f"--socket={folder}/munge.socket", f"--pid-file={folder}/munged.pid"),
        *(f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed"),
    ]
    daemons = []
    try:
        for words in (munge, ["slurmctld", "-D"], ["slurmd", "-D"]):
            with open(folder / f"{words[0]}.out", "w") as printed:
                daemons.append(
                    subprocess.Popen(
                        words, env=cluster.environment, stdout=printed, stderr=printed
                    )
                )
            time.sleep(0.5)
        idle = lambda: cluster.call("sinfo", "-h", "-o", "%T", check=False) == "idle"
        try:
            until(idle, 30)
        except AssertionError:
            pytest.fail("SLURM does not start:\n" + last_words(folder))
        yield cluster
        cluster.cancel_all()
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(20)


def last_words(folder):
    """The last lines of all logs."""
    files = [*folder.glob("*.out"), *folder.glob("*.log")]
    tail = lambda file: file.read_text(errors="replace").splitlines()[-5:]
    return "\n".join(f"{file.name}: {line}" for file in files for line in tail(file))
