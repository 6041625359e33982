"""Runs the tests on the mutants of one file: `python -m tests.mutants.run FILE`. Prints the mutants that survive.

The tests are collected once. Each mutant has a process of its own, forked from there, in which the functions of the
file get the changed code. The fastest tests come first, and the first test that fails ends the process. A mutant
outside of functions (a constant, a default) needs a process in which the tests import the changed file. That takes
longer.
"""

import ast
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import os
import resource
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, Phase, settings

from tests.mutants import SOURCES
from tests.mutants.mutant import Source

ROOT = Path(__file__).parents[2]
_CPU_SECONDS = 30  # for mutants that never end
_TEST_SECONDS = 30
_PROFILE = "mutants"
_OPTIONS = (
    *("-q", "--tb=no", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:xdist"),
    *("-p", "no:looptime_plugin"),  # as in pyproject.toml
    *(f"--timeout={_TEST_SECONDS}", f"--hypothesis-profile={_PROFILE}"),
)


def changed(source: Source, text: str, old: str, new: str) -> str:
    """The text of a mutant. Raise ValueError if `old` does not occur exactly once, or the result is no Python."""
    if text.count(old) != 1:
        raise ValueError(f"{source.file} has {text.count(old)} times: {old!r}")
    result = text.replace(old, new)
    try:
        ast.parse(result)
    except SyntaxError as error:
        raise ValueError(f"{source.file} is no Python with {new!r} for {old!r}") from error
    return result


class Mutants:
    """A pytest plugin. Instead of running the tests once, runs them for each mutant until one fails."""

    def __init__(self, source: Source) -> None:
        self.survived: list[str] = []
        self._source = source

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        source, text = self._source, (ROOT / self._source.file).read_text()
        with tempfile.NamedTemporaryFile("r") as durations:
            if not session.items or _fails(lambda: self._run(session, text, durations.name)):
                self.survived.append(f"{source.file}: the tests fail without a mutant")
                return True
            seconds = dict(zip(session.items, map(float, durations.read().split()), strict=True))
        session.items.sort(key=lambda item: seconds[item])
        for old, new in source.mutants:
            mutant = changed(source, text, old, new)
            swapped = _is_in_function(text, text.index(old), len(old))
            run = (lambda: self._run(session, mutant)) if swapped else (lambda: _import_and_run(source, mutant))  # noqa: B023
            if not _fails(run):
                self.survived.append(f"{source.file}: no test fails with {new!r} for {old!r}")
        return True

    def _run(self, session: pytest.Session, text: str, durations: str = os.devnull) -> bool:
        """Whether the tests pass with this text. Write the seconds of each test to the file `durations`."""
        _swap(self._source.file, text)
        with open(durations, "w") as seconds:
            for item, following in zip(session.items, [*session.items[1:], None], strict=True):
                reports = runtestprotocol(item, log=False, nextitem=following)
                if any(report.failed for report in reports):
                    return False
                print(sum(report.duration for report in reports), file=seconds)
        return True


def _fails(passes: Callable[[], bool]) -> bool:
    """Whether the tests fail in a forked process, by a failed test or by a signal."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
        try:
            os._exit(0 if passes() else 1)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return status != 0


def _is_in_function(text: str, start: int, length: int) -> bool:
    """Whether these characters are in the body of a function, so that the mutant changes only the code of the function."""
    first, last = text.count("\n", 0, start) + 1, text.rstrip().count("\n", 0, start + length) + 1
    if text[start + length - 1] == "\n":
        last -= 1
    return any(
        node.body[0].lineno <= first and last <= (node.end_lineno or 0)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def _swap(file: str, text: str) -> None:
    """Replace the code of the functions of a module by the code in this text, for all modules that imported them."""
    module = importlib.import_module(_module(file))
    mutant = types.ModuleType(module.__name__)
    mutant.__package__ = module.__package__
    exec(compile(text, str(ROOT / file), "exec"), mutant.__dict__)  # noqa: S102  (our own source)
    for (_, old), (_, new) in zip(
        _functions(module, module.__name__), _functions(mutant, module.__name__), strict=True
    ):
        old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__


def _functions(scope: object, module: str) -> Iterator[tuple[str, types.FunctionType]]:
    """The functions that the module defines, with methods, properties and admission handlers, sorted by name."""
    for name, value in sorted(vars(scope).items(), key=lambda each: each[0]):
        found = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        found = inspect.unwrap(getattr(found, "function", found)) if not isinstance(found, type) else found
        if isinstance(found, types.FunctionType) and found.__module__ == module:
            yield name, found
        elif isinstance(found, type) and found.__module__ == module and found is not scope:
            yield from _functions(found, module)


def _import_and_run(source: Source, text: str) -> bool:
    """Import all modules of the project again, with this text instead of the file, and run the tests."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(f"{ROOT}/") and "/.venv/" not in str(
            module.__file__
        ):
            del sys.modules[name]
    sys.meta_path.insert(0, _Finder(source.file, text))
    return pytest.main([*_arguments(source), "-x"]) == 0


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the changed module."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = text

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != _module(self._file):
            return None
        place = str(ROOT / self._file)
        return importlib.util.spec_from_file_location(name, place, loader=_Loader(name, place, self._text))


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, file: str, text: str) -> None:
        super().__init__(name, file)
        self._text = text

    def get_code(self, fullname: str) -> types.CodeType:
        return compile(self._text, self.path, "exec")


def _module(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".")


def _arguments(source: Source) -> list[str]:
    return [*_OPTIONS, *(("-k", source.chosen) if source.chosen else ()), *source.tests]


def survivors(source: Source) -> list[str]:
    """The mutants with which no test fails. Raise ValueError for a mutant that cannot be created.

    Hypothesis tries the same few examples each time and stores none: an example that fails on a mutant says nothing about
    the code.
    """
    os.chdir(ROOT)
    settings.register_profile(
        _PROFILE,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=True,
        max_examples=20,
        database=None,
        phases=[Phase.explicit, Phase.generate],
    )
    mutants = Mutants(source)
    with open(os.devnull, "w") as silent, contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
        code = pytest.main(_arguments(source), plugins=[mutants])
    return mutants.survived if code in (0, 5) else [*mutants.survived, f"{source.file}: pytest ended with {code}"]


if __name__ == "__main__":
    (chosen,) = [each for each in SOURCES if each.file == sys.argv[1]]
    print(*survivors(chosen), sep="\n", end="")
