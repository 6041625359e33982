"""The DefensePolicies in the cache of a gatekeeper."""

from typing import Any

import msgspec

from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.resources import DEFENSE_POLICIES
from altershield.policies.stored import Policy, read
from gatekeeper.policies import CachedPolicies
from kube_base.access.client import Client
from kube_base.access.informer import Informer
from tests.support.stub_api import serving


class Cached:
    def __init__(self, client: Client) -> None:
        self._informer = Informer(client, DEFENSE_POLICIES, Policy, read=read, resync=0)
        self.policies = CachedPolicies(self._informer, SYSTEM_NAMESPACE)
        self._version = 0

    def put(self, name: str, namespace: str = "shop", **spec: Any) -> None:
        self._version += 1
        head = {"name": name, "namespace": namespace, "generation": 1, "resourceVersion": str(self._version)}
        self._informer.observe(read(msgspec.json.encode({"metadata": head, "spec": spec})))

    def name(self, namespace: str = "shop", **labels: str) -> str | None:
        found = self.policies.of(namespace, labels)
        return found.name if found is not None else None


async def test_policies_follow_their_changes() -> None:
    async with serving() as (_, client):
        cached = Cached(client)
        assert not cached.policies.filled
        assert cached.name() is None
        assert not cached.policies.have_steps
        cached.put("all", SYSTEM_NAMESPACE)
        assert (cached.name(), cached.name("other")) == ("all", "all")
        cached.put("web", selector={"matchLabels": {"app": "web"}}, rollout={"pods": [1]})
        assert cached.policies.have_steps
        assert (cached.name(app="web"), cached.name(app="api"), cached.name("other", app="web")) == (
            "web",
            "all",
            "all",
        )
        cached.put("first", priority=5)
        assert cached.name(app="web") == "first"
        cached.put("first", priority=-5)
        assert (cached.name(app="web"), cached.name()) == ("web", "first")
        cached.put("web", selector={"matchLabels": {"app": "web"}})
        assert not cached.policies.have_steps
