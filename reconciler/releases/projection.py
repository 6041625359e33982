"""What is kept of a ChangeWorkload: all but its long lists of pods, of which a digest tells whether they changed."""

import hashlib
import sys
from typing import TypeVar

import msgspec

from altershield.api.kinds import ChangeWorkload, ChangeWorkloadSpec, ChangeWorkloadStatus, PodInfo
from altershield.api.meta import ObjectMeta

T = TypeVar("T", bound=msgspec.Struct)

_NOTHING: dict[str, str] = {}


class Release(ChangeWorkload, frozen=True, rename="camel"):
    """The lists of pods that passed, wait and are being verified are empty in `status`."""

    passed: int = 0
    """Pods in the list of those that passed."""
    digest: bytes = b""
    """Of the three lists."""


_decode = msgspec.json.Decoder(ChangeWorkload).decode


def read(data: bytes | msgspec.Raw) -> Release:
    """A ChangeWorkload as the API server sent it; msgspec.DecodeError where it is none."""
    release = _decode(data)
    status = release.status
    return Release(
        metadata=_metadata(release.metadata),
        spec=_spec(release.spec, release.metadata.name),
        status=_status(without_lists(status)),
        api_version=sys.intern(release.api_version),
        kind=sys.intern(release.kind),
        passed=len(status.defense_check_pass_pods),
        digest=digest(status),
    )


def _metadata(metadata: ObjectMeta) -> ObjectMeta:
    """Without labels and annotations, which anybody may have written."""
    return msgspec.structs.replace(
        metadata,
        namespace=sys.intern(metadata.namespace),
        name=sys.intern(metadata.name),
        uid=sys.intern(metadata.uid),
        creation_timestamp=None,
        labels=_NOTHING,
        annotations=_NOTHING,
        owner_references=tuple(_shared(owner) for owner in metadata.owner_references),
    )


def _spec(spec: ChangeWorkloadSpec, name: str) -> ChangeWorkloadSpec:
    return _shared(msgspec.structs.replace(spec, workload_ref=_shared(spec.workload_ref)))


def _status(status: ChangeWorkloadStatus) -> ChangeWorkloadStatus:
    return _shared(
        msgspec.structs.replace(
            status,
            source=_shared(status.source),
            previous=_shared(status.previous),
            rollback_target=_shared(status.rollback_target),
            conditions=tuple(_shared(each) for each in status.conditions),
        )
    )


def _shared(each: T) -> T:
    """With texts that are the same as other objects hold."""
    for field in each.__struct_fields__:
        value = getattr(each, field)
        if type(value) is str and not field.endswith("_time"):  # times are hardly ever the same
            msgspec.structs.force_setattr(each, field, sys.intern(value))
    return each


def without_lists(status: ChangeWorkloadStatus) -> ChangeWorkloadStatus:
    return msgspec.structs.replace(
        status, defense_preparing_pods=(), defense_checking_pods=(), defense_check_pass_pods=()
    )


def digest(status: ChangeWorkloadStatus) -> bytes:
    """Empty where all three lists are."""
    lists = (status.defense_preparing_pods, status.defense_checking_pods, status.defense_check_pass_pods)
    if not any(lists):
        return b""
    found = hashlib.blake2b(digest_size=12)
    for pods in lists:
        for pod in pods:
            found.update(_line(pod))
        found.update(b"\x00")
    return found.digest()


def _line(pod: PodInfo) -> bytes:
    return f"{pod.pod}/{pod.uid}/{pod.verdict}/{pod.message}\n".encode()
