"""A gatekeeper: the product's handlers, caches and records, with a clock of its own and caches that may be late."""

import copy
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import jsonpatch
import msgspec

from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.gates.overrides import ReleaseOverride
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.namespace import Namespace
from altershield.api.resources import CHANGE_WORKLOADS, RELEASE_OVERRIDES
from altershield.gates.admissions import RecentAdmissions
from altershield.gates.cached import CachedGates, Stored, reader
from altershield.gates.judge import GATES
from altershield.gates.limits import LIMITS
from gatekeeper import projection
from gatekeeper.dispatch import decide, decide_with_io
from gatekeeper.records.overrides import RecordedOverrides
from gatekeeper.response import Answer
from kube_base.access.client import Client
from kube_base.access.informer import Informer
from kube_base.resources import NAMESPACES
from tests.unit.gatekeeper.reviews import MUTATE, VALIDATE, Object, StaticListers, encode, review, route

from .api import Api, Watching


class FilledGates(CachedGates):
    @property
    def filled(self) -> bool:
        return True


class Gatekeeper:
    """`error`: by how many seconds its clock is fast."""

    def __init__(self, api: Api, client: Client, clock: Callable[[], float], error: float) -> None:
        self._own_clock = lambda: clock() + error
        gates = {each: Informer(client, each.resource, Stored, read=reader(each), resync=0) for each in GATES}
        namespaces = Informer(client, NAMESPACES, Namespace, resync=0)
        overrides = Informer(client, RELEASE_OVERRIDES, ReleaseOverride, resync=0)
        releases = Informer(client, CHANGE_WORKLOADS, projection.Release, read=projection.read, resync=0)
        in_force = FilledGates(gates, namespaces, SYSTEM_NAMESPACE, lambda _, each: each.in_force)
        self.listers = StaticListers(gates=in_force)  # type: ignore[arg-type]
        self.listers.admissions = RecentAdmissions(in_force, gates[LIMITS])
        self.listers.overrides = RecordedOverrides(api, overrides, SYSTEM_NAMESPACE, self._own_clock)  # type: ignore
        self._releases, self.overrides = releases, overrides
        self.admitted: dict[str, list[tuple[float, NamedWorkload, str]]] = {}
        """What it admitted, by the uid of each limit that it knew: by its own clock."""
        known = {each.resource.plural: (gates[each], _encoded(reader(each))) for each in GATES}
        self.watching = Watching(
            api,
            {
                **known,
                NAMESPACES.plural: (namespaces, lambda each: each),
                RELEASE_OVERRIDES.plural: (overrides, lambda each: each),
                CHANGE_WORKLOADS.plural: (releases, _encoded(projection.read)),
            },
        )

    @property
    def now(self) -> float:
        return self._own_clock()

    def mutate(self, body: Object) -> Object:
        """The object of a request after the mutating webhook."""
        served, answer = route(MUTATE), self._decided(MUTATE, body)
        assert answer.denial is None
        assert served is not None
        new = copy.deepcopy(body["request"]["object"])
        return jsonpatch.apply_patch(new, json.loads(msgspec.json.encode(answer.patch)))  # type: ignore[no-any-return]

    async def validate(self, body: Object) -> Answer:
        served = route(VALIDATE)
        self._prepare()
        with mock.patch("gatekeeper.routes.time", SimpleNamespace(time=self._own_clock)):
            return await decide_with_io(served, served.decode(encode(body)), self.listers)

    def _decided(self, which: str, body: Object) -> Answer:
        served = route(which)
        self._prepare()
        with mock.patch("gatekeeper.routes.time", SimpleNamespace(time=self._own_clock)):
            return decide(served, served.decode(encode(body)), self.listers)

    def _prepare(self) -> None:
        self.listers.releases = {f"{e.metadata.namespace}/{e.metadata.name}": e for e in self._releases.all()}


def _encoded(read: Callable[[bytes], Any]) -> Callable[[Any], Any]:
    return lambda obj: read(msgspec.json.encode(obj))


def request(new: Object, old: Object | None, *, dry_run: bool) -> Object:
    own = new["metadata"]
    return review(new, old, user="ann", name=own["name"], namespace=own["namespace"], dryRun=dry_run)
