"""What is said about runs and their chunk folders."""

from typing import Any

from statmech_attn import studies
from statmech_attn.cli.terminal.screen import Terminal
from statmech_attn.reporting import duration, moment, span
from statmech_attn.scan import status


def print_progress(progress: studies.results.Progress, console: Terminal) -> None:
    """A few lines: the state, who works on it, what is left."""
    output = progress.places.output
    match progress.state:
        case "not begun":
            lines = [f"neither {output} nor {progress.places.chunks} exists"]
        case "finished":
            lines = [f"{output} holds the result of a study of kind {_kind(progress)}"]
        case "computed":
            lines = [
                "all chunks are computed; run the study again, or use "
                f"statmech-attn merge, to write {output}"
            ]
        case "stopped":
            lines = ["nothing computes it now; the same run command continues"]
        case _:
            lines = []
    console.say(": ".join([progress.state, *lines]))
    if progress.chunks:
        for line in _chunks(progress.chunks):
            console.say(line)
    for line in _times(progress):
        console.say(line)


def as_dict(progress: studies.results.Progress) -> dict[str, Any]:
    """The state of a run for programs; null where something is not known."""
    chunks, result = progress.chunks, progress.result
    fields = chunks._asdict() if chunks else {}
    return {
        "state": progress.state,
        "output": str(progress.places.output),
        "started": progress.started,
        "finished": result and result.finished,
        "wall_seconds": result and result.elapsed,
        "worker_seconds": result and result.busy,
        "chunks_done": fields.get("done"),
        "chunks_known": fields.get("known"),
        "chunks_computing": fields.get("computing"),
        "chunks_abandoned": fields.get("abandoned"),
        "chunks_truncated": fields.get("truncated"),
        "chunks_quarantined": fields.get("quarantined"),
        "points_done": fields.get("points"),
        "processes": fields.get("workers"),
        "seconds_per_chunk": fields.get("seconds"),
        "seconds_left": chunks and chunks.seconds_left,
    }


def _kind(progress: studies.results.Progress) -> str:
    return progress.result.kind if progress.result else "?"


def _times(progress: studies.results.Progress) -> list[str]:
    """When it began, and what it took."""
    if not progress.started:
        return []
    result = progress.result if progress.state == "finished" else None
    if result is None:
        return [f"started {moment(progress.started)}"]
    lines = [f"computed {span(progress.started, result.finished)}"]
    if result.elapsed is not None and result.busy is not None:
        lines.append(
            f"wall time {duration(result.elapsed)}, worker time {duration(result.busy)}"
        )
    return lines


def _chunks(chunks: status.Status) -> list[str]:
    lines = [
        f"{chunks.done} of {chunks.known} chunks are done ({chunks.points} points)"
    ]
    if chunks.workers:
        lines.append(
            f"{chunks.computing} being computed by {chunks.workers} process(es)"
        )
    if chunks.seconds is not None and chunks.seconds_left is not None:
        lines.append(
            f"{duration(chunks.seconds)} per chunk: about "
            f"{duration(chunks.seconds_left)} left for the chunks that are known"
        )
    if chunks.abandoned:
        lines.append(f"{chunks.abandoned} claimed by processes that have ended")
    if chunks.truncated:
        numbers = ", ".join(map(str, chunks.truncated[:10]))
        lines.append(f"truncated: {numbers}; statmech-attn repair quarantines them")
    if chunks.quarantined:
        lines.append(f"{chunks.quarantined} damaged chunks are in quarantine/")
    return lines


def print_repairs(repairs: status.Repairs, console: Terminal) -> None:
    for reason in repairs.quarantined:
        console.say(f"quarantined: {reason}")
    console.say(
        f"{len(repairs.quarantined)} damaged chunks quarantined, "
        f"{repairs.released} abandoned claims released"
    )
