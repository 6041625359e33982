"""The projection of a ChangeWorkload: the fields that decide about a denial or occur in its text. The cache holds only
these, because there are many ChangeWorkloads."""

import sys
import zlib

import msgspec

from altershield.api.change_workload import Resumption, SourceRef, WorkloadRef, Written
from altershield.api.meta import Condition
from altershield.releases import version_of
from kube_base.meta import ObjectMeta


class FailedPod(msgspec.Struct, frozen=True, omit_defaults=True):
    pod: str = ""
    uid: str = ""
    message: str = ""
    verdict: str = ""


class Policy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    namespace: str = ""
    name: str = ""
    mode: str = ""


_NOT_RESUMED = Resumption()
_NO_WORKLOAD = WorkloadRef()
_NO_POLICY = Policy()
_NO_SOURCE = SourceRef()
_NOTHING = msgspec.Raw()


class Spec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    workload_ref: WorkloadRef = _NO_WORKLOAD
    workload_generation: int = 0
    create_time_unix: int = 0
    policy: Policy = _NO_POLICY
    written: msgspec.Raw = _NOTHING
    not_decided_by: str = ""


class Status(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    status: str = ""
    entry_time_unix: int = 0
    defense_check_fail_pods: tuple[FailedPod, ...] = ()
    conditions: tuple[Condition, ...] = ()
    source: SourceRef = _NO_SOURCE
    previous: SourceRef = _NO_SOURCE
    rollback_target: SourceRef = _NO_SOURCE
    restored_paths: tuple[str, ...] = ()
    resumption: Resumption = _NOT_RESUMED


_NO_SPEC = Spec()
_NO_STATUS = Status()


class Release(msgspec.Struct, frozen=True, omit_defaults=True):
    """An `altershield.releases.Release` without the pods that passed."""

    metadata: ObjectMeta
    spec: Spec = _NO_SPEC
    status: Status = _NO_STATUS
    packed: bytes = b""
    """`spec.written`, compressed. It is decoded for those workloads of which a FieldGuard asks for it."""

    @property
    def written(self) -> tuple[Written, ...]:
        """What releases wrote to guarded fields, until this one."""
        return _decode_written(zlib.decompress(self.packed)) if self.packed else ()


_decode = msgspec.json.Decoder(Release).decode
_decode_written = msgspec.json.Decoder(tuple[Written, ...]).decode


def read(data: bytes | msgspec.Raw) -> Release:
    """The projection of a ChangeWorkload from the API server. msgspec.DecodeError: `data` is not a ChangeWorkload."""
    release = _decode(data)
    workload, source = release.spec.workload_ref, release.status.source
    replace = msgspec.structs.force_setattr  # equal values of many objects become one
    replace(release.metadata, "labels", {})
    replace(release.metadata, "annotations", {})
    if workload is not _NO_WORKLOAD:
        replace(workload, "api_version", sys.intern(workload.api_version))
        replace(workload, "kind", sys.intern(workload.kind))
    if release.spec.not_decided_by:
        replace(release.spec, "not_decided_by", sys.intern(release.spec.not_decided_by))
    if release.spec.written:
        replace(release, "packed", zlib.compress(memoryview(release.spec.written)))
        replace(release.spec, "written", _NOTHING)
    policy = release.spec.policy
    if policy is not _NO_POLICY:
        for field in Policy.__struct_fields__:
            replace(policy, field, sys.intern(getattr(policy, field)))
    if source is not _NO_SOURCE:  # the name contains the version already
        differs = source.fingerprint not in ("", version_of(release))
        replace(release.status, "source", SourceRef(fingerprint=source.fingerprint) if differs else _NO_SOURCE)
    for name in ("previous", "rollback_target"):
        found = getattr(release.status, name)
        if found is not _NO_SOURCE:
            replace(release.status, name, SourceRef(fingerprint=sys.intern(found.fingerprint), left=found.left))
    return release
