"""The memory of this container, as its cgroup counts it. When this memory reaches its limit, the kernel kills a
process, even if the resident memory of the process is small."""

from pathlib import Path
from typing import NamedTuple

_ROOT = Path("/sys/fs/cgroup")
_UNLIMITED = 1 << 60  # bytes; version 1 shows a number near 2^63 where there is no limit


class Memory(NamedTuple):
    """Bytes. Both are 0 if the container has no limit, or if the process does not run in a container: its cgroup may
    then count the memory of the whole machine."""

    working_set: int
    """The memory that the kernel cannot free at once: all but the pages of files that were not used lately."""
    limit: int


def memory(root: Path = _ROOT) -> Memory:
    """The numbers of cgroup version 2, else of version 1."""
    for directory, used, limit, inactive in (
        (root, "memory.current", "memory.max", "inactive_file"),
        (root / "memory", "memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file"),
    ):
        total = _number(directory / used)
        if total:
            most = _number(directory / limit)
            free = _statistic(directory / "memory.stat", inactive)
            return Memory(max(0, total - free), most) if 0 < most < _UNLIMITED else Memory(0, 0)
    return Memory(0, 0)


def _number(path: Path) -> int:
    """The number in a file. 0: there is no such file, or it says `max`."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def _statistic(path: Path, name: str) -> int:
    try:
        lines = path.read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0)
    except (OSError, ValueError, IndexError):
        return 0
