"""The gates in the caches of a process."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

import msgspec

from altershield.gates.gate import G, Gate
from altershield.gates.index import Index
from altershield.gates.judge import judge, opens_at
from altershield.gates.limits import LIMITS
from altershield.gates.release import Closed, Placed, Release, selects_any, selects_namespace
from kube_base.access.informer import Informer
from kube_base.meta import PartialObjectMeta

NAMESPACE = "namespace"
"""The index of the informers' caches by namespace."""


_Indexes = dict[Gate[Any, Any], Index[Placed]]
_NONE: _Indexes = {}


class Stored(msgspec.Struct, frozen=True):
    """What a gatekeeper keeps of an object: the times of a window as numbers."""

    metadata: PartialObjectMeta
    in_force: Placed | None


def reader(gate: Gate[Any, Any]) -> Callable[[bytes | msgspec.Raw], Stored]:
    """Reads an object of this kind from the API server. msgspec.DecodeError: it is none."""
    decode = msgspec.json.Decoder(gate.type).decode

    def read(data: bytes | msgspec.Raw) -> Stored:
        found = decode(data)
        return Stored(found.metadata, gate.in_force(found))

    return read


class CachedGates:
    """The gates that are in force. Those of a kind and namespace are collected once after each change.

    `informers`: one for each kind of gates that this process asks. `in_force`: what of a cached object is in force.
    `namespaces`: the cache of namespaces, of which the labels are read.
    """

    def __init__(
        self,
        informers: Mapping[Gate[Any, Any], Informer[Any]],
        namespaces: Informer[Any],
        system_namespace: str,
        in_force: Callable[[Gate[Any, Any], Any], Placed | None],
    ) -> None:
        self._informers = informers
        self._namespaces = namespaces
        self._system_namespace = system_namespace
        self._in_force = in_force
        self._known: dict[str, _Indexes] = {}
        """By namespace: those that have objects."""
        self._changed: dict[tuple[Gate[Any, Any], str], None] = {}
        """What was not collected since it changed."""
        for gate, informer in informers.items():
            informer.add_index(NAMESPACE, lambda each: (each.metadata.namespace,))
            informer.add_handler(partial(self._observe, gate))

    @property
    def filled(self) -> bool:
        """Whether the caches are filled."""
        return self._namespaces.synced and all(each.synced for each in self._informers.values())

    @property
    def exist(self) -> bool:
        """Whether there is any object of any kind."""
        self._collect()
        return bool(self._known)

    def have(self, gate: Gate[Any, Any]) -> bool:
        """Whether there is any object of this kind."""
        return gate in self._informers and len(self._informers[gate]) > 0

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace."""
        found = self._namespaces.get("", namespace)
        return found.metadata.labels if found is not None else {}

    def may_be_closed(self, namespace: str, now: float) -> bool:
        """Whether a gate may be closed for a release of this namespace."""
        for each in (self._system_namespace, namespace):
            for gate, index in self._of(each).items():
                if index.at(now, gate.may_be_closed).all:
                    return True
        return False

    def closed(self, release: Release, now: float) -> tuple[Closed, ...]:
        """The gates that are closed for the release."""
        return judge(release, partial(self._closing, release, now), self._system_namespace, now)

    def opens_at(self, release: Release, now: float) -> float:
        """When the release may begin, Unix seconds; 0: it is not known."""
        return opens_at(release, partial(self._objects, release), self._system_namespace, now)

    def judging(self, gate: Gate[Any, G], release: Release) -> Iterator[G]:
        """The objects of this kind that judge the release."""
        for namespace in {self._system_namespace: None, release.namespace: None}:
            for each in self._objects(release, gate, namespace):
                if selects_namespace(each, release, self._system_namespace) and selects_any(each, release):
                    yield cast(G, each)

    def may_hold(self, namespace: str) -> bool:
        """Whether a gate may hold releases of this namespace rather than deny them."""
        for each in (self._system_namespace, namespace):
            for index in self._of(each).values():
                if index.holds:
                    return True
        return False

    def paces(self, release: Release) -> bool:
        """Whether a ReleaseLimit holds the release until AlterShield lets it begin, also while it has room."""
        return any(each.paces for each in self.judging(LIMITS, release))

    def _objects(self, release: Release, gate: Gate[Any, Any], namespace: str) -> Sequence[Placed]:
        found = self._of(namespace).get(gate)
        return found.candidates(release) if found is not None else ()

    def _closing(self, release: Release, now: float, gate: Gate[Any, Any], namespace: str) -> Sequence[Placed]:
        found = self._of(namespace).get(gate)
        return found.at(now, gate.may_be_closed).candidates(release) if found is not None else ()

    def _of(self, namespace: str) -> _Indexes:
        self._collect()
        return self._known.get(namespace, _NONE)

    def _collect(self) -> None:
        while self._changed:
            (gate, namespace), _ = self._changed.popitem()
            cached = self._informers[gate].by_index(NAMESPACE, namespace)
            indexes = self._known.setdefault(namespace, {})
            if cached:
                in_force = (self._in_force(gate, each) for each in cached)
                indexes[gate] = Index((each for each in in_force if each is not None), self._system_namespace)
            else:
                indexes.pop(gate, None)
            if not indexes:
                del self._known[namespace]

    def _observe(self, gate: Gate[Any, Any], old: Any, new: Any) -> None:
        for each in (old, new):
            if each is not None:
                self._changed[gate, each.metadata.namespace] = None
