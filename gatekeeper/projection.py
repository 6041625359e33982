"""What is kept of a ChangeWorkload: what a denial says, and what decides whether there is one. They are many."""

import sys

import msgspec

from altershield.api.kinds import SourceRef, WorkloadRef
from altershield.api.meta import Condition, ObjectMeta
from altershield.releases import version


class FailedPod(msgspec.Struct, frozen=True, omit_defaults=True):
    pod: str = ""
    message: str = ""
    verdict: str = ""


_NO_WORKLOAD = WorkloadRef()
_NO_SOURCE = SourceRef()


class Spec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    workload_ref: WorkloadRef = _NO_WORKLOAD
    workload_generation: int = 0
    create_time_unix: int = 0


class Status(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    status: str = ""
    entry_time_unix: int = 0
    defense_check_fail_pods: tuple[FailedPod, ...] = ()
    conditions: tuple[Condition, ...] = ()
    source: SourceRef = _NO_SOURCE


_NO_SPEC = Spec()
_NO_STATUS = Status()


class Release(msgspec.Struct, frozen=True, omit_defaults=True):
    """An `altershield.releases.Record`; pods that passed are not kept."""

    metadata: ObjectMeta
    spec: Spec = _NO_SPEC
    status: Status = _NO_STATUS


_decode = msgspec.json.Decoder(Release).decode


def read(data: bytes | msgspec.Raw) -> Release:
    """A ChangeWorkload as the API server sent it; msgspec.DecodeError where it is none."""
    release = _decode(data)
    meant, source = release.spec.workload_ref, release.status.source
    share = msgspec.structs.force_setattr
    share(release.metadata, "labels", {})
    share(release.metadata, "annotations", {})
    if meant is not _NO_WORKLOAD:
        share(meant, "api_version", sys.intern(meant.api_version))
        share(meant, "kind", sys.intern(meant.kind))
    if source is not _NO_SOURCE:  # the name says the version already
        told = source.fingerprint not in ("", version(release))
        share(release.status, "source", SourceRef(fingerprint=source.fingerprint) if told else _NO_SOURCE)
    return release
