"""Objects that say how many pods there should be: workloads, and the sets between a workload and its pods."""

import sys

import msgspec

from altershield.api.resources import Resource
from altershield.workloads.adapter import Adapter
from altershield.workloads.meta import Flat, Owner, WireMeta, packed, packed_version
from altershield.workloads.workload import WireSelector


class Scaled(Flat, frozen=True, gc=False):
    """The projection of such an object."""

    group: str
    kind: str
    replicas: int
    deleting: bool
    owner: Owner
    """Its own controller, or NO_OWNER."""
    selector: WireSelector
    """The labels of its pods."""
    existing: int = 0
    """The number of its pods, from its status."""


class _Spec(msgspec.Struct, frozen=True, gc=False):
    replicas: int = 1
    selector: WireSelector = WireSelector()


class _Status(msgspec.Struct, frozen=True, gc=False):
    replicas: int = 0


class _Wire(msgspec.Struct, frozen=True, gc=False):
    metadata: WireMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()


_decode = msgspec.json.Decoder(_Wire).decode


class Reader:
    """Reads the objects of a resource. With an `adapter`, the adapter says how many pods there should be."""

    def __init__(self, resource: Resource, adapter: Adapter | None = None) -> None:
        self._resource = resource
        self._adapter = adapter

    def __call__(self, data: bytes | msgspec.Raw) -> Scaled:
        """The projection of an object in JSON. msgspec.DecodeError if it is not one."""
        wire = _decode(data)
        metadata = wire.metadata
        return Scaled(
            sys.intern(metadata.namespace),
            metadata.name,
            packed(metadata.uid),
            packed_version(metadata.resource_version) if metadata.resource_version else "",
            self._resource.group,
            self._resource.kind,
            wire.spec.replicas if self._adapter is None else self._adapter.read(data).replicas,
            metadata.deletion_timestamp is not None,
            metadata.owner,
            wire.spec.selector,
            wire.status.replicas,
        )
