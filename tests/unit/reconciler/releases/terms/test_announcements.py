"""Which Events of a decision the status stores, and when a stored Event may be written."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from altershield.api.announcements import MAX_ANNOUNCEMENTS, MAX_LATE, Announcement, announcement
from altershield.api.change_workload import ChangeWorkloadStatus, WorkloadState
from altershield.workloads.workload import Held
from kube_base.times import rfc3339
from reconciler.cluster.release import Release
from reconciler.releases.terms.announcements import announced_first, true_now, with_announcements
from reconciler.releases.terms.effects import Announce, Decision, Pause, Resume, Suspend
from tests.unit.altershield.releases import builders
from tests.unit.altershield.releases.builders import NOW, V1, V2
from tests.unit.reconciler.filled import release

SUSPENDED = Announce("ReleaseSuspended", "a pod failed")
PAUSED = Announce("RolloutPaused", "a pod failed")
RESUMED = Announce("ReleaseResumed", "all pods passed", warning=False)


def with_stored(*stored: Announcement, state: WorkloadState = WorkloadState.RUNNING) -> Release:
    status = ChangeWorkloadStatus(status=state, announcements=stored)
    return msgspec.structs.replace(release(), status=status)


def stored(event: Announce, seconds_ago: float = 10) -> Announcement:
    return announcement(event.reason, event.message, NOW - seconds_ago, normal=not event.warning)


def reasons(decision: Decision) -> list[str]:
    assert decision.status is not None
    return [each.reason for each in decision.status.announcements]


def test_event_gets_the_time_and_type_of_the_decision() -> None:
    decision = with_announcements(with_stored(), Decision(after=(RESUMED,)), (), NOW)
    assert decision.status is not None
    assert decision.status.announcements == (
        Announcement("ReleaseResumed", "all pods passed", rfc3339(NOW), normal=True),
    )


def test_decision_without_an_event_stays_as_it_is() -> None:
    written = stored(SUSPENDED)
    decision = Decision(after=(Suspend(5),), requeue_after=3.0)
    assert announced_first(with_stored(written), decision, (), NOW) is decision
    assert with_announcements(with_stored(written), decision, (), NOW) is decision


@pytest.mark.parametrize(("left", "expected"), [(True, ["ReleaseSuspended"]), (False, [])])
def test_next_status_keeps_only_events_that_may_be_missing(left: bool, expected: list[str]) -> None:
    known = stored(SUSPENDED)
    present = with_stored(known)
    decision = with_announcements(present, Decision(present.status), (known,) if left else (), NOW)
    assert reasons(decision) == expected


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("event", [SUSPENDED, PAUSED])
def test_event_that_is_decided_again_is_not_stored_twice(event: Announce, left: bool) -> None:
    """The effect beside it was not carried out, for example because of a conflict."""
    known = stored(event)
    present, again = with_stored(known), Decision(after=(event,))
    assert with_announcements(present, again, (known,) if left else (), NOW).status is None
    kept = with_announcements(present, replace(again, status=present.status), (known,) if left else (), NOW)
    assert kept.status is not None
    assert kept.status.announcements == (known,)


def test_event_about_an_effect_is_stored_once_although_its_text_changes() -> None:
    known = stored(PAUSED)
    again = Decision(after=(Pause(V1, "two"), Announce("RolloutPaused", "two pods failed")))
    assert with_announcements(with_stored(known), again, (known,), NOW).status is None


def test_event_of_a_second_pause_is_stored_although_the_first_one_is_still_there() -> None:
    known = stored(PAUSED)
    again = Decision(after=(Announce("RolloutPaused", "another pod failed"),))
    decision = with_announcements(with_stored(known), again, (), NOW)
    assert decision.status is not None
    assert [each.message for each in decision.status.announcements] == ["another pod failed"]


def test_event_that_was_never_true_and_is_too_old_is_stored_anew() -> None:
    known = stored(RESUMED, MAX_LATE + 1)
    success = ChangeWorkloadStatus(status=WorkloadState.SUCCESS)
    decision = with_announcements(with_stored(known), Decision(success, after=(RESUMED,)), (), NOW)
    assert decision.status is not None
    assert [each.time for each in decision.status.announcements] == [rfc3339(NOW)]


def test_newest_events_stay_if_there_are_too_many() -> None:
    known = [stored(Announce("ReleaseStalled", f"number {number}")) for number in range(MAX_ANNOUNCEMENTS)]
    decision = with_announcements(with_stored(*known), Decision(after=(SUSPENDED,)), known, NOW)
    assert decision.status is not None
    assert len(decision.status.announcements) == MAX_ANNOUNCEMENTS
    assert decision.status.announcements[-1].reason == "ReleaseSuspended"


def test_end_of_a_suspension_is_stored_before_the_label_is_removed() -> None:
    """The label says that there was a suspension: after a crash, nothing else does."""
    success = ChangeWorkloadStatus(status=WorkloadState.SUCCESS)
    decision = Decision(success, before=(Resume(),), after=(RESUMED,))
    first = with_announcements(with_stored(), announced_first(with_stored(), decision, (), NOW), (), NOW)
    assert (first.before, first.after, first.requeue_after) == ((), (RESUMED,), 0.0)
    assert first.status is not None
    assert (first.status.status, reasons(first)) == (WorkloadState.RUNNING, ["ReleaseResumed"])
    (known,) = first.status.announcements
    assert announced_first(with_stored(known), decision, (known,), NOW + 1) is decision
    second = with_announcements(with_stored(known), decision, (known,), NOW + 1)
    assert second.before == (Resume(),)
    assert second.status is not None
    assert (second.status.status, second.status.announcements) == (WorkloadState.SUCCESS, (known,))


PAUSED_V1 = {"hold": Held(V1, True)}


@pytest.mark.parametrize(
    ("event", "state", "workload", "true"),
    [
        ("RolledBack", WorkloadState.FAILED, {}, True),
        ("ReleaseSuspended", WorkloadState.SUSPEND, {}, True),
        ("RolloutPaused", WorkloadState.SUSPEND, PAUSED_V1, True),
        ("RolloutPaused", WorkloadState.SUSPEND, {}, False),
        ("RolloutPaused", WorkloadState.SUSPEND, {"hold": Held(V2, True)}, False),
        ("RolloutContinued", WorkloadState.RUNNING, {}, True),
        ("RolloutContinued", WorkloadState.RUNNING, PAUSED_V1, False),
        ("ReleaseResumed", WorkloadState.SUCCESS, {}, True),
        ("ReleaseResumed", WorkloadState.RUNNING, {}, False),
        ("ReleaseResumed", WorkloadState.SUCCESS, {"suspended": "5"}, False),
    ],
)
def test_event_about_an_effect_is_true_when_the_workload_shows_the_effect(
    event: str, state: WorkloadState, workload: dict[str, object], true: bool
) -> None:
    known: Sequence[Announcement] = (Announcement(event),)
    present = msgspec.structs.replace(builders.workload(V1), **workload)
    assert true_now(with_stored(*known, state=state), present, known) == (list(known) if true else [])
