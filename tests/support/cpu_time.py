"""A pytest plugin: prints the CPU time of a run, and its most expensive files. `make test` loads it.

The time of a test includes its fixtures and all processes that they started, also those that still run. What workers of
pytest-xdist do before their first test, which is mostly the collection, has a line of its own.
"""

import collections
import os
import resource
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

FILES = 10

COLLECTION = "(collection)"

_TICKS = os.sysconf("SC_CLK_TCK")


class Cpu(NamedTuple):
    """CPU time in seconds."""

    user: float
    system: float

    def plus(self, other: "Cpu") -> "Cpu":
        return Cpu(self.user + other.user, self.system + other.system)

    def minus(self, other: "Cpu") -> "Cpu":
        """At least 0: the time of a living process is lost if it ends after its parent."""
        return Cpu(max(0.0, self.user - other.user), max(0.0, self.system - other.system))


def used() -> Cpu:
    """What this process, all processes that it started, and theirs have used so far."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    total = Cpu(sum(each.ru_utime for each in usages), sum(each.ru_stime for each in usages))
    for pid in _descendants("self"):
        total = total.plus(_used_by(pid))
    return total


def _descendants(pid: str) -> Iterator[str]:
    """The living processes that this one and its children started."""
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                yield child
                yield from _descendants(child)
    except OSError:  # it ended, or this is not Linux
        return


def _used_by(pid: str) -> Cpu:
    """What this process and its ended children have used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return Cpu(0, 0)
    user, system, user_of_children, system_of_children = (int(each) / _TICKS for each in fields[11:15])
    return Cpu(user + user_of_children, system + system_of_children)


def report(total: Cpu, files: Mapping[str, Cpu]) -> list[str]:
    """The lines to print."""
    expensive = sorted(files.items(), key=lambda item: -sum(item[1]))[:FILES]
    return [
        f"CPU time: {total.user / 60:.1f} min user, {total.system / 60:.1f} min system. The most expensive files:",
        *(f"{sum(cpu):8.1f} s  {file}" for file, cpu in expensive),
    ]


class CpuTime:
    """Measures one process of pytest. The controller of pytest-xdist adds what the workers measured."""

    def __init__(self) -> None:
        self._charged = Cpu(0, 0)
        self._files: dict[str, Cpu] = collections.defaultdict(lambda: Cpu(0, 0))

    def pytest_collection_finish(self) -> None:
        self._charge(COLLECTION)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        try:
            return (yield)
        finally:
            self._charge(item.nodeid.partition("::")[0])

    def _charge(self, file: str) -> None:
        now = used()
        self._files[file] = self._files[file].plus(now.minus(self._charged))
        self._charged = now

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["cpu"] = [(file, *cpu) for file, cpu in self._files.items()]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        for file, *cpu in getattr(node, "workeroutput", {}).get("cpu", []):  # absent if the worker crashed
            self._files[file] = self._files[file].plus(Cpu(*cpu))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in report(used(), self._files):
            terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CpuTime())
