"""Memory that a computation may still take: on this machine, and on its devices.

Of the machine it is the least of what the machine has left, what the control groups
of the process (containers, batch systems) allow beyond what they use, and what its own
limit of address space (ulimit -v) leaves.  Pages of files that the system would drop
count as free in all of them.
"""

import resource
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from statmech_attn.reporting import size


GROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
# Limit, use and reclaimable part of a control group, by version of the interface.
VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
VERSION_2 = ("memory.max", "memory.current", "inactive_file")


def available_memory() -> int:
    """Bytes that this process may still take."""
    limits = [psutil.virtual_memory().available, *_left_by_groups()]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        limits.append(soft - psutil.Process().memory_info().vms)
    return max(0, min(limits))


def require_memory(what: str, needed: int) -> None:
    """Refuse arrays that do not fit, before any of them is made."""
    if needed > (free := available_memory()):
        raise ValueError(
            f"{what} take {size(needed)} of memory, of which {size(free)} are free: "
            "take fewer."
        )


def device_memory(devices: Sequence[Any]) -> int | None:
    """Bytes free on the fullest of some devices; None where a device does not tell.

    Devices of a host share its memory evenly.
    """
    if devices[0].platform == "cpu":
        return available_memory() // len(devices)
    stats = [device.memory_stats() or {} for device in devices]
    if not all("bytes_limit" in x for x in stats):
        return None
    return min(x["bytes_limit"] - x.get("bytes_in_use", 0) for x in stats)


def _left_by_groups(
    groups: Path = GROUPS, membership: Path = MEMBERSHIP
) -> Iterator[int]:
    """What every control group over this process leaves; nothing where none does."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _left_along(groups, path, VERSION_2)
        elif "memory" in controllers.split(","):
            yield from _left_along(groups / "memory", path, VERSION_1)


def _left_along(root: Path, path: str, names: tuple[str, str, str]) -> Iterator[int]:
    """What a group and those above it leave; a container may see the last part only."""
    inside = root / path.lstrip("/")
    for folder in (inside, *inside.parents):
        if folder.is_relative_to(root):
            yield from _left(folder, *names)


def _left(folder: Path, limit: str, use: str, reclaimable: str) -> Iterator[int]:
    try:
        allowed = (folder / limit).read_text().strip()
        used = int((folder / use).read_text())
        stat = (folder / "memory.stat").read_text().split()
    except (OSError, ValueError):
        return
    if allowed != "max":
        yield int(allowed) - used + _after(reclaimable, stat)


def _after(name: str, words: list[str]) -> int:
    """The number that follows a name; 0 without it."""
    return int(words[words.index(name) + 1]) if name in words else 0
