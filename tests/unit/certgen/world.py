"""A cluster in memory with a simulated clock, in which other tasks can run at every request.

The real reconciler runs in it, one request at a time. API servers and gatekeepers see stored objects with a delay.
"""

import base64
import copy
import datetime
import functools
import types
from collections.abc import Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from certgen import certificates
from certgen.certificates import Leaf
from certgen.contents import Contents, decode, encode
from certgen.lifetimes import Lifetimes
from certgen.reconciler import CertificateReconciler, Outcome
from certgen.settings import Mode, Settings
from certgen.webhook_configurations import FIELD_MANAGER, KINDS
from kube_base.access.client import PatchType
from kube_base.access.errors import AlreadyExistsError, ConflictError, NotFoundError
from kube_base.resources import SECRETS, Resource
from kube_base.times import rfc3339

NAMESPACE, SECRET, CONFIGURATION = "system", "tls", "altershield"
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)
TWO_MINUTES = Lifetimes(authority=360 * SECOND, leaf=120 * SECOND, settle=10 * SECOND)

Object = dict[str, Any]


@functools.lru_cache(maxsize=1)
def _decoded(data: tuple[tuple[str, str], ...]) -> Contents:
    """The tests read the contents after every request, and the Secret seldom changes."""
    return decode(dict(data))[0]


@types.coroutine
def _yield() -> Generator[None, None, None]:
    """Let other coroutines run."""
    yield


class World:
    """The API server's storage, with the methods of `Client` that the reconciler calls."""

    def __init__(self) -> None:
        self.now = START
        self.objects: dict[tuple[str, str], Object] = {}
        self._version = 0

    async def get(self, resource: Resource, name: str, namespace: str = "", *, as_: type[Any]) -> Any:
        await _yield()
        return msgspec.convert(copy.deepcopy(self._existing(resource, name)), as_)

    async def create(self, resource: Resource, obj: Object, namespace: str = "", *, as_: type[Any]) -> Any:
        await _yield()
        if (resource.plural, obj["metadata"]["name"]) in self.objects:
            raise AlreadyExistsError("the object exists")
        self.store(resource, copy.deepcopy(obj))

    async def patch(
        self, resource: Resource, patch: Object, name: str, namespace: str = "", *, type_: PatchType, **_: Any
    ) -> None:
        await _yield()
        existing = self._existing(resource, name)
        if patch["metadata"]["resourceVersion"] != existing["metadata"]["resourceVersion"]:
            raise ConflictError("the object has changed")
        if type_ is PatchType.APPLY:
            self.publish(resource, base64.b64decode(patch["webhooks"][0]["clientConfig"]["caBundle"]), FIELD_MANAGER)
        else:
            existing["data"] = (existing.get("data") or {}) | patch["data"]
            existing["metadata"]["labels"] = existing["metadata"].get("labels", {}) | patch["metadata"]["labels"]
            self.store(resource, existing)

    async def delete(self, resource: Resource, name: str, namespace: str = "", *, uid: str = "") -> None:
        await _yield()
        del self.objects[resource.plural, name]

    def store(self, resource: Resource, obj: Object) -> None:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        self.objects[resource.plural, obj["metadata"]["name"]] = obj

    def publish(self, resource: Resource, bundle: bytes, manager: str) -> None:
        """Write a configuration with two webhooks and `bundle`."""
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
        """The data of the Secret."""
        return dict(self.objects.get((SECRETS.plural, SECRET), {}).get("data") or {})

    @property
    def contents(self) -> Contents:
        return _decoded(tuple(self.data.items()))

    def replace(self, contents: Contents) -> None:
        """Replace the contents of the Secret, as the command `rotate` does."""
        secret = self._existing(SECRETS, SECRET)
        self.store(SECRETS, secret | {"data": encode(contents)})

    def _existing(self, resource: Resource, name: str) -> Object:
        try:
            return self.objects[resource.plural, name]
        except KeyError:
            raise NotFoundError("the object does not exist") from None


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
    return CertificateReconciler(world, settings, clock=lambda: world.now)  # type: ignore[arg-type]  # it has all methods that are called


@dataclass
class Replica:
    """One certgen process. Each step runs it up to its next request."""

    reconciler: CertificateReconciler
    outcome: Outcome | None = None
    _pass: Coroutine[Any, Any, Outcome] | None = None

    def step(self) -> bool:
        """Run up to the next request. True if `reconcile` returned, or if another replica was faster."""
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
        """Reconcile without interruption until it succeeds."""
        while True:
            if self.step() and self.outcome is not None:
                return self.outcome


@dataclass
class Cluster:
    """Replicas, API servers and gatekeepers. API servers know the configurations of up to `lag` ago, gatekeepers serve
    the certificate of up to `lag` ago."""

    world: World = field(default_factory=World)
    lifetimes: Lifetimes = TWO_MINUTES
    lag: datetime.timedelta = 8 * SECOND
    replicas: list[Replica] = field(default_factory=list)
    _bundles: list[tuple[datetime.datetime, bytes]] = field(default_factory=list)
    _leaves: list[tuple[datetime.datetime, Leaf]] = field(default_factory=list)

    @classmethod
    def installed(cls, lifetimes: Lifetimes = TWO_MINUTES, lag: datetime.timedelta = 8 * SECOND) -> "Cluster":
        """A cluster with three replicas, whose first certificates are published and served."""
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
        """Take note of the stored objects. API servers and gatekeepers see them at some time from now to `lag`
        later."""
        for resource in KINDS:
            self._bundles.append((self.world.now, self.world.bundle(resource)))
        if serving := self.world.contents.serving:
            self._leaves.append((self.world.now, serving))

    def check(self) -> None:
        """Check that every API server trusts the certificate of every gatekeeper."""
        self._bundles = _recent(self._bundles, self.world.now - self.lag, len(KINDS))
        self._leaves = _recent(self._leaves, self.world.now - self.lag, 1)
        served = {leaf.certificate: leaf for _, leaf in self._leaves}
        for bundle in {bundle for _, bundle in self._bundles}:
            trusted = certificates.certificates(bundle)
            for leaf in served.values():
                issuer = certificates.issuer(leaf.chain, trusted)
                assert issuer is not None, f"{self.world.now}: no published CA signed the served certificate"
                assert self.world.now < min(leaf.expires, issuer.not_valid_after_utc), f"{self.world.now}: expired"


def _recent(history: list[tuple[datetime.datetime, Any]], since: datetime.datetime, last: int) -> list[Any]:
    """The entries that were in effect at `since` or later: the `last` entries before it, and all after it."""
    before = [entry for entry in history if entry[0] <= since]
    return before[-last:] + [entry for entry in history if entry[0] > since]
