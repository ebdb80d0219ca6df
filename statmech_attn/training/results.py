"""How a training ends, and how much is kept of it."""

RUNNING, CONVERGED, DIVERGED, VANISHED = range(4)
RESULTS = ("step limit reached", "converged", "diverged", "vanished")
RECORDS = 10  # losses kept of every block of steps
