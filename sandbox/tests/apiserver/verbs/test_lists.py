"""Lists: pages, versions, selectors, tables."""

from typing import Any

import pytest

from support.manifests import CONFIG_MAPS, DEPLOYMENTS, config_map, deployment
from support.requests import TABLE, Http, serving

EVENTS = "/api/v1/namespaces/default/events"


async def _fill(http: Http, count: int) -> None:
    for index in range(count):
        await http("POST", CONFIG_MAPS, config_map(f"a{index}", labels={"odd": str(index % 2)}))


def _names(listed: Any) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


async def test_later_pages_show_the_state_of_the_first_page() -> None:
    async with serving() as http:
        await _fill(http, 5)
        first = (await http("GET", f"{CONFIG_MAPS}?limit=2")).json
        assert (_names(first), first["metadata"]["remainingItemCount"]) == (["a0", "a1"], 3)
        await http("DELETE", f"{CONFIG_MAPS}/a2")
        await http("POST", CONFIG_MAPS, config_map("a11"))
        rest = (await http("GET", f"{CONFIG_MAPS}?limit=9&continue={first['metadata']['continue']}")).json
        assert _names(rest) == ["a2", "a3", "a4"]
        assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        assert "continue" not in rest["metadata"]


async def test_continue_token_that_is_too_old_is_expired() -> None:
    async with serving(history=3) as http:
        await _fill(http, 4)
        token = (await http("GET", f"{CONFIG_MAPS}?limit=2")).json["metadata"]["continue"]
        for index in range(10):
            await http("POST", CONFIG_MAPS, config_map(f"b{index}"))
        answer = await http("GET", f"{CONFIG_MAPS}?limit=2&continue={token}")
        assert (answer.status, answer.json["reason"]) == (410, "Expired")


async def test_list_at_an_exact_version_returns_that_past_state() -> None:
    async with serving() as http:
        await _fill(http, 2)
        version = (await http("GET", CONFIG_MAPS)).json["metadata"]["resourceVersion"]
        await http("DELETE", f"{CONFIG_MAPS}/a0")
        path = f"{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch="
        assert _names((await http("GET", f"{path}Exact")).json) == ["a0", "a1"]
        assert _names((await http("GET", f"{path}NotOlderThan")).json) == ["a1"]


async def test_list_at_a_future_version_times_out() -> None:
    async with serving() as http:
        answer = await http("GET", f"{CONFIG_MAPS}?resourceVersion=99999")
        assert (answer.status, answer.json["details"]["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("labelSelector=odd%3D1", ["a1", "a3"]),
        ("labelSelector=odd!%3D1", ["a0", "a2"]),
        ("labelSelector=odd%20in%20(0,1),odd%20notin%20(1)", ["a0", "a2"]),
        ("labelSelector=!odd", []),
        ("labelSelector=odd%3E0", ["a1", "a3"]),
        ("fieldSelector=metadata.name%3Da3", ["a3"]),
        ("fieldSelector=metadata.name!%3Da3,metadata.namespace%3Ddefault", ["a0", "a1", "a2"]),
    ],
)
async def test_list_returns_the_objects_that_the_selectors_match(query: str, names: list[str]) -> None:
    async with serving() as http:
        await _fill(http, 4)
        assert _names((await http("GET", f"{CONFIG_MAPS}?{query}")).json) == names


async def test_only_events_have_pages_at_the_version_zero() -> None:
    async with serving() as http:
        await _fill(http, 2)
        for name in ("a", "b"):
            event = {"metadata": {"name": name}, "involvedObject": {"namespace": "default"}}
            await http("POST", EVENTS, event)
        for path, names in ((CONFIG_MAPS, ["a0", "a1"]), (EVENTS, ["a"])):
            assert _names((await http("GET", f"{path}?limit=1&resourceVersion=0")).json) == names


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("labelSelector=a%20b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("labelSelector=a%3D-", 'unable to parse requirement: values[0][a]: Invalid value: "-": a valid label must be'),
        ("fieldSelector=foo", "invalid selector: 'foo'; can't understand 'foo'"),
        ("fieldSelector=foo%3Db", '"foo" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("limit=x", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("continue=x", "invalid continue token"),
        ("resourceVersion=x", 'invalid resource version: resourceVersion: Invalid value: "x"'),
    ],
)
async def test_invalid_list_query_is_a_bad_request(query: str, message: str) -> None:
    async with serving() as http:
        answer = await http("GET", f"{CONFIG_MAPS}?{query}")
        assert answer.status == 400
        assert answer.message.startswith(message)


async def test_table_of_deployments_has_the_columns_of_kubectl() -> None:
    async with serving() as http:
        await http("POST", DEPLOYMENTS, deployment("web", replicas=3))
        table = (await http("GET", DEPLOYMENTS, Accept=TABLE)).json
        columns = [(column["name"], column["priority"]) for column in table["columnDefinitions"]]
        assert columns == [
            ("Name", 0),
            ("Ready", 0),
            ("Up-to-date", 0),
            ("Available", 0),
            ("Age", 0),
            ("Containers", 1),
            ("Images", 1),
            ("Selector", 1),
        ]
        cells = table["rows"][0]["cells"]
        assert (cells[:4], cells[5:]) == (["web", "0/3", 0, 0], ["main", "busybox", "app=web"])


async def test_list_as_partial_object_metadata_omits_the_data() -> None:
    async with serving() as http:
        await _fill(http, 1)
        accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        listed = (await http("GET", CONFIG_MAPS, Accept=accept)).json
        assert listed["kind"] == "PartialObjectMetadataList"
        assert "data" not in listed["items"][0]


async def test_unknown_accept_header_is_not_acceptable() -> None:
    async with serving() as http:
        for accept in (
            "text/html",
            "application/vnd.kubernetes.protobuf",
            "application/json;as=Foo;v=v1;g=meta.k8s.io",
        ):
            assert (await http("GET", CONFIG_MAPS, Accept=accept)).status == 406
        both = "application/vnd.kubernetes.protobuf,application/json"
        assert (await http("GET", CONFIG_MAPS, Accept=both)).status == 200
        assert b"kind: ConfigMapList" in (await http("GET", CONFIG_MAPS, Accept="application/yaml")).body
