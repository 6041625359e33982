"""Which workloads `altershield status` shows if nobody names one."""

from typing import Any

import pytest
from msgspec.structs import replace

from altershield.api import labels
from altershield.api.change_workload import ChangeWorkload, ChangeWorkloadStatus, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from altershield.api.pod_verdicts import PodInfo
from altershield.api.rollout import Phase, WaitingFor
from altershield.releases.release import OBSERVING
from altershield.views.releases.attention import Attention, attention, triage
from altershield.views.releases.model import Release, Snapshot, shown
from altershield.workloads.workload import Workload
from tests.unit.altershield.releases.steps import ROLLOUT, SOAKING
from tests.unit.altershield.views.builders import (
    DONE,
    ROLLED_BACK,
    RUNNING,
    SUSPENDED,
    V1,
    V2,
    in_steps,
    release,
    scaled,
    stored,
    workload,
)


def with_condition(status: ChangeWorkloadStatus, type_: ConditionType, value: str, reason: str) -> ChangeWorkload:
    return release(replace(status, conditions=(Condition(type_, value, reason, "a sentence"),)))


def of(change: ChangeWorkload, its: Workload | None = None) -> Attention:
    return attention(shown(Snapshot([its or workload()], [stored(change)])))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (release(SUSPENDED), Attention.SUSPENDED),
        (release(ROLLED_BACK), Attention.FAILED),
        (release(ChangeWorkloadStatus(status=WorkloadState.ROLLBACK)), Attention.FAILED),
        (release(replace(RUNNING, defense_check_fail_pods=(PodInfo("web-0"),))), Attention.FAILED),
        (with_condition(DONE, ConditionType.SETTLED, "False", "PodsDown"), Attention.FAILED),
        (with_condition(DONE, ConditionType.SETTLED, "Unknown", OBSERVING), Attention.NONE),
        (with_condition(RUNNING, ConditionType.STALLED, "True", "Paused"), Attention.HELD),
        (with_condition(RUNNING, ConditionType.STALLED, "False", "GoesOn"), Attention.UNDER_WAY),
        (release(RUNNING), Attention.UNDER_WAY),
        (release(DONE), Attention.NONE),
    ],
)
def test_state_of_the_present_release_says_whether_its_workload_needs_somebody(
    change: ChangeWorkload, expected: Attention
) -> None:
    assert of(change) is expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Attention.UNDER_WAY),
        ({"phase": Phase.WAITING_FOR_APPROVAL}, Attention.APPROVAL),
        ({"phase": Phase.HELD, "waiting_for": (WaitingFor.NODE_SELECTOR,)}, Attention.APPROVAL),
        ({"phase": Phase.HELD, "waiting_for": (WaitingFor.PERSON,)}, Attention.HELD),
        ({"held_by": "ann"}, Attention.HELD),
        ({"phase": Phase.HELD, "waiting_for": (WaitingFor.WINDOW,)}, Attention.UNDER_WAY),
    ],
)
def test_release_in_steps_needs_somebody_if_only_a_person_lets_it_go_on(
    changes: dict[str, Any], expected: Attention
) -> None:
    assert of(in_steps(ROLLOUT, replace(SOAKING, **changes)), scaled(10)) is expected


def test_release_that_the_reconciler_has_not_seen_is_under_way() -> None:
    assert of(release(DONE), workload(**{labels.DEFENSE_STATUS: ""})) is Attention.UNDER_WAY
    assert attention([Release(workload(), None)]) is Attention.UNDER_WAY


def named(name: str, *changes: ChangeWorkload, version: str = V1) -> list[Release]:
    its = workload(name=name, version=version)
    return [Release(its, stored(each)) for each in changes]


def test_the_most_urgent_workloads_come_first_and_those_that_need_nobody_are_counted() -> None:
    found = [
        *named("a", release(DONE, name="a")),
        *named("b", release(RUNNING, name="b")),
        *named("c", release(ROLLED_BACK, name="c"), release(DONE, name="c", version=V2), version=V2),
        *named("d", release(SUSPENDED, name="d")),
        *named("e", release(DONE, name="e"), release(RUNNING, name="e", version=V2), version=V2),
    ]
    made = triage(found)
    assert [(each.workload.metadata.name, each.version) for each in made.releases] == [
        ("d", V1),
        ("c", V1),
        ("c", V2),
        ("b", V1),
        ("e", V2),
    ], "an earlier version is shown if it is denied"
    assert made.summary == (
        "2 workloads need somebody, 2 releases are under way; 1 other workload is not shown, add --all to see it"
    )


def test_summary_says_that_nobody_is_needed_and_nothing_if_all_is_shown() -> None:
    well = [*named("a", release(DONE, name="a")), *named("b", release(DONE, name="b"))]
    assert triage(well).summary == (
        "No workload needs somebody, and no release is under way; 2 other workloads are not shown, add --all to see "
        "them"
    )
    assert triage(named("c", release(RUNNING, name="c"))).summary == ""
