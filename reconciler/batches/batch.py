"""What is kept of a ChangePod: there is one for each pod of the cluster, so it is little."""

import sys

import msgspec

from altershield.api import names
from altershield.api.kinds import ChangePod, PodState, Verdict
from altershield.workloads.meta import NO_OWNER, Meta, Owner

MAX_SAID = 200
"""Characters of a verdict's message in lists and messages."""


class Member(msgspec.Struct, frozen=True, gc=False):
    """A pod of a batch, and the explicit verdict on it; empty where there is none."""

    pod: str
    uid: str
    verdict: str = ""
    message: str = ""
    overruled: bool = False
    """The batch was made with a verdict that fails it, and a person says that it passes."""


class Batch(msgspec.Struct, frozen=True, gc=False):
    metadata: Meta
    owner: Owner
    """The ChangeWorkload."""
    members: tuple[Member, ...]
    done: bool
    giver: str
    """Whose verdict fails it; empty where none does."""
    open: ChangePod | None
    """The whole object, as long as something has to be done for it."""

    @property
    def number(self) -> int:
        return names.change_pod_number(self.metadata.name)

    @property
    def record(self) -> tuple[str, str]:
        """Namespace and name of its ChangeWorkload."""
        return self.metadata.namespace, names.change_workload_of(self.metadata.name)


_decode = msgspec.json.Decoder(ChangePod).decode


def read(data: bytes | msgspec.Raw) -> Batch:
    """A ChangePod as the API server sent it; msgspec.DecodeError where it is none."""
    return kept(_decode(data))


def kept(record: ChangePod) -> Batch:
    """What is kept of it."""
    # Imported late: deciding needs what is kept, and what is kept follows from whether there is something to decide.
    from reconciler.batches.decide import failed_by, needs_work

    metadata = record.metadata
    results = {result.pod: result for result in record.status.pod_results if result.verdict}
    members = []
    for info in record.spec.pod_infos:
        said = results.get(info.pod, info)
        overruled = bool(info.verdict) and said.verdict == Verdict.PASS
        members.append(Member(info.pod, info.uid, sys.intern(said.verdict), said.message[:MAX_SAID], overruled))
    owner = metadata.controller
    return Batch(
        Meta(
            sys.intern(metadata.namespace),
            metadata.name,
            metadata.uid,
            metadata.resource_version,
            deleting=metadata.deletion_timestamp is not None,
        ),
        NO_OWNER if owner is None else _owner(owner.api_version, owner.kind, owner.name, owner.uid),
        tuple(members),
        record.status.status == PodState.EXECUTE_DONE,
        failed_by(record) if any(each.verdict not in ("", Verdict.PASS) for each in members) else "",
        record if needs_work(record) else None,
    )


def _owner(api_version: str, kind: str, name: str, uid: str) -> Owner:
    return Owner(sys.intern(api_version), sys.intern(kind), sys.intern(name), sys.intern(uid))
