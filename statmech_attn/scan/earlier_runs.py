"""What earlier runs of a study took on this machine, so that none is timed twice.

An entry (`kept_files`) holds the pilot and, once one process has computed all chunks,
the time that they took.  It depends on the study, on the files that it reads, on its
batches, workers and compiler, and on `storage.environment()`.  No number of a result
depends on it: it says how points are cut into chunks, and what the forecast is.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from statmech_attn import kept_files, storage
from statmech_attn.scan.chunks.work import Pilot, Work


FOLDER = "times"  # below the store of JAX


class Timings(NamedTuple):
    """What is known from earlier runs.

    Attributes:
        pilot: None for a kind that has none.
        memory: in bytes, as it was forecast with the programs in memory.
        seconds: of all chunks, on one worker; None before a run computed them all.
    """

    pilot: Pilot | None
    memory: int
    seconds: float | None = None


class Place(NamedTuple):
    """Where the times of a study are kept."""

    parts: tuple[str, ...]

    def read(self) -> Timings | None:
        """What is known; None before the first run, and where an entry is damaged."""
        content = kept_files.read(FOLDER, self.parts)
        if content is None:
            return None
        pilot, *rest = json.loads(content)
        return Timings(pilot and Pilot(*pilot), *rest)

    def write(self, earlier: Timings) -> None:
        """Keep what a run found out."""
        kept_files.write(FOLDER, self.parts, json.dumps(earlier).encode())


def place(work: Work, workers: int, study: str, inputs: Mapping[str, str]) -> Place:
    """Where the times of a study on this machine are kept."""
    kind = f"{type(work).__module__}.{type(work).__qualname__}"
    facts: dict[str, Any] = storage.environment()
    facts |= {"batch": work.batch, "workers": workers}
    facts |= getattr(work, "decisions", {})
    text = json.dumps([facts, dict(inputs)], sort_keys=True)
    return Place((kind, storage.study_digest(study), text, *Pilot._fields))
