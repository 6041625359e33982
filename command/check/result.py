"""The result of `altershield check`: printed line by line, or as data at the end."""

import sys
from typing import Annotated

from altershield.api.schema import doc
from altershield.views.document import Document, Part
from command.output import Format, write


class CheckStep(Part, frozen=True):
    """A step of the check."""

    name: Annotated[str, doc("`admitted`, `verified`, `restricted`, `suspended`, `denied` or `cleaned up`.")]
    tested: Annotated[bool, doc("Whether it was tested, and passed; false: it was left out.")]
    message: Annotated[str, doc("What happened, or why it was left out.")]


class InstallationCheck(Document, frozen=True):
    """Whether AlterShield works in a cluster."""

    problem: Annotated[str, doc("Why the check failed; empty: it passed.")]
    steps: Annotated[tuple[CheckStep, ...], doc("The steps until then.")]


class Told:
    """Tells about each step. `output`: the format; None: a line for each step."""

    def __init__(self, output: Format | None = None) -> None:
        self._output = output
        self._steps: list[CheckStep] = []

    def step(self, name: str, message: str, *, tested: bool = True) -> None:
        self._steps.append(CheckStep(name, tested, message))
        print(f"{name}: {message}", file=sys.stderr if self._output else sys.stdout, flush=True)

    def end(self, problem: str) -> None:
        if self._output is not None:
            write(InstallationCheck(problem, tuple(self._steps)), self._output)
