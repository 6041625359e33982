"""The workloads and sets that own pods: from caches, and those that were read live because no cache has them."""

import sys
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence

from altershield.api.budgets import TargetRef
from altershield.api.resources import Resource
from altershield.budgets.coverage import group_of
from altershield.budgets.scaled import Reader, Scaled
from altershield.kube.client import Client
from altershield.kube.errors import NotFoundError
from altershield.kube.informer import Informer
from altershield.workloads.meta import Owner

_MAX_READ = 4096
_OWNER = "owner"

_Reference = tuple[str, str, str, str]


def _reference(owner: Owner) -> _Reference:
    """Uid, API group, kind and name."""
    return owner.uid, group_of(owner.api_version), owner.kind, owner.name


class KnownScales:
    """Implements `altershield.budgets.coverage.Scales`. `informers` and `readers` by resource."""

    def __init__(
        self, client: Client, informers: Mapping[Resource, Informer[Scaled]], readers: Mapping[Resource, Reader]
    ) -> None:
        self._client = client
        self._informers = informers
        self._readers = readers
        self._by_kind = {(resource.group, resource.kind): resource for resource in informers}
        self._cached: dict[str, Scaled] = {}
        """The objects of the caches, by uid."""
        self._read: OrderedDict[_Reference, Scaled | None] = OrderedDict()
        """What live reads found, by owner reference; None: no such object. The uid alone is no key: a user who creates
        a pod may write another kind or name beside the uid of the owner of other pods."""
        self._changes: Counter[str] = Counter()
        for informer in informers.values():
            informer.add_index(_OWNER, lambda each: (each.owner.uid,) if each.owner.uid else ())
            informer.add_handler(self._changed)

    def _changed(self, old: Scaled | None, new: Scaled | None) -> None:
        if old is not None and (new is None or new.packed_uid != old.packed_uid):
            self._cached.pop(old.uid, None)
        if new is not None:
            self._cached[sys.intern(new.uid)] = new  # as the owner of its pods has it
        changed = new if new is not None else old
        if changed is not None:
            self._changes[changed.namespace] += 1
            self._read.pop((changed.uid, changed.group, changed.kind, changed.name), None)

    def changes(self, namespace: str) -> int:
        """A number that grows with each change in the namespace."""
        return self._changes[namespace]

    def get(self, owner: Owner) -> Scaled | None:
        """The object with this uid, or None. A cache has precedence over what was read before."""
        found = self._cached.get(owner.uid)
        if found is None:
            return self._read.get(_reference(owner))
        return found if (found.group, found.kind) == (group_of(owner.api_version), owner.kind) else None

    def owned_by(self, uid: str) -> Sequence[Scaled]:
        """The sets whose controller has this uid."""
        return [each for informer in self._informers.values() for each in informer.by_index(_OWNER, uid)]

    def named(self, namespace: str, target: TargetRef) -> Scaled | None:
        """The workload that a budget names, or None."""
        resource = self._by_kind.get((group_of(target.api_version), target.kind))
        return self._informers[resource].get(namespace, target.name) if resource is not None else None

    def is_gone(self, owner: Owner) -> bool:
        """Whether a live read found no such object."""
        reference = _reference(owner)
        return reference in self._read and self._read[reference] is None

    def can_read(self, owner: Owner) -> bool:
        """Whether objects of this kind can be read, and this one was not read yet."""
        return self._resource(owner) is not None and _reference(owner) not in self._read

    def _resource(self, owner: Owner) -> Resource | None:
        return self._by_kind.get((group_of(owner.api_version), owner.kind))

    async def read(self, owner: Owner, namespace: str) -> None:
        """Read an object live, once for each owner reference. KubernetesError: it cannot be read."""
        resource = self._resource(owner)
        if resource is None:
            return
        try:
            data = await self._client.request("GET", resource.path(namespace, owner.name))
            found: Scaled | None = self._readers[resource](data)
        except NotFoundError:
            found = None
        if found is not None and found.uid != owner.uid:
            found = None
        self._read[_reference(owner)] = found
        self._changes[namespace] += 1
        while len(self._read) > _MAX_READ:
            self._read.popitem(last=False)
