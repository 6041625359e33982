"""A workload that is deleted without its ChangeWorkloads and created again is suspended again."""

from typing import Any

import pytest

from altershield.api import labels
from tests.unit.gatekeeper.reviews import (
    MUTATE,
    OLD,
    RECONCILER,
    StaticListers,
    about,
    ask,
    deployment,
    mutate,
    release,
    released,
    review,
)

pytestmark = pytest.mark.usefixtures("every_kind")

SINCE = 1683791175


def left(status: str = "Suspend", **more: Any) -> StaticListers:
    """Listers after `sleep` was deleted with `--cascade=orphan`."""
    ref = {"apiVersion": about().api_version, "kind": about().kind, "name": "sleep", "uid": "gone"}
    known = {"status": status, "entryTimeUnix": SINCE, "spec": {"workloadRef": ref}}
    return StaticListers(releases=release(OLD, **{**known, **more}))


def own(obj: dict[str, Any]) -> dict[str, str]:
    return obj["metadata"]["labels"]  # type: ignore[no-any-return]


def test_recreated_workload_is_suspended_since_the_same_time_with_a_warning() -> None:
    result, warnings = mutate(deployment(), listers=left())
    assert own(result)[labels.SUSPEND] == str(SINCE)
    (warning,) = warnings
    assert "is suspended again since 2023-05-11T07:46:15Z" in warning
    assert f"version {OLD} failed verification" in warning


def test_second_review_of_a_recreated_workload_has_no_warning() -> None:
    once, _ = mutate(deployment(), listers=left())
    assert mutate(once, listers=left()) == (once, [])


def test_changeworkload_without_workload_reference_counts_by_its_name() -> None:
    assert labels.SUSPEND in own(mutate(deployment(), listers=left(spec={}))[0])


def test_sent_suspend_label_is_replaced_by_the_time_of_the_changeworkload() -> None:
    sent = deployment(own={labels.SUSPEND: "1"})
    assert own(mutate(sent, listers=left())[0])[labels.SUSPEND] == str(SINCE)


@pytest.mark.parametrize("status", ["Success", "Running", "Failed", "Rollback", ""])
def test_recreated_workload_inherits_no_other_state_than_suspend(status: str) -> None:
    assert labels.SUSPEND not in own(mutate(deployment(), listers=left(status))[0])


def test_recreated_workload_is_not_suspended_while_blocking_is_off() -> None:
    listers = left()
    listers.blocking = False
    assert labels.SUSPEND not in own(mutate(deployment(), listers=listers)[0])


def test_changeworkload_with_an_owner_does_not_suspend_another_workload() -> None:
    owner = {"apiVersion": about().api_version, "kind": about().kind, "name": "sleep", "uid": "u", "controller": True}
    assert labels.SUSPEND not in own(mutate(deployment(), listers=left(owner=owner))[0])


def test_workload_of_another_name_or_kind_inherits_no_suspension() -> None:
    ref = {"apiVersion": "batch/v1", "kind": "Job", "name": "sleep", "uid": "gone"}
    assert labels.SUSPEND not in own(mutate(deployment(), listers=left(spec={"workloadRef": ref}))[0])
    for name in ("sleepy", ""):
        body = review(deployment(), name=name)
        body["request"]["object"] = {**body["request"]["object"], "metadata": {"generateName": "sleep-"}}
        assert "warnings" not in ask(MUTATE, body, left())


def test_update_inherits_no_suspension() -> None:
    assert mutate(released(), released(), left()) == (released(), [])


def test_copy_of_a_suspended_workload_loses_the_suspend_label_with_a_warning() -> None:
    result, (warning,) = mutate(deployment(own={labels.SUSPEND: "1"}))
    assert labels.SUSPEND not in own(result)
    assert f"{labels.SUSPEND}: it was removed" in warning


def test_reconciler_may_create_a_suspended_workload() -> None:
    result, warnings = mutate(deployment(own={labels.SUSPEND: "1"}), listers=left(), user=RECONCILER)
    assert own(result)[labels.SUSPEND] == "1"
    assert warnings == []


def test_first_suspension_of_several_is_inherited() -> None:
    listers = StaticListers(releases=left(entryTimeUnix=SINCE + 60).releases | release("f" * 32, **_suspended(SINCE)))
    assert own(mutate(deployment(), listers=listers)[0])[labels.SUSPEND] == str(SINCE)


def _suspended(since: int) -> dict[str, Any]:
    ref = {"apiVersion": about().api_version, "kind": about().kind, "name": "sleep", "uid": "gone"}
    return {"status": "Suspend", "entryTimeUnix": since, "spec": {"workloadRef": ref}}
