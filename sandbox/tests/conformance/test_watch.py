"""Lists, pages and watches with a client library."""

import asyncio
import contextlib
import json
from typing import Any

import pytest

from conformance.manifests import Json, config_map
from kube_base.access.client import Client, PatchType, WatchEvent
from kube_base.access.errors import ApiError, ConflictError
from kube_base.resources import CONFIG_MAPS, Resource
from support.kubectl import Kubectl


async def create(client: Client, space: Kubectl, *names: str, **metadata: Any) -> list[Json]:
    return [await client.create(CONFIG_MAPS, config_map(name, **metadata), space.namespace) for name in names]


async def get_raw(client: Client, path: str, **query: str) -> Json:
    answer: Json = json.loads(await client.request("GET", path, query=query))
    return answer


async def take(client: Client, space: Kubectl, count: int, **options: Any) -> list[tuple[str, str]]:
    """Types and names of the first `count` events of a watch."""
    seen: list[tuple[str, str]] = []
    async with asyncio.timeout(30), contextlib.aclosing(
        client.watch(CONFIG_MAPS, space.namespace, **options)
    ) as events:  # fmt: skip
        async for event in events:
            if event.type != "BOOKMARK":
                seen.append((event.type, json.loads(bytes(event.object))["metadata"]["name"]))
            if len(seen) == count:
                return seen
    return seen


async def version(client: Client, space: Kubectl) -> str:
    return (await client.list(CONFIG_MAPS, space.namespace)).metadata.resource_version


async def test_watch_from_a_list_version_sends_every_later_change(client: Client, space: Kubectl) -> None:
    start = await version(client, space)
    await create(client, space, "w1", "w2")
    await client.patch(CONFIG_MAPS, {"data": {"b": "2"}}, "w1", space.namespace)
    await client.delete(CONFIG_MAPS, "w2", space.namespace)
    events = await take(client, space, 4, resource_version=start)
    assert events == [("ADDED", "w1"), ("ADDED", "w2"), ("MODIFIED", "w1"), ("DELETED", "w2")]


async def test_watch_from_version_zero_starts_with_existing_objects(client: Client, space: Kubectl) -> None:
    await create(client, space, "s1", "s2", labels={"watch": "start"})
    events = await take(client, space, 2, resource_version="0", label_selector="watch=start")
    assert sorted(events) == [("ADDED", "s1"), ("ADDED", "s2")]


async def test_object_that_stops_to_match_the_selector_is_deleted(client: Client, space: Kubectl) -> None:
    start = await version(client, space)
    await create(client, space, "l1", labels={"here": "yes"})
    await client.patch(CONFIG_MAPS, {"metadata": {"labels": {"here": "no"}}}, "l1", space.namespace)
    await client.patch(CONFIG_MAPS, {"metadata": {"labels": {"here": "yes"}}}, "l1", space.namespace)
    events = await take(client, space, 3, resource_version=start, label_selector="here=yes")
    assert events == [("ADDED", "l1"), ("DELETED", "l1"), ("ADDED", "l1")]


async def test_watch_with_a_field_selector_sends_events_of_one_object(client: Client, space: Kubectl) -> None:
    start = await version(client, space)
    await create(client, space, "f1", "f2")
    events = await take(client, space, 1, resource_version=start, field_selector="metadata.name=f2")
    assert events == [("ADDED", "f2")]


async def test_ended_watch_without_changes_sent_bookmarks_only(client: Client, space: Kubectl) -> None:
    start = await version(client, space)
    await create(client, space, "other-kind")
    events: list[WatchEvent] = [
        event
        async for event in client.watch(
            CONFIG_MAPS, space.namespace, resource_version=start, server_timeout=3, field_selector="metadata.name=none"
        )
    ]
    assert {event.type for event in events} <= {"BOOKMARK"}
    for event in events:
        assert set(json.loads(bytes(event.object))["metadata"]) <= {"resourceVersion", "annotations"}


async def test_watch_list_ends_initial_events_with_an_annotated_bookmark(client: Client, space: Kubectl) -> None:
    await create(client, space, "i1", labels={"initial": "yes"})
    data = await client.request(
        "GET", CONFIG_MAPS.path(space.namespace),
        query={
            "watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan",
            "allowWatchBookmarks": "true", "labelSelector": "initial=yes", "timeoutSeconds": "1",
        },
    )  # fmt: skip
    first, second = [json.loads(line) for line in data.splitlines()][:2]
    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "i1")
    assert second["type"] == "BOOKMARK"
    assert second["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_watch_list_continues_with_later_changes(client: Client, space: Kubectl) -> None:
    await create(client, space, "v1", "v2")
    seen: list[tuple[str, str]] = []
    async with asyncio.timeout(30), contextlib.aclosing(
        client.watch(CONFIG_MAPS, space.namespace, resource_version="", initial_events=True)
    ) as events:  # fmt: skip
        async for event in events:
            metadata = json.loads(bytes(event.object))["metadata"]
            if metadata.get("annotations", {}).get("k8s.io/initial-events-end") == "true":
                await client.delete(CONFIG_MAPS, "v1", space.namespace)
                await create(client, space, "v3")
                seen.append(("end", ""))
            elif metadata.get("name", "").startswith("v"):
                seen.append((event.type, metadata["name"]))
            if len(seen) == 5:
                break
    assert seen == [("ADDED", "v1"), ("ADDED", "v2"), ("end", ""), ("DELETED", "v1"), ("ADDED", "v3")]


async def test_later_pages_show_the_state_of_the_first_page(client: Client, space: Kubectl) -> None:
    await create(client, space, "p1", "p2", "p3", "p4", labels={"paged": "yes"})
    await create(client, space, "q1")
    path = CONFIG_MAPS.path(space.namespace)
    first = await get_raw(client, path, limit="2", labelSelector="paged=yes")
    await client.delete(CONFIG_MAPS, "p3", space.namespace)
    await create(client, space, "p5", labels={"paged": "yes"})
    token = first["metadata"]["continue"]
    second = await get_raw(client, path, limit="2", labelSelector="paged=yes", **{"continue": token})
    assert [item["metadata"]["name"] for page in (first, second) for item in page["items"]] == ["p1", "p2", "p3", "p4"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    # the second page has a continue token, because the server has not checked whether later objects match
    third = await get_raw(
        client, path, limit="2", labelSelector="paged=yes", **{"continue": second["metadata"]["continue"]}
    )
    assert not third["items"]
    assert not third["metadata"].get("continue")


async def test_remaining_items_are_counted_without_a_selector_only(client: Client, space: Kubectl) -> None:
    await create(client, space, "c1", "c2")
    path = CONFIG_MAPS.path(space.namespace)
    total = len((await get_raw(client, path))["items"])
    assert (await get_raw(client, path, limit="1"))["metadata"]["remainingItemCount"] == total - 1
    assert "remainingItemCount" not in (await get_raw(client, path, limit="1", labelSelector="!none"))["metadata"]


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ({"continue": "nonsense"}, 400, "continue key is not valid"),
        ({"labelSelector": "a in (b"}, 400, "unable to parse requirement"),
        ({"fieldSelector": "data.a=1"}, 400, '"data.a" is not a known field selector'),
        ({"resourceVersion": "nonsense"}, 400, "invalid resource version"),
        ({"resourceVersion": "99999999"}, 504, "Too large resource version"),
        ({"resourceVersionMatch": "Exact"}, 422, "is forbidden unless resourceVersion is provided"),
        ({"watch": "1", "sendInitialEvents": "true"}, 422, "sendInitialEvents requires setting resourceVersionMatch"),
    ],
)  # fmt: skip
async def test_invalid_list_options_are_refused(
    client: Client, space: Kubectl, query: dict[str, str], code: int, message: str
) -> None:
    with pytest.raises(ApiError, match=message) as caught:
        await client.request("GET", CONFIG_MAPS.path(space.namespace), query=query)
    assert caught.value.code == code


async def test_write_of_an_old_version_or_another_uid_is_a_conflict(client: Client, space: Kubectl) -> None:
    (old,) = await create(client, space, "stale")
    await client.patch(CONFIG_MAPS, {"data": {"b": "2"}}, "stale", space.namespace)
    message = "the object has been modified; please apply your changes to the latest version and try again"
    with pytest.raises(ConflictError, match=message):
        await client.replace(CONFIG_MAPS, old, "stale", space.namespace)
    version = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}}
    with pytest.raises(ConflictError):
        await client.patch(CONFIG_MAPS, version, "stale", space.namespace, type_=PatchType.MERGE)
    with pytest.raises(ConflictError, match="the UID in the precondition"):
        await client.delete(CONFIG_MAPS, "stale", space.namespace, uid="other")


async def test_concurrent_patches_of_one_object_are_all_applied(client: Client, space: Kubectl) -> None:
    await create(client, space, "busy")
    await asyncio.gather(
        *(client.patch(CONFIG_MAPS, {"data": {f"k{i}": "1"}}, "busy", space.namespace) for i in range(5))
    )
    live = await client.get(CONFIG_MAPS, "busy", space.namespace)
    assert set(live["data"]) == {"a", *(f"k{i}" for i in range(5))}


async def test_unknown_group_or_resource_is_not_found(client: Client, space: Kubectl) -> None:
    nothing = Resource("nope.example.com", "v1", "nopes", "Nope")
    with pytest.raises(ApiError) as caught:
        await client.request("GET", nothing.path(space.namespace))
    assert caught.value.code == 404
    with pytest.raises(ApiError, match="the server could not find the requested resource"):
        await client.request("GET", f"/api/v1/namespaces/{space.namespace}/nopes")
