"""What every engine says of itself."""

from collections.abc import Callable
from typing import NamedTuple

from statmech_attn.scan.chunks.session import Session
from statmech_attn.scan.chunks.work import Work


class Engine(NamedTuple):
    """Where chunks are computed.

    Attributes:
        compute: takes the session, and how a worker elsewhere builds the work.
        workers: chunks that are computed at once.
        one_process: whether all of them are in this process.
        here: whether they take the memory of this machine.
    """

    compute: Callable[[Session, Callable[[], Work]], None]
    workers: int
    one_process: bool
    here: bool = True

    def workers_for(self, work: Work) -> int:
        """Chunks of a study that are computed at once."""
        return 1 if work.alone and self.one_process else self.workers
