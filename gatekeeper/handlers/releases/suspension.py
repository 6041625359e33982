"""After a release that failed verification, the next one is denied until it is repaired."""

from collections.abc import Iterator

from altershield import releases
from altershield.api import labels
from altershield.api.kinds import WorkloadState
from altershield.workloads import change_workload_name
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.bypass import awaited, bypass
from gatekeeper.handlers.releases.reasons import BYPASSES, Reason
from gatekeeper.handlers.releases.workload import Change, Workload, released_version, workload_ref
from gatekeeper.listers import Listers
from gatekeeper.projection import Release
from gatekeeper.response import NOTHING, Decision, Denial, Outcome, Response
from gatekeeper.texts import PAGE, advice, at, warning

_MAX_PODS = 5
_MAX_DIGITS = 11  # of a Unix time


@handler(reads=Workload, outcomes=(Outcome(Decision.DENIED, Reason.SUSPENDED), *BYPASSES))
def deny_suspended(change: Change, listers: Listers) -> Response:
    """Deny a changed template while the workload carries `suspend`, also when the setting `blocking` was switched
    off since. The stored object counts, so removing the label in the same request does not help. The warnings say
    why."""
    old = change.old_object
    if old is None or old.label(labels.SUSPEND) is None:
        return NOTHING
    release = released_version(change)
    if not release:
        return NOTHING
    passes = bypass(change, listers)
    if passes is not None:
        return Response(reason=passes, audit={"version": release, "bypass": passes})
    text = f"{change.kind} {change.name} is suspended"
    return Response(
        warnings=(*awaited(change), *_why(change, old, listers)),
        audit={"version": release, "reason": text},
        denial=Denial(message=text, reason=text),
        reason=Reason.SUSPENDED,
    )


def _why(change: Change, old: Workload, listers: Listers) -> Iterator[str]:
    version = old.label(labels.VERSION) or ""
    release = listers.release(change.namespace, workload_ref(change), version)
    pods = releases.failures(release) if release is not None else ()
    since = f"AlterShield: releases of {change.kind} {change.name} are suspended{_since(old)}"
    if release is not None and not pods and releases.state(release) != WorkloadState.SUSPEND:
        yield from _repair_under_way(change, version, release, since)
        return
    gone = "" if release is not None else " (its record is gone)"
    yield warning(f"{since}: version {version or 'unknown'} failed verification{gone}")
    for pod in pods[:_MAX_PODS]:
        yield warning(f"pod {pod.pod} failed: {pod.message or pod.verdict or 'no message'}")
    if len(pods) > _MAX_PODS:
        yield warning(f"and {len(pods) - _MAX_PODS} more pods failed")
    yield advice(
        "to repair, run this command, which lets one release pass, then release",
        f"kubectl label --overwrite {change.kind}{_namespace(change)} {change.name} {labels.IGNORED_SUSPEND}=true",
    )
    if pods:
        yield advice(
            "if only the pod was bad, delete it, and its successor is verified",
            f"kubectl delete pod{_namespace(change)} {pods[0].pod}",
        )
    yield warning(f"if the verdict is wrong, it can be corrected; this page says who can and how: {PAGE}")


def _repair_under_way(change: Change, version: str, release: Release, since: str) -> Iterator[str]:
    """The stored version is not the one that failed: it is the repair, and it has not failed."""
    state = releases.state(release)
    yield warning(f"{since}: version {version}, which repairs the failure, is not verified yet ({state})")
    why = releases.why(release, current=True)
    if why:
        yield warning(f"it waits because of this: {why}")
    yield advice(
        "the suspension ends when that version is a Success; to follow it, run",
        f"kubectl get changeworkload{_namespace(change)} "
        f"{change_workload_name(change.resource.kind, change.name, version)}",
    )
    yield warning(f"this page explains suspensions: {PAGE}")


def _namespace(change: Change) -> str:
    return f" -n {change.namespace}" if change.namespace else ""


def _since(workload: Workload) -> str:
    since = workload.label(labels.SUSPEND) or ""
    known = since.isascii() and since.isdigit() and len(since) <= _MAX_DIGITS
    return at("since", int(since)) if known else ""
