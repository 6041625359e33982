"""Field selectors of custom resources: the selectable fields of a CRD, lists, watches and deletions by them."""

import contextlib
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from kube_base.access.client import Client, PatchType
from kube_base.access.errors import ApiError
from kube_base.resources import Resource
from support.kubectl import Json, Kubectl
from support.polling import eventually

GROUP = f"t{uuid.uuid4().hex[:8]}.example.com"
# No other module has Sprockets: kubectl keeps the group of a kind in its cache after the CRD is deleted.
SPROCKETS = Resource(GROUP, "v1", "sprockets", "Sprocket")
SPEC = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "size": {"type": "integer"},
        "on": {"type": "boolean"},
        "share": {"type": "number"},
        "either": {"x-kubernetes-int-or-string": True},
        "parts": {"type": "array", "items": {"type": "object", "properties": {"text": {"type": "string"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        **{f"f{number}": {"type": "string"} for number in range(9)},
    },
}
STATUS = {"type": "object", "properties": {"state": {"type": "string", "enum": ["Up", "Down"]}}}
METADATA = {"type": "object", "properties": {"name": {"type": "string"}}}
SELECTABLE = [".spec.text", ".spec.size", ".spec.on", ".spec.map.key", ".status.state"]
TYPES = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)
NO_FIELD = "is an invalid path: does not refer to a valid field"
NO_END = "is an invalid path: unexpected end of JSON path"
NO_ARRAY = "is an invalid path: array notation is not allowed"
NO_SCHEMA = "may only be set when `version.schema.openAPIV3Schema` is not included"
NO_SHARED_SCHEMA = "may only be set when validations.schema is included"


def version(name: str, *paths: str, spec: Json = SPEC, storage: bool = False) -> Json:
    properties = {"metadata": METADATA, "spec": spec, "status": STATUS}
    found = {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}},
    }
    return found | ({"selectableFields": [{"jsonPath": path} for path in paths]} if paths else {})


def crd(kind: str, *versions: Json, scope: str = "Namespaced") -> Json:
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [{**versions[0], "storage": True}, *versions[1:]],
        },
    }


@contextlib.contextmanager
def served(space: Kubectl, definition: Json) -> Iterator[str]:
    """The full name of a kind that the API serves."""
    name = definition["metadata"]["name"]
    space("create", "-f", "-", stdin=json.dumps(definition))
    try:
        eventually(lambda: space.run("get", name).returncode == 0, f"{name} to be served")
        yield name
    finally:
        space("delete", "crd", name)


def named(answer: bytes) -> list[str]:
    return sorted(item["metadata"]["name"] for item in json.loads(answer)["items"])


@pytest.fixture(scope="module")
def sprockets(space: Kubectl) -> Iterator[Kubectl]:
    """kubectl on a cluster with Sprockets, four of them in the namespace."""
    objects = {
        "full": {"text": "a,b=c\\", "size": 3, "on": True, "map": {"key": "v"}},
        "zero": {"text": "", "size": 0, "on": False, "map": {}},
        "bare": {},
        "other": {"text": "x", "size": -1},
    }
    with served(
        space, crd("Sprocket", version("v1", *SELECTABLE), version("v2", ".spec.text", spec=dict(SPEC, title="v2")))
    ):
        for name, spec in objects.items():
            create(space, name, spec)
        space("patch", "sprocket", "full", "--type=merge", "--subresource=status", "-p", '{"status":{"state":"Up"}}')
        yield space


def create(space: Kubectl, name: str, spec: Json, labels: Json | None = None) -> None:
    metadata = {"name": name, "labels": labels or {"kept": "yes"}}
    obj = {"apiVersion": SPROCKETS.api_version, "kind": "Sprocket", "metadata": metadata, "spec": spec}
    space("create", "-f", "-", stdin=json.dumps(obj))


async def set_state(client: Client, space: Kubectl, name: str, state: str | None) -> None:
    patch = {"status": {"state": state}}
    await client.patch(SPROCKETS, patch, name, space.namespace, subresource="status", type_=PatchType.MERGE)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("status.state=Up", "full"),
        ("status.state==Up", "full"),
        ("status.state!=Up", "bare other zero"),
        ("status.state=", "bare other zero"),
        ("spec.text=", "bare zero"),
        ("spec.text!=", "full other"),
        (r"spec.text=a\,b\=c\\", "full"),
        ("spec.size=3", "full"),
        ("spec.size=03", ""),
        ("spec.size=0", "zero"),
        ("spec.size=", "bare"),
        ("spec.on=true", "full"),
        ("spec.on!=true", "bare other zero"),
        ("spec.map.key=v", "full"),
        ("spec.map.key=", "bare other zero"),
        ("spec.text!=x,status.state!=Up", "bare zero"),
        ("metadata.name=full,status.state=Up", "full"),
        ("metadata.name=bare,status.state=Up", ""),
    ],
)  # fmt: skip
def test_get_selects_by_the_selectable_fields(sprockets: Kubectl, selector: str, names: str) -> None:
    found = sprockets(
        "get", f"sprockets.v1.{GROUP}", "-l", "kept=yes", "--field-selector", selector, "-o", "name"
    ).split()
    assert sorted(each.rpartition("/")[2] for each in found) == names.split()


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("spec.share=1", "field label not supported: spec.share"),
        ("spec.map=v", "field label not supported: spec.map"),
        (".status.state=Up", "field label not supported: .status.state"),
        ("status.state=Up,spec.b=1,spec.a=1", "field label not supported: spec.a"),
        ("status.state", "invalid selector: 'status.state'; can't understand 'status.state'"),
        ("spec.text=a=b", "invalid field selector: unescaped character in value: 61"),
        (r"spec.text=\a", r"invalid field selector: invalid escape sequence: \a"),
        ("spec.text=a\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["list", "watch", "deletecollection"])
async def test_other_field_selector_is_refused(
    sprockets: Kubectl, client: Client, verb: str, selector: str, message: str
) -> None:
    query = {"fieldSelector": selector} | ({"watch": "1", "timeoutSeconds": "1"} if verb == "watch" else {})
    method = "DELETE" if verb == "deletecollection" else "GET"
    with pytest.raises(ApiError) as caught:
        await client.request(method, SPROCKETS.path(sprockets.namespace), query=query)
    assert (caught.value.code, str(caught.value)) == (400, message)


def test_field_selector_is_of_the_version_that_declares_it(sprockets: Kubectl) -> None:
    refused = sprockets.run("get", f"sprockets.v2.{GROUP}", "--field-selector", "status.state=Up")
    assert "field label not supported: status.state" in refused.stderr
    assert sprockets("get", f"sprockets.v2.{GROUP}", "--field-selector", "spec.text=x", "-o", "name").split()


@pytest.mark.parametrize(
    ("selector", "events"),
    [
        (
            "status.state=Up",
            [
                ("ADDED", "w1", "Up"),
                ("DELETED", "w1", "Up"),
                ("ADDED", "w1", "Up"),
                ("MODIFIED", "w1", "Up"),
                ("DELETED", "w1", "Up"),
            ],
        ),
        (
            "status.state!=Up",
            [
                ("ADDED", "w1", None),
                ("DELETED", "w1", None),
                ("ADDED", "w1", "Down"),
                ("DELETED", "w1", "Down"),
                ("ADDED", "w2", None),
            ],
        ),
    ],
)  # fmt: skip
async def test_watch_sends_an_object_while_its_field_matches(
    sprockets: Kubectl, client: Client, selector: str, events: list[tuple[str, str, str | None]]
) -> None:
    start = (await client.list(SPROCKETS, sprockets.namespace)).metadata.resource_version
    create(sprockets, "w1", {}, {"watched": "yes"})
    for state in ("Up", "Down", "Up"):
        await set_state(client, sprockets, "w1", state)
    await client.patch(SPROCKETS, {"spec": {"size": 2}}, "w1", sprockets.namespace, type_=PatchType.MERGE)
    await client.delete(SPROCKETS, "w1", sprockets.namespace)
    create(sprockets, "w2", {}, {"watched": "yes"})
    seen = []
    watch = client.watch(
        SPROCKETS, sprockets.namespace, resource_version=start, label_selector="watched", field_selector=selector
    )
    async with contextlib.aclosing(watch) as found:
        async for event in found:
            obj = json.loads(bytes(event.object))
            if event.type != "BOOKMARK":
                seen.append((event.type, obj["metadata"]["name"], obj.get("status", {}).get("state")))
            if len(seen) == len(events):
                break
    await client.delete(SPROCKETS, "w2", sprockets.namespace)
    assert seen == events


async def test_watch_without_a_version_begins_with_the_selected_objects(sprockets: Kubectl, client: Client) -> None:
    query = {"watch": "1", "timeoutSeconds": "1", "fieldSelector": "status.state=Up"}
    data = await client.request("GET", SPROCKETS.path(sprockets.namespace), query=query)
    events = [json.loads(line) for line in data.splitlines()]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [("ADDED", "full")]


async def test_delete_of_a_collection_deletes_the_selected_objects(sprockets: Kubectl, client: Client) -> None:
    for name in ("d1", "d2", "d3", "d4"):
        create(sprockets, name, {"text": "gone"}, {"deleted": "yes"})
    await set_state(client, sprockets, "d2", "Up")
    await set_state(client, sprockets, "d3", "Down")
    query = {"labelSelector": "deleted", "fieldSelector": "status.state=Up"}
    path = SPROCKETS.path(sprockets.namespace)
    assert named(await client.request("DELETE", path, query=query)) == ["d2"]
    sprockets("delete", f"sprockets.v1.{GROUP}", "-l", "deleted", "--field-selector", "status.state!=Down")
    left = named(await client.request("GET", path, query={"labelSelector": "deleted"}))
    assert left == ["d3"]
    sprockets("delete", f"sprockets.v1.{GROUP}", "--field-selector", "spec.text=gone")
    assert named(await client.request("GET", path, query={"labelSelector": "deleted"})) == []


async def test_page_of_selected_objects_does_not_count_the_others(sprockets: Kubectl, client: Client) -> None:
    path = SPROCKETS.path(sprockets.namespace)
    query = {"fieldSelector": "status.state!=Up", "limit": "1"}
    first = json.loads(await client.request("GET", path, query=query))
    assert len(first["items"]) == 1
    assert first["metadata"]["continue"]
    assert "remainingItemCount" not in first["metadata"]


@pytest.mark.parametrize("selector", ["", "status.state!=Up"])
@pytest.mark.parametrize("more", [{}, {"resourceVersionMatch": "NotOlderThan"}])
async def test_list_of_the_version_zero_has_no_pages(
    sprockets: Kubectl, client: Client, selector: str, more: dict[str, str]
) -> None:
    query = {"limit": "1", "resourceVersion": "0", "fieldSelector": selector, **more}
    found = json.loads(await client.request("GET", SPROCKETS.path(sprockets.namespace), query=query))
    assert len(found["items"]) > 1
    assert not found["metadata"].get("continue")


def test_objects_from_before_the_selectable_field_are_selected(space: Kubectl) -> None:
    before = crd("Older", version("v1"))
    with served(space, before) as name:
        obj = {"apiVersion": f"{GROUP}/v1", "kind": "Older", "metadata": {"name": "old"}, "spec": {"text": "x"}}
        space("create", "-f", "-", stdin=json.dumps(obj))
        assert "field label not supported: spec.text" in space.run("get", name, "--field-selector=spec.text=x").stderr
        space("apply", "-f", "-", stdin=json.dumps(crd("Older", version("v1", ".spec.text"))))
        listed = eventually(
            lambda: space.run("get", name, "--field-selector=spec.text=x", "-o", "name").stdout, "the field selector"
        )
        assert listed.split() == [f"older.{GROUP}/old"]
        assert space("get", name, "--field-selector=spec.text!=x", "-o", "name") == ""


def test_cluster_scoped_object_has_no_namespace_to_select_by(space: Kubectl) -> None:
    with served(space, crd("Global", version("v1", ".spec.text"), scope="Cluster")) as name:
        for kind in (name, "nodes", "namespaces"):
            refused = space.run("get", kind, "--field-selector", "metadata.namespace=x")
            assert "field label not supported: metadata.namespace" in refused.stderr
        space("get", name, "--field-selector", "metadata.name=x,spec.text=")


def test_published_schema_names_the_selectable_fields(sprockets: Kubectl) -> None:
    def published() -> Any:
        found = json.loads(sprockets("get", "--raw", f"/openapi/v3/apis/{GROUP}/v1"))["components"]["schemas"]
        kind = next(schema for name, schema in found.items() if name.endswith(".v1.Sprocket"))
        return kind.get("x-kubernetes-selectable-fields")

    fields = eventually(published, "the schema of Sprockets")
    assert fields == [{"fieldPath": path.removeprefix(".")} for path in SELECTABLE]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", None),
        (".", NO_END),
        ("..", NO_FIELD),
        (".spec.", NO_END),
        ("spec.text", "is an invalid path: expected [ or . but got: spec"),
        ("$.spec.text", "is an invalid path: expected [ or . but got: $"),
        (".spec.text]", "is an invalid path: expected [ or . but got: ]"),
        (".spec.none", NO_FIELD),
        (".spec.text.none", NO_FIELD),
        (".spec.'text'", NO_FIELD),
        (".spec['text']", NO_ARRAY),
        (".spec.parts[0].text", NO_ARRAY),
        (".spec.parts.text", NO_FIELD),
        (".spec.free.text", NO_FIELD),
        (".spec", TYPES),
        (".spec.share", TYPES),
        (".spec.either", TYPES),
        (".spec.parts", TYPES),
        (".spec.map", TYPES),
        (".spec.free", TYPES),
        (".metadata.name", "must not point to fields in metadata"),
        (".metadata.labels", NO_FIELD),
    ],
)  # fmt: skip
def test_selectable_field_that_cannot_be_compared_is_refused(space: Kubectl, path: str, why: str | None) -> None:
    said = f'Invalid value: "{path}": {why}' if why else "Required value"
    assert refusal(space, version("v1", path)) == f"spec.selectableFields[0].jsonPath: {said}"


def test_selectable_fields_are_distinct_and_at_most_eight(space: Kubectl) -> None:
    nine = [f".spec.f{number}" for number in range(9)]
    assert refusal(space, version("v1", *nine)) == "spec.selectableFields: Too many: 9: must have at most 8 items"
    twice = 'spec.selectableFields[8].jsonPath: Duplicate value: ".spec.f0"'
    assert refusal(space, version("v1", *nine[:8], ".spec.f0")) == twice
    space("create", "--dry-run=server", "-f", "-", stdin=json.dumps(crd("Gadget", version("v1", *nine[:8]))))


def test_selectable_fields_are_where_the_schema_is(space: Kubectl) -> None:
    """The API server moves what all versions share to one place, and looks for the schema there."""
    narrow = {"type": "object", "properties": {"text": {"type": "string"}}}
    apart = [f'spec.versions[{number}].selectableFields: Invalid value: "": {NO_SCHEMA}' for number in (0, 1)]
    both = "\n".join(f"* {each}" for each in apart)
    assert refusal(space, version("v1", ".spec.text"), version("v2", ".spec.size")) == both
    assert refusal(space, version("v1"), version("v2", ".spec.size")) == apart[1]
    shared = f'spec.selectableFields: Invalid value: "": {NO_SHARED_SCHEMA}'
    assert refusal(space, version("v1", ".spec.text"), version("v2", ".spec.text", spec=narrow)) == shared
    missing = f'spec.versions[1].selectableFields[0].jsonPath: Invalid value: ".spec.size": {NO_FIELD}'
    assert refusal(space, version("v1", ".spec.text"), version("v2", ".spec.size", spec=narrow)) == missing


def refusal(space: Kubectl, *versions: Json) -> str:
    """Why a CRD with these versions is refused."""
    done = space.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(crd("Gadget", *versions)))
    assert done.returncode == 1
    return done.stderr.partition(" is invalid: ")[2].strip()
