"""Watches: start, resume, selectors, bookmarks, expired versions."""

import asyncio

from support.manifests import CONFIG_MAPS, config_map
from support.requests import MERGE, TABLE, Http, serving


async def _labelled(http: Http, name: str, value: str) -> None:
    await http("PATCH", f"{CONFIG_MAPS}/{name}", {"metadata": {"labels": {"group": value}}}, type_=MERGE)


async def test_watch_without_a_version_starts_with_existing_objects() -> None:
    async with serving() as http:
        await http("POST", CONFIG_MAPS, config_map("a"))
        async with http.watch(f"{CONFIG_MAPS}?watch=1") as events:
            assert await events.take(1) == [("ADDED", "a")]
            await http("POST", CONFIG_MAPS, config_map("b"))
            await http("DELETE", f"{CONFIG_MAPS}/b")
            assert await events.take(2) == [("ADDED", "b"), ("DELETED", "b")]


async def test_watch_from_a_version_sends_every_later_change() -> None:
    async with serving() as http:
        await http("POST", CONFIG_MAPS, config_map("a"))
        version = (await http("GET", CONFIG_MAPS)).json["metadata"]["resourceVersion"]
        await http("POST", CONFIG_MAPS, config_map("b"))
        await http("DELETE", f"{CONFIG_MAPS}/a")
        async with http.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={version}") as events:
            assert await events.take(2) == [("ADDED", "b"), ("DELETED", "a")]


async def test_deleted_event_has_the_version_of_the_deletion() -> None:
    async with serving() as http:
        created = (await http("POST", CONFIG_MAPS, config_map("a"))).json
        async with http.watch(f"{CONFIG_MAPS}?watch=1") as events:
            await events.next()
            await http("DELETE", f"{CONFIG_MAPS}/a")
            deleted = (await events.next())["object"]
        assert int(deleted["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
        assert deleted["data"] == created["data"]


async def test_object_that_starts_or_stops_to_match_is_added_or_deleted() -> None:
    async with serving() as http:
        await http("POST", CONFIG_MAPS, config_map("a", labels={"group": "y"}))
        async with http.watch(f"{CONFIG_MAPS}?watch=1&labelSelector=group%3Dx") as events:
            for value in ("x", "x", "y", "z"):
                await _labelled(http, "a", value)
            await http("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"group": "x"}}}, type_=MERGE)
            assert await events.take(3) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


async def test_watch_with_a_field_selector_sends_events_of_one_object() -> None:
    async with serving() as http:
        for name in ("a", "b"):
            await http("POST", CONFIG_MAPS, config_map(name))
        async with http.watch(f"{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Db") as events:
            await http("DELETE", f"{CONFIG_MAPS}/a")
            await http("DELETE", f"{CONFIG_MAPS}/b")
            assert await events.take(2) == [("ADDED", "b"), ("DELETED", "b")]


async def test_watch_list_ends_initial_events_with_an_annotated_bookmark() -> None:
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1"
    async with serving() as http:
        await http("POST", CONFIG_MAPS, config_map("a"))
        async with http.watch(f"{CONFIG_MAPS}?{query}") as events:
            assert await events.take(1) == [("ADDED", "a")]
            bookmark = await events.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


_WATCH_LIST = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1"


async def test_watch_list_sends_changes_made_during_initial_events_after_the_bookmark() -> None:
    async with serving() as http:
        for index in range(1200):
            await http("POST", CONFIG_MAPS, config_map(f"a{index:04}"))
        async with http.watch(f"{CONFIG_MAPS}?{_WATCH_LIST}") as events:
            assert await events.take(1) == [("ADDED", "a0000")]
            await http("DELETE", f"{CONFIG_MAPS}/a0001")
            await http("POST", CONFIG_MAPS, config_map("b"))
            beginning = await events.take(1199)
            assert [name for _, name in beginning] == [f"a{index:04}" for index in range(1, 1200)]
            bookmark = await events.next()
            assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            following = [await events.next() for _ in range(2)]
        assert [(event["type"], event["object"]["metadata"]["name"]) for event in following] == [
            ("DELETED", "a0001"),
            ("ADDED", "b"),
        ]
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in (bookmark, *following)]
        assert versions == sorted(set(versions))


async def test_watch_list_without_objects_sends_the_bookmark_at_once() -> None:
    async with serving() as http, http.watch(f"{CONFIG_MAPS}?{_WATCH_LIST}&labelSelector=none%3Dno") as events:
        bookmark = await asyncio.wait_for(events.next(), 5)
        assert bookmark["object"]["metadata"]["resourceVersion"] == str(http.api.store.revision)


async def test_watch_list_without_bookmarks_sends_no_bookmark() -> None:
    async with serving() as http:
        await http("POST", CONFIG_MAPS, config_map("a"))
        query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
        async with http.watch(f"{CONFIG_MAPS}?{query}") as events:
            assert await events.take(1) == [("ADDED", "a")]
            assert await asyncio.wait_for(events.next(), 5) is None


async def test_watch_list_at_a_future_version_sends_an_error_event() -> None:
    async with serving() as http:
        ahead = http.api.store.revision + 1000
        async with http.watch(f"{CONFIG_MAPS}?{_WATCH_LIST}&resourceVersion={ahead}") as events:
            error = await asyncio.wait_for(events.next(), 10)
            assert error["type"] == "ERROR"
            assert error["object"]["code"] == 504
            assert "Too large resource version" in error["object"]["message"]


async def test_watch_list_of_partial_object_metadata_sends_the_bookmark() -> None:
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    async with serving() as http:
        await http("POST", CONFIG_MAPS, config_map("a"))
        async with http.watch(f"{CONFIG_MAPS}?{_WATCH_LIST}", Accept=accept) as events:
            first, bookmark = await events.next(), await events.next()
        assert first["object"]["kind"] == bookmark["object"]["kind"] == "PartialObjectMetadata"
        assert "data" not in first["object"]
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_idle_watch_sends_bookmarks_with_the_current_version() -> None:
    async with serving(bookmark_interval=0.05) as http:
        version = http.api.store.revision
        await http("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
        query = f"watch=1&allowWatchBookmarks=1&resourceVersion={version}"
        async with http.watch(f"{CONFIG_MAPS}?{query}") as events:
            bookmark = await events.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["kind"] == "ConfigMap"
        assert int(bookmark["object"]["metadata"]["resourceVersion"]) > version


async def test_watch_from_a_forgotten_version_is_expired() -> None:
    async with serving(history=5) as http:
        for index in range(20):
            await http("POST", CONFIG_MAPS, config_map(f"a{index}"))
        answer = await http("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=2")
        assert (answer.status, answer.json["reason"]) == (410, "Expired")
        assert answer.message.startswith("too old resource version: 2 (")


async def test_watch_ends_after_its_timeout() -> None:
    async with serving() as http, http.watch(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1") as events:
        assert await asyncio.wait_for(events.next(), 5) is None


async def test_stopped_server_ends_its_watches() -> None:
    async with serving() as http, http.watch(f"{CONFIG_MAPS}?watch=1") as events:
        await http.api.stop()
        assert await asyncio.wait_for(events.next(), 5) is None


async def test_watch_of_tables_sends_column_definitions_once() -> None:
    async with serving() as http:
        for name in ("a", "b"):
            await http("POST", CONFIG_MAPS, config_map(name))
        async with http.watch(f"{CONFIG_MAPS}?watch=1", Accept=TABLE) as events:
            first, second = await events.next(), await events.next()
        assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert second["object"]["columnDefinitions"] is None
        assert second["object"]["rows"][0]["cells"][:2] == ["b", 1]


async def test_all_watchers_get_every_change_in_the_same_order() -> None:
    async with (
        serving() as http,
        http.watch(f"{CONFIG_MAPS}?watch=1") as one,
        http.watch(f"{CONFIG_MAPS}?watch=1") as two,
    ):
        names = [f"a{index:02}" for index in range(50)]
        await asyncio.gather(*(http("POST", CONFIG_MAPS, config_map(name)) for name in names))
        seen = await one.take(50)
        assert await two.take(50) == seen
        assert sorted(name for _, name in seen) == names
