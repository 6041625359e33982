"""A cluster in memory, with its own time, in which every request is a moment at which something else may happen.

The real reconciler runs in it, one request at a time. API servers and gatekeepers follow what is stored with a delay.
"""

import base64
import copy
import datetime
import types
from collections.abc import Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from altershield.api.meta import rfc3339
from altershield.api.resources import SECRETS, Resource
from altershield.kube.client import PatchType
from altershield.kube.errors import AlreadyExistsError, ConflictError, NotFoundError
from certgen import certificates
from certgen.certificates import Leaf
from certgen.contents import Contents, decode, encode
from certgen.lifetimes import Lifetimes
from certgen.reconciler import CertificateReconciler, Outcome
from certgen.settings import Mode, Settings
from certgen.webhook_configurations import FIELD_MANAGER, KINDS

NAMESPACE, SECRET, CONFIGURATION = "system", "tls", "altershield"
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)
TWO_MINUTES = Lifetimes(authority=360 * SECOND, leaf=120 * SECOND, settle=10 * SECOND)

Object = dict[str, Any]


@types.coroutine
def _turn() -> Generator[None, None, None]:
    """The moment in which others get theirs."""
    yield


class World:
    """The API server's storage; also the client's side of it, as far as the reconciler uses it."""

    def __init__(self) -> None:
        self.now = START
        self.objects: dict[tuple[str, str], Object] = {}
        self._version = 0

    async def get(self, resource: Resource, name: str, namespace: str = "", *, as_: type[Any]) -> Any:
        await _turn()
        return msgspec.convert(copy.deepcopy(self._existing(resource, name)), as_)

    async def create(self, resource: Resource, obj: Object, namespace: str = "", *, as_: type[Any]) -> Any:
        await _turn()
        if (resource.plural, obj["metadata"]["name"]) in self.objects:
            raise AlreadyExistsError("it is there")
        self.store(resource, copy.deepcopy(obj))

    async def patch(
        self, resource: Resource, patch: Object, name: str, namespace: str = "", *, type_: PatchType, **_: Any
    ) -> None:
        await _turn()
        existing = self._existing(resource, name)
        if patch["metadata"]["resourceVersion"] != existing["metadata"]["resourceVersion"]:
            raise ConflictError("it was changed")
        if type_ is PatchType.APPLY:
            self.publish(resource, base64.b64decode(patch["webhooks"][0]["clientConfig"]["caBundle"]), FIELD_MANAGER)
        else:
            existing["data"] = (existing.get("data") or {}) | patch["data"]
            existing["metadata"]["labels"] = existing["metadata"].get("labels", {}) | patch["metadata"]["labels"]
            self.store(resource, existing)

    async def delete(self, resource: Resource, name: str, namespace: str = "", *, uid: str = "") -> None:
        await _turn()
        del self.objects[resource.plural, name]

    def store(self, resource: Resource, obj: Object) -> None:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        self.objects[resource.plural, obj["metadata"]["name"]] = obj

    def publish(self, resource: Resource, bundle: bytes, manager: str) -> None:
        """Write a configuration with two webhooks that trust `bundle`."""
        webhook = {"clientConfig": {"caBundle": base64.b64encode(bundle).decode()}}
        entry = {"manager": manager, "operation": "Apply", "time": rfc3339(self.now.timestamp())}
        metadata = {"name": CONFIGURATION, "managedFields": [entry]}
        self.store(
            resource, {"metadata": metadata, "webhooks": [{"name": "one", **webhook}, {"name": "two", **webhook}]}
        )

    def bundle(self, resource: Resource) -> bytes:
        webhook = self._existing(resource, CONFIGURATION)["webhooks"][0]
        return base64.b64decode(webhook["clientConfig"]["caBundle"])

    @property
    def data(self) -> dict[str, str]:
        """Of the Secret."""
        return dict(self.objects.get((SECRETS.plural, SECRET), {}).get("data") or {})

    @property
    def contents(self) -> Contents:
        return decode(self.data)[0]

    def replace(self, contents: Contents) -> None:
        """What a person's command writes."""
        secret = self._existing(SECRETS, SECRET)
        self.store(SECRETS, secret | {"data": encode(contents)})

    def _existing(self, resource: Resource, name: str) -> Object:
        try:
            return self.objects[resource.plural, name]
        except KeyError:
            raise NotFoundError("it is not there") from None


def reconciler(world: World, lifetimes: Lifetimes = TWO_MINUTES, mode: Mode = Mode.CERTGEN) -> CertificateReconciler:
    ca_lifetime, leaf_lifetime, settle = (
        int(each.total_seconds()) for each in (lifetimes.authority, lifetimes.leaf, lifetimes.settle)
    )
    settings = Settings(
        system_namespace=NAMESPACE,
        secret=SECRET,
        webhook_configuration=CONFIGURATION,
        san=["altershield.system.svc"],
        mode=mode,
        ca_lifetime=ca_lifetime,
        leaf_lifetime=leaf_lifetime,
        settle=settle,
    )
    return CertificateReconciler(world, settings, clock=lambda: world.now)  # type: ignore[arg-type]  # all of a client that it uses


@dataclass
class Replica:
    """One process that keeps the certificates, at most one request further with every step."""

    reconciler: CertificateReconciler
    outcome: Outcome | None = None
    _pass: Coroutine[Any, Any, Outcome] | None = None

    def step(self) -> bool:
        """Whether a pass came to its end, by success or because another replica was faster."""
        if self._pass is None:
            self._pass = self.reconciler.reconcile()
        try:
            self._pass.send(None)
        except StopIteration as end:
            self.outcome = end.value
        except ConflictError:
            self.outcome = None
        else:
            return False
        self._pass = None
        return True

    def crash(self) -> None:
        if self._pass is not None:
            self._pass.close()
            self._pass = None

    def reconcile(self) -> Outcome:
        """Passes without interruption, until one ends well."""
        while True:
            if self.step() and self.outcome is not None:
                return self.outcome


@dataclass
class Cluster:
    """Replicas, and what depends on them: API servers that know the configurations of some seconds ago, and
    gatekeepers that serve the certificate of some seconds ago."""

    world: World = field(default_factory=World)
    lifetimes: Lifetimes = TWO_MINUTES
    lag: datetime.timedelta = 8 * SECOND
    replicas: list[Replica] = field(default_factory=list)
    _bundles: list[tuple[datetime.datetime, bytes]] = field(default_factory=list)
    _leaves: list[tuple[datetime.datetime, Leaf]] = field(default_factory=list)

    @classmethod
    def installed(cls, lifetimes: Lifetimes = TWO_MINUTES, lag: datetime.timedelta = 8 * SECOND) -> "Cluster":
        """With empty webhook configurations, three replicas, and the first certificates everywhere."""
        cluster = cls(lifetimes=lifetimes, lag=lag)
        for resource in KINDS:
            cluster.world.publish(resource, b"", "helm")
        cluster.replicas = [Replica(reconciler(cluster.world, lifetimes)) for _ in range(3)]
        cluster.replicas[0].reconcile()
        cluster.observe()
        cluster.world.now += lag
        cluster.check()
        return cluster

    def observe(self) -> None:
        """Note what is stored: API servers and gatekeepers will know it now or `lag` later, each in its time."""
        for resource in KINDS:
            self._bundles.append((self.world.now, self.world.bundle(resource)))
        if serving := self.world.contents.serving:
            self._leaves.append((self.world.now, serving))

    def check(self) -> None:
        """Whichever gatekeeper an API server calls now, it trusts what is served there."""
        self._bundles = _recent(self._bundles, self.world.now - self.lag, len(KINDS))
        self._leaves = _recent(self._leaves, self.world.now - self.lag, 1)
        served = {leaf.certificate: leaf for _, leaf in self._leaves}
        for bundle in {bundle for _, bundle in self._bundles}:
            trusted = certificates.certificates(bundle)
            for leaf in served.values():
                issuer = certificates.issuer(leaf.chain, trusted)
                assert issuer is not None, f"{self.world.now}: what is served is not signed by what is published"
                assert self.world.now < min(leaf.expires, issuer.not_valid_after_utc), f"{self.world.now}: expired"


def _recent(history: list[tuple[datetime.datetime, Any]], since: datetime.datetime, last: int) -> list[Any]:
    """What was stored at `since` or later: the `last` entries before, and all after."""
    before = [entry for entry in history if entry[0] <= since]
    return before[-last:] + [entry for entry in history if entry[0] > since]
