"""Decoding of built-in kinds, with the messages of kube-apiserver 1.36."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.schema import fields

Object = dict[str, Any]

DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "busybox"}]},
        },
    },
}
POD = ("spec", "template", "spec")
CONTAINER = (*POD, "containers", 0)


def changed(path: tuple[str | int, ...], value: Any) -> Object:
    obj = deepcopy(DEPLOYMENT)
    place: Any = obj
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return obj


def check(obj: Object) -> tuple[Object, list[str]]:
    return fields.check(obj, api_version="apps/v1", kind="Deployment")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("spec", "replicas"), "3", "string into DeploymentSpec.spec.replicas of type int32"),
        (("spec", "replicas"), 3.5, "number 3.5 into DeploymentSpec.spec.replicas of type int32"),
        (("spec", "replicas"), 2**40, "number 1099511627776 into DeploymentSpec.spec.replicas of type int32"),
        (("spec", "paused"), 1, "number into DeploymentSpec.spec.paused of type bool"),
        (("metadata", "labels"), {"a": 1}, "number into ObjectMeta.metadata.labels of type string"),
        (("metadata", "labels"), [], "array into ObjectMeta.metadata.labels of type map[string]string"),
        ((*POD, "containers"), {}, "object into PodSpec.spec.template.spec.containers of type []v1.Container"),
        ((*CONTAINER, "name"), 7, "number into Container.spec.template.spec.containers.name of type string"),
        (
            (*CONTAINER, "env"), [{"name": "A", "value": True}],
            "bool into EnvVar.spec.template.spec.containers.env.value of type string",
        ),
        (("spec",), [], "array into Deployment.spec of type v1.DeploymentSpec"),
        (
            ("spec", "strategy"), {"rollingUpdate": {"maxSurge": 1.5}},
            "number 1.5 into RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
        ),
    ],
)  # fmt: skip
def test_value_of_the_wrong_type_is_refused_as_by_go(path: tuple[str | int, ...], value: Any, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        check(changed(path, value))
    assert refused.value.code == 400
    assert refused.value.message == (
        'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal '
        + message.replace(" into ", " into Go struct field ")
    )


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (
            ("metadata", "creationTimestamp"), "x",
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
        ),
        (
            (*CONTAINER, "resources"), {"limits": {"cpu": {}}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            ("kind",), "Foo",
            'no kind "Foo" is registered for version "apps/v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
        ),
    ],
)  # fmt: skip
def test_unreadable_time_quantity_or_kind_is_refused_as_by_go(
    path: tuple[str | int, ...], value: Any, why: str
) -> None:
    with pytest.raises(StatusError) as refused:
        check(changed(path, value))
    assert refused.value.code == 400
    assert refused.value.message.endswith(f"cannot be handled as a Deployment: {why}")


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("0000-02-29T00:00:00Z", "0000-02-29T00:00:00Z"),
        ("9999-12-31T23:59:59-01:00", "10000-01-01T00:59:59Z"),
        ("0009-12-31T23:59:59.5+01:00", "0009-12-31T22:59:59Z"),
    ],
)
def test_time_is_stored_in_utc_as_by_go(sent: str, stored: str) -> None:
    entry = {"manager": "m", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "time": sent}
    obj = changed(("metadata", "managedFields"), [entry])
    checked, _ = check(obj)
    assert checked["metadata"]["managedFields"][0]["time"] == stored


@pytest.mark.parametrize(
    ("path", "named"),
    [
        (("foo",), "foo"),
        (("spec", "Replicas"), "spec.Replicas"),
        (("metadata", "foo"), "metadata.foo"),
        ((*CONTAINER, "foo"), "spec.template.spec.containers[0].foo"),
    ],
)
def test_unknown_field_is_dropped_and_named(path: tuple[str | int, ...], named: str) -> None:
    decoded, unknown = check(changed(path, {"a": 1}))
    assert unknown == [f'unknown field "{named}"']
    assert decoded == check(DEPLOYMENT)[0]


def test_strict_validation_names_every_unknown_or_duplicate_field() -> None:
    error = fields.strict("apps/v1", "Deployment", ['unknown field "a"', 'duplicate field "b"'])
    assert (error.code, error.message) == (
        400,
        'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: '
        'unknown field "a", duplicate field "b"',
    )


def test_duplicate_members_are_found_at_every_depth() -> None:
    document, messages = fields.parse(b'{"a": 1, "b": [{"c": 1, "c": 2}], "a": 3, "d": {"e": {"f": 1, "f": 1}}}')
    assert document == {"a": 3, "b": [{"c": 2}], "d": {"e": {"f": 1}}}
    assert sorted(messages) == ['duplicate field "a"', 'duplicate field "b[0].c"', 'duplicate field "d.e.f"']


def test_empty_structs_are_written_and_fields_with_omitempty_are_not() -> None:
    decoded, _ = check(
        changed(
            ("spec", "template", "spec"), {"containers": [{"name": "c", "args": [], "stdin": False}], "volumes": None}
        )
    )
    assert decoded["status"] == {}
    assert decoded["spec"]["strategy"] == {}
    assert decoded["spec"]["template"]["spec"] == {"containers": [{"name": "c", "resources": {}}]}


def test_zero_of_a_pointer_field_is_kept_and_null_is_dropped() -> None:
    decoded, _ = check(changed(("spec", "replicas"), 0))
    assert decoded["spec"]["replicas"] == 0
    decoded, _ = check(changed(("spec", "replicas"), None))
    assert "replicas" not in decoded["spec"]
    decoded, _ = check(changed((*POD, "nodeSelector"), {"a": None}))
    assert decoded["spec"]["template"]["spec"]["nodeSelector"] == {"a": ""}


def test_times_and_quantities_are_decoded_to_canonical_form() -> None:
    lease = {"metadata": {"name": "l"}, "spec": {"renewTime": "2024-01-01T01:00:00.123456+01:00"}}
    decoded, _ = fields.check(lease, api_version="coordination.k8s.io/v1", kind="Lease")
    assert decoded["spec"]["renewTime"] == "2024-01-01T00:00:00.123456Z"
    decoded, _ = check(changed((*CONTAINER, "resources"), {"limits": {"cpu": 1, "memory": "1024Mi"}}))
    assert decoded["spec"]["template"]["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"}
    }


def test_bytes_that_are_not_base64_are_refused() -> None:
    with pytest.raises(StatusError, match="illegal base64 data at input byte 4"):
        fields.check({"data": {"a": "YWJj*"}}, api_version="v1", kind="Secret")


def test_empty_managed_fields_are_kept() -> None:
    decoded, _ = check(changed(("metadata", "managedFields"), []))
    assert decoded["metadata"]["managedFields"] == []


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
    max_leaves=8,
)
_PATHS = st.sampled_from(
    [
        ("spec",), ("metadata",), ("status",), ("spec", "strategy"), ("spec", "template"), POD, CONTAINER,
        (*CONTAINER, "env"), (*CONTAINER, "resources"), (*POD, "volumes"), ("metadata", "ownerReferences"),
        ("metadata", "managedFields"),
    ]
)  # fmt: skip


@given(_PATHS, _JSON)
def test_any_json_is_refused_or_decoded_to_a_stable_object(path: tuple[str | int, ...], value: Any) -> None:
    try:
        decoded, _ = check(changed(path, value))
    except StatusError as refused:
        code = refused.code
    else:
        code = 200
        again, unknown = check(json.loads(json.dumps(decoded)))
        assert (again, unknown) == (decoded, [])
    assert code in (200, 400)
