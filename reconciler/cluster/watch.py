"""What a subject follows in addition to the objects that all subjects read."""

from dataclasses import dataclass
from typing import Generic

from kube_base.access.objects import T
from kube_base.resources import Resource


@dataclass(frozen=True)
class Watch(Generic[T]):
    """The objects of `resource`, decoded as `type`: a kind, or a projection with only the fields that are read."""

    resource: Resource
    type: type[T]
    everywhere: bool = False
    """Whether objects of ungoverned namespaces are kept too. Objects of cluster-scoped kinds need it."""
