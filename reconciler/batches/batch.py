"""What is kept of a ChangePod: there is one for each pod of the cluster, so it is little."""

import sys
from collections.abc import Callable

import msgspec

from altershield.api import names
from altershield.api.kinds import ChangePod, PodState, Verdict
from altershield.api.meta import unix
from altershield.workloads.meta import NO_OWNER, Meta, Owner, Packed, packed, packed_version, shared, unpacked
from altershield.workloads.pods import Pod, clip

MAX_MESSAGE = 200
"""Characters of a verdict's message in lists and messages."""


class Member(msgspec.Struct, frozen=True, gc=False):
    """A pod of a batch, and the explicit verdict on it; empty where there is none."""

    pod: str
    packed_uid: Packed
    verdict: str = ""
    message: str = ""
    overruled: bool = False
    """The batch was made with a verdict that fails it, and a person says that it passes."""

    @property
    def uid(self) -> str:
        return unpacked(self.packed_uid)


class Batch(msgspec.Struct, frozen=True, gc=False):
    metadata: Meta
    owner: Owner
    """The ChangeWorkload."""
    members: tuple[Member, ...]
    done: bool
    giver: str
    """Whose verdict fails it; empty where none does."""
    unfinished: ChangePod | None
    """The whole object, as long as something has to be done for it."""

    @property
    def number(self) -> int:
        return names.change_pod_number(self.metadata.name)

    @property
    def release(self) -> tuple[str, str]:
        """Namespace and name of its ChangeWorkload."""
        return self.metadata.namespace, names.change_workload_of(self.metadata.name)


_decode = msgspec.json.Decoder(ChangePod).decode


FindPod = Callable[[str, str], Pod | None]
"""The pod that is known by a namespace and a name."""


def read(data: bytes | msgspec.Raw, find: FindPod = lambda namespace, name: None) -> Batch:
    """A ChangePod as the API server sent it; msgspec.DecodeError where it is none. It shares the names of its pods
    with those that `find` gives."""
    return project(_decode(data), find)


def project(change_pod: ChangePod, find: FindPod = lambda namespace, name: None) -> Batch:
    """What is kept of it."""
    # Imported late: deciding needs what is kept, and what is kept follows from whether there is something to decide.
    from reconciler.batches.transitions import failed_by, needs_work

    metadata = change_pod.metadata
    results = {result.pod: result for result in change_pod.status.pod_results if result.verdict}
    members = []
    for info in change_pod.spec.pod_infos:
        result = results.get(info.pod, info)
        overruled = bool(info.verdict) and result.verdict == Verdict.PASS
        pod, uid = info.pod, packed(info.uid)
        known = find(metadata.namespace, pod)
        if known is not None and known.metadata.packed_uid == uid:
            pod, uid = known.metadata.name, known.metadata.packed_uid
        members.append(Member(pod, uid, sys.intern(result.verdict), clip(result.message, MAX_MESSAGE), overruled))
    owner = metadata.controller
    return Batch(
        Meta(
            sys.intern(metadata.namespace),
            metadata.name,
            packed(metadata.uid),
            packed_version(metadata.resource_version),
            int(unix(metadata.creation_timestamp)) or change_pod.spec.create_time_unix,
            deleting=metadata.deletion_timestamp is not None,
        ),
        NO_OWNER if owner is None else shared(owner),
        tuple(members),
        change_pod.status.status == PodState.EXECUTE_DONE,
        failed_by(change_pod) if any(each.verdict not in ("", Verdict.PASS) for each in members) else "",
        change_pod if needs_work(change_pod) else None,
    )
