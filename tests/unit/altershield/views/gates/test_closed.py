"""Which gates are closed for a workload, as far as a user may read them."""

from typing import Any

import msgspec
import pytest

from altershield.api.gates.freezes import ReleaseFreeze
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.released_by import encode
from altershield.api.resources import RELEASE_FREEZES
from altershield.views.gates.closed import closed_for
from kube_base.access.errors import ForbiddenError, NotFoundError
from kube_base.resources import DEPLOYMENTS, NAMESPACES, Resource
from tests.unit.altershield.views.builders import workload

NOW = 1_700_000_000.0
Place = tuple[str, str]
"""The plural name of a kind, and a namespace."""


def freeze(name: str, namespace: str = "shop", **spec: Any) -> ReleaseFreeze:
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": "2020-01-01T00:00:00Z"}
    return msgspec.convert({"metadata": metadata, "spec": {"reason": "incident", **spec}}, ReleaseFreeze)


class Cluster:
    """Answers the requests of a user. `forbidden`: what the user may not read. `labels`: of the objects."""

    def __init__(self, *freezes: ReleaseFreeze, forbidden: tuple[Place, ...] = (), **labels: dict[str, str]) -> None:
        self._freezes = freezes
        self._forbidden = forbidden
        self._labels = labels
        self.asked: list[Place] = []

    async def list(self, resource: Resource, namespace: str, *, as_: Any) -> Any:
        self._ask(resource, namespace)
        found = self._freezes if resource is RELEASE_FREEZES else ()
        return type("Listed", (), {"items": [each for each in found if each.metadata.namespace == namespace]})

    async def get(self, resource: Resource, name: str, namespace: str = "", *, as_: Any) -> Any:
        self._ask(resource, namespace)
        return msgspec.convert({"metadata": {"name": name, "labels": self._labels[resource.plural]}}, as_)

    def _ask(self, resource: Resource, namespace: str) -> None:
        self.asked.append((resource.plural, namespace))
        if (resource.plural, namespace) in self._forbidden:
            raise ForbiddenError("no")


async def closed(cluster: Cluster, released_by: str = "") -> list[str]:
    web = msgspec.structs.replace(workload(), released_by=released_by)
    found = await closed_for(cluster, web, SYSTEM_NAMESPACE, NOW)  # type: ignore[arg-type]
    return [f"{each.namespace}/{each.name}" for each in found]


def selects(**labels: str) -> dict[str, Any]:
    return {"matchLabels": labels}


async def test_gates_that_select_the_workload_are_shown() -> None:
    cluster = Cluster(
        freeze("own"),
        freeze("other", selector=selects(tier="core")),
        freeze("over", until="2021-01-01T00:00:00Z"),
        freeze("elsewhere", namespace="pay"),
        freeze("all", SYSTEM_NAMESPACE),
        freeze("shops", SYSTEM_NAMESPACE, namespaceSelector=selects(department="shop")),
        freeze("banks", SYSTEM_NAMESPACE, namespaceSelector=selects(department="bank")),
        namespaces={"department": "shop"},
        deployments={"app": "web"},
    )
    assert await closed(cluster) == [f"{SYSTEM_NAMESPACE}/all", f"{SYSTEM_NAMESPACE}/shops", "shop/own"]


async def test_labels_of_the_last_release_count_too() -> None:
    cluster = Cluster(freeze("core", selector=selects(tier="core")), namespaces={}, deployments={})
    assert await closed(cluster) == []
    assert await closed(cluster, encode("ann", "v", NOW, labels={"tier": "core"})) == ["shop/core"]


async def test_without_gates_no_further_object_is_read() -> None:
    cluster = Cluster()
    assert await closed(cluster) == []
    assert {resource for resource, _ in cluster.asked} == {"releasewindows", "releasefreezes"}


async def test_what_the_user_may_not_read_is_left_out() -> None:
    gates = (
        freeze("own"),
        freeze("all", SYSTEM_NAMESPACE),
        freeze("shops", SYSTEM_NAMESPACE, namespaceSelector=selects(department="shop")),
    )
    labels: dict[str, dict[str, str]] = {"namespaces": {"department": "shop"}, "deployments": {}}
    cluster = Cluster(*gates, forbidden=((RELEASE_FREEZES.plural, SYSTEM_NAMESPACE),), **labels)
    assert await closed(cluster) == ["shop/own"]
    cluster = Cluster(*gates, forbidden=((NAMESPACES.plural, ""), (DEPLOYMENTS.plural, "shop")), **labels)
    assert await closed(cluster) == [f"{SYSTEM_NAMESPACE}/all", "shop/own"]


async def test_cluster_without_these_kinds_has_no_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    async def missing(*_: Any, **__: Any) -> Any:
        raise NotFoundError("the server could not find the requested resource")

    cluster = Cluster()
    monkeypatch.setattr(cluster, "list", missing)
    assert await closed(cluster) == []
