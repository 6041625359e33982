"""Objects that say how many pods there should be: workloads, and the sets between a workload and its pods."""

import sys

import msgspec

from altershield.workloads.meta import Flat, Owner, WireMeta, packed, packed_version
from altershield.workloads.workload import WireSelector
from kube_base.resources import GroupKind, Resource


class Scaled(Flat, frozen=True, gc=False):
    """The projection of a workload or of a set."""

    group_kind: GroupKind
    replicas: int
    deleting: bool
    owner: Owner
    """Its own controller, or NO_OWNER."""
    selector: WireSelector
    """The selector of its pods."""
    existing: int = 0
    """The number of its pods, from its status."""


class _Spec(msgspec.Struct, frozen=True, gc=False):
    replicas: int = 1
    selector: WireSelector = WireSelector()


class _Status(msgspec.Struct, frozen=True, rename="camel", gc=False):
    replicas: int = 0
    desired_number_scheduled: int | None = None
    """Only DaemonSets have it; the API server never leaves it out."""


class _Wire(msgspec.Struct, frozen=True, gc=False):
    metadata: WireMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()


_decode = msgspec.json.Decoder(_Wire).decode


class Reader:
    """Reads the objects of a resource. It does not decode the pod template, which is most of a workload."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    def __call__(self, data: bytes | msgspec.Raw) -> Scaled:
        """The projection of an object in JSON. msgspec.DecodeError: it is not such an object."""
        wire = _decode(data)
        metadata, scheduled = wire.metadata, wire.status.desired_number_scheduled
        return Scaled(
            sys.intern(metadata.namespace),
            sys.intern(metadata.name),  # the owner references of its pods have the same string
            packed(metadata.uid),
            packed_version(metadata.resource_version) if metadata.resource_version else "",
            self._resource.group_kind,
            wire.spec.replicas if scheduled is None else scheduled,
            metadata.deletion_timestamp is not None,
            metadata.owner,
            _shared(wire.spec.selector),
            wire.status.replicas,
        )


def _shared(selector: WireSelector) -> WireSelector:
    """The selector with interned strings, which the labels of pods share."""
    labels = {sys.intern(name): sys.intern(value) for name, value in (selector.match_labels or {}).items()}
    return msgspec.structs.replace(selector, match_labels=labels)
