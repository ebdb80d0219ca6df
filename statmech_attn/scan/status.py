"""What a chunk folder holds, and putting it in order."""

from typing import NamedTuple

from statmech_attn.reporting import Silent
from statmech_attn.scan.chunks.chunk_file import Damaged
from statmech_attn.scan.chunks.claims import Claims, owner_of
from statmech_attn.scan.chunks.folder import Folder
from statmech_attn.scan.chunks.session import Session
from statmech_attn.scan.chunks.signals import Stop
from statmech_attn.scan.chunks.work import Chunk, Work


SAMPLE = 20  # chunks whose times are looked at for a forecast


class Status(NamedTuple):
    """Counts of chunks, unless said otherwise.

    Attributes:
        done: that are finished.
        known: of all rounds that have begun; more may come where results decide.
        complete: whether no chunk is missing.
        points: that are done.
        computing: claimed by processes that live, as far as can be seen from here.
        abandoned: claimed by processes that have ended.
        truncated: numbers of chunks that lack their end.
        quarantined: that were put aside as damaged.
        workers: processes that live.
        seconds: mean time of a chunk on one worker; None before the first.
    """

    done: int
    known: int
    complete: bool
    points: int
    computing: int
    abandoned: int
    truncated: list[int]
    quarantined: int
    workers: int
    seconds: float | None

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the end of the known chunks, with the present workers."""
        if self.seconds is None or not self.computing:
            return None
        return (self.known - self.done) * self.seconds / self.computing


class Repairs(NamedTuple):
    """What `repair` did: chunks put aside with the reason, claims given back.

    Attributes:
        quarantined: names of the chunks that were put aside, with the reasons.
        released: number of claims that were given back.
    """

    quarantined: list[str]
    released: int


def status(folder: Folder, work: Work) -> Status:
    """Look at a folder without changing it."""
    per_chunk = folder.manifest.points_per_chunk
    session = Session(work, folder, per_chunk, Silent(), Stop())
    session.look()
    chunks = {chunk.number: chunk for chunk in session.chunks}
    done, claimed = folder.listing()
    done &= chunks.keys()
    claims = Claims(folder.path)
    owners = [owner_of(folder.claim(number)) for number in claimed - done]
    lost = sum(owner is not None and claims.dead(owner) for owner in owners)
    return Status(
        done=len(done),
        known=len(chunks),
        complete=session.finished,
        points=sum(chunks[number].size for number in done),
        computing=len(owners) - lost,
        abandoned=lost,
        truncated=folder.truncated(),
        quarantined=sum(1 for _ in (folder.path / "quarantine").glob("chunk-*")),
        workers=len(claims.living()),
        seconds=_seconds(folder, [chunks[number] for number in sorted(done)]),
    )


def repair(folder: Folder) -> Repairs:
    """Verify every chunk, put damaged ones aside, release claims of ended processes."""
    errors = []
    for number in sorted(folder.listing()[0]):
        try:
            folder.verified(number)
        except Damaged as error:
            folder.quarantine(number)
            errors.append(str(error))
    with folder.claims() as claims:
        return Repairs(errors, claims.clean())


def _seconds(folder: Folder, done: list[Chunk]) -> float | None:
    times = []
    for chunk in done[:: max(len(done) // SAMPLE, 1)]:
        try:
            times.append(folder.read(chunk, ()).seconds)
        except (Damaged, OSError):
            continue
    return sum(times) / len(times) if times else None
