"""What is stored about a release in steps while the API server refuses to change its workload."""

from typing import Any, cast

import msgspec
import pytest

from altershield.api.change_workload import ChangeWorkloadStatus
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.api.rollout import Phase, RolloutStatus, WaitingFor
from reconciler.cluster.release import Release, read
from reconciler.releases.decisions import steps
from reconciler.releases.terms.draft import begin
from reconciler.releases.terms.effects import Announce, Decision
from reconciler.rollout.draft import Progress
from tests.unit.altershield.releases.builders import V1, release

SNAPSHOT = cast(Any, None)  # it is read only for a release without steps


def stored(status: ChangeWorkloadStatus) -> Release:
    return read(msgspec.json.encode(release(V1, status)))


@pytest.mark.parametrize("what", [WaitingFor.WRITE, WaitingFor.EVICTION])
def test_refusal_is_stored_once_and_stays_until_nothing_is_refused(what: WaitingFor) -> None:
    rolling = RolloutStatus(phase=Phase.ROLLING, step=1, steps=2, pods=1)
    first = steps.refused(stored(ChangeWorkloadStatus(rollout=rolling)), what, "no room", 10.0)
    assert first.status is not None
    message = "step 1 of 2: no room; AlterShield tries again"
    assert first.after == (Announce("StepHeld", message),)
    known = stored(first.status)
    assert known.status.rollout == msgspec.structs.replace(rolling, waiting_for=(what,), waiting_since_unix=10)
    condition = find_condition(known.status.conditions, ConditionType.PROGRESSING)
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == ("False", "WriteRefused", message)
    assert steps.refused(known, what, "no room", 20.0) == Decision(), "another attempt stores nothing"
    another = steps.refused(known, what, "no right", 20.0).status
    assert another is not None
    assert (another.rollout, another.update_time_unix) == (known.status.rollout, 20)
    draft = steps.with_steps(begin(known, 20.0), SNAPSHOT, Progress(known.status.rollout)).draft
    assert draft.status == known.status, "another decision stores nothing"
    for phase, waiting in ((Phase.ROLLING, ()), (Phase.STOPPED, ())):
        status = msgspec.structs.replace(known.status.rollout, phase=phase, waiting_for=waiting)
        draft = steps.with_steps(begin(known, 30.0), SNAPSHOT, Progress(status)).draft
        condition = find_condition(draft.status.conditions, ConditionType.PROGRESSING)
        assert condition is not None
        assert condition.reason == phase


def test_release_that_another_one_replaces_in_its_steps_is_aborted_once() -> None:
    rolling = RolloutStatus(phase=Phase.ROLLING, step=1, waiting_for=("quota",))
    ended = steps.superseded(stored(ChangeWorkloadStatus(rollout=rolling)), 40.0)
    assert ended is not None
    expected = RolloutStatus(phase=Phase.ABORTED, phase_time="1970-01-01 00:00:40", phase_time_unix=40, step=1)
    assert (ended.rollout, ended.update_time_unix) == (expected, 40)
    assert steps.superseded(stored(ended), 50.0) is None
    assert steps.superseded(stored(ChangeWorkloadStatus()), 50.0) is None
