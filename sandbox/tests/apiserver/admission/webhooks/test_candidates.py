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


class Entries:
    """Candidates of a list of objects, each of which is an entry."""

    def __init__(self) -> None:
        self._stored: list[Object] = []
        self._found: Candidates[Object] = Candidates(lambda: [self._stored], list, lambda entry: entry["rules"])

    def selected(self, attributes: Attributes, *stored: Object) -> list[str]:
        """The names of the entries that are selected when these are stored."""
        self._stored = list(stored)
        return [each["name"] for each in self._found.of(attributes)]


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
    entries = Entries()
    entry = {"name": "a", "rules": [rule(**changed)]}
    everything = {"name": "b", "rules": [rule(apiGroups=["*"], operations=["*"], resources=["*/*"])]}
    assert entries.selected(attributes, entry, everything) == ["b"]
    assert entries.selected(request(), {"name": "a", "rules": [rule()]}, everything) == ["a", "b"]


def test_changed_added_and_removed_entries_count_from_the_next_request_on() -> None:
    entries = Entries()
    first, second = {"name": "a", "rules": [rule()]}, {"name": "b", "rules": [rule()]}
    assert entries.selected(request(), first) == ["a"]
    assert entries.selected(request(), first, second) == ["a", "b"]
    assert entries.selected(request(), {**first, "rules": []}, second) == ["b"]
    assert entries.selected(request(), second) == ["b"]
    assert entries.selected(request()) == []
