"""CustomResourceDefinitions, and requests for custom resources."""

from typing import Any

import pytest

from support.manifests import CRDS, WIDGETS, crd, widget
from support.requests import APPLY, MERGE, TABLE, Http, serving


async def _with_widgets(http: Http, **version: Any) -> None:
    answer = await http("POST", CRDS, crd(**version))
    assert answer.status == 201, answer.body


async def test_created_crd_is_established_and_in_discovery_at_once() -> None:
    async with serving() as http:
        await _with_widgets(http)
        conditions = (await http("GET", f"{CRDS}/widgets.example.com")).json["status"]["conditions"]
        assert [(found["type"], found["status"]) for found in conditions] == [
            ("NamesAccepted", "True"),
            ("Established", "True"),
        ]
        listed = (await http("GET", "/apis/example.com/v1")).json["resources"]
        assert [resource["name"] for resource in listed] == ["widgets", "widgets/status", "widgets/scale"]
        assert listed[0]["shortNames"] == ["wd"]


async def test_crd_with_a_kind_that_is_taken_is_not_served() -> None:
    async with serving() as http:
        await _with_widgets(http)
        other = crd()
        other["metadata"]["name"] = "gadgets.example.com"
        other["spec"]["names"] = {"plural": "gadgets", "kind": "Widget"}
        await http("POST", CRDS, other)
        conditions = (await http("GET", f"{CRDS}/gadgets.example.com")).json["status"]["conditions"]
        assert (conditions[0]["status"], conditions[0]["reason"]) == ("False", "ListKindConflict")
        assert (await http("GET", "/apis/example.com/v1/gadgets")).status == 404


async def test_custom_resource_is_pruned_and_defaulted() -> None:
    async with serving() as http:
        await _with_widgets(http)
        answer = await http("POST", WIDGETS, {**widget("w", colour="red", weight=1), "status": {"state": "odd"}})
        assert answer.json["spec"] == {"colour": "red", "size": 3}
        assert "status" not in answer.json
        assert answer.headers["Warning"] == '299 - "unknown field \\"spec.weight\\""'
        strict = await http("POST", f"{WIDGETS}?fieldValidation=Strict", widget("v", colour="red", weight=1))
        assert strict.status == 400
        assert strict.message.endswith('strict decoding error: unknown field "spec.weight"')


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "spec.colour: Required value"),
        ({"colour": "blue"}, 'spec.colour: Unsupported value: "blue": supported values: "red", "green"'),
        (
            {"colour": "red", "size": 11},
            "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10",
        ),
        (
            {"colour": "red", "size": "x"},
            'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
        ),
    ],
)
async def test_value_that_violates_the_schema_is_refused(spec: dict[str, Any], message: str) -> None:
    async with serving() as http:
        await _with_widgets(http)
        answer = await http("POST", WIDGETS, widget("w", **spec))
        assert (answer.status, answer.message) == (422, f'Widget.example.com "w" is invalid: {message}')


async def test_validation_rule_may_compare_with_the_old_object() -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"type": "string"}, "size": {"type": "integer"}},
        "x-kubernetes-validations": [
            {"rule": "self.colour == oldSelf.colour", "message": "colour stays"},
            {"rule": "!has(self.size) || self.size > 1"},
        ],
    }
    async with serving() as http:
        await _with_widgets(http, schema=schema)
        broken = await http("POST", WIDGETS, widget("w", colour="red", size=1))
        assert broken.message == (
            'Widget.example.com "w" is invalid: spec: Invalid value: failed rule: !has(self.size) || self.size > 1'
        )
        await http("POST", WIDGETS, widget("w", colour="red"))
        changed = await http("PATCH", f"{WIDGETS}/w", {"spec": {"colour": "green"}}, type_=MERGE)
        assert changed.message.endswith("spec: Invalid value: colour stays")


async def test_unchanged_invalid_value_does_not_block_an_update() -> None:
    async with serving() as http:
        await _with_widgets(http)
        await http("POST", WIDGETS, widget("w", colour="red", size=9))
        tighter = crd()
        tighter["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"][
            "maximum"
        ] = 5
        await http("PATCH", f"{CRDS}/widgets.example.com", {"spec": tighter["spec"]}, type_=MERGE)
        assert (await http("PATCH", f"{WIDGETS}/w", {"spec": {"colour": "green"}}, type_=MERGE)).status == 200
        assert (await http("PATCH", f"{WIDGETS}/w", {"spec": {"size": 8}}, type_=MERGE)).status == 422


async def test_status_endpoint_writes_the_status_only() -> None:
    async with serving() as http:
        await _with_widgets(http)
        await http("POST", WIDGETS, widget("w", colour="red"))
        both = {"metadata": {"labels": {"a": "b"}}, "spec": {"size": 9}, "status": {"state": "fine"}}
        answer = (await http("PATCH", f"{WIDGETS}/w/status", both, type_=MERGE)).json
        assert (answer["spec"]["size"], answer["status"], answer["metadata"]["generation"]) == (3, {"state": "fine"}, 1)
        assert "labels" not in answer["metadata"]
        main = (await http("PATCH", f"{WIDGETS}/w", {"status": {"state": "bad"}}, type_=MERGE)).json
        assert (main["status"], main["metadata"]["generation"]) == ({"state": "fine"}, 1)


async def test_scale_endpoint_uses_the_paths_of_the_crd() -> None:
    async with serving() as http:
        await _with_widgets(http)
        await http("POST", WIDGETS, widget("w", colour="red"))
        await http("PATCH", f"{WIDGETS}/w/scale", {"spec": {"replicas": 4}}, type_=MERGE)
        found = (await http("GET", f"{WIDGETS}/w")).json
        assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (4, 2)


async def test_table_has_the_additional_printer_columns() -> None:
    async with serving() as http:
        await _with_widgets(http)
        await http("POST", WIDGETS, widget("w", colour="red"))
        table = (await http("GET", WIDGETS, Accept=TABLE)).json
        assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Colour", "Size"]
        assert table["rows"][0]["cells"] == ["w", "red", 3]


async def test_strategic_patch_of_a_custom_resource_is_refused_and_apply_works() -> None:
    async with serving() as http:
        await _with_widgets(http)
        await http("POST", WIDGETS, widget("w", colour="red"))
        answer = await http("PATCH", f"{WIDGETS}/w", {}, type_="application/strategic-merge-patch+json")
        assert answer.status == 415
        assert (await http("PATCH", f"{WIDGETS}/w?fieldManager=m&force=true", widget("w", size=5), type_=APPLY)).json[
            "spec"
        ] == {
            "colour": "red",
            "size": 5,
        }


async def test_object_is_served_in_every_version() -> None:
    two = crd()
    old = two["spec"]["versions"][0]
    two["spec"]["versions"].append({**old, "name": "v2", "storage": False})
    async with serving() as http:
        await http("POST", CRDS, two)
        await http("POST", WIDGETS, widget("w", colour="red"))
        path = WIDGETS.replace("v1", "v2")
        assert (await http("GET", f"{path}/w")).json["apiVersion"] == "example.com/v2"
        await http("PATCH", f"{path}/w", {"spec": {"size": 4}}, type_=MERGE)
        found = (await http("GET", f"{WIDGETS}/w")).json
        assert (found["apiVersion"], found["spec"]["size"]) == ("example.com/v1", 4)
        group = (await http("GET", "/apis/example.com")).json
        assert group["preferredVersion"]["version"] == "v2"


async def test_deleted_crd_deletes_its_objects_and_waits_for_finalizers() -> None:
    async with serving() as http:
        await _with_widgets(http)
        await http("POST", WIDGETS, widget("w", colour="red"))
        await http(
            "POST", WIDGETS, {**widget("held", colour="red"), "metadata": {"name": "held", "finalizers": ["a.b/c"]}}
        )
        async with http.watch(f"{WIDGETS}?watch=1") as events:
            await events.take(2)
            await http("DELETE", f"{CRDS}/widgets.example.com")
            assert sorted(await events.take(2)) == [("DELETED", "w"), ("MODIFIED", "held")]
            assert (await http("GET", f"{CRDS}/widgets.example.com")).status == 200
            await http("PATCH", f"{WIDGETS}/held", {"metadata": {"finalizers": None}}, type_=MERGE)
            assert await events.take(1) == [("DELETED", "held")]
            assert await events.next() is None
        assert (await http("GET", f"{CRDS}/widgets.example.com")).status == 404
        assert (await http("GET", WIDGETS)).status == 404
