"""The projection of a node: its labels, whether it is ready, and since when."""

import sys
from collections.abc import Mapping

import msgspec

from altershield.workloads.meta import Meta, WireMeta
from kube_base.times import unix


class Node(msgspec.Struct, frozen=True, gc=False):
    """The projection of a node."""

    metadata: Meta
    ready: bool
    ready_at: int
    """When `ready` last changed, Unix seconds by the clock of the node or of the node controller; 0 if it is
    not known."""
    labels: Mapping[str, str] = {}


class _Condition(msgspec.Struct, frozen=True, rename="camel", gc=False):
    type: str
    status: str
    last_transition_time: str | None = None


class _Status(msgspec.Struct, frozen=True, gc=False):
    conditions: tuple[_Condition, ...] = ()


class _Wire(msgspec.Struct, frozen=True, gc=False):
    metadata: WireMeta
    status: _Status = _Status()


_decode = msgspec.json.Decoder(_Wire).decode


def read(data: bytes | msgspec.Raw) -> Node:
    """The projection of a node in JSON. msgspec.DecodeError if it is not a node."""
    wire = _decode(data)
    ready = next((each for each in wire.status.conditions if each.type == "Ready"), None)
    own = {sys.intern(key): sys.intern(value) for key, value in (wire.metadata.labels or {}).items()}
    if ready is None:
        return Node(wire.metadata.projection, False, 0, own)
    return Node(wire.metadata.projection, ready.status == "True", int(unix(ready.last_transition_time)), own)
