"""The events of a release that receivers are notified about. They follow from its ChangeWorkload and its batches. Pure
functions."""

import hashlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition, find_condition
from altershield.api.rollout import Phase
from altershield.api.workload_requests import OVERRIDE
from altershield.releases import steps, texts
from altershield.releases.release import passed, since, state, ungated, version_of
from kube_base.times import unix
from reconciler.cluster.batch import Batch
from reconciler.cluster.release import Release
from reconciler.cluster.verdicts import HELD
from reconciler.receivers.file import Receiver
from reconciler.receivers.vocabulary import Event, Type

_LASTING = (Event.SUSPENDED, Event.APPROVAL_NEEDED, Event.STEP_WAITING, Event.STEP_FAILED, Event.SUCCEEDED)


def lasts(event: Event, receiver: Receiver) -> bool:
    """Whether the event begins a state that ends later. For PagerDuty, every event ends: at the latest with its
    ChangeWorkload, which is deleted after a newer version succeeded."""
    return event in _LASTING or receiver.type == Type.PAGERDUTY


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event of a release. Times are in Unix seconds. `since` is part of its identity."""

    event: Event
    since: int
    namespace: str
    kind: str
    workload: str
    version: str
    release: str
    """The name of the ChangeWorkload."""
    uid: str
    """Its uid."""
    reason: str
    """In one word."""
    message: str
    resolved: bool = False
    """Whether the state is over."""
    part: str = ""
    """It tells apart events of one kind and second."""
    images: str = ""
    """Those of the version, in short; empty if they are not known."""
    happened: int = 0
    """When it happened; 0: at `since`."""

    @property
    def key(self) -> str:
        """It identifies the event within the release."""
        return f"{self.event}/{self.since}{'-' if self.part else ''}{self.part}"

    @property
    def time(self) -> int:
        """When it happened."""
        return self.happened or self.since

    @property
    def begun_id(self) -> str:
        """It identifies the event. Its end has the same."""
        return f"{self.uid}/{self.key}"

    @property
    def id(self) -> str:
        """It is the same for each attempt to send the notification, so that receivers can drop repetitions."""
        return f"{self.begun_id}{'/resolved' if self.resolved else ''}"


def occurrences(release: Release, batches: Iterable[Batch]) -> list[Occurrence]:
    """The events of a release that are true now."""
    return list(_found(release, batches))


def occurrence(release: Release, event: Event, at: int, reason: str = "", message: str = "") -> Occurrence:
    """An event of this release."""
    ref = release.spec.workload_ref
    return Occurrence(
        event,
        at,
        release.metadata.namespace,
        ref.kind,
        ref.name or release.spec.service_name,
        version_of(release),
        release.metadata.name,
        release.metadata.uid,
        reason,
        message,
    )


def _found(release: Release, batches: Iterable[Batch]) -> Iterator[Occurrence]:
    conditions = release.status.conditions
    if state(release) is WorkloadState.SUSPEND:
        failed = find_condition(conditions, ConditionType.VERIFIED)
        reason = failed.reason if failed is not None else ""
        yield occurrence(release, Event.SUSPENDED, since(release), reason, texts.why(release, current=True))
    if passed(release):
        yield _success(release)
    yield from _of_steps(release)
    undone = find_condition(conditions, ConditionType.ROLLED_BACK)
    if undone is not None and undone.is_true:
        yield _of_condition(release, Event.ROLLED_BACK, undone)
    past = ungated(release)
    if past is not None:
        yield _of_condition(release, Event.UNGATED, past)
    yield from _of_overrides(release)
    waiting = [(_time(condition), condition) for batch in batches if (condition := approval_needed(batch)) is not None]
    if waiting:
        at, condition = min(waiting, key=lambda each: each[0])
        yield occurrence(release, Event.APPROVAL_NEEDED, at, condition.reason, condition.message)


def _success(release: Release) -> Occurrence:
    """A release can succeed again: after a scale-up, or when its partition is lowered. It is one event, which the
    beginning of the release identifies."""
    status = release.status
    extent = f"{status.reached} of {status.replicas} pods" if status.replicas else "its pods"
    found = occurrence(release, Event.SUCCEEDED, release.spec.create_time_unix, "Passed", f"{extent} passed")
    return replace(found, happened=since(release))


def _of_steps(release: Release) -> Iterator[Occurrence]:
    """The events of a release in steps. A hold by a person is none: somebody decided it."""
    status = release.status.rollout
    at, reason = status.phase_time_unix, status.phase
    match status.phase:
        case Phase.WAITING_FOR_APPROVAL:
            event = Event.STEP_WAITING
        case Phase.STOPPED:
            event = Event.STEP_FAILED
        case _ if steps.lacks_nodes(status):
            event, at, reason = Event.STEP_WAITING, status.waiting_since_unix, "NoNodes"
        case _:
            return
    pods = texts.named(release)
    message = steps.sentence(status) + (f"; failed: {pods}" if pods and event is Event.STEP_FAILED else "")
    yield occurrence(release, event, at, reason, message)


def _of_overrides(release: Release) -> Iterator[Occurrence]:
    """The uses of ReleaseOverrides by the release. Those of one moment are one event: they let it pass together.

    One of them may be recorded later than the others. Then the event is told again, so the last one is part of its
    identity. Many later actions drop the first ones, which changes nothing.
    """
    used = [each for each in release.status.actions if each.verb == OVERRIDE]
    for time, together in itertools.groupby(used, key=lambda each: each.time):
        uses = list(together)
        told = [f"asked for by {each.by} ({each.reason}): {each.outcome}" for each in uses]
        found = occurrence(release, Event.OVERRIDE_USED, int(unix(time)), "OverrideUsed", "; ".join(told))
        yield replace(found, part=hashlib.sha256(uses[-1].outcome.encode()).hexdigest()[:8])


def _of_condition(release: Release, event: Event, condition: Condition) -> Occurrence:
    return occurrence(release, event, _time(condition), condition.reason, condition.message)


def approval_needed(batch: Batch) -> Condition | None:
    """The condition of a batch that waits for a person, else None."""
    if batch.unfinished is None or batch.metadata.deleting:
        return None
    found = find_condition(batch.unfinished.status.conditions, ConditionType.VERIFIED)
    return found if found is not None and found.reason == HELD else None


def _time(condition: Condition) -> int:
    return int(unix(condition.last_transition_time))
