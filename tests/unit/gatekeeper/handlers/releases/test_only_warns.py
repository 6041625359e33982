"""The warning at a release that follows a failure under a DefensePolicy with the mode `warn`."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.unit.gatekeeper.reviews import (
    RECONCILER,
    StaticListers,
    about,
    deployment,
    kind,
    release,
    released,
    rolling_back,
    validate,
    version_of,
)

pytestmark = pytest.mark.usefixtures("every_kind")

OLD = version_of(deployment())
PODS = [{"pod": f"sleep-{number}", "message": "find error", "verdict": "unpass"} for number in range(5)]


def rolled_back(**policy: str) -> StaticListers:
    """Listers while the stored version is replaced by the image `busybox:2`."""
    ((key, replaced),) = rolling_back().items()
    spec = failed(**policy).releases[key].spec
    return StaticListers(releases={key: msgspec.structs.replace(replaced, spec=spec)})


def failed(state: str = "Suspend", not_undone: str = "", **policy: str) -> StaticListers:
    """`not_undone`: why the release was not rolled back."""
    spec: dict[str, Any] = {
        "workloadRef": {"kind": about().kind, "name": "sleep", "uid": released()["metadata"]["uid"]},
        "policy": {"namespace": "shop", "name": "web", **policy},
    }
    pods = PODS if state == "Suspend" else []
    undone = {"type": "RolledBack", "status": "False", "reason": "NotUndone", "message": f"failed; {not_undone}"}
    conditions = [undone] if not_undone else []
    own = release(
        OLD, spec=spec, status=state, entryTimeUnix=1683791175, defenseCheckFailPods=pods, conditions=conditions
    )
    return StaticListers(releases=own)


def test_release_after_a_failure_is_admitted_and_the_warning_says_what_enforce_would_have_done() -> None:
    response = validate(released("busybox:2"), released(), failed(mode="warn"))
    assert response["allowed"]
    assert response["warnings"] == [
        f"AlterShield: version {OLD} (busybox) of {kind()} sleep failed verification at 2023-05-11T07:46:15Z; "
        "with mode enforce, this change is denied",
        *(f"pod sleep-{number} failed: find error" for number in range(3)),
        "the DefensePolicy shop/web has mode warn, so the change is admitted",
    ]


@pytest.mark.parametrize(
    ("why", "would"),
    [
        ("the DefensePolicy shop/web only warns", "it would have been rolled back"),
        ("no older version has passed verification", "this change is denied"),
    ],
)
def test_warning_tells_a_rollback_from_a_denial(why: str, would: str) -> None:
    listers = failed(mode="warn", not_undone=f"not rolled back: {why}")
    response = validate(released("busybox:2"), released(), listers)
    assert response["warnings"][0].endswith(f"with mode enforce, {would}")


@pytest.mark.parametrize(
    ("listers", "user", "image"),
    [
        (failed(mode="observe"), "jane", "busybox:2"),
        (replace(failed(), blocking=False), "jane", "busybox:2"),
        (failed("Success", mode="warn"), "jane", "busybox:2"),
        (failed(mode="warn"), "jane", "busybox"),
        (StaticListers(), "jane", "busybox:2"),
    ],
)
def test_other_requests_get_no_warning(listers: StaticListers, user: str, image: str) -> None:
    response = validate(released(image), released(), listers, user=user)
    assert response["allowed"]
    assert "warnings" not in response


def test_rollback_by_the_reconciler_gets_no_warning() -> None:
    response = validate(released("busybox:2"), released(), rolled_back(mode="warn"), user=RECONCILER)
    assert response["allowed"]
    assert "warnings" not in response


def test_suspended_workload_is_denied_as_without_a_policy() -> None:
    before, after = released(suspend="1683791175"), released("busybox:2", suspend="1683791175")
    response = validate(after, before, failed(mode="warn"))
    assert not response["allowed"]
    assert not [text for text in response["warnings"] if "mode warn" in text]
