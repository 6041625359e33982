"""Strategic merge patches, in the form that kubectl sends."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.patch import strategic

Object = dict[str, Any]

_MODEL = "V1Deployment"


def deployment(spec: Object, **pod: Any) -> Object:
    return {"metadata": {"name": "d"}, "spec": {**spec, "template": {"spec": pod}}}


def merged(current: Object, patch: Object) -> Object:
    before = deepcopy(current)
    result = strategic.merge(current, deepcopy(patch), _MODEL)
    assert current == before
    return result


def pod_merged(current: Object, patch: Object) -> Object:
    found: Object = merged(deployment({}, **current), deployment({}, **patch))["spec"]["template"]["spec"]
    return found


def test_container_is_merged_by_name_and_keeps_fields_that_the_patch_omits() -> None:
    current = {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "i", "args": ["x"]}]}
    patch = {"containers": [{"name": "b", "image": "j"}]}
    assert pod_merged(current, patch)["containers"] == [
        {"name": "a", "image": "i"}, {"name": "b", "image": "j", "args": ["x"]},
    ]  # fmt: skip


def test_list_without_merge_key_is_replaced() -> None:
    assert pod_merged({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]})["tolerations"] == [{"key": "b"}]


def test_null_removes_a_field() -> None:
    assert merged(deployment({"replicas": 1, "paused": True}), {"spec": {"paused": None, "minReadySeconds": None}}) == (
        deployment({"replicas": 1})
    )


def test_directive_delete_removes_the_item_with_that_key() -> None:
    current = {"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]}
    assert pod_merged(current, {"volumes": [{"$patch": "delete", "name": "a"}]})["volumes"] == [
        {"name": "b", "emptyDir": {}}
    ]


def test_directive_replace_replaces_a_list_or_a_map() -> None:
    current = {"containers": [{"name": "a", "image": "i"}], "nodeSelector": {"a": "1"}}
    patch = {
        "containers": [{"$patch": "replace"}, {"name": "b", "image": "i"}],
        "nodeSelector": {"$patch": "replace", "b": "1"},
    }
    assert pod_merged(current, patch) == {"containers": [{"name": "b", "image": "i"}], "nodeSelector": {"b": "1"}}


def test_directive_delete_empties_a_map() -> None:
    assert pod_merged({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"$patch": "delete"}}) == {"nodeSelector": {}}


def test_retain_keys_removes_the_parameters_of_the_former_strategy() -> None:
    """`kubectl apply` sends $retainKeys for fields that exclude each other."""
    current = deployment({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}})
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert merged(current, patch)["spec"]["strategy"] == {"type": "Recreate"}


def test_retain_keys_replaces_the_source_of_a_volume() -> None:
    current = {"volumes": [{"name": "v", "emptyDir": {}}]}
    patch = {"volumes": [{"name": "v", "$retainKeys": ["configMap", "name"], "configMap": {"name": "c"}}]}
    assert pod_merged(current, patch)["volumes"] == [{"name": "v", "configMap": {"name": "c"}}]


def test_set_element_order_sorts_named_items_and_keeps_the_place_of_others() -> None:
    current = {"containers": [{"name": name} for name in "abc"]}
    patch = {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], "containers": [{"name": "c", "image": "i"}]}
    assert [found["name"] for found in pod_merged(current, patch)["containers"]] == ["b", "c", "a"]


def test_finalizers_are_added_and_deleted_as_a_set() -> None:
    current = {"metadata": {"finalizers": ["a", "b"]}}
    patch = {
        "metadata": {
            "$deleteFromPrimitiveList/finalizers": ["a"],
            "$setElementOrder/finalizers": ["c", "b"],
            "finalizers": ["c"],
        }
    }
    assert merged(current, patch) == {"metadata": {"finalizers": ["c", "b"]}}


def test_directive_replace_replaces_the_pod_template() -> None:
    """`kubectl rollout undo` sends such a patch."""
    current = deployment({"replicas": 2}, containers=[{"name": "a", "image": "i"}], hostNetwork=True)
    patch = {"spec": {"template": {"$patch": "replace", "spec": {"containers": [{"name": "a", "image": "h"}]}}}}
    assert merged(current, patch) == deployment({"replicas": 2}, containers=[{"name": "a", "image": "h"}])


def test_added_item_takes_the_place_of_a_deleted_one() -> None:
    current = {"volumes": [{"name": name} for name in "abc"]}
    patch = {
        "$setElementOrder/volumes": [{"name": "d"}, {"name": "c"}],
        "volumes": [{"$patch": "delete", "name": "a"}, {"name": "d"}],
    }
    assert [found["name"] for found in pod_merged(current, patch)["volumes"]] == ["b", "d", "c"]


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ({"$patch": "remove"}, 500, "unknown patch type: remove in map: map[$patch:remove]"),
        (
            {"containers": [{"image": "i"}]}, 500,
            "map: map[image:i] does not contain declared merge key: name",
        ),
        (
            {"containers": [{"name": "a", "$patch": "merge"}]}, 500,
            "merging lists cannot yet be specified in the patch",
        ),
        ({"containers": [{"name": "a", "$retainKeys": "name"}]}, 400, "invalid patch format of retainKeys"),
        ({"nodeSelector": {"$retainKeys": ["a"], "b": "1"}}, 400, "invalid patch format of retainKeys"),
        (
            {"$setElementOrder/containers": {}, "containers": []}, 500,
            "expected a []interface {}, but received a map[string]interface {}",
        ),
        (
            {"containers": ["a"]}, 500,
            "list element types are not identical: [[map[name:a]] [a]]",
        ),
        (
            {
                "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                "containers": [{"name": "a"}, {"name": "b"}],
            },
            500,
            "The order in patch list:\n[map[name:a] map[name:b]]\n doesn't match $setElementOrder list:\n"
            "[map[name:b] map[name:a]]\n",
        ),
    ],
)  # fmt: skip
def test_malformed_patch_is_refused_as_by_kube_apiserver(patch: Object, code: int, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        pod_merged({"containers": [{"name": "a"}], "nodeSelector": {}}, patch)
    assert (refused.value.code, refused.value.message) == (code, message)


# The patch that kubectl makes from two objects; merge keys identify the items of lists.

_KEYS = {"containers": "name", "env": "name", "ports": "containerPort", "volumeMounts": "mountPath", "volumes": "name"}
_WORDS = st.sampled_from(["a", "b", "c", "d"])


def _keyed(
    key: str, keys: st.SearchStrategy[Any], **members: st.SearchStrategy[Any]
) -> st.SearchStrategy[list[Object]]:
    item = st.fixed_dictionaries({key: keys}, optional=members)
    return st.lists(item, min_size=1, max_size=4, unique_by=lambda found: found[key])


_CONTAINERS = _keyed(
    "name", _WORDS,
    image=_WORDS,
    args=st.lists(_WORDS, min_size=1, max_size=3),
    env=_keyed("name", _WORDS, value=_WORDS),
    ports=_keyed("containerPort", st.integers(1, 4), name=_WORDS),
    volumeMounts=_keyed("mountPath", _WORDS, name=_WORDS, readOnly=st.booleans()),
)  # fmt: skip
_OBJECTS = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries(
        {"name": st.just("d")},
        optional={
            "labels": st.dictionaries(_WORDS, _WORDS, min_size=1, max_size=3),
            "finalizers": st.lists(_WORDS, min_size=1, max_size=3, unique=True),
        },
    ),
     "spec": st.fixed_dictionaries(
        {"template": st.fixed_dictionaries({
            "spec": st.fixed_dictionaries(
                {"containers": _CONTAINERS},
                optional={
                    "volumes": _keyed("name", _WORDS, emptyDir=st.just({"medium": "Memory"})),
                    "nodeSelector": st.dictionaries(_WORDS, _WORDS, min_size=1, max_size=3),
                    "tolerations": st.lists(st.fixed_dictionaries({"key": _WORDS}), min_size=1, max_size=3),
                },
            ),
        })},
        optional={"replicas": st.integers(0, 3), "paused": st.booleans()},
    )},
)  # fmt: skip


def _difference(old: Object, new: Object) -> Object:
    """The patch that CreateTwoWayMergePatch of apimachinery makes."""
    patch: Object = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if before == value:
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            patch[name] = _difference(before, value)
        elif name in _KEYS and before is not None:
            key = _KEYS[name]
            known = {item[key]: item for item in before}
            changes = [
                {key: item[key], **_difference(known[item[key]], item)} if item[key] in known else item
                for item in value
                if known.get(item[key]) != item
            ]
            kept = {item[key] for item in value}
            patch[f"$setElementOrder/{name}"] = [{key: item[key]} for item in value]
            patch[name] = [*changes, *({"$patch": "delete", key: gone} for gone in known if gone not in kept)]
        elif name == "finalizers" and before is not None:
            patch[f"$setElementOrder/{name}"] = value
            patch[name] = [item for item in value if item not in before]
            patch[f"$deleteFromPrimitiveList/{name}"] = [item for item in before if item not in value]
        else:
            patch[name] = value
    return patch


@given(_OBJECTS, _OBJECTS)
def test_two_way_patch_turns_one_object_into_the_other(old: Object, new: Object) -> None:
    assert merged(old, _difference(old, new)) == new


@given(_OBJECTS, _OBJECTS, st.dictionaries(_WORDS, _WORDS, max_size=2))
def test_three_way_patch_keeps_what_other_clients_added(original: Object, modified: Object, added: Object) -> None:
    """kubectl compares with the live object, but removes only fields that it applied before."""
    live = deepcopy(original)
    live["metadata"]["annotations"] = added
    live["spec"]["template"]["spec"]["containers"].append({"name": "injected", "image": "i"})
    result = merged(live, _difference(original, modified))
    assert result["metadata"].pop("annotations") == added
    pod = result["spec"]["template"]["spec"]
    if original["spec"]["template"]["spec"]["containers"] == modified["spec"]["template"]["spec"]["containers"]:
        assert pod["containers"][-1]["name"] == "injected"
    pod["containers"] = [found for found in pod["containers"] if found["name"] != "injected"]
    assert result == modified


@given(_OBJECTS)
def test_empty_patch_changes_nothing(obj: Object) -> None:
    assert merged(obj, {}) == obj
