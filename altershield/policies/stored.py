"""The part of a DefensePolicy that decides at admission: whom it selects, its mode, the steps of its releases, and when
its checks run.

A gatekeeper reads only this part. So it can decide about policies with checks of a later version. Pure functions.
"""

import msgspec

from altershield.api.check_specs import CheckPhase
from altershield.api.policy import Mode
from altershield.api.rollout import Rollout
from altershield.api.selectors import Selector
from altershield.policies.selection import InForce
from kube_base.meta import PartialObjectMeta

_ALL = Selector()


class Check(msgspec.Struct, frozen=True, gc=False):
    """The part of a check."""

    phase: str = CheckPhase.POST_BATCH


class Spec(msgspec.Struct, frozen=True, gc=False):
    """The part of the spec."""

    selector: Selector = _ALL
    priority: int = 0
    mode: Mode = Mode.ENFORCE
    rollout: Rollout | None = None
    checks: tuple[Check, ...] = ()


class Policy(msgspec.Struct, frozen=True, gc=False):
    """A DefensePolicy in a cache. `in_force`: None if no spec is in force."""

    metadata: PartialObjectMeta
    in_force: InForce[Spec] | None


class _Status(msgspec.Struct, frozen=True, rename="camel", gc=False):
    accepted: msgspec.Raw = msgspec.Raw()
    accepted_generation: int = 0
    observed_generation: int = 0


_NO_STATUS = _Status()


class _Wire(msgspec.Struct, frozen=True, gc=False):
    metadata: PartialObjectMeta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: _Status = _NO_STATUS


_decode = msgspec.json.Decoder(_Wire).decode
_decode_spec = msgspec.json.Decoder(Spec).decode


def read(data: bytes | msgspec.Raw) -> Policy:
    """A DefensePolicy from the API server. msgspec.DecodeError: `data` is not an object of the API."""
    wire = _decode(data)
    return Policy(wire.metadata, _in_force(wire))


def _in_force(wire: _Wire) -> InForce[Spec] | None:
    """The spec in force: the accepted one, as the reconciler has written it. If the reconciler has not seen the present
    spec yet, the present one: a release is rather held than not. If that cannot be read, the accepted one."""
    metadata, status = wire.metadata, wire.status
    if metadata.deletion_timestamp is not None:
        return None
    if status.observed_generation < metadata.generation:
        present = _spec(wire.spec)
        if present is not None:
            return InForce(metadata.namespace, metadata.name, metadata.generation, present)
    accepted = _spec(status.accepted)
    return (
        InForce(metadata.namespace, metadata.name, status.accepted_generation, accepted)
        if accepted is not None
        else None
    )


def _spec(data: msgspec.Raw) -> Spec | None:
    try:
        return _decode_spec(data) if data else None
    except (ValueError, RecursionError):
        return None
