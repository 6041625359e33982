"""Candidates are selected by the rules of the objects that are stored now."""

import pytest

from kube_sandbox.apiserver.admission.webhooks.candidates import Candidates
from kube_sandbox.apiserver.attributes import Attributes, Object
from kube_sandbox.apiserver.auth.authentication import administrator


def request(plural: str = "deployments", *, subresource: str = "", operation: str = "UPDATE") -> Attributes:
    return Attributes(
        administrator(), "update", group="apps", version="v1", plural=plural, kind="Deployment", namespace="apps",
        name="sleep", subresource=subresource, operation=operation,
    )  # fmt: skip


def rule(**more: list[str]) -> Object:
    return {"apiGroups": ["apps"], "operations": ["UPDATE"], "resources": ["deployments"], **more}


def selected(found: Candidates[Object], attributes: Attributes, *stored: Object) -> list[str]:
    return [each["name"] for each in found.of(attributes, [list(stored)], lambda: stored)]


@pytest.mark.parametrize(
    ("changed", "attributes"),
    [
        ({}, request(operation="CREATE")),
        ({}, request("statefulsets")),
        ({}, request(subresource="scale")),
        ({"apiGroups": ["batch"]}, request()),
        ({"resources": []}, request()),
    ],
)
def test_entry_is_selected_by_group_resource_subresource_and_operation(
    changed: dict[str, list[str]], attributes: Attributes
) -> None:
    candidates: Candidates[Object] = Candidates(lambda entry: entry["rules"])
    entry = {"name": "a", "rules": [rule(**changed)]}
    everything = {"name": "b", "rules": [rule(apiGroups=["*"], operations=["*"], resources=["*/*"])]}
    assert selected(candidates, attributes, entry, everything) == ["b"]
    assert selected(candidates, request(), {"name": "a", "rules": [rule()]}, everything) == ["a", "b"]


def test_changed_added_and_removed_entries_count_from_the_next_request_on() -> None:
    candidates: Candidates[Object] = Candidates(lambda entry: entry["rules"])
    first, second = {"name": "a", "rules": [rule()]}, {"name": "b", "rules": [rule()]}
    assert selected(candidates, request(), first) == ["a"]
    assert selected(candidates, request(), first, second) == ["a", "b"]
    assert selected(candidates, request(), {**first, "rules": []}, second) == ["b"]
    assert selected(candidates, request(), second) == ["b"]
    assert selected(candidates, request()) == []
