"""The projection of an object between a workload and its pods: a ReplicaSet."""

import sys
from collections.abc import Mapping
from typing import Any, Self

import msgspec

from altershield.api import labels, names
from altershield.workloads.meta import Owner, WireMeta, packed, packed_version, unpacked

_REVISION = "deployment.kubernetes.io/revision"  # written by the workload's controller
_MAX_DIGITS = 19
_HIGHEST = 2**63 - 1  # the workload's controller reads the number as an int64; it takes others for 0


_VERSION_BITS = 64  # of the resourceVersion
_LABEL_BITS = 1 + 128  # of the label, with a first bit that says that there is one

Identity = int | tuple[str, str, str]
"""The uid, the resourceVersion and the version label. As one int they take half the memory of three; unusual texts are
kept as they are."""


class Set(msgspec.Struct, frozen=True, gc=False):
    """The projection of a ReplicaSet. A workload keeps ten old ReplicaSets, so these objects are the most numerous. It
    is its own metadata."""

    namespace: str
    name: str
    identity: Identity
    owner: Owner
    """The workload."""
    number: int = 0
    """The number of the release, counted by the workload's controller; 0 if it is not known. The highest one is that of
    the present template."""

    @property
    def metadata(self) -> Self:
        return self

    @property
    def uid(self) -> str:
        found = self.identity
        return unpacked(found >> _VERSION_BITS + _LABEL_BITS) if isinstance(found, int) else found[0]

    @property
    def resource_version(self) -> str:
        found = self.identity
        return str(found & (1 << _VERSION_BITS) - 1) if isinstance(found, int) else found[1]

    @property
    def version(self) -> str:
        """The version label. Anybody may have written it."""
        if not isinstance(self.identity, int):
            return self.identity[2]
        digits = self.identity >> _VERSION_BITS & (1 << _LABEL_BITS) - 1
        return f"{digits:x}"[1:]


def identity(uid: str, resource_version: str, version: str) -> Identity:
    """The three texts, packed."""
    id_, at = packed(uid), packed_version(resource_version)
    if not isinstance(id_, int) or not isinstance(at, int) or at >> _VERSION_BITS or not _is_label(version):
        return uid, resource_version, version
    return (id_ << _LABEL_BITS | (int(f"1{version}", 16) if version else 0)) << _VERSION_BITS | at


def _is_label(version: str) -> bool:
    """Whether the version label can be packed."""
    return not version or names.is_version(version)


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
    return Set(
        sys.intern(metadata.namespace),
        metadata.name,
        identity(metadata.uid, metadata.resource_version, metadata.label(labels.VERSION)),
        metadata.owner,
        number(metadata.annotations),
    )
