"""The projection of an object between a workload and its pods: a ReplicaSet."""

import sys

import msgspec

from altershield.api import labels, names
from altershield.workloads.meta import Owner, Packed, WireMeta, packed, packed_version, unpacked


class Set(msgspec.Struct, frozen=True, gc=False):
    """The projection. It has no separate `Meta`, to save memory: a workload keeps ten old ReplicaSets, so these objects
    are the most numerous."""

    namespace: str
    name: str
    packed_uid: Packed
    packed_version: Packed
    owner: Owner
    """The workload."""
    label: Packed
    """The version label, packed."""

    @property
    def metadata(self) -> "Set":
        return self

    @property
    def uid(self) -> str:
        return unpacked(self.packed_uid)

    @property
    def resource_version(self) -> str:
        return str(self.packed_version)

    @property
    def version(self) -> str:
        """The version label. Anybody may have written it."""
        return f"{self.label:032x}" if isinstance(self.label, int) else self.label


class _Wire(msgspec.Struct, frozen=True, gc=False):
    metadata: WireMeta


_decode = msgspec.json.Decoder(_Wire).decode


def read(data: bytes | msgspec.Raw) -> Set:
    """The projection of such an object in JSON. msgspec.DecodeError if it is not one."""
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
