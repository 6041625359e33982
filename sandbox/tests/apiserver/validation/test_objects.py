"""Validation, compared with recorded answers of kube-apiserver."""

from copy import deepcopy
from typing import Any

from kube_sandbox.apiserver.errors import StatusError, invalid
from kube_sandbox.apiserver.schema import defaults, fields
from kube_sandbox.apiserver.validation import objects
from support.answers import recorded

Object = dict[str, Any]

_ANSWERS = recorded("validation")
_CLUSTER_SCOPED = {
    "Namespace", "ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration", "StorageClass",
    "ValidatingWebhookConfiguration", "CustomResourceDefinition", "PriorityClass", "FlowSchema",
    "PriorityLevelConfiguration",
}  # fmt: skip


def decoded(obj: Object) -> Object:
    found, _ = fields.check(deepcopy(obj), api_version=obj["apiVersion"], kind=obj["kind"])
    if obj["kind"] not in _CLUSTER_SCOPED:
        found["metadata"]["namespace"] = "default"
    defaults.apply(found)
    return found


def refused(obj: Object, old: Object | None = None) -> StatusError | None:
    try:
        found = decoded(obj)
    except StatusError as error:
        return error
    causes = objects.validate(found, old)
    if not causes:
        return None
    group = obj["apiVersion"].rpartition("/")[0]
    return invalid(group, obj["kind"], found["metadata"].get("name", ""), causes)


def _title(case: Object) -> str:
    obj = _ANSWERS["objects"][case["object"]]
    return f"{obj['kind']}-{'.'.join(map(str, case['path']))}={str(case.get('value', 'gone'))[:12]}"


def test_invalid_value_is_refused_as_by_kube_apiserver() -> None:
    for case in _ANSWERS["cases"]:
        obj = deepcopy(_ANSWERS["objects"][case["object"]])
        place: Any = obj
        for step in case["path"][:-1]:
            place = place[step]
        if "value" in case:
            place[case["path"][-1]] = case["value"]
        else:
            del place[case["path"][-1]]
        error = refused(obj)
        assert error is not None, _title(case)
        assert (error.code, error.message) == (case["code"], case["message"]), _title(case)


def test_object_that_kube_apiserver_accepts_is_valid_and_may_be_updated() -> None:
    for obj in _ANSWERS["objects"]:
        found = decoded(obj)
        assert objects.validate(found, None) == [], obj["kind"]
        again = decoded(found)
        assert again == found
        if found["kind"] != "CustomResourceDefinition":
            assert objects.validate(again, found) == [], obj["kind"]


def _updated(kind: str, change: Any) -> str:
    obj = next(found for found in _ANSWERS["objects"] if found["kind"] == kind)
    old, new = decoded(obj), decoded(obj)
    change(new)
    group = obj["apiVersion"].rpartition("/")[0]
    return invalid(group, kind, obj["metadata"]["name"], objects.validate(new, old)).message


def test_uid_cannot_change() -> None:
    assert _updated("ConfigMap", lambda new: new["metadata"].update(uid="e")) == (
        'ConfigMap "x" is invalid: metadata.uid: Invalid value: "e": field is immutable'
    )


def test_selector_of_a_deployment_cannot_change() -> None:
    def change(new: Object) -> None:
        new["spec"]["selector"] = {"matchLabels": {"app": "b"}}
        new["spec"]["template"]["metadata"]["labels"] = {"app": "b"}

    assert _updated("Deployment", change) == (
        'Deployment.apps "x" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable'
    )


def test_role_ref_of_a_binding_cannot_change() -> None:
    assert _updated("RoleBinding", lambda new: new["roleRef"].update(name="y")) == (
        'RoleBinding.rbac.authorization.k8s.io "x" is invalid: roleRef: Invalid value: '
        '{"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"y"}: cannot change roleRef'
    )


def test_pod_update_may_change_images_tolerations_and_deadline_only() -> None:
    obj = next(found for found in _ANSWERS["objects"] if found["kind"] == "Pod")
    old, new = decoded(obj), decoded(obj)
    new["spec"]["containers"][0]["image"] = "other"
    new["spec"].setdefault("tolerations", []).append({"key": "k", "operator": "Exists"})
    new["spec"]["activeDeadlineSeconds"] = 9
    assert objects.validate(new, old) == []
    new["spec"]["hostname"] = "other"
    (cause,) = objects.validate(new, old)
    assert cause["field"] == "spec"
    assert cause["message"].startswith(
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    )
    assert '+ "hostname": "other"' in cause["message"]


def test_ready_replicas_greater_than_replicas_are_refused() -> None:
    assert _updated("Deployment", lambda new: new["status"].update(replicas=1, readyReplicas=2)) == (
        'Deployment.apps "x" is invalid: status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas'
    )


def test_finalizer_cannot_be_added_to_an_object_being_deleted() -> None:
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "deletionTimestamp": "2024-01-01T00:00:00Z"},
    }
    old, new = decoded(obj), decoded(obj)
    new["metadata"]["finalizers"] = ["a.b/c"]
    assert objects.validate(new, old)[0]["message"] == (
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
        '[]string{"a.b/c"}'
    )


def test_repeated_cause_is_once_in_the_message_and_each_time_in_the_causes() -> None:
    cause = {"reason": "FieldValueRequired", "message": "Required value", "field": "spec"}
    error = invalid("apps", "Deployment", "d", [cause, cause])
    assert error.message == 'Deployment.apps "d" is invalid: spec: Required value'
    assert error.status["details"] == {"name": "d", "group": "apps", "kind": "Deployment", "causes": [cause, cause]}
