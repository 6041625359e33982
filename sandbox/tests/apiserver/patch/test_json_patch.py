"""JSON patches (RFC 6902), with the messages of kube-apiserver."""

from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.patch import json_patch
from kube_sandbox.apiserver.patch.json_patch import PatchError

DOCUMENT: Object = {"a": {"b/c": 1, "d~e": 2}, "list": ["x", "y"], "null": None}

_keys = st.text(alphabet="ab/~0", max_size=3)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(alphabet="ab/~é", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=8,
)
_objects = st.dictionaries(_keys, _json, max_size=4)


def patched(*operations: Object) -> Any:
    return json_patch.apply(DOCUMENT, operations)


@given(_objects, _objects)
def test_patch_made_of_two_documents_turns_one_into_the_other(one: Object, other: Object) -> None:
    assert json_patch.apply(one, jsonpatch.make_patch(one, other).patch) == other


@given(_objects, _objects)
def test_apply_does_not_change_its_argument(one: Object, other: Object) -> None:
    before = repr(one)
    json_patch.apply(one, jsonpatch.make_patch(one, other).patch)
    assert repr(one) == before


def test_escaped_slashes_and_tildes_in_a_path_are_decoded() -> None:
    result = patched({"op": "replace", "path": "/a/b~1c", "value": 3}, {"op": "remove", "path": "/a/d~0e"})
    assert result["a"] == {"b/c": 3}


def test_replace_of_a_missing_key_adds_it() -> None:
    assert patched({"op": "replace", "path": "/a/new", "value": 3})["a"]["new"] == 3


def test_test_of_a_missing_key_against_null_passes() -> None:
    assert patched({"op": "test", "path": "/a/new", "value": None}) == DOCUMENT


def test_index_may_be_negative_or_a_dash() -> None:
    assert patched({"op": "remove", "path": "/list/-1"})["list"] == ["x"]
    assert patched({"op": "add", "path": "/list/-", "value": "z"})["list"] == ["x", "y", "z"]
    assert patched({"op": "add", "path": "/list/1", "value": "z"})["list"] == ["x", "z", "y"]


def test_move_and_copy_change_the_document() -> None:
    moved = patched({"op": "move", "from": "/list", "path": "/a/list"})
    assert moved == {"a": {"b/c": 1, "d~e": 2, "list": ["x", "y"]}, "null": None}
    copied = patched({"op": "copy", "from": "/list", "path": "/a/list"}, {"op": "remove", "path": "/list/0"})
    assert copied["a"]["list"] == ["x", "y"]


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (
            {"op": "replace", "path": "/no/x", "value": 1},
            "replace operation does not apply: doc is missing path: /no/x: missing value",
        ),
        (
            {"op": "replace", "path": "/list/7", "value": 1},
            "replace operation does not apply: doc is missing key: /list/7: missing value",
        ),
        (
            {"op": "remove", "path": "/no"},
            "error in remove for path: '/no': Unable to remove nonexistent key: no: missing value",
        ),
        (
            {"op": "add", "path": "", "value": 1},
            'add operation does not apply: doc is missing path: "": missing value',
        ),
        (
            {"op": "add", "path": "/null/x", "value": 1},
            'add operation does not apply: doc is missing path: "/null/x": missing value',
        ),
        (
            {"op": "add", "path": "/list/9", "value": 1},
            "error in add for path: '/list/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        ({"op": "test", "path": "/list/0", "value": "z"}, "testing value /list/0 failed: test failed"),
        ({"op": "test", "path": "/a/b~1c", "value": True}, "testing value /a/b~1c failed: test failed"),
        ({"op": "frob", "path": "/a"}, "Unexpected kind: frob"),
        ({"path": "/a"}, "Unexpected kind: unknown"),
        ({"op": "add"}, "add operation failed to decode path: missing value"),
        (
            {"op": "move", "path": "/x"},
            "move operation failed to decode from: operation, missing from field: missing value",
        ),
    ],
)
def test_operation_that_does_not_apply_is_refused_as_by_kube_apiserver(operation: Object, text: str) -> None:
    with pytest.raises(PatchError) as refused:
        patched(operation)
    assert str(refused.value) == text


def test_repeated_copies_are_refused_beyond_the_size_limit() -> None:
    operations = [{"op": "add", "path": "/x", "value": ["y" * 1000]}]
    operations += [{"op": "copy", "from": "/x", "path": "/x/-"}] * 20
    with pytest.raises(PatchError, match="the accumulated size increase of copy is"):
        patched(*operations)
