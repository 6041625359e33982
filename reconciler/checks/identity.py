"""The identifiers of the check of one batch in one phase, and of its runs."""

import re
from typing import NamedTuple

from altershield.api.check_specs import Phase
from reconciler.checks.check import Subject

CALLBACK_PATH = "/openapi/altershield/checks/callback"
"""The path on the callback port to which a receiver sends the verdict of an `http` check."""

_PHASES = {phase.lower(): phase for phase in Phase}
_RUN = re.compile(
    r"(?P<namespace>[a-z0-9-]{1,63})/(?P<change_pod>[a-z0-9.-]{1,253})/(?P<uid>[0-9A-Za-z-]{1,64})/"
    r"(?P<check>[a-z0-9-]{1,63})/(?P<phase>pre|post)/(?P<started>[0-9]{1,12})"
)


class CheckRun(NamedTuple):
    """One run of the check `check` of a ChangePod, as requests name it:
    `NAMESPACE/CHANGEPOD/UID/CHECK/PHASE/STARTED`."""

    namespace: str
    change_pod: str
    uid: str
    check: str
    phase: Phase
    started: int
    """Unix seconds. A ChangePod can have a check of the same name once more, after its version was released again."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.change_pod}/{self.uid}/{self.check}/{self.phase.lower()}/{self.started}"


def check_id(subject: Subject) -> str:
    """The uid of the ChangePod, the name of the check, and the phase; for a run that repeats it, also its begin."""
    entry = subject.entry
    again = f"/{int(subject.started)}" if entry is not None and entry.previous_time_unix else ""
    return f"{subject.change_pod.metadata.uid}/{subject.check.name}/{subject.phase.lower()}{again}"


def run_of(subject: Subject) -> CheckRun:
    """The name of the run in requests."""
    metadata = subject.change_pod.metadata
    return CheckRun(
        metadata.namespace, metadata.name, metadata.uid, subject.check.name, subject.phase, int(subject.started)
    )


def parsed(text: str) -> CheckRun | None:
    """The run that a caller names; None if the text is no name of a run. Nothing in it is verified."""
    found = _RUN.fullmatch(text)
    if found is None:
        return None
    phase, started = _PHASES[found["phase"]], int(found["started"])
    return CheckRun(found["namespace"], found["change_pod"], found["uid"], found["check"], phase, started)
