"""Custom resources with kubectl: schemas, defaults, pruning, subresources, printer columns."""

import json
import uuid
from collections.abc import Iterator

import pytest

from support.kubectl import Json, Kubectl
from support.polling import eventually

GROUP = f"t{uuid.uuid4().hex[:8]}.example.com"
SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "parts": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
    "x-kubernetes-validations": [{"rule": "self.size != 7", "message": "seven is taken"}],
}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wdg"], "categories": ["toys"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": SPEC,
                            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
                        },
                    }
                },
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                },
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }
        ],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def widgets(space: Kubectl) -> Iterator[Kubectl]:
    """kubectl on a cluster with the CRD of Widgets."""
    space("create", "-f", "-", stdin=json.dumps(CRD))
    space.wait(f"crd/widgets.{GROUP}", "condition=Established")
    eventually(lambda: space.run("get", "widgets").returncode == 0, "widgets to be served")
    yield space
    space("delete", "crd", f"widgets.{GROUP}")


def widget(called: str, **spec: object) -> Json:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": called}, "spec": {"size": 1, **spec}}


def create(widgets: Kubectl, obj: Json, *arguments: str) -> Json:
    created: Json = json.loads(widgets("create", "-o", "json", *arguments, "-f", "-", stdin=json.dumps(obj)))
    return created


def test_kubectl_finds_custom_resources_by_each_name(widgets: Kubectl) -> None:
    create(widgets, widget("named"))
    for name in ("widgets", "widget", "wdg", f"widgets.{GROUP}", f"widgets.v1.{GROUP}", "toys"):
        assert f"widget.{GROUP}/named" in widgets("get", name, "-o", "name")
    assert f"{GROUP}/v1" in widgets("api-versions").split()
    assert "maxLength" in json.dumps(widgets.json("crd", f"widgets.{GROUP}"))


def test_table_has_the_additional_printer_columns(widgets: Kubectl) -> None:
    create(widgets, widget("shown", size=4))
    lines = [line.split() for line in widgets("get", "widget", "shown").splitlines()]
    assert lines[0] == ["NAME", "SIZE", "AGE"]
    assert lines[1][:2] == ["shown", "4"]
    wide = [line.split() for line in widgets("get", "widget", "shown", "-o", "wide").splitlines()]
    assert wide[0] == ["NAME", "SIZE", "COLOR", "AGE"]
    assert wide[1][:3] == ["shown", "4", "red"]


def test_custom_resource_is_defaulted_and_pruned(widgets: Kubectl) -> None:
    created = create(widgets, widget("pruned", other=1, free={"a": {"b": 1}}), "--validate=ignore")
    assert created["spec"] == {"size": 1, "color": "red", "free": {"a": {"b": 1}}}
    assert created["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"size": 99}, "spec.size: Invalid value: 99: spec.size in body should be less than or equal to 9"),
        ({"size": "1"}, 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'),
        ({"size": None}, "spec.size: Required value"),
        ({"size": 7}, "spec: Invalid value: seven is taken"),
        ({"color": "green"}, 'spec.color: Unsupported value: "green": supported values: "red", "blue"'),
        ({"name": "ABC"}, 'spec.name: Invalid value: "ABC": spec.name in body should match \'^[a-z]+$\''),
        ({"name": "abcdef"}, "spec.name: Too long: may not be more than 5 bytes"),
        ({"parts": ["a", "b", "c"]}, "spec.parts: Too many: 3: must have at most 2 items"),
    ],
)  # fmt: skip
def test_value_that_violates_the_schema_is_refused(widgets: Kubectl, spec: Json, message: str) -> None:
    done = widgets.run("create", "-f", "-", stdin=json.dumps(widget("wrong", **spec)))
    assert done.returncode == 1
    assert 'The Widget "wrong" is invalid' in done.stderr
    assert message in done.stderr


def test_unknown_field_is_refused_warned_of_or_ignored_as_requested(widgets: Kubectl) -> None:
    body = json.dumps(widget("checked", other=1))
    strict = widgets.run("create", "--dry-run=server", "-f", "-", stdin=body)
    assert 'strict decoding error: unknown field "spec.other"' in strict.stderr
    warned = widgets.run("create", "--dry-run=server", "--validate=warn", "-f", "-", stdin=body)
    assert (warned.returncode, warned.stderr) == (0, 'Warning: unknown field "spec.other"\n')
    ignored = widgets.run("create", "--dry-run=server", "--validate=ignore", "-f", "-", stdin=body)
    assert (ignored.returncode, ignored.stderr) == (0, "")


def test_status_and_spec_are_written_separately(widgets: Kubectl) -> None:
    create(widgets, {**widget("parts"), "status": {"size": 5}})
    assert "status" not in widgets.json("widget", "parts")
    patch = '{"spec":{"size":2},"status":{"size":3}}'
    widgets("patch", "widget", "parts", "--type=merge", "--subresource=status", "-p", patch)
    live = widgets.json("widget", "parts")
    assert (live["spec"]["size"], live["status"]["size"], live["metadata"]["generation"]) == (1, 3, 1)
    widgets("patch", "widget", "parts", "--type=merge", "-p", patch.replace("3", "9"))
    live = widgets.json("widget", "parts")
    assert (live["spec"]["size"], live["status"]["size"], live["metadata"]["generation"]) == (2, 3, 2)
    widgets("label", "widget", "parts", "a=b")
    assert widgets.json("widget", "parts")["metadata"]["generation"] == 2


def test_scale_uses_the_paths_of_the_crd(widgets: Kubectl) -> None:
    create(widgets, widget("scaled"))
    widgets("scale", "widget/scaled", "--replicas=3")
    assert widgets.json("widget", "scaled")["spec"]["size"] == 3
    refused = widgets.run("scale", "widget/scaled", "--replicas=50")
    assert "should be less than or equal to 9" in refused.stderr


def test_strategic_patch_of_a_custom_resource_is_not_supported(widgets: Kubectl) -> None:
    create(widgets, widget("merged"))
    done = widgets.run("patch", "widget", "merged", "--type=strategic", "-p", '{"spec":{"size":2}}')
    assert "application/strategic-merge-patch+json is not supported" in done.stderr
    widgets("apply", "-f", "-", stdin=json.dumps(widget("merged", size=2)))
    assert widgets.json("widget", "merged")["spec"]["size"] == 2


def test_server_side_apply_reports_a_conflict(widgets: Kubectl) -> None:
    widgets("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=json.dumps(widget("owned", size=2)))
    done = widgets.run(
        "apply", "--server-side", "--field-manager=two", "-f", "-", stdin=json.dumps(widget("owned", size=3))
    )
    assert 'conflict with "one": .spec.size' in done.stderr


def test_explain_shows_the_schema(widgets: Kubectl) -> None:
    out = eventually(lambda: widgets.run("explain", "widget.spec").stdout, "the schema to be published")
    assert "FIELD: spec" in out
    for line in ("color\t<string>", "size\t<integer> -required-"):
        assert line in out


def test_invalid_crd_is_refused(widgets: Kubectl) -> None:
    crd = json.loads(json.dumps(CRD).replace("widgets", "gadgets").replace("Widget", "Gadget"))
    crd["metadata"]["name"] = "wrong"
    done = widgets.run("create", "-f", "-", stdin=json.dumps(crd))
    assert 'metadata.name: Invalid value: "wrong": must be spec.names.plural+"."+spec.group' in done.stderr
    crd["metadata"]["name"] = f"gadgets.{GROUP}"
    del crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"]
    done = widgets.run("create", "-f", "-", stdin=json.dumps(crd))
    assert "openAPIV3Schema.type: Required value: must not be empty at the root" in done.stderr


def test_describe_shows_the_fields_of_a_custom_resource(widgets: Kubectl) -> None:
    create(widgets, widget("described", name="abc"))
    out = widgets("describe", "widget", "described")
    assert "Kind:         Widget" in out
    assert "Name:   abc" in out
    assert "Established" in widgets("describe", "crd", f"widgets.{GROUP}")
