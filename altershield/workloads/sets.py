"""The projection of an object between a workload and its pods: a ReplicaSet."""

import sys

import msgspec

from altershield.api import labels, names
from altershield.workloads.meta import Flat, Owner, Packed, WireMeta, packed, packed_version


class Set(Flat, frozen=True, gc=False):
    """The projection of a ReplicaSet. A workload keeps ten old ReplicaSets, so these objects are the most numerous."""

    owner: Owner
    """The workload."""
    label: Packed
    """The version label, packed."""

    @property
    def version(self) -> str:
        """The version label. Anybody may have written it."""
        return f"{self.label:032x}" if isinstance(self.label, int) else self.label


class _Wire(msgspec.Struct, frozen=True, gc=False):
    metadata: WireMeta


_decode = msgspec.json.Decoder(_Wire).decode


def read(data: bytes | msgspec.Raw) -> Set:
    """The projection of a ReplicaSet in JSON. msgspec.DecodeError: it is not such an object."""
    metadata = _decode(data).metadata
    version = metadata.label(labels.VERSION)
    return Set(
        sys.intern(metadata.namespace),
        metadata.name,
        packed(metadata.uid),
        packed_version(metadata.resource_version),
        metadata.owner,
        int(version, 16) if names.is_version(version) else version,
    )
