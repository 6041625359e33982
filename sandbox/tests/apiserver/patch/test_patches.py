"""Patches of all content types, with the messages of kube-apiserver 1.36."""

import json
from typing import Any

import pytest

from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.patch import patches
from kube_sandbox.apiserver.schema import fields

Object = dict[str, Any]

JSON, MERGE, STRATEGIC = patches.JSON, patches.MERGE, patches.STRATEGIC
CURRENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "labels": {"x": "y"}},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}
CUSTOM: Object = {"apiVersion": "e.com/v1", "kind": "Foo", "metadata": {"name": "f"}, "spec": {"a": [1, 2]}}


def patched(type_: str, patch: bytes | Object | list[Any], *, validation: str = "Ignore") -> tuple[Object, list[str]]:
    body = patch if isinstance(patch, bytes) else json.dumps(patch).encode()
    current, _ = fields.check(CURRENT, api_version="apps/v1", kind="Deployment")
    return patches.apply(
        type_, current, body, api_version="apps/v1", kind="Deployment", field_validation=validation, crd_schema=None
    )


def custom(type_: str, patch: Any) -> Object:
    body = json.dumps(patch).encode()
    schema = {"type": "object"}
    return patches.apply(
        type_, CUSTOM, body, api_version="e.com/v1", kind="Foo", field_validation="Strict", crd_schema=schema
    )[0]


@pytest.mark.parametrize(
    ("type_", "patch"),
    [
        (JSON, [{"op": "replace", "path": "/spec/replicas", "value": 3}]),
        (MERGE, {"spec": {"replicas": 3}}),
        (STRATEGIC, {"spec": {"replicas": 3}}),
        (STRATEGIC, {"kind": "Nonsense", "apiVersion": "v1", "spec": {"replicas": 3}}),
    ],
)
def test_patch_of_each_type_changes_the_named_field_only(type_: str, patch: Any) -> None:
    result, warnings = patched(type_, patch)
    assert (result["spec"]["replicas"], result["kind"], warnings) == (3, "Deployment", [])
    assert result["metadata"]["labels"] == {"x": "y"}


def test_strategic_patch_merges_a_list_and_merge_patch_replaces_it() -> None:
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "args": ["x"]}]}}}}
    containers = {
        type_: patched(type_, patch)[0]["spec"]["template"]["spec"]["containers"] for type_ in (MERGE, STRATEGIC)
    }
    assert "image" not in containers[MERGE][0]
    assert containers[STRATEGIC][0]["image"] == "i"


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [  # RFC 7386, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_follows_the_examples_of_rfc_7386(target: Object, patch: Object, result: Object) -> None:
    obj = patches.apply(
        MERGE, target, json.dumps(patch).encode(), api_version="e.com/v1", kind="Foo", field_validation="Ignore",
        crd_schema={},
    )[0]  # fmt: skip
    assert obj == result


def test_strategic_patch_of_a_custom_resource_is_an_unsupported_media_type() -> None:
    assert custom(MERGE, {"spec": {"b": 1}})["spec"] == {"a": [1, 2], "b": 1}
    with pytest.raises(StatusError) as refused:
        custom(STRATEGIC, {})
    assert (refused.value.code, refused.value.message) == (
        415,
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
    )


_GENERIC = "the server rejected our request due to an error in our request"


@pytest.mark.parametrize(
    ("type_", "patch", "code", "message"),
    [
        (JSON, [{"op": "test", "path": "/spec/replicas", "value": 7}], 422, _GENERIC),
        (JSON, [{"op": "remove", "path": "/spec/nope"}], 422, _GENERIC),
        (JSON, [{"op": "bogus", "path": "/spec/foo"}], 422, _GENERIC),
        (JSON, [{"op": "replace", "path": "", "value": []}], 422, _GENERIC),
        (
            JSON, [{"op": "test", "path": "/spec/replicas", "value": 1}] * 10001, 413,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
        ),
        (
            JSON, {"a": 1}, 400,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        (
            JSON, [1], 400,
            "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp",
        ),
        (JSON, b"[", 400, "error decoding patch: unexpected end of JSON input"),
        (
            MERGE, [], 400,
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (MERGE, b"{", 400, "error decoding patch: unexpected end of JSON input"),
        (MERGE, b"null", 400, "Invalid JSON Patch"),
        (STRATEGIC, [], 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (STRATEGIC, b"{", 400, "unexpected end of JSON input"),
        (STRATEGIC, b"[" * 100_000 + b"]" * 100_000, 400, "exceeded max depth"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_malformed_or_inapplicable_patch_is_refused_as_by_kube_apiserver(
    type_: str, patch: Any, code: int, message: str
) -> None:
    with pytest.raises(StatusError) as refused:
        patched(type_, patch)
    assert (refused.value.code, refused.value.message) == (code, message)


def test_json_patch_with_many_copies_is_refused() -> None:
    double = {"op": "copy", "from": "/metadata", "path": "/metadata/labels/z"}
    with pytest.raises(StatusError) as refused:
        patched(JSON, [double] * 40)
    assert refused.value.code == 422


def test_patch_with_a_value_of_the_wrong_type_is_refused_as_by_kube_apiserver() -> None:
    with pytest.raises(StatusError) as refused:
        patched(STRATEGIC, {"spec": {"replicas": "x"}})
    assert refused.value.code == 422
    assert refused.value.message == (
        ' "" is invalid: patch: Invalid value: "map[spec:map[replicas:x]]": '
        "unrecognized type: int32"
    )  # fmt: skip
    with pytest.raises(StatusError) as refused:
        patched(MERGE, {"spec": {"replicas": "x"}})
    assert refused.value.message.endswith(
        ": json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
    )


def test_unknown_field_is_pruned_warned_of_or_refused_as_field_validation_says() -> None:
    patch = {"spec": {"foo": 1}}
    for type_ in (MERGE, STRATEGIC):
        assert "foo" not in patched(type_, patch)[0]["spec"]
        assert patched(type_, patch)[1] == []
        assert patched(type_, patch, validation="Warn")[1] == ['unknown field "spec.foo"']
        with pytest.raises(StatusError) as refused:
            patched(type_, patch, validation="Strict")
        assert refused.value.code == 422
        assert refused.value.message.endswith('strict decoding error: unknown field "spec.foo"')


def test_strict_refusal_of_a_strategic_patch_shows_the_patch_without_directives() -> None:
    patch = {
        "spec": {
            "foo": 1,
            "template": {
                "spec": {
                    "$setElementOrder/containers": [{"name": "c"}],
                    "containers": [{"name": "c", "args": ["x"]}],
                }
            },
        }
    }
    with pytest.raises(StatusError) as refused:
        patched(STRATEGIC, patch, validation="Strict")
    assert refused.value.message == (
        ' "" is invalid: patch: Invalid value: "map[spec:map[foo:1 template:map[spec:map[]]]]": '
        'strict decoding error: unknown field "spec.foo"'
    )


def test_duplicate_field_in_a_patch_gives_a_warning() -> None:
    patch = b'{"spec":{"replicas":2,"replicas":3}}'
    result, warnings = patched(MERGE, patch, validation="Warn")
    assert (result["spec"]["replicas"], warnings) == (3, ['duplicate field "spec.replicas"'])
    operations = b'[{"op":"add","op":"replace","path":"/spec/replicas","value":2}]'
    assert patched(JSON, operations, validation="Warn")[1] == ['json patch duplicate field "[0].op"']
