r"""
A scan on a cluster, from plan to shared file
=============================================

A phase diagram at publication resolution has :math:`10^4` to :math:`10^6` points.  This
tutorial takes such a scan through all its stages: the plan and its forecast, the job
array, tasks that share the work, a task that is killed, the merged file, its
verification, and the table that a colleague without this package can read.  Everything
runs here at a small size with the commands that one would type on a cluster; only
``sbatch`` is missing.
"""

# %%
# The plan
# --------
#
# A plan is a study file.  The small one has :math:`12 \times 8` points, refined once
# where neighbours differ; the full one differs in four numbers.

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
# whichever task computed it.  No task is in charge: every task runs the *same* command
# and claims chunks until none are left, and the one that finds all chunks done merges
# them.  Tasks may be added, removed or killed at any time.
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
# The memory asked for is twice the forecast of a task.  Two minutes before its time
# limit, a task finishes the chunks that it is computing and puts itself back into the
# queue, so that the time limit may be shorter than the scan.  On a cluster, only
# ``sbatch plane.h5.sh`` remains to be done.
#
# Two tasks, one of which is killed
# ---------------------------------
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
# computed it, and a checksum.  ``info`` verifies it, on any computer.

command("info", "plane.h5")

# %%
# In Python it is the same data set that ``statmech_attn.run`` returns.

import statmech_attn
from statmech_attn import plotting, storage


statmech_attn.setup()
plane = storage.read(folder / "plane.h5")
plotting.phase_diagram(plane)

# %%
# Cells are smaller where the phase changes: the refinement has placed its points there.
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
# The attributes of a file depend on when and where it was computed, but its values do
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
# * :doc:`/howto/clusters` has the engine for Dask, for clusters with other queues.
# * :doc:`12_plugin`: a kind of study of your own gets all this without further code.
