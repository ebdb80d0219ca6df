"""What is said about chunk folders."""

from statmech_attn.cli.terminal import Terminal
from statmech_attn.reporting import duration
from statmech_attn.scan import Folder, Repairs, Status


def print_status(folder: Folder, found: Status, console: Terminal) -> None:
    """A few lines: what is there, who works on it, what is left."""
    kind = found.known and f"{found.done} of {found.known} chunks are done"
    lines = [f"{kind} ({found.points} points)"]
    if found.complete:
        lines.append("complete: merge it, or run the study again, which does so")
    elif found.workers:
        lines.append(f"{found.computing} being computed by {found.workers} process(es)")
        lines += _forecast(found)
    else:
        lines.append("nobody computes it now; run the study again to go on")
    if found.abandoned:
        lines.append(f"{found.abandoned} claimed by processes that have ended")
    if found.truncated:
        numbers = ", ".join(map(str, found.truncated[:10]))
        lines.append(f"truncated: {numbers}; repair puts them aside")
    if found.quarantined:
        lines.append(f"{found.quarantined} damaged, in {folder.path / 'quarantine'}")
    lines.append(f"begun {folder.manifest.started}")
    for line in lines:
        console.say(line)


def _forecast(found: Status) -> list[str]:
    if found.seconds is None or not found.computing:
        return []
    remaining = (found.known - found.done) * found.seconds / found.computing
    per_chunk = duration(found.seconds)
    return [
        f"{per_chunk} for a chunk: about {duration(remaining)} left for the known ones"
    ]


def print_repairs(found: Repairs, console: Terminal) -> None:
    for reason in found.quarantined:
        console.say(f"quarantined: {reason}")
    console.say(
        f"{len(found.quarantined)} damaged chunks put aside, "
        f"{found.released} abandoned claims given back"
    )
