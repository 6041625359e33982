"""The checks of a ChangePod: their states and their results."""

import enum
from collections.abc import Iterable
from typing import Annotated

import msgspec

from altershield.api.fields import Name, Seconds, Text
from altershield.api.schema import doc

MAX_FAILED_RULES = 32
"""The maximum number of `rules` of a check."""


class CheckState(enum.StrEnum):
    """`ChangePod.status.checks[].state`."""

    RUNNING = "Running"
    """The check was requested, or is about to be."""
    PASSED = "Passed"
    FAILED = "Failed"
    UNKNOWN = "Unknown"
    """The check ended without a result."""


_BY_SEVERITY = (CheckState.PASSED, CheckState.RUNNING, CheckState.UNKNOWN, CheckState.FAILED)


def worst_states(found: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str], str]:
    """The worst state of each check and phase. `found`: name, phase and state, of several batches. A state of a newer
    release of AlterShield counts as the least severe."""
    worst: dict[tuple[str, str], str] = {}
    for name, phase, state in found:
        known = worst.get((name, phase))
        if known is None or _severity(state) > _severity(known):
            worst[name, phase] = state
    return worst


def _severity(state: str) -> int:
    return _BY_SEVERITY.index(state) if state in _BY_SEVERITY else 0


class SkipState(enum.StrEnum):
    """`ChangePod.status.checks[].skip.state`."""

    REQUESTED = "Requested"
    """The call to the AlterShield server is not sent yet."""
    SENT = "Sent"
    """The call is sent, and its answer is awaited."""
    DONE = "Done"
    """The server accepted the call."""
    FAILED = "Failed"
    """The server refused the call, or its answer is not known."""


class FailedRule(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A rule of an AlterShield server that did not pass."""

    id: Annotated[str, msgspec.Meta(max_length=256, description="The id of its execution on the server.")] = ""
    name: Annotated[str, msgspec.Meta(max_length=256, description="Its name.")] = ""
    ignorable: Annotated[bool, doc("Whether the server lets people ignore it.")] = False


class Skip(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A call that tells the AlterShield server to ignore the failed rules, because a person approved the batch."""

    state: Annotated[
        Name, doc("`Requested`, `Sent` (the answer is awaited), `Done`, or `Failed`, which changes no verdict.")
    ] = ""
    reason: Annotated[Text, doc("Why it failed.")] = ""
    time_unix: Annotated[Seconds, doc("When the batch was approved, in Unix seconds.")] = 0


class CheckResult(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A check of the batch. Its start is stored before the check is requested."""

    name: Annotated[
        Name, doc("Its name in the DefensePolicy; without a policy `server`, for the AlterShield server.")
    ] = ""
    phase: Annotated[Name, doc("`Pre` or `Post`: before or after the batch.")] = ""
    state: Annotated[Name, doc("`Running`, `Passed`, `Failed` or `Unknown` (it ended without a result).")] = ""
    reason: Annotated[Text, doc("The reason for the state, as text.")] = ""
    start_time: Annotated[Text, doc("When it began, UTC.")] = ""
    end_time: Annotated[Text, doc("When it ended, UTC.")] = ""
    start_time_unix: Annotated[Seconds, doc("When it began, in Unix seconds.")] = 0
    previous_time_unix: Annotated[
        Seconds, doc("When its run before this one began, in Unix seconds; 0: it was not repeated.")
    ] = 0
    handle: Annotated[Text, doc("The id of the check in the system that runs it; empty before it is started.")] = ""
    rules: Annotated[
        tuple[FailedRule, ...],
        msgspec.Meta(
            max_length=MAX_FAILED_RULES,
            description="The rules of the AlterShield server that did not pass; first those that nobody may ignore.",
        ),
    ] = ()
    newest_rule: Annotated[
        Seconds, doc("When its newest failed rule began, in Unix milliseconds by the clock of the AlterShield server.")
    ] = 0
    repeated: Annotated[
        bool, doc("Whether it runs again on the AlterShield server, because a person requested `Retry`.")
    ] = False
    skip: Annotated[Skip | None, doc("Whether the AlterShield server knows that a person approved the batch.")] = None
