"""Labels of workloads and pods are taken out of pod templates, and nobody's pods are restarted for it."""

from typing import Any

import pytest

from altershield.api import labels

from .reviews import RECONCILER, deployment, mutate, released, version_of

pytestmark = pytest.mark.usefixtures("every_kind")

KEYS = (labels.DEFENSE_STATUS, labels.OPERATE_FINISHED, labels.SUSPEND)


def template(obj: dict[str, Any]) -> dict[str, str]:
    return obj["spec"]["template"]["metadata"]["labels"]  # type: ignore[no-any-return]


def with_label(obj: dict[str, Any], key: str, value: str = "1683791175") -> dict[str, Any]:
    template(obj)[key] = value
    return obj


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("user", ["kubernetes-admin", RECONCILER])
def test_it_is_taken_out_of_what_is_created_whoever_sends_it(key: str, user: str) -> None:
    result, warnings = mutate(with_label(deployment(), key), user=user)
    assert result == mutate(deployment())[0]
    assert [key in warning and "it was removed" in warning for warning in warnings] == [True]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("before", [False, True])
def test_it_is_taken_out_of_what_is_released(key: str, before: bool) -> None:
    old = with_label(released(), key) if before else released()
    result, warnings = mutate(with_label(deployment("busybox:2"), key), old)
    assert key not in template(result)
    assert template(result)[labels.VERSION] == version_of(deployment("busybox:2"))
    assert len(warnings) == 1


@pytest.mark.parametrize("key", KEYS)
def test_a_stored_template_with_it_loses_it_silently_with_a_release_that_has_none(key: str) -> None:
    result, warnings = mutate(deployment("busybox:2"), with_label(released(), key))
    assert key not in template(result)
    assert warnings == []


@pytest.mark.parametrize("key", KEYS)
def test_alone_it_makes_no_release(key: str) -> None:
    result, warnings = mutate(with_label(released(), key), released())
    assert result == released()
    assert len(warnings) == 1


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("sent", [None, "2", "1683791175"])
def test_where_the_template_is_otherwise_what_it_was_it_stays(key: str, sent: str | None) -> None:
    old = with_label(released(), key)
    new = released() if sent is None else with_label(released(), key, sent)
    new["spec"]["replicas"] = 9
    result, warnings = mutate(new, old)
    assert template(result) == template(old)
    assert [key in warning for warning in warnings] == ([] if sent == template(old)[key] else [True])


@pytest.mark.parametrize("key", KEYS)
def test_it_does_not_count_in_the_version(key: str) -> None:
    assert version_of(with_label(deployment(), key)) == version_of(deployment())
