"""AlterShield's own account may write only the pod template of a rollback."""

from typing import Any

import pytest

from tests.unit.gatekeeper.reviews import (
    RECONCILER,
    StaticListers,
    deployment,
    kind,
    release,
    released,
    rolling_back,
    validate,
    version_of,
)

pytestmark = pytest.mark.usefixtures("every_kind")

OLD, NEW = version_of(deployment()), version_of(deployment("busybox:2"))


def sent(listers: StaticListers, image: str = "busybox:2", *, user: str = RECONCILER) -> dict[str, Any]:
    response: dict[str, Any] = validate(released(image), released(), listers, user=user)
    return response


def test_template_of_a_stored_rollback_is_admitted() -> None:
    assert sent(StaticListers(releases=rolling_back()))["allowed"] is True


def test_another_template_than_that_of_the_rollback_is_denied_for_good() -> None:
    response = sent(StaticListers(releases=rolling_back("busybo")))
    assert (response["status"]["code"], response["status"]["reason"]) == (403, "Forbidden")
    assert response["status"]["message"] == (
        f"AlterShield: AlterShield's account may release the template {NEW} of {kind()} sleep only in a rollback of "
        f"version {OLD}, and that rollback names another template: {version_of(deployment('busybo'))}; see "
        "https://github.com/traas-stack/altershield/blob/main/docs/denied.md"
    )


@pytest.mark.parametrize("state", ["", "Suspend", "Failed", "Success", "Rollback"])
def test_template_without_a_rollback_in_the_cache_is_denied_for_now(state: str) -> None:
    """The cache may be older than the rollback."""
    target = {"rollbackTarget": {"fingerprint": NEW}} if state != "Rollback" else {}
    response = sent(StaticListers(releases=release(OLD, status=state, **target) if state else {}))
    assert (response["status"]["code"], response["status"]["reason"]) == (429, "TooManyRequests")
    assert "does not exist, or is not stored yet" in response["status"]["message"]


def test_rollback_of_another_version_does_not_count() -> None:
    assert sent(StaticListers(releases=rolling_back(stored="busybo")))["allowed"] is False


def test_other_users_and_other_changes_of_the_account_are_not_affected() -> None:
    assert sent(StaticListers(), user="jane")["allowed"] is True
    assert sent(StaticListers(), "busybox")["allowed"] is True
