"""The workloads and sets that own pods: from caches, or read live if no cache has them."""

import sys
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence

from altershield.api.budgets import TargetRef
from altershield.budgets.scaled import Reader, Scaled
from altershield.workloads.meta import Owner
from kube_base.access.client import Client
from kube_base.access.errors import NotFoundError
from kube_base.access.informer import Informer
from kube_base.resources import GroupKind, Resource

_MAX_READ = 4096  # results of live reads that are kept
_OWNER = "owner"

_Reference = tuple[str, GroupKind, str, str]  # uid, kind, namespace and name


def _reference(owner: Owner, namespace: str) -> _Reference:
    return owner.uid, owner.group_kind, namespace, owner.name


class KnownScales:
    """The workloads and sets of all namespaces. `informers` and `readers` by resource."""

    def __init__(
        self, client: Client, informers: Mapping[Resource, Informer[Scaled]], readers: Mapping[Resource, Reader]
    ) -> None:
        self._client = client
        self._informers = informers
        self._readers = readers
        self._by_kind = {resource.group_kind: resource for resource in informers}
        self._cached: dict[str, Scaled] = {}
        """The objects of the caches, by uid."""
        self._read: OrderedDict[_Reference, Scaled | None] = OrderedDict()
        """The results of live reads, by owner reference; None: there is no such object. The uid alone cannot be the
        key: a user can create a pod whose owner reference has the uid of another object, with a wrong kind, name or
        namespace."""
        self._changes: Counter[str] = Counter()
        for informer in informers.values():
            informer.add_index(_OWNER, lambda each: (each.owner.uid,) if each.owner.uid else ())
            informer.add_handler(self._changed)

    def _changed(self, old: Scaled | None, new: Scaled | None) -> None:
        if old is not None and (new is None or new.packed_uid != old.packed_uid):
            self._cached.pop(old.uid, None)
        if new is not None:
            self._cached[sys.intern(new.uid)] = new  # the same string as in the owner references of pods
        changed = new if new is not None else old
        if changed is not None:
            self._changes[changed.namespace] += 1
            self._read.pop((changed.uid, changed.group_kind, changed.namespace, changed.name), None)

    def changes(self, namespace: str) -> int:
        """The number of changes and live reads of objects of the namespace so far."""
        return self._changes[namespace]

    def of(self, namespace: str) -> "NamespaceScales":
        return NamespaceScales(namespace, self._cached, self._read, self._informers, self._by_kind)

    async def read(self, owner: Owner, namespace: str) -> None:
        """Read the owner of pods of this namespace live, once for each owner reference. KubernetesError: it cannot be
        read."""
        resource = self._by_kind.get(owner.group_kind)
        if resource is None:
            return
        try:
            data = await self._client.request("GET", resource.path(namespace, owner.name))
            found: Scaled | None = self._readers[resource](data)
        except NotFoundError:
            found = None
        if found is not None and found.uid != owner.uid:
            found = None
        self._read[_reference(owner, namespace)] = found
        self._changes[namespace] += 1
        while len(self._read) > _MAX_READ:
            self._read.popitem(last=False)


class NamespaceScales:
    """Implements `altershield.budgets.coverage.Scales`."""

    __slots__ = ("_by_kind", "_cached", "_informers", "_namespace", "_read")

    def __init__(
        self,
        namespace: str,
        cached: Mapping[str, Scaled],
        read: Mapping[_Reference, Scaled | None],
        informers: Mapping[Resource, Informer[Scaled]],
        by_kind: Mapping[GroupKind, Resource],
    ) -> None:
        self._namespace = namespace
        self._cached = cached
        self._read = read
        self._informers = informers
        self._by_kind = by_kind

    def get(self, owner: Owner) -> Scaled | None:
        """The object with this uid, or None. The caches have precedence over earlier live reads."""
        found = self._cached.get(owner.uid)
        if found is None:
            return self._read.get(_reference(owner, self._namespace))
        same = found.group_kind == owner.group_kind and found.namespace == self._namespace
        return found if same else None

    def owned_by(self, uid: str) -> Sequence[Scaled]:
        """The sets whose controller has this uid."""
        owned = (each for informer in self._informers.values() for each in informer.by_index(_OWNER, uid))
        return [each for each in owned if each.namespace == self._namespace]

    def named(self, reference: TargetRef) -> Scaled | None:
        """The workload that a budget names, or None."""
        resource = self._by_kind.get(reference.group_kind)
        return self._informers[resource].get(self._namespace, reference.name) if resource is not None else None

    def is_gone(self, owner: Owner) -> bool:
        """Whether a live read found no such object."""
        reference = _reference(owner, self._namespace)
        return reference in self._read and self._read[reference] is None

    def can_read(self, owner: Owner) -> bool:
        """Whether a live read is possible: the kind is known, and the object was not read live yet."""
        return owner.group_kind in self._by_kind and _reference(owner, self._namespace) not in self._read
