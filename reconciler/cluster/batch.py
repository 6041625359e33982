"""The projection of a ChangePod that the cache keeps. It is small, because there is about one ChangePod per pod."""

import functools
import sys
from collections.abc import Callable

import msgspec

from altershield.api import names
from altershield.api.change_pod import ChangePod, PodState
from altershield.api.check_results import FailedRule
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.api.pod_verdicts import Verdict
from altershield.workloads.meta import NO_OWNER, Flat, Owner, Packed, packed, packed_version, recent, shared, unpacked
from altershield.workloads.pods import Pod, clip
from kube_base.times import unix
from reconciler.cluster.verdicts import IN_PROGRESS, failed_by, is_repeatable, needs_work, why_waiting

MAX_MESSAGE = 200
"""Characters of a verdict's message that are kept."""


MAX_SAID = 1000
"""Characters that are kept of what the checks of a release said."""


class Member(msgspec.Struct, frozen=True, gc=False):
    """A pod of a batch, and the explicit verdict on it; the verdict is empty if there is none."""

    pod: str
    packed_uid: Packed
    verdict: str = ""
    message: str = ""
    overruled: bool = False
    """The batch was created with a verdict that fails the pod, and a person overruled it with `pass`."""

    @property
    def uid(self) -> str:
        return unpacked(self.packed_uid)


class ReleaseChecks(msgspec.Struct, frozen=True, gc=False):
    """The checks of a release that a ChangePod without pods has."""

    phase: str
    """A `CheckPhase`: when they run."""
    step: int
    """The step that waits for them; 0 after the release."""
    generation: int
    """`spec.workloadGeneration` of the release."""
    verdict: str
    """The status of the condition Verified: `True` if all passed, `False` if they fail the release, else `Unknown`."""
    giver: str
    """The `Giver` of the verdict, if it fails the release."""
    said: str
    """What they said, as a sentence; empty if none has a result."""


class Batch(Flat, frozen=True, gc=False):
    """The projection of a ChangePod. It is its own metadata."""

    created: int
    """Unix seconds, by the API server's clock."""
    deleting: bool
    owner: Owner
    """The ChangeWorkload."""
    members: tuple[Member, ...]
    done: bool
    """Whether the state is ExecuteDone."""
    giver: str
    """The `Giver` of the verdict that fails the batch; empty if no verdict fails it."""
    node: str
    """The id of the batch on an AlterShield server; empty if it has none."""
    why_waiting: str
    """Why the batch waits for a person; empty if it does not."""
    unfinished: ChangePod | None
    """The whole ChangePod while work on it remains, else None."""
    checks: tuple[tuple[str, str, str], ...] = ()
    """The name, the phase and the state of each check. Equal tuples are shared."""
    rules: tuple[FailedRule, ...] = ()
    """The rules of an AlterShield server that failed the batch."""
    repeatable: bool = False
    """Whether an AlterShield server can repeat the check that failed the batch or has no result."""
    of_release: ReleaseChecks | None = None
    """The checks of a release; None if this is a batch of pods."""

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name

    @property
    def number(self) -> int:
        """The number in the name, from 1."""
        return names.change_pod_number(self.metadata.name)

    @property
    def release(self) -> tuple[str, str]:
        """Namespace and name of its ChangeWorkload."""
        return self.metadata.namespace, names.change_workload_of(self.metadata.name)


_decode = msgspec.json.Decoder(ChangePod).decode


FindPod = Callable[[str, str], Pod | None]
"""Returns the cached pod of a namespace and a name, or None."""


def read(data: bytes | msgspec.Raw, find: FindPod = lambda namespace, name: None) -> Batch:
    """The projection of a ChangePod in JSON. msgspec.DecodeError if it is not a ChangePod.

    Names and uids are shared with the pods that `find` returns, which saves memory.
    """
    return project(_decode(data), find)


def project(change_pod: ChangePod, find: FindPod = lambda namespace, name: None) -> Batch:
    """The projection of a ChangePod. See `read`."""
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
    failed = any(each.verdict not in ("", Verdict.PASS) for each in members)
    owner = metadata.controller
    return Batch(
        sys.intern(metadata.namespace),
        metadata.name,
        packed(metadata.uid),
        packed_version(metadata.resource_version),
        recent(int(unix(metadata.creation_timestamp)) or change_pod.spec.create_time_unix),
        metadata.deletion_timestamp is not None,
        NO_OWNER if owner is None else shared(owner),
        tuple(members),
        change_pod.status.status == PodState.EXECUTE_DONE,
        failed_by(change_pod.status, change_pod) if failed else "",
        change_pod.status.change_pod_id,
        sys.intern(clip(why_waiting(change_pod), MAX_MESSAGE)),
        change_pod if needs_work(change_pod) else None,
        _shared_checks(
            tuple((each.name, change_pod.spec.phase or each.phase, each.state) for each in change_pod.status.checks)
        ),
        next((each.rules for each in change_pod.status.checks if each.rules), ()) if failed else (),
        is_repeatable(change_pod),
        _release_checks(change_pod) if change_pod.spec.phase else None,
    )


def _release_checks(change_pod: ChangePod) -> ReleaseChecks:
    spec, verified = change_pod.spec, find_condition(change_pod.status.conditions, ConditionType.VERIFIED)
    verdict, giver, said = (verified.status, verified.reason, verified.message) if verified else ("Unknown", "", "")
    said = clip(said, MAX_SAID) if giver != IN_PROGRESS else ""
    phase, giver = sys.intern(str(spec.phase)), sys.intern(str(giver))
    return ReleaseChecks(phase, spec.step, spec.workload_generation, verdict, giver, said)


@functools.lru_cache(maxsize=1024)
def _shared_checks(checks: tuple[tuple[str, str, str], ...]) -> tuple[tuple[str, str, str], ...]:
    return checks
