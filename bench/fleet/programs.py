"""CPU time and memory of processes, read from /proc."""

import contextlib
import os
import time
from collections import Counter
from pathlib import Path

_PROGRAMS = ("gatekeeper", "reconciler", "sandbox", "kube-apiserver", "etcd", "kube-controller-manager")


class Programs:
    """The CPU time and the memory of the child processes of this process, by program."""

    def __init__(self) -> None:
        self._parents = {
            int(each.name): int(_stat(each)[1])
            for each in Path("/proc").iterdir()
            if each.name.isdigit() and _stat(each)
        }
        self._programs = {pid: name for pid in self._parents if self._ours(pid) and (name := _program(pid))}

    def cpu(self) -> dict[str, float]:
        """Seconds so far."""
        used: dict[str, float] = {}
        for pid, name in self._programs.items():
            fields = _stat(Path(f"/proc/{pid}"))
            used[name] = used.get(name, 0.0) + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return used | {"this process": time.process_time()}

    def memory(self) -> dict[str, int]:
        """The largest resident size so far, MiB."""
        found: Counter[str] = Counter()
        for pid, name in self._programs.items():
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    found[name] += int(line.split()[1]) // 1024
        return dict(found)

    def port(self, program: str) -> int:
        """The port of a program's metrics."""
        (pid,) = (pid for pid, name in self._programs.items() if name == program)
        arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        return int(arguments[arguments.index("--metrics-port") + 1])

    def _ours(self, pid: int) -> bool:
        while pid > 1 and pid != os.getpid():
            pid = self._parents.get(pid, 0)
        return pid == os.getpid()


def _stat(process: Path) -> list[str]:
    """The fields of a process after its name; empty if it has ended."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _program(pid: int) -> str:
    with contextlib.suppress(OSError):
        arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        return next((name for name in _PROGRAMS for each in arguments[:4] if Path(each).name == name), "")
    return ""
