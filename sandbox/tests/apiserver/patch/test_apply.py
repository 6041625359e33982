"""Server-side apply and managedFields, compared with recorded answers and the rules of kube-apiserver."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube_sandbox.apiserver.errors import StatusError, invalid
from kube_sandbox.apiserver.patch import apply, patches
from kube_sandbox.apiserver.schema import defaults, fields
from kube_sandbox.apiserver.validation import objects
from kube_sandbox.apiserver.verbs.writes import is_unchanged
from support.answers import recorded

Object = dict[str, Any]

_ANSWERS = recorded("apply")
_PATCHES = {"merge": patches.MERGE, "strategic": patches.STRATEGIC, "json": patches.JSON}


class Server:
    """The steps of the API server for writes of one object, without admission and storage."""

    def __init__(self, crd_schema: Object | None = None) -> None:
        self.obj: Object | None = None
        self._crd_schema = crd_schema
        self._seconds = 0

    def do(self, operation: str, body: Any, manager: str = "m", *, subresource: str = "") -> Object:
        self._seconds += 1
        now = f"2024-01-01T{self._seconds // 3600:02}:{self._seconds // 60 % 60:02}:{self._seconds % 60:02}Z"
        if operation in ("apply", "force"):
            new = self._normal(
                apply.server_side_apply(
                    self.obj, body, manager=manager, force=operation == "force", subresource=subresource, now=now,
                    crd_schema=self._crd_schema,
                )
            )  # fmt: skip
        else:
            new = self._normal(deepcopy(body) if operation in ("create", "update") else self._patched(operation, body))
            new = apply.track_update(
                self.obj, new, manager=manager, subresource=subresource, now=now, crd_schema=self._crd_schema
            )
        if self._crd_schema is None and (causes := objects.validate(new, self.obj)):
            raise invalid(new["apiVersion"].rpartition("/")[0], new["kind"], new["metadata"]["name"], causes)
        if self.obj is None or not is_unchanged(new, self.obj):
            self.obj = new
        return self.obj

    def _patched(self, operation: str, body: Any) -> Object:
        assert self.obj is not None
        return patches.apply(
            _PATCHES[operation], self.obj, json.dumps(body).encode(), api_version=self.obj["apiVersion"],
            kind=self.obj["kind"], field_validation="Ignore", crd_schema=self._crd_schema,
        )[0]  # fmt: skip

    def _normal(self, obj: Object) -> Object:
        if self._crd_schema is None:
            obj, _ = fields.check(obj, api_version=obj["apiVersion"], kind=obj["kind"])
            obj["metadata"]["namespace"] = "default"
            defaults.apply(obj)
        if self.obj is not None:
            for name in ("uid", "creationTimestamp"):
                if name in self.obj["metadata"]:
                    obj["metadata"].setdefault(name, self.obj["metadata"][name])
        return obj


def owners(obj: Object) -> dict[tuple[str, str], Object]:
    return {
        (entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])
    }


def test_recorded_history_of_writes_gives_the_managed_fields_of_kube_apiserver() -> None:
    server = Server()
    for number, step in enumerate(_ANSWERS["steps"]):
        if step["code"] >= 300:
            with pytest.raises(StatusError) as refused:
                server.do(step["op"], step["body"], step["manager"])
            assert (number, refused.value.code, refused.value.message) == (number, step["code"], step["message"])
            continue
        obj = server.do(step["op"], step["body"], step["manager"])
        entries = [
            {name: entry[name] for name in ("manager", "operation", "fieldsV1")}
            for entry in sorted(
                obj["metadata"]["managedFields"], key=lambda entry: (entry["operation"], entry["manager"])
            )
        ]
        assert entries == step["managedFields"], number
        if "spec" in step:
            assert (obj["spec"], obj["metadata"].get("labels", {})) == (step["spec"], step["labels"])


CONFIG: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}]}]},
        },
    },
}


def config(**spec: Any) -> Object:
    changed = deepcopy(CONFIG)
    changed["spec"].update(spec)
    return changed


def labelled(**labels: str | None) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "labels": labels}}


def test_repeated_apply_changes_neither_object_nor_times() -> None:
    server = Server()
    first = deepcopy(server.do("apply", CONFIG))
    assert server.do("apply", CONFIG) == first


def test_conflict_names_the_manager_and_the_field() -> None:
    server = Server()
    server.do("create", CONFIG, "kubectl-client-side-apply")
    with pytest.raises(StatusError) as refused:
        server.do("apply", config(replicas=2), "other")
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")
    assert refused.value.message == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas'
    )
    assert refused.value.status["details"]["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl-client-side-apply" using apps/v1',
            "field": ".spec.replicas",
        }
    ]


def test_several_conflicts_are_listed_by_manager() -> None:
    server = Server()
    server.do("create", CONFIG, "one")
    server.do("apply", labelled(x="1"), "two")
    changed = config(replicas=2, template=None)
    changed["spec"]["template"] = deepcopy(CONFIG["spec"]["template"])
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "j"
    changed["metadata"]["labels"] = {"x": "2"}
    with pytest.raises(StatusError) as refused:
        server.do("apply", changed, "three")
    assert refused.value.message == (
        'Apply failed with 3 conflicts: conflicts with "one" using apps/v1:\n- .spec.replicas\n'
        '- .spec.template.spec.containers[name="c"].image\nconflicts with "two":\n- .metadata.labels.x'
    )


def test_forced_apply_takes_ownership_of_the_field() -> None:
    server = Server()
    server.do("create", CONFIG, "one")
    found = owners(server.do("force", config(replicas=2), "two"))
    assert "f:replicas" in found["two", "Apply"]["f:spec"]
    assert "f:replicas" not in found["one", "Update"]["f:spec"]
    assert server.obj is not None
    assert server.obj["spec"]["replicas"] == 2


def test_field_that_is_no_longer_applied_is_removed_unless_another_manager_owns_it() -> None:
    server = Server()
    server.do("apply", CONFIG, "one")
    server.do("apply", labelled(mine="1", shared="1"), "two")
    server.do("apply", labelled(shared="1"), "three")
    found = server.do("apply", labelled(), "two")
    assert found["metadata"]["labels"] == {"shared": "1"}
    assert owners(found)["two", "Apply"] == {"f:metadata": {"f:labels": {}}}


def test_managers_that_apply_the_same_value_share_ownership() -> None:
    server = Server()
    server.do("apply", CONFIG, "one")
    obj = server.do("apply", CONFIG, "two")
    found = owners(obj)
    assert found["one", "Apply"] == found["two", "Apply"]
    # Only a manager that changes the object gets a time.
    assert {entry["manager"]: "time" in entry for entry in obj["metadata"]["managedFields"]} == {
        "one": True,
        "two": False,
    }


def test_update_of_scale_writes_no_time() -> None:
    server = Server()
    server.do("create", CONFIG, "one")
    found = server.do("update", config(replicas=4), "scaler", subresource="scale")
    (entry,) = (entry for entry in found["metadata"]["managedFields"] if entry.get("subresource"))
    assert (entry["fieldsV1"], "time" in entry) == ({"f:spec": {"f:replicas": {}}}, False)


def test_update_takes_ownership_of_the_fields_it_changes() -> None:
    server = Server()
    server.do("apply", CONFIG, "one")
    found = server.do("merge", {"spec": {"replicas": 5}}, "scaler")
    assert owners(found)["scaler", "Update"] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in owners(found)["one", "Apply"]["f:spec"]


def test_manager_without_fields_has_no_entry() -> None:
    server = Server()
    server.do("apply", CONFIG, "one")
    server.do("merge", {"spec": {"replicas": 5}}, "scaler")
    server.do("merge", {"spec": {"replicas": 6}}, "other")
    assert server.obj is not None
    assert set(owners(server.obj)) == {("one", "Apply"), ("other", "Update")}


def test_update_of_status_has_an_entry_of_its_own() -> None:
    server = Server()
    server.do("create", CONFIG, "one")
    changed = deepcopy(server.obj)
    assert changed is not None
    changed["status"] = {"replicas": 1}
    found = server.do("update", changed, "one", subresource="status")
    (entry,) = (entry for entry in found["metadata"]["managedFields"] if entry.get("subresource"))
    assert entry["subresource"] == "status"
    assert entry["fieldsV1"] == {"f:status": {"f:replicas": {}}}


def test_empty_managed_fields_stop_tracking_until_the_next_apply() -> None:
    server = Server()
    server.do("create", CONFIG, "one")
    found = server.do("merge", {"metadata": {"managedFields": [{}]}}, "two")
    assert "managedFields" not in found["metadata"]
    # From here on nothing is tracked until the next apply.
    assert "managedFields" not in server.do("merge", {"spec": {"replicas": 2}}, "two")["metadata"]
    assert set(owners(server.do("force", CONFIG, "three"))) == {("three", "Apply"), ("before-first-apply", "Update")}


def test_patched_managed_fields_turn_an_update_manager_into_an_apply_manager() -> None:
    """kubectl does this when a user changes to server-side apply."""
    server = Server()
    server.do("create", CONFIG, "kubectl-client-side-apply")
    assert server.obj is not None
    entry = deepcopy(server.obj["metadata"]["managedFields"][0])
    moved = {**entry, "manager": "kubectl", "operation": "Apply"}
    operations = [{"op": "replace", "path": "/metadata/managedFields", "value": [moved]}]
    found = server.do("json", operations, "kubectl")
    assert set(owners(found)) == {("kubectl", "Apply")}
    dropped = config()
    del dropped["spec"]["template"]["spec"]["containers"][0]["env"]
    found = server.do("apply", dropped, "kubectl")
    assert "env" not in found["spec"]["template"]["spec"]["containers"][0]


def test_first_apply_to_an_untracked_object_conflicts_with_before_first_apply() -> None:
    server = Server()
    server.do("create", CONFIG, "one")
    assert server.obj is not None
    del server.obj["metadata"]["managedFields"]
    with pytest.raises(StatusError) as refused:
        server.do("apply", config(replicas=3), "two")
    assert refused.value.message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using apps/v1: .spec.replicas'
    )


def test_updates_beyond_ten_managers_are_merged_into_ancient_changes() -> None:
    server = Server()
    server.do("create", CONFIG, "m00")
    for number in range(1, 14):
        server.do("merge", {"metadata": {"labels": {f"l{number}": "x"}}}, f"m{number:02}")
    assert server.obj is not None
    found = owners(server.obj)
    assert len(found) == 10
    assert {"f:l1", "f:l2"} <= set(found["ancient-changes", "Update"]["f:metadata"]["f:labels"])


@pytest.mark.parametrize(
    ("applied", "message"),
    [
        ({"kind": "Deployment"}, "invalid object type: /, Kind=Deployment"),
        ({"apiVersion": "v1", "kind": "Pod"}, "invalid object type: /v1, Kind=Pod"),
        (
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"managedFields": []}},
            "metadata.managedFields must be nil",
        ),
    ],
)
def test_applied_object_with_another_kind_or_managed_fields_is_refused(applied: Object, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        apply.check_applied(applied, api_version="apps/v1", kind="Deployment")
    assert (refused.value.code, refused.value.message) == (400, message)


def test_applied_field_that_the_schema_does_not_declare_is_refused() -> None:
    with pytest.raises(StatusError) as refused:
        Server().do("apply", config(nonsense=1))
    assert refused.value.code == 500
    assert refused.value.message == (
        "failed to create typed patch object (/d; apps/v1, Kind=Deployment): .spec.nonsense: "
        "field not declared in schema"
    )


def test_applied_list_with_duplicate_keys_is_refused() -> None:
    twice = config()
    twice["spec"]["template"]["spec"]["containers"] *= 2
    with pytest.raises(StatusError) as refused:
        Server().do("apply", twice)
    assert 'duplicate entries for key [name="c"]' in refused.value.message


SCHEMA: Object = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "items": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["key"],
                    "items": {
                        "type": "object",
                        "properties": {"key": {"type": "string"}, "value": {"type": "integer"}},
                    },
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "plain": {"type": "array", "items": {"type": "string"}},
            },
        }
    },
}


def custom(**spec: Any) -> Object:
    return {"apiVersion": "e.com/v1", "kind": "Foo", "metadata": {"name": "f"}, "spec": spec}


def test_lists_of_a_custom_resource_merge_as_its_schema_says() -> None:
    server = Server(SCHEMA)
    server.do("apply", custom(items=[{"key": "a", "value": 1}], tags=["x"], plain=["1"]), "one")
    found = server.do("force", custom(items=[{"key": "b", "value": 2}], tags=["y"], plain=["2"]), "two")
    assert found["spec"] == {
        "items": [{"key": "a", "value": 1}, {"key": "b", "value": 2}], "tags": ["x", "y"], "plain": ["2"],
    }  # fmt: skip
    assert owners(found)["one", "Apply"]["f:spec"] == {
        "f:items": {'k:{"key":"a"}': {".": {}, "f:key": {}, "f:value": {}}},
        "f:tags": {'v:"x"': {}},
    }
    found = server.do("apply", custom(items=[], tags=[]), "two")
    assert found["spec"]["items"] == [{"key": "a", "value": 1}]
    assert found["spec"]["tags"] == ["x"]


# Properties that hold after any history of writes.

_LABELS = st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12"), max_size=3)
_ENV = st.lists(
    st.builds(lambda name, value: {"name": name, "value": value}, st.sampled_from("AB"), st.sampled_from("12")),
    max_size=2,
    unique_by=lambda found: found["name"],
)


@st.composite
def _configs(draw: st.DrawFn) -> Object:
    found = config()
    found["metadata"]["labels"] = draw(_LABELS)
    container: Object = found["spec"]["template"]["spec"]["containers"][0]
    container["env"] = draw(_ENV)
    if draw(st.booleans()):
        del found["spec"]["replicas"]
    return found


_MANAGERS = st.sampled_from(["one", "two"])
_HISTORY = st.lists(st.tuples(st.sampled_from(["force", "update"]), _configs(), _MANAGERS), max_size=5)


def _past(history: list[tuple[str, Object, str]]) -> Server:
    server = Server()
    server.do("create", CONFIG, "creator")
    for operation, body, manager in history:
        server.do(operation, body, manager)
    return server


@settings(max_examples=50)
@given(_HISTORY, _configs(), _MANAGERS)
def test_repeated_apply_after_any_history_changes_nothing(
    history: list[tuple[str, Object, str]], applied: Object, manager: str
) -> None:
    server = _past(history)
    # The first apply may still change the object, as in kube-apiserver 1.36.2: it takes co-ownership of an emptied map.
    server.do("force", applied, manager)
    settled = deepcopy(server.do("force", applied, manager))
    assert server.do("apply", applied, manager) == settled


@settings(max_examples=50)
@given(_HISTORY, _configs())
def test_applied_labels_are_set_and_owned_by_their_manager_after_any_history(
    history: list[tuple[str, Object, str]], applied: Object
) -> None:
    server = _past(history)
    found = server.do("force", applied, "me")
    labels = applied["metadata"]["labels"]
    assert labels.items() <= found["metadata"].get("labels", {}).items()
    mine = owners(found)["me", "Apply"].get("f:metadata", {}).get("f:labels", {})
    assert {f"f:{name}" for name in labels} == set(mine) - {"."}


@settings(max_examples=50)
@given(_HISTORY)
def test_update_without_change_after_any_history_changes_nothing(history: list[tuple[str, Object, str]]) -> None:
    server = _past(history)
    before = deepcopy(server.obj)
    assert before is not None
    assert server.do("update", before, "another") == before
