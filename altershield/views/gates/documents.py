"""Gates, their times, and answers about releases, as data. Pure functions."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from altershield.api.schema import doc
from altershield.views.document import Document, Part, Time
from altershield.views.gates.model import Gate
from altershield.views.gates.reading import Asked
from altershield.views.names import WorkloadName
from kube_base.times import rfc3339

NEVER = float("inf")
"""The end of a freeze that a person ends."""

_Unread = Annotated[
    tuple[str, ...], doc("The namespaces whose gates you may not read, so that gates may be missing here.")
]


class ShownGate(Part, frozen=True):
    """A release gate as it is now."""

    kind: Annotated[str, doc("`ReleaseWindow`, `ReleaseFreeze`, `ReleaseLimit` or `FieldGuard`.")]
    namespace: Annotated[str, doc("Its namespace.")]
    name: Annotated[str, doc("Its name.")]
    mode: Annotated[str, doc("`enforce` or `warn`.")]
    effect: Annotated[str, doc("`Allow` or `Deny` of a window, `Freeze`, `Limit`, `Guard`.")]
    open: Annotated[bool | None, doc("Whether it is open; null: it depends on what the release changes.")]
    since: Annotated[Time | None, doc("Since when it is closed; null: it is open, or that is not known.")]
    changes: Annotated[Time | None, doc("When it opens or closes next; null: not known, or a person decides.")]
    reason: Annotated[str, doc("Why, by the person who wrote it; of a limit, its counts.")]
    problem: Annotated[str, doc("Why it is not in force as it is written; empty: it is.")]


class GateList(Document, frozen=True):
    """The gates of a namespace and of AlterShield's namespace: those that are closed first."""

    items: Annotated[tuple[ShownGate, ...], doc("The gates.")]
    unread: _Unread


class GateTime(Part, frozen=True):
    """A time in which releases may begin, or may not."""

    from_: Annotated[Time, doc("When it begins.")] = msgspec.field(name="from")
    to: Annotated[Time | None, doc("When it ends; null: a person ends it.")]
    effect: Annotated[str, doc("`Allow`: releases may begin; `Deny`, `Freeze`: they may not.")]
    mode: Annotated[str, doc("`enforce` or `warn`.")]
    kind: Annotated[str, doc("The kind of the gate.")]
    namespace: Annotated[str, doc("The namespace of the gate.")]
    name: Annotated[str, doc("The name of the gate.")]
    reason: Annotated[str, doc("Why, by the person who wrote it; may be empty.")]


class GateTimeList(Document, frozen=True):
    """The times of the windows and freezes in the next days."""

    items: Annotated[tuple[GateTime, ...], doc("The times, in their order.")]
    unread: _Unread


class Closing(Part, frozen=True):
    """A gate that is closed for the release."""

    kind: Annotated[str, doc("Its kind.")]
    namespace: Annotated[str, doc("Its namespace.")]
    name: Annotated[str, doc("Its name.")]
    message: Annotated[str, doc("What is closed, and why.")]


class ReleaseAnswer(Part, frozen=True):
    """Whether a workload may be released now by this user."""

    workload: Annotated[WorkloadName, doc("The workload.")]
    allowed: Annotated[bool, doc("Whether it may.")]
    message: Annotated[str, doc("Who denies it, and why; empty: nobody.")]
    opens_at: Annotated[Time | None, doc("When it may be released; null: that is not known, or now.")]
    closed: Annotated[tuple[Closing, ...], doc("The closed gates.")]


class ReleaseAnswerList(Document, frozen=True):
    """Whether workloads may be released now by this user."""

    items: Annotated[tuple[ReleaseAnswer, ...], doc("One answer for each workload.")]


Entry = tuple[float, float, Gate]
"""Begin and end, Unix seconds, and the gate."""


def gate_list(found: Sequence[Gate], unread: Sequence[str]) -> GateList:
    return GateList(tuple(map(_shown, found)), tuple(unread))


def _shown(gate: Gate) -> ShownGate:
    return ShownGate(
        kind=gate.kind,
        namespace=gate.namespace,
        name=gate.name,
        mode=gate.mode,
        effect=gate.effect,
        open=gate.open,
        since=gate.since or None,
        changes=gate.changes or None,
        reason=gate.reason,
        problem=gate.problem,
    )


def time_list(times: Sequence[Entry], unread: Sequence[str]) -> GateTimeList:
    return GateTimeList(tuple(_time(*each) for each in times), tuple(unread))


def _time(from_: float, to: float, gate: Gate) -> GateTime:
    return GateTime(
        from_=rfc3339(from_),
        to=None if to == NEVER else rfc3339(to),
        effect=gate.effect,
        mode=gate.mode,
        kind=gate.kind,
        namespace=gate.namespace,
        name=gate.name,
        reason=gate.reason,
    )


def answer_list(asked: Sequence[Asked]) -> ReleaseAnswerList:
    return ReleaseAnswerList(tuple(map(_answer, asked)))


def _answer(asked: Asked) -> ReleaseAnswer:
    verdict = asked.verdict
    closed = []
    for each in verdict.causes:
        namespace, _, name = str(each.get("field")).partition("/")
        closed.append(Closing(str(each.get("reason")), namespace, name, str(each.get("message"))))
    return ReleaseAnswer(asked.workload, verdict.allowed, verdict.message, verdict.opens_at or None, tuple(closed))
