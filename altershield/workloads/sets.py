"""The projection of an object between a workload and its pods: a ReplicaSet."""

import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from altershield.api import labels, names
from altershield.workloads.meta import Flat, Owner, Packed, WireMeta, packed, packed_version

_REVISION = "deployment.kubernetes.io/revision"  # written by the workload's controller
_MAX_DIGITS = 19
_HIGHEST = 2**63 - 1  # the workload's controller reads the number as an int64; it takes others for 0


class Set(Flat, frozen=True, gc=False):
    """The projection of a ReplicaSet. A workload keeps ten old ReplicaSets, so these objects are the most numerous."""

    owner: Owner
    """The workload."""
    label: Packed
    """The version label, packed."""
    number: int = 0
    """The number of the release, counted by the workload's controller; 0 if it is not known. The highest one is that of
    the present template."""

    @property
    def version(self) -> str:
        """The version label. Anybody may have written it."""
        return f"{self.label:032x}" if isinstance(self.label, int) else self.label


def number(annotations: Mapping[str, Any] | None) -> int:
    """The number of the release in these annotations; 0 if it is not known."""
    value = str((annotations or {}).get(_REVISION, ""))
    if not (value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS):
        return 0
    found = int(value)
    return found if found <= _HIGHEST else 0


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
        number(metadata.annotations),
    )
