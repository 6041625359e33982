"""Namespaces and CustomResourceDefinitions with the protection `Cascading`: what decides, and what users read."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from altershield.admission.webhooks import webhook_path
from altershield.api import deletion_protection
from altershield.api.pages import PROTECT
from gatekeeper.dispatch import decide_with_io
from gatekeeper.handlers.deletions import protected
from gatekeeper.handlers.deletions.reasons import Reason
from gatekeeper.live import Found
from kube_base.access.errors import UnreachableError
from kube_base.resources import CRDS, NAMESPACES, Resource
from tests.unit.gatekeeper.reviews import ROUTES, Object, StaticListers, StaticLive, encode, review, written

CASCADING = {deletion_protection.LABEL: "Cascading"}
BEFORE = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and "
TERMINATING = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
POD: Object = {"metadata": {}}
BOUND: Object = {"metadata": {}, "status": {"phase": "Bound"}}
VERSIONS = [{"name": "v1", "served": False}, {"name": "v2", "served": True}]
GADGETS = {"group": "example.com", "names": {"plural": "gadgets", "kind": "Gadget"}, "versions": VERSIONS}


async def deleted(resource: Resource, live: StaticLive, *, spec: Object | None = None, **metadata: Any) -> Object:
    """The response to the deletion of `shop`, or of the kind of gadgets."""
    name = "shop" if resource == NAMESPACES else "gadgets.example.com"
    obj = {"metadata": {"name": name, "labels": CASCADING, **metadata}, "spec": spec or {}}
    obj |= {"apiVersion": resource.api_version, "kind": resource.kind}
    body = review(None, operation="DELETE", name=name, namespace="")
    body["request"]["oldObject"] = obj
    body["request"]["resource"] = {"group": resource.group, "version": "v1", "resource": resource.plural}
    route = ROUTES[webhook_path(resource, mutating=False)]
    wire = route.decode(encode(body))
    answer = await decide_with_io(route, wire, StaticListers(live=live))
    response: Object = json.loads(written(wire.uid, answer))["response"]
    return {**response, "reason": answer.reason}


def refused(response: Object) -> str:
    assert not response["allowed"]
    assert (response["status"]["code"], response["status"]["reason"]) == (403, "Forbidden")
    message: str = response["status"]["message"]
    assert message.startswith(BEFORE), message
    return message.removeprefix(BEFORE)


@pytest.mark.parametrize(
    ("objects", "because"),
    [
        ({"pods": [POD, TERMINATING, POD]}, "active pods 2>0"),
        ({"pods": [TERMINATING], "persistentvolumeclaims": [BOUND, {}]}, '"Bound" status pvc 1>0'),
        ({"pods": [], "persistentvolumeclaims": [{"status": {"phase": "Pending"}}, {**BOUND, **TERMINATING}]}, ""),
    ],
)
async def test_namespace_is_not_deleted_with_active_pods_or_bound_claims(
    objects: dict[str, list[Object]], because: str
) -> None:
    response = await deleted(NAMESPACES, StaticLive(objects))
    if because:
        assert refused(response) == (
            f"{because}; Namespace shop is protected from deletion, see {PROTECT}; delete its pods and claims first, "
            "or take the label off: kubectl label namespaces shop policy.kruise.io/delete-protection-"
        )
    else:
        assert response["allowed"]


async def test_custom_resource_definition_is_not_deleted_with_objects() -> None:
    reason = {deletion_protection.REASON: "team-a\n\u202ehas its data here"}
    live = StaticLive({"gadgets": [POD, TERMINATING]})
    labels = {deletion_protection.CASCADING_LABEL: "true"}
    assert refused(await deleted(CRDS, live, spec=GADGETS, annotations=reason, labels=labels)) == (
        "active CRs 1>0; CustomResourceDefinition gadgets.example.com is protected from deletion "
        f'(reason: "team-a has its data here"), see {PROTECT}; delete its objects first, or take the label off: '
        "kubectl label customresourcedefinitions gadgets.example.com policy.kruise.io/disable-cascading-deletion-"
    )
    assert (await deleted(CRDS, StaticLive({"gadgets": [TERMINATING]}), spec=GADGETS))["allowed"]


async def test_content_that_cannot_be_read_is_refused_with_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    live = StaticLive(error=UnreachableError("no route to host"))
    response = await deleted(NAMESPACES, live)
    assert "content that cannot be read (no route to host); Namespace shop" in refused(response)
    assert response["reason"] == Reason.CONTENT_UNKNOWN
    unserved = {**GADGETS, "versions": VERSIONS[:1]}
    assert "serves no version" in refused(await deleted(CRDS, StaticLive(), spec=unserved))

    async def forever(*_: object, **__: object) -> int:
        await asyncio.sleep(60)
        return 0

    monkeypatch.setattr(protected, "_READING", 0.01)
    monkeypatch.setattr(live, "count", forever)
    assert "cannot be read (reading it took longer" in refused(await deleted(NAMESPACES, live))


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {}},
        {"labels": None},
        {"labels": {deletion_protection.LABEL: "cascading"}},
        {"labels": {deletion_protection.LABEL: "Always"}},
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
    ],
)
async def test_objects_without_this_protection_are_not_read(metadata: Object) -> None:
    for resource in (NAMESPACES, CRDS):
        response = await deleted(resource, StaticLive(error=AssertionError("read")), spec=GADGETS, **metadata)
        assert response["allowed"]


class Recording(StaticLive):
    """Remembers what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[tuple[str, str, object]] = []

    async def count(
        self, resource: Resource, namespace: str, wanted: Callable[[Found], bool], **options: object
    ) -> int:
        path = f"{resource.api_version}/{resource.plural}"
        self.read.append((path, namespace, options.get("field_selector")))
        return 0


async def test_objects_are_read_in_a_served_version_and_pods_without_those_that_have_finished() -> None:
    live = Recording()
    response = await deleted(CRDS, live, spec=GADGETS)
    assert (response["allowed"], response["reason"]) == (True, Reason.EMPTY)
    await deleted(NAMESPACES, live)
    assert live.read == [
        ("example.com/v2/gadgets", "", None),
        ("v1/pods", "shop", "status.phase!=Succeeded,status.phase!=Failed"),
        ("v1/persistentvolumeclaims", "shop", None),
    ]


async def test_refusal_quotes_the_beginning_of_a_long_reason() -> None:
    reason = {deletion_protection.REASON: "x" * 300}
    text = refused(await deleted(NAMESPACES, StaticLive({"pods": [POD]}), annotations=reason))
    assert f'(reason: "{"x" * 256}")' in text


@pytest.mark.parametrize(
    ("reason", "quoted"),
    [("x" * 256, "x" * 256), ("x" * 257, f"{'x' * 256}…"), ("a\nb\u2028c\u202ed\u0007", "a b c d")],
)
def test_quoted_reason_is_short_and_controls_no_terminal(reason: str, quoted: str) -> None:
    assert deletion_protection.quotable(reason) == quoted
