r"""
A scan on a cluster, from plan to shared file
=============================================

A phase diagram at publication resolution has :math:`10^4` to :math:`10^6` points.  This
tutorial takes such a scan through all its stations: the plan and its forecast, the job
array, tasks that share the work, a task that is killed, the merged file, its
verification, and the table that a colleague without this package can read.  Everything
runs here on a toy size with the very commands that one would type on a cluster; only
``sbatch`` is missing.
"""

# %%
# The plan
# --------
#
# A plan is a study file.  The toy has :math:`12 \times 8` points, refined once where
# neighbours differ; the real one differs in four numbers.

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd


folder = Path(tempfile.mkdtemp())
study = """\
kind = "bifurcation"

[network]
patterns = "poclopez-pe2"

[parameters]
beta = { start = 0.8, stop = 2.6, num = 12 }    # 201 for the paper
gamma = { start = 20.0, stop = 180.0, num = 8 } # 161 for the paper

[run]
transient = 2000                                # 20 000
steps = 2000                                    # 20 000
exponents = 2
extend = false
refine = 1
section_samples = 1
strobe_samples = 16
"""
(folder / "plane.toml").write_text(study)


def command(*words, check=True):
    """Show a command as one types it, run it, and print what it says."""
    print("$ statmech-attn", *words, flush=True)
    call = [sys.executable, "-m", "statmech_attn.cli", *words]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True)
    print("\n".join(line.rstrip() for line in (done.stdout + done.stderr).splitlines()))
    assert done.returncode == 0 or not check, done.returncode


# %%
# ``--dry-run`` checks the study and measures a short pilot.  A mistake costs a second
# here, not a night in the queue.

command("run", "plane.toml", "--output", "plane.h5", "--dry-run")

# %%
# Which task computes what
# ------------------------
#
# The points are cut into chunks by the study alone.  A finished chunk is a file,
# whoever computed it. So there is no master: every task runs the *same* command, claims
# chunks until none are left, and the one that finds all done merges them.  Any number
# of tasks may come, go, or die.
#
# ``slurm`` writes the job array.

command(
    "slurm",
    "plane.toml",
    "--output",
    "plane.h5",
    "--tasks",
    "20",
    "--cpus",
    "8",
    "--time",
    "04:00:00",
)
script = (folder / "plane.h5.sh").read_text()
print("\n".join(line for line in script.splitlines() if line.startswith("#SBATCH")))

# %%
# Memory is twice the forecast of a task.  Two minutes before its time ends, a task
# finishes the chunks at hand and puts itself back into the queue, so that a time limit
# shorter than the scan is no harm. On a cluster, ``sbatch plane.h5.sh`` is all that is
# left to do.
#
# Two tasks, one of which dies
# ----------------------------
#
# Here two processes stand for tasks of the array.  One is killed without warning in the
# middle of its work, as by a node that fails.

call = [
    sys.executable,
    "-m",
    "statmech_attn.cli",
    "run",
    "plane.toml",
    "--output",
    "plane.h5",
]
call += ["--chunk", "16", "--quiet"]
begin = lambda: subprocess.Popen(call, cwd=folder, stderr=subprocess.DEVNULL)
first, second = begin(), begin()
chunks = folder / "plane.h5.chunks"
while not list(chunks.glob("chunk-*.h5")):
    time.sleep(0.2)
first.send_signal(signal.SIGKILL)
command("status", "plane.h5")

# %%
# The other task takes over the claims of the dead one: on the same computer at once,
# since the kernel drops the lock of a dead process; from another computer after a
# minute in which its counter has not moved.  A chunk that was half done is computed
# again, to the same bits.

second.wait()
command("status", "plane.h5")

# %%
# The file
# --------
#
# The result is one netCDF-4 file that holds its study, the versions and machines that
# computed it, and a checksum.  ``info --check`` verifies it, on any computer.

command("info", "--check", "plane.h5")

# %%
# In Python it is the same data set that ``statmech_attn.run`` returns.

import statmech_attn
from statmech_attn import plotting, storage


statmech_attn.setup()
plane = storage.read(folder / "plane.h5")
plotting.phase_diagram(plane)

# %%
# Refined cells are smaller where the phase changes: that is where the points went.
#
# Sharing it
# ----------
#
# Whoever has no Python finds the same file in R, Julia, MATLAB or Octave
# (:doc:`/recipes`), or takes a table with a row for every point, codes written as words
# and every number with all its bits.

command("export", "plane.h5", "--csv", "plane.csv")
table = pd.read_csv(folder / "plane.csv")
table[["beta", "gamma", "phase", "period", "lyapunov_1", "lyapunov_stderr_1"]].head()

# %%
# A colleague who has only the file can repeat the computation: the study is inside.

print(storage.read(folder / "plane.h5").attrs["study"][:120], "...")

# %%
# What if the file does not depend on who computed it?  The digest of the *values* does
# not: the same study, computed by one process without any interruption, gives the same
# numbers to the last bit.

command("run", "plane.toml", "--output", "again.h5", "--quiet")
print(
    "identical:",
    plane.drop_attrs().identical(storage.read(folder / "again.h5").drop_attrs()),
)

# %%
# Where to go next
# ----------------
#
# * :doc:`/scans` explains chunks, claims, stopping, and points that fail.
# * :doc:`/howto` has the engine for Dask, for clusters with other queues.
# * :doc:`12_plugin`: a kind of study of yours gets all this without a line of its own.
