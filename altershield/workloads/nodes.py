"""What is kept of a node: whether it is ready."""

import msgspec

from altershield.workloads.meta import Meta, WireMeta


class Node(msgspec.Struct, frozen=True, gc=False):
    metadata: Meta
    ready: bool


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str
    status: str


class _Status(msgspec.Struct, frozen=True, gc=False):
    conditions: tuple[_Condition, ...] = ()


class _Wire(msgspec.Struct, frozen=True, gc=False):
    metadata: WireMeta
    status: _Status = _Status()


_decode = msgspec.json.Decoder(_Wire).decode


def read(data: bytes | msgspec.Raw) -> Node:
    """A node as the API server sent it; msgspec.DecodeError where it is none."""
    wire = _decode(data)
    ready = any(each.type == "Ready" and each.status == "True" for each in wire.status.conditions)
    return Node(wire.metadata.kept, ready)
