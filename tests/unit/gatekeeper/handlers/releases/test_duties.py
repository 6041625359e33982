"""Separation of duties: the user who released what failed does not add the label that lets a release pass."""

from typing import Any

import pytest

from altershield.api import labels
from tests.unit.gatekeeper.reviews import (
    RECONCILER,
    StaticListers,
    deployment,
    kind,
    release,
    released,
    validate,
    version_of,
)

pytestmark = pytest.mark.usefixtures("every_kind")

Object = dict[str, Any]

OLD = version_of(deployment())
SUSPENDED = "1683791175"
ANN = {"notDecidedBy": "ann"}
POD = {"pod": "sleep-5c698f4449-0", "message": "find error", "verdict": "unpass"}


def listers(state: str = "Suspend", spec: Object | None = None) -> StaticListers:
    failed = [POD] if state == "Suspend" else []
    return StaticListers(releases=release(OLD, status=state, defenseCheckFailPods=failed, spec=spec or ANN))


def stored(**own: str) -> Object:
    return released(suspend=SUSPENDED, **own)


def labelled(image: str = "busybox") -> Object:
    return released(image, suspend=SUSPENDED, ignored_suspend="true")


@pytest.mark.parametrize("state", ["Suspend", "Running", "Success"])
@pytest.mark.parametrize("image", ["busybox", "busybox:2"])
def test_label_of_the_user_who_released_it_is_denied_with_who_may_decide(state: str, image: str) -> None:
    response = validate(labelled(image), stored(), listers(state), user="ann")
    assert response["allowed"] is False
    assert response["status"]["code"] == 403
    message = response["status"]["message"]
    assert message.startswith(f"AlterShield: {kind()} sleep: the label ignored-suspend cannot be added: ann released")
    assert f"version {OLD}" in message
    assert "one with the ClusterRole altershield-verdicts in namespace default" in message


def test_label_of_another_user_passes_and_lets_the_user_release() -> None:
    assert validate(labelled(), stored(), listers(), user="bob")["allowed"]
    assert validate(labelled("busybox:2"), labelled(), listers(), user="ann")["allowed"]


def test_reconciler_adds_the_label_that_another_user_asked_for() -> None:
    assert validate(labelled(), stored(), listers(spec={"notDecidedBy": RECONCILER}), user=RECONCILER)["allowed"]


def test_without_separation_of_duties_the_label_passes() -> None:
    assert validate(labelled(), stored(), listers(spec={"workloadGeneration": 1}), user="ann")["allowed"]


def test_label_with_another_value_lets_nothing_pass_and_is_not_denied() -> None:
    assert validate(stored(ignored_suspend="false"), stored(), listers(), user="ann")["allowed"]


def test_user_who_released_what_was_rolled_back_does_not_let_it_pass() -> None:
    known = listers("Failed")
    bad = released("busybox:2")
    rolled_back = [{"type": "RolledBack", "status": "True", "reason": "PodsNotUp", "message": "m"}]
    known.releases = release(version_of(bad), status="Failed", conditions=rolled_back, spec=ANN)
    assert not validate(released(ignored_suspend="true"), released(), known, user="ann")["allowed"]
    assert validate(released(ignored_suspend="true"), released(), known, user="bob")["allowed"]
    created = released("busybox:2", ignored_suspend="true")
    assert not validate(created, None, known, user="ann")["allowed"]
    denied = validate(bad, released(), known, user="ann")["status"]["message"]
    assert labels.IGNORED_SUSPEND not in denied, "no command that is refused"
    assert "ask somebody else to let it pass: ann released version" in denied


def test_denial_of_a_release_names_no_command_that_the_user_may_not_run() -> None:
    warnings = validate(released("busybox:2", suspend=SUSPENDED), stored(), listers(), user="ann")["warnings"]
    assert not [each for each in warnings if labels.IGNORED_SUSPEND in each]
    assert [each for each in warnings if each.startswith(f"ann released version {OLD}")]
    others = validate(released("busybox:2", suspend=SUSPENDED), stored(), listers(), user="bob")["warnings"]
    assert [each for each in others if labels.IGNORED_SUSPEND in each]
