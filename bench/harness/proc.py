"""CPU time and memory of processes, read from /proc."""

import contextlib
import os
import time
from collections import Counter
from pathlib import Path

_PROGRAMS = ("gatekeeper", "reconciler", "sandbox", "kube-apiserver", "etcd", "kube-controller-manager")


def cpu(pid: int) -> float:
    """Seconds so far; 0 if the process has ended."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def memory(pid: int, field: str = "VmRSS") -> int:
    """The resident memory in MiB; with the field VmHWM the largest so far. 0 if the process has ended. (The field
    `ru_maxrss` of getrusage would contain the memory of the parent.)"""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) // 1024 for line in lines if line.startswith(f"{field}:")), 0)
    return 0


def waited(pid: int) -> float:
    """The seconds so far in which the main thread of a process was ready to run but had no core."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


class Programs:
    """The CPU time and the memory of the child processes of this process, by program."""

    def __init__(self) -> None:
        pids = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]
        self._parents = {pid: int(fields[1]) for pid in pids if (fields := _stat(pid))}
        self._programs = {pid: name for pid in self._parents if self._ours(pid) and (name := _program(pid))}

    def cpu(self) -> dict[str, float]:
        """Seconds so far."""
        used: Counter[str] = Counter()
        for pid, name in self._programs.items():
            used[name] += cpu(pid)  # type: ignore[assignment]  # a Counter of seconds
        return used | {"this process": time.process_time()}

    def memory(self) -> dict[str, int]:
        """The largest resident size so far, MiB."""
        found: Counter[str] = Counter()
        for pid, name in self._programs.items():
            found[name] += memory(pid, "VmHWM")
        return dict(found)

    def port(self, program: str) -> int:
        """The port of a program's metrics."""
        (pid,) = (pid for pid, name in self._programs.items() if name == program)
        arguments = _arguments(pid)
        return int(arguments[arguments.index("--metrics-port") + 1])

    def _ours(self, pid: int) -> bool:
        while pid > 1 and pid != os.getpid():
            pid = self._parents.get(pid, 0)
        return pid == os.getpid()


def _stat(pid: int) -> list[str]:
    """The fields of a process after its name; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _arguments(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return []


def _program(pid: int) -> str:
    return next((name for name in _PROGRAMS for each in _arguments(pid)[:4] if Path(each).name == name), "")
