"""What `kubectl apply` sends. `tests/e2e/test_field_guards.py` compares it with kubectl."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.views.gates.applying import client_side, is_server_side
from altershield.workloads.applied import LAST_APPLIED

Object = dict[str, Any]


def live(before: Any = None, **fields: Any) -> Object:
    annotations = {LAST_APPLIED: before if isinstance(before, str) else json.dumps(before)} if before else None
    return {"metadata": {"name": "web", "annotations": annotations}, **fields}


def entry(manager: str, operation: str, time: str | None, subresource: str = "") -> Object:
    return {"manager": manager, "operation": operation, "time": time, "subresource": subresource}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (None, False),
        ([entry("kubectl-client-side-apply", "Update", "2026-01-01T00:00:00Z")], False),
        ([entry("kubectl", "Apply", "2026-01-01T00:00:00Z")], True),
        ([entry("kubectl", "Update", "2026-01-01T00:00:00Z")], False),
        ([entry("kubectl", "Apply", "2026-01-01T00:00:00Z", "scale")], False),
        ([entry("argocd-controller", "Apply", "2026-01-01T00:00:00Z")], False),
        ([entry("kubectl", "Apply", None)], False),
        *(
            (
                [
                    entry("kubectl", "Apply", f"2026-01-0{day}T00:00:00Z"),
                    entry("kubectl-client-side-apply", "Update", "2026-01-02T00:00:00Z"),
                ],
                day == 3,
            )
            for day in (1, 3)
        ),
    ],
)
def test_last_apply_by_kubectl_decides_how_it_applies_next(entries: list[Object] | None, expected: bool) -> None:
    assert is_server_side({"metadata": {"managedFields": entries}}) is expected


def test_merge_patch_of_a_custom_resource_replaces_lists_and_deletes_what_only_the_manifest_before_had() -> None:
    before = {"metadata": {"name": "web"}, "spec": {"replicas": 2, "old": {"a": 1}, "containers": [{"name": "a"}]}}
    wanted = {"metadata": {"name": "web"}, "spec": {"replicas": 3, "containers": [{"name": "b"}]}, "status": {}}
    assert client_side(wanted, live(before), strategic=False) == {
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "containers": [{"name": "b"}], "old": None},
    }


def test_strategic_patch_deletes_elements_by_name_and_says_the_order() -> None:
    before = {"spec": {"containers": [{"name": "a", "args": ["x"]}, {"name": "b"}]}}
    wanted = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c"}, {"name": "a"}]}}
    assert client_side(wanted, live(before), strategic=True)["spec"] == {
        "containers": [{"name": "c"}, {"args": None, "name": "a"}, {"$patch": "delete", "name": "b"}],
        "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
    }


def test_other_kinds_of_a_volume_are_deleted_only_if_the_volume_changes() -> None:
    def volume(present: Object) -> Object:
        wanted = {"metadata": {"name": "web"}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
        found: Object = client_side(wanted, live(spec={"volumes": [present]}), strategic=True)["spec"]["volumes"][0]
        return found

    assert volume({"name": "v", "hostPath": {"path": "/"}}) == {
        "name": "v",
        "emptyDir": {},
        "$retainKeys": ["name", "emptyDir"],
    }
    assert volume({"name": "v", "emptyDir": {"medium": "Memory"}}) == {"name": "v", "emptyDir": {}}


_JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "containers", "ports", "volumes", "containerPort"]), inner)
    ),
)


@given(manifest=st.dictionaries(st.text(max_size=3), _JSON), before=_JSON, present=_JSON, strategic=st.booleans())
def test_objects_of_any_form_are_compared(manifest: Object, before: Any, present: Any, strategic: bool) -> None:
    wanted = {**manifest, "metadata": {"name": "web"}, "spec": before}
    found = client_side(wanted, live(json.dumps({"spec": present}), spec=before), strategic=strategic)
    assert set(manifest) - {"status"} <= set(found)


@pytest.mark.parametrize("before", ["no JSON", "[]", "[" * 5000])
def test_annotation_that_cannot_be_read_deletes_nothing(before: str) -> None:
    assert client_side({"metadata": {"name": "web"}}, live(before), strategic=True) == {"metadata": {"name": "web"}}
