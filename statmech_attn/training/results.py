"""How a training ends, and how much is kept of it."""

from statmech_attn.labels import Words


RUNNING, CONVERGED, DIVERGED, VANISHED = range(4)
RESULTS = Words("step limit reached", "converged", "diverged", "vanished")
RECORDS = 10  # losses kept of every block of steps
