"""What is kept of an object between a workload and its pods, as a ReplicaSet is."""

import sys

import msgspec

from altershield.api import labels
from altershield.workloads.meta import Meta, Owner, WireMeta


class Set(msgspec.Struct, frozen=True, gc=False):
    metadata: Meta
    owner: Owner
    """Its workload."""
    version: str
    """The version label; anybody may have written it."""


class _Wire(msgspec.Struct, frozen=True, gc=False):
    metadata: WireMeta


_decode = msgspec.json.Decoder(_Wire).decode


def read(data: bytes | msgspec.Raw) -> Set:
    """Such an object as the API server sent it; msgspec.DecodeError where it is none."""
    metadata = _decode(data).metadata
    return Set(metadata.kept, metadata.owner, sys.intern(metadata.label(labels.VERSION)))
