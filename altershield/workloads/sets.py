"""What is kept of an object between a workload and its pods, as a ReplicaSet is."""

import sys

import msgspec

from altershield.api import labels, names
from altershield.workloads.meta import Owner, Packed, WireMeta, packed, packed_version, unpacked


class Set(msgspec.Struct, frozen=True, gc=False):
    """These are the most: a workload has ten old ones. So it is its own metadata."""

    namespace: str
    name: str
    packed_uid: Packed
    packed_version: Packed
    owner: Owner
    """Its workload."""
    label: Packed

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
        """The version label; anybody may have written it."""
        return f"{self.label:032x}" if isinstance(self.label, int) else self.label


class _Wire(msgspec.Struct, frozen=True, gc=False):
    metadata: WireMeta


_decode = msgspec.json.Decoder(_Wire).decode


def read(data: bytes | msgspec.Raw) -> Set:
    """Such an object as the API server sent it; msgspec.DecodeError where it is none."""
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
