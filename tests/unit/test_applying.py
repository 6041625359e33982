"""Patches of tests/support that stand for `kubectl apply`."""

import copy
import json

import pytest

from tests.e2e.sleep import sleep
from tests.support.applying import Json, created, patch

BEFORE: Json = json.loads(sleep())


def changed(*, container: Json | None = None, **metadata: object) -> Json:
    manifest = copy.deepcopy(BEFORE)
    manifest["metadata"].update(metadata)
    manifest["spec"]["template"]["spec"]["containers"][0].update(container or {})
    return manifest


def applied(before: Json, after: Json, *, merges_lists: bool = True) -> Json | None:
    return patch(created(before), after, merges_lists=merges_lists)


def test_patch_has_the_manifest_and_null_for_what_it_lost() -> None:
    before = changed(labels={"a": "1", "b": "2"}, annotations={"c": "3"})
    after = changed(labels={"a": "1"}, container={"image": "busybox:2"})
    found = applied(before, after)
    assert found is not None
    assert found["metadata"]["labels"] == {"a": "1", "b": None}
    assert found["metadata"]["annotations"] == {"c": None} | created(after)["metadata"]["annotations"]
    assert found["spec"] == after["spec"]


def test_kubectl_itself_applies_an_unchanged_manifest_and_one_that_was_not_applied_before() -> None:
    assert applied(BEFORE, changed()) is None
    assert patch(BEFORE, changed(container={"image": "busybox:2"}), merges_lists=True) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}, {"env": [{"name": "A", "value": "1"}]}),
        ({"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 81}]}),
        ({"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}, {"resources": {"limits": {"cpu": "1"}}}),
        ({"tty": True}, {}),
        ({"name": "old"}, {"name": "new"}),
    ],
)
def test_kubectl_itself_removes_from_lists_that_the_api_server_merges(old: Json, new: Json) -> None:
    before, after = changed(container=old), changed(container=new)
    assert applied(before, after) is None
    found = applied(before, after, merges_lists=False)
    assert found is not None
    assert found["spec"] == after["spec"]


def test_lists_of_texts_are_replaced() -> None:
    after = changed(container={"command": ["true"]})
    found = applied(BEFORE, after)
    assert found is not None
    assert found["spec"] == after["spec"]
