"""Runs mutmut on one area.

mutmut works in a folder of its own, with its section in pyproject.toml and links to the repository. It copies the
packages and the tests, and writes all mutants of a function beside the function. It runs the tests once to see which
of them call which function. Each mutant gets a forked process, in which only those tests run.
"""

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from mutmut.configuration import reset_config
from mutmut.mutation.file_mutation import MutatedFile, mutate_file_contents
from mutmut.utils.format_utils import get_mutant_name

from tests.mutation.areas import ROOT, Area

_COPIED = ("altershield", "certgen", "command", "gatekeeper", "kube_base", "reconciler", "tests")
_PACKAGES = _COPIED[:-1]
_END_OF_OUTPUT = 4000
_PROGRESS = re.compile("[\u2800-\u28ff]")  # a spinner
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


class Workspace:
    """The folder of one area in a directory for temporary files."""

    def __init__(self, area: Area, directory: Path) -> None:
        self.area = area
        self._folder = directory / area.folder.replace("/", ".")
        copy = self._folder / "mutants"
        copy.mkdir(parents=True)
        for entry in ROOT.iterdir():
            if entry.name in _COPIED:
                (self._folder / entry.name).symlink_to(entry)
            elif not entry.name.startswith(".") and entry.name != "pyproject.toml":
                (copy / entry.name).symlink_to(entry)  # tests read files of other folders
        pyproject = "\n".join([(ROOT / "pyproject.toml").read_text(), *_configuration(area)])
        (self._folder / "pyproject.toml").write_text(pyproject)

    def mutants(self) -> list[str]:
        """The names of the mutants. A function that does not change keeps the names of its mutants.

        Without those of wording, which mutmut makes of every text: tests compare the parts of a sentence that count.
        """
        with contextlib.chdir(self._folder):
            reset_config()  # mutmut reads its section in the present folder
            return [
                get_mutant_name(Path(file), name)
                for file in self.area.files
                for name in changes_of_code(mutate_file_contents(file, Path(file).read_text()))
            ]

    def statuses(self, mutants: Collection[str], processes: int) -> dict[str, str]:
        """Run these mutants. Return mutmut's word for what happened, by name.

        Raise RuntimeError if mutmut fails, for example because a test fails without a mutant.
        """
        self._mutmut("run", f"--max-children={processes}", *mutants)
        lines = (line.strip().rpartition(": ") for line in self._mutmut("results", "--all=true").splitlines())
        found = {name: status for name, _, status in lines}
        return {name: found[name] for name in mutants}

    def difference(self, mutant: str) -> str:
        """The changed lines of a mutant, as in a unified diff."""
        lines = self._mutmut("show", mutant).splitlines()
        return "\n".join(line for line in lines if line.startswith(("+", "-")) and line[:3] not in ("+++", "---"))

    def _mutmut(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "mutmut", *arguments]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = (line for line in (done.stdout + done.stderr).splitlines() if not _PROGRESS.match(line))
            end = "\n".join(lines)[-_END_OF_OUTPUT:]
            raise RuntimeError(f"mutmut {arguments[0]} ended with {done.returncode} in {self.area.folder}:\n{end}")
        return done.stdout


def changes_of_code(file: MutatedFile) -> Iterator[str]:
    """The mutants of a file that change more than the wording of sentences: of texts with a space."""
    lines = file.code.splitlines()

    def code(name: str) -> list[str]:
        span = file.line_span_by_function_name[name]
        return [_TEXT.sub(_without_wording, line).replace(name, "") for line in lines[span.start - 1 : span.end]]

    for name in file.mutant_names:
        function, _, _ = name.rpartition("__mutmut_")
        if code(name) != code(f"{function}__mutmut_orig"):
            yield name


def _without_wording(text: re.Match[str]) -> str:
    return "" if " " in text[0] else text[0]


def _configuration(area: Area) -> Iterator[str]:
    types = ("-m", "mypy", "--output=json", "--no-warn-unused-ignores")  # mutmut writes comments that ignore errors
    values: dict[str, object] = {
        "source_paths": _PACKAGES,
        "only_mutate": area.files,
        "pytest_add_cli_args_test_selection": area.tests,
        # with its profile "ci", Hypothesis tries the same examples each time and stores none
        "pytest_add_cli_args": ("-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile=ci"),
        "type_check_command": (sys.executable, *types, *area.files),
        "timeout_multiplier": 30.0,  # a mutant may take 30 times as long as its tests, and 30 s more
        "use_setproctitle": False,
        "use_git_change_detection": False,
    }
    yield "[tool.mutmut]"
    for name, value in values.items():
        yield f"{name} = {json.dumps(value)}"
