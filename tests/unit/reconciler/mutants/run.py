"""Runs tests on mutants of one file, one after the other: `python -m tests.unit.reconciler.mutants.run FILE`.

The tests are collected once. Each mutant has a process of its own, forked from there, in which the functions of the
file get the mutated code.
"""

import contextlib
import importlib
import os
import signal
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from tests.unit.reconciler.mutants.known import MUTANTS

ROOT = Path(__file__).parents[4]
SECONDS = 120
OF_ONE_KIND = "partition or on_delete or not (StatefulSet or DaemonSet or CloneSet)"


class Mutants:
    """Instead of running the tests, has each mutant run them until one fails."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.survived: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        source = (ROOT / self.file).read_text()
        if not self._caught(session, source):
            for old, new in MUTANTS[self.file][1]:
                if source.count(old) != 1:
                    self.survived.append(f"{self.file} has {source.count(old)} times: {old!r}")
                elif not self._caught(session, source.replace(old, new)):
                    self.survived.append(f"{self.file}: nothing notices {new!r} for {old!r}")
        else:
            self.survived.append(f"{self.file}: the tests fail as it is")
        return True

    def _caught(self, session: pytest.Session, source: str) -> bool:
        child = os.fork()
        if child == 0:
            os._exit(self._run(session, source))
        _, status = os.waitpid(child, 0)
        return status != 0  # by its exit code, or by a signal where it ran for ever

    def _run(self, session: pytest.Session, source: str) -> int:
        signal.alarm(SECONDS)
        become(self.file, source)
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
                return 1
        return 0


def become(file: str, source: str) -> None:
    """Give the functions of a file the code in this source, wherever they were imported to."""
    name = file.removesuffix(".py").replace("/", ".")
    module = importlib.import_module(name)
    mutant = types.ModuleType(name)
    mutant.__package__ = module.__package__
    exec(compile(source, str(ROOT / file), "exec"), mutant.__dict__)  # noqa: S102  (our own source)
    for (_, old), (_, new) in zip(_functions(module, name), _functions(mutant, name), strict=True):
        old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__


def _functions(scope: object, module: str) -> Iterator[tuple[str, types.FunctionType]]:
    """Those that the module defines, methods and properties included, in the order of their names."""
    for name, value in sorted(vars(scope).items(), key=lambda each: each[0]):
        found = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if isinstance(found, types.FunctionType) and found.__module__ == module:
            yield name, found
        elif isinstance(found, type) and found.__module__ == module and found is not scope:
            yield from _functions(found, module)


def main(file: str) -> int:
    """Tell of the mutants that survived, and of those that cannot be made."""
    tests, _ = MUTANTS[file]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.chdir(ROOT)
    options = ["-q", "-o", "addopts=", "-p", "no:cacheprovider"]
    if any("releases" in each for each in tests):
        options += ["-k", OF_ONE_KIND]
    mutants = Mutants(file)
    with open(os.devnull, "w") as silent, contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
        pytest.main([*options, *tests], plugins=[mutants])
    print(*mutants.survived, sep="\n", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
