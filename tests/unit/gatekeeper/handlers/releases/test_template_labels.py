"""The labels of workloads and pods are removed from pod templates, but only with a release."""

from typing import Any

import pytest

from altershield.api import labels
from tests.unit.gatekeeper.reviews import RECONCILER, deployment, mutate, released, version_of

pytestmark = pytest.mark.usefixtures("every_kind")

KEYS = (labels.DEFENSE_STATUS, labels.OPERATE_FINISHED, labels.SUSPEND)


def template(obj: dict[str, Any]) -> dict[str, str]:
    return obj["spec"]["template"]["metadata"]["labels"]  # type: ignore[no-any-return]


def with_label(obj: dict[str, Any], key: str, value: str = "1683791175") -> dict[str, Any]:
    template(obj)[key] = value
    return obj


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("user", ["kubernetes-admin", RECONCILER])
def test_label_is_removed_from_a_created_template_for_every_user(key: str, user: str) -> None:
    result, warnings = mutate(with_label(deployment(), key), user=user)
    assert result["spec"] == mutate(deployment())[0]["spec"]
    assert [key in warning and "it was removed" in warning for warning in warnings] == [True]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("before", [False, True])
def test_label_is_removed_from_a_released_template(key: str, before: bool) -> None:
    old = with_label(released(), key) if before else released()
    result, warnings = mutate(with_label(deployment("busybox:2"), key), old)
    assert key not in template(result)
    assert template(result)[labels.VERSION] == version_of(deployment("busybox:2"))
    assert len(warnings) == 1


@pytest.mark.parametrize("key", KEYS)
def test_release_without_the_label_removes_the_stored_label_without_a_warning(key: str) -> None:
    result, warnings = mutate(deployment("busybox:2"), with_label(released(), key))
    assert key not in template(result)
    assert warnings == []


@pytest.mark.parametrize("key", KEYS)
def test_adding_the_label_is_not_a_release(key: str) -> None:
    result, warnings = mutate(with_label(released(), key), released())
    assert result == released()
    assert len(warnings) == 1


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("sent", [None, "2", "1683791175"])
def test_stored_label_is_restored_if_the_template_does_not_change(key: str, sent: str | None) -> None:
    old = with_label(released(), key)
    new = released() if sent is None else with_label(released(), key, sent)
    new["spec"]["replicas"] = 9
    result, warnings = mutate(new, old)
    assert template(result) == template(old)
    assert [key in warning for warning in warnings] == ([] if sent == template(old)[key] else [True])


@pytest.mark.parametrize("key", KEYS)
def test_version_ignores_the_label(key: str) -> None:
    assert version_of(with_label(deployment(), key)) == version_of(deployment())
