"""The projection of a ChangeWorkload that the cache keeps. It has a digest in place of the long lists of pods."""

import hashlib
import sys
from typing import TypeVar

import msgspec

from altershield.api.change_workload import ChangeWorkload, ChangeWorkloadSpec, ChangeWorkloadStatus
from altershield.api.pod_verdicts import PodInfo
from altershield.api.policy import AppliedPolicy
from altershield.workloads.workload import Workload
from kube_base.meta import ObjectMeta

T = TypeVar("T", bound=msgspec.Struct)

_NO_LABELS: dict[str, str] = {}
_NO_POLICY = AppliedPolicy()
_policies: dict[bytes, AppliedPolicy] = {}
_MAX_POLICIES = 1024


class Release(ChangeWorkload, frozen=True, rename="camel"):
    """A ChangeWorkload. In `status`, the lists of passed, waiting and checked pods are empty."""

    passed: int = 0
    """The length of the list of passed pods."""
    digest: bytes = b""
    """The digest of the three lists; see `digest`."""


_decode = msgspec.json.Decoder(ChangeWorkload).decode


def read(data: bytes | msgspec.Raw) -> Release:
    """The projection of a ChangeWorkload in JSON. msgspec.DecodeError if it is not a ChangeWorkload."""
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
    """The metadata without labels and annotations. They are not used, because anybody may have written them."""
    return msgspec.structs.replace(
        metadata,
        namespace=sys.intern(metadata.namespace),
        name=sys.intern(metadata.name),
        uid=sys.intern(metadata.uid),
        creation_timestamp=None,
        labels=_NO_LABELS,
        annotations=_NO_LABELS,
        owner_references=tuple(_shared(owner) for owner in metadata.owner_references),
    )


def _spec(spec: ChangeWorkloadSpec, name: str) -> ChangeWorkloadSpec:
    """The spec without the values of guarded fields, which are read when a release begins."""
    return _shared(
        msgspec.structs.replace(spec, workload_ref=_shared(spec.workload_ref), policy=_policy(spec.policy), written=())
    )


def _policy(policy: AppliedPolicy) -> AppliedPolicy:
    """The policy as an object that all its releases share."""
    if policy == _NO_POLICY:
        return _NO_POLICY
    key = msgspec.json.encode(policy)
    if len(_policies) >= _MAX_POLICIES:
        _policies.clear()
    return _policies.setdefault(key, policy)


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
    """The object with interned strings. This saves memory, because other objects hold the same texts."""
    for field in each.__struct_fields__:
        value = getattr(each, field)
        if type(value) is str and not field.endswith("_time"):  # times are rarely equal
            msgspec.structs.force_setattr(each, field, sys.intern(value))
    return each


def went_back_to(release: Release, workload: Workload) -> bool:
    """Whether the current version is the one to which the version of `release` was rolled back."""
    target = release.status.rollback_target
    versions = {release.status.rollback_to, target.version, target.fingerprint} - {""}
    return workload.version in versions or workload.fingerprint == target.fingerprint != ""


def without_lists(status: ChangeWorkloadStatus) -> ChangeWorkloadStatus:
    """The status with the three lists empty."""
    return msgspec.structs.replace(
        status, defense_preparing_pods=(), defense_checking_pods=(), defense_check_pass_pods=()
    )


def digest(status: ChangeWorkloadStatus) -> bytes:
    """A digest of the three lists; empty if all three are empty."""
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
