"""Tests for the fields that CEL expressions use."""

import pytest

from kube_sandbox.apiserver.admission.webhooks.cel_fields import Path, missing, only, used

OBJECT = {
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"replicas": 2, "names": ["a"]},
    "status": None,
}


@pytest.mark.parametrize(
    ("expression", "paths"),
    [
        ("object == oldObject", {()}),
        ("object['metadata'].name == 'web'", {()}),
        ("object .metadata.name == 'web'", {()}),
        ("has(object.metadata.labels) && 'app' in object.metadata.labels", {("metadata", "labels")}),
        ("object.metadata.labels['app'] == 'web'", {("metadata", "labels")}),
        ("object.spec.names.exists(name, name == 'a')", {("spec", "names")}),
        ("size(object.spec) > 0 && object.spec.replicas > 0", {("spec",)}),
        ("has(object.spec) && has(object.status) ? object.spec.replicas : 0", {("spec", "replicas"), ("status", "")}),
        ("has( object.metadata.labels.app ) && object.metadata.labels.size() > 0", {("metadata", "labels")}),
        ("object.metadata .labels.size() > 0", {("metadata",)}),
        ("variables.object.name == 'web'", None),
    ],
)
def test_fields_that_an_expression_may_use_are_found(expression: str, paths: set[Path] | None) -> None:
    assert used(expression).get("object") == paths


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ({()}, OBJECT),
        ({("metadata", "labels")}, {"metadata": {"labels": {"app": "web"}}}),
        ({("metadata",), ("metadata", "name")}, {"metadata": OBJECT["metadata"]}),
        ({("metadata", "annotations", "a")}, {"metadata": {}}),
        ({("metadata", "labels", ""), ("metadata", "name", "")}, {"metadata": {"labels": {}, "name": "web"}}),
        ({("spec", ""), ("status", ""), ("other", "")}, {"spec": {}, "status": None}),
        ({("spec", "names", "first"), ("status", "phase")}, {"spec": {"names": ["a"]}, "status": None}),
    ],
)
def test_only_used_fields_are_kept(paths: set[Path], expected: object) -> None:
    assert only(OBJECT, paths) == expected


@pytest.mark.parametrize(
    ("path", "there", "is_missing"),
    [
        (("spec", "replicas"), ("spec",), False),
        (("spec", "replicas"), (), False),
        (("spec",), ("spec", "replicas"), True),
        (("spec", ""), ("spec", "replicas"), False),
        (("spec", ""), ("spec",), False),
        (("spec",), ("spec", ""), True),
        (("spec", "replicas"), ("spec", ""), True),
        (("spec", ""), ("status",), True),
    ],
)
def test_fields_are_missing_unless_a_path_contains_them(path: Path, there: Path, is_missing: bool) -> None:
    assert bool(missing({path}, frozenset({there}))) is is_missing
