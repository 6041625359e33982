"""What a subject follows in addition to the objects that all subjects read."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from kube_base.access.client import Client
from kube_base.access.informer import Informer
from kube_base.access.objects import T
from kube_base.resources import Resource


class Scope(enum.Enum):
    """The namespaces whose objects are kept."""

    GOVERNED = enum.auto()
    GOVERNED_AND_SYSTEM = enum.auto()
    SYSTEM = enum.auto()
    """Only the system namespace. Only its objects are listed, so no permission in other namespaces is needed."""
    EVERYWHERE = enum.auto()
    """Objects of cluster-scoped kinds need it."""

    @property
    def follows_namespaces(self) -> bool:
        """Whether it changes when a namespace becomes governed, or is not governed any more."""
        return self in (Scope.GOVERNED, Scope.GOVERNED_AND_SYSTEM)


@dataclass(frozen=True)
class Watch(Generic[T]):
    """The objects of `resource`, decoded as `type`: a kind, or a projection with only the fields that are read."""

    resource: Resource
    type: type[T]
    scope: Scope = Scope.GOVERNED
    label_selector: str = ""
    name: str = ""
    """Distinguishes it from other informers of the same resource in metrics. Default: the resource's plural."""

    def informer(self, client: Client, system_namespace: str, governs: Callable[[T], bool]) -> Informer[T]:
        """The cache of these objects. `governs`: whether AlterShield acts in the namespace of an object."""

        def keep(obj: T) -> bool:
            in_system = obj.metadata.namespace == system_namespace and self.scope is Scope.GOVERNED_AND_SYSTEM
            return not self.scope.follows_namespaces or in_system or governs(obj)

        return Informer(
            client,
            self.resource,
            self.type,
            namespace=system_namespace if self.scope is Scope.SYSTEM else "",
            label_selector=self.label_selector,
            keep=keep,
            name=self.name,
        )
