"""What a client-side apply says about the held fields."""

import json
from typing import Any

import pytest

from altershield.rollout.edits import newly_applied
from tests.support.workloads import BY_NAME

SURGE = "/spec/strategy/rollingUpdate/maxSurge"


def manifest(surge: Any = None, **spec: Any) -> str:
    strategy = {"strategy": {"rollingUpdate": {"maxSurge": surge}}} if surge is not None else {}
    return json.dumps({"spec": {**strategy, **spec}})


def applied(old: str | None, new: str | None) -> dict[str, Any]:
    return newly_applied(BY_NAME["Deployment"], old, new)


def test_field_with_another_value_than_in_the_manifest_before_is_newly_applied() -> None:
    assert applied(manifest("25%"), manifest(1)) == {SURGE: 1}
    assert applied(manifest(), manifest(1)) == {SURGE: 1}
    assert applied(None, manifest(1)) == {SURGE: 1}
    assert applied(manifest(1), manifest(1, replicas=3)) == {}
    assert applied(manifest(1), manifest()) == {}
    assert applied(manifest(1), None) == {}


@pytest.mark.parametrize("text", ["", "x", "[]", "null", '{"spec": []}', '{"spec": {"strategy": 5}}', "[" * 100_000])
def test_annotation_of_any_form_says_nothing(text: str) -> None:
    assert applied(manifest(1), text) == {}
    assert applied(text, manifest(1)) == {SURGE: 1}
