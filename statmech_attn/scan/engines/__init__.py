"""Where chunks are computed; the numbers do not depend on it."""

from collections.abc import Callable
from typing import NamedTuple

from statmech_attn.scan.session import Session
from statmech_attn.scan.work import Work


class Engine(NamedTuple):
    """Where chunks are computed.

    Attributes:
        compute: takes the session, and how a worker elsewhere builds the work.
        workers: chunks that are computed at once.
    """

    compute: Callable[[Session, Callable[[], Work]], None]
    workers: int
