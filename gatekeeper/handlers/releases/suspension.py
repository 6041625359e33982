"""After a release that failed verification, the gatekeeper denies the next one until the failure is repaired."""

from collections.abc import Iterator

from altershield import releases
from altershield.api import labels
from altershield.api.change_workload import WorkloadState
from altershield.api.names import is_name
from altershield.api.pages import DENIED
from altershield.releases.enforcement import only_text
from altershield.releases.texts import suspended
from altershield.workloads import change_workload_name
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.bypass import bypass, is_processed, not_processed
from gatekeeper.handlers.releases.duties import refused
from gatekeeper.handlers.releases.reasons import BYPASSES, Reason
from gatekeeper.handlers.releases.texts import (
    failed_pod,
    namespace_option,
    repair_command,
    rollback_command,
    stored_version_text,
    why_command,
)
from gatekeeper.handlers.releases.version import released_version
from gatekeeper.handlers.releases.workload import Change, Workload, workload_ref
from gatekeeper.listers import Listers
from gatekeeper.projection import Release
from gatekeeper.response import NOTHING, Decision, Denial, Outcome, Response
from gatekeeper.texts import advice, time_text, warning

_MAX_PODS = 5
_MAX_DIGITS = 11  # of a Unix time
_FAILED = (WorkloadState.SUSPEND, WorkloadState.FAILED)


@handler(reads=Workload, outcomes=(Outcome(Decision.DENIED, Reason.SUSPENDED), *BYPASSES))
def deny_suspended(change: Change, listers: Listers) -> Response:
    """Deny a changed template while the stored workload has the label `suspend`, also after the setting `blocking` was
    switched off. Removing the label in the same request has no effect. The warnings give the reason.

    The reconciler writes the label after the status that explains it. So a status without the label denies, too.
    """
    old = change.old_object
    if old is None or (old.label(labels.SUSPEND) is None and not _is_suspended_by_status(change, old, listers)):
        return NOTHING
    version = released_version(change)
    if not version:
        return NOTHING
    passes = bypass(change, listers)
    if passes is not None:
        return Response(reason=passes, audit={"version": version, "bypass": passes})
    text = suspended(change.kind, change.name)
    return Response(
        warnings=(*not_processed(change, listers), *_explain(change, old, listers)),
        audit={"version": version, "reason": text},
        denial=Denial(message=text, reason=text),
        reason=Reason.SUSPENDED,
    )


def _is_suspended_by_status(change: Change, old: Workload, listers: Listers) -> bool:
    """Whether the ChangeWorkload of the stored version suspends releases, as the reconciler decides about the label.

    If the stored version is not processed, the ChangeWorkload is from an earlier release of it.
    """
    version = old.label(labels.VERSION)
    release = listers.release(change.namespace, workload_ref(change), version) if version else None
    if release is None or releases.state(release) != WorkloadState.SUSPEND or not is_processed(change):
        return False
    return not only_text(release.spec.policy) and not _is_resumed(release) and listers.blocking


def _is_resumed(release: Release) -> bool:
    """Whether a person admitted further releases, and no other pod has failed since."""
    resumption = release.status.resumption
    failed = {each.uid for each in release.status.defense_check_fail_pods if each.uid}
    return bool(resumption.since_unix) and failed <= set(resumption.pods)


def _explain(change: Change, old: Workload, listers: Listers) -> Iterator[str]:
    """The warnings. They differ for a version that failed and for a version that repairs the failure."""
    version = old.label(labels.VERSION) or ""
    release = listers.release(change.namespace, workload_ref(change), version)
    suspended = f"AlterShield: releases of {change.kind} {change.name} are suspended{_since(old, release)}"
    if not is_processed(change):  # the ChangeWorkload is missing, or is from an earlier release of this version
        yield from _repair_under_way(change, version, None, suspended)
    elif release is None or releases.failures(release) or releases.state(release) in _FAILED:
        yield from _failure(change, version, release, suspended, refused(change, listers))
    elif releases.state(release) == WorkloadState.SUCCESS:
        yield warning(f"{suspended}: version {_named(change, version, release)} repairs the failure and is verified")
        yield warning(f"the suspension ends in a few seconds, then release again (see {DENIED})")
    else:
        yield from _repair_under_way(change, version, release, suspended)


def _failure(change: Change, version: str, release: Release | None, suspended: str, not_by_user: str) -> Iterator[str]:
    """`not_by_user`: why the user may not repair it; empty: the user may."""
    pods = releases.failures(release) if release is not None else ()
    gone = "" if release is not None else " (its ChangeWorkload does not exist)"
    yield warning(f"{suspended}: version {_named(change, version, release) or 'unknown'} failed verification{gone}")
    for pod in pods[:_MAX_PODS]:
        yield failed_pod(pod)
    if len(pods) > _MAX_PODS:
        yield warning(f"and {len(pods) - _MAX_PODS} more pods failed")
    if not_by_user:
        yield warning(not_by_user)
    else:
        yield advice("to repair, run this command, which lets one release pass, then release", repair_command(change))
    if change.old_object is not None and change.old_object.is_held:
        yield advice("to go back to the version before, run", rollback_command(change))
    # a user who may patch the status can write any text as a name, and people paste the command
    if 0 < len(pods) <= _MAX_PODS and all(is_name(each.pod) for each in pods):
        yield advice(
            "if only the pod was bad, delete it, and its successor is verified"
            if len(pods) == 1
            else "if only these pods were bad, delete them, and their successors are verified",
            f"kubectl delete pod{namespace_option(change)} {' '.join(each.pod for each in pods)}",
        )
    yield advice("to see why and all ways out, also for a wrong verdict, run", why_command(change))
    yield warning(f"this page explains suspensions: {DENIED}")


def _repair_under_way(change: Change, version: str, release: Release | None, suspended: str) -> Iterator[str]:
    """`release` is None until the reconciler processed the repair."""
    state = releases.state(release) if release is not None else WorkloadState.INIT
    named = _named(change, version, release)
    yield warning(f"{suspended}: version {named}, which repairs the failure, is not verified yet ({state})")
    why = releases.why(release, current=True) if release is not None else ""
    if why:
        yield warning(f"the release waits: {why}")
    yield advice(
        "the suspension ends when that version is a Success; to follow it, run",
        f"kubectl get changeworkload{namespace_option(change)} "
        f"{change_workload_name(change.resource.group_kind, change.name, version)}",
    )
    yield warning(f"this page explains suspensions: {DENIED}")


def _named(change: Change, version: str, release: Release | None) -> str:
    """The stored version, with its images."""
    if change.old_object is None:
        return version
    other = release.status.source.fingerprint if release is not None else ""
    return stored_version_text(version, change.old_object, other)


def _since(workload: Workload, release: Release | None) -> str:
    since = workload.label(labels.SUSPEND)
    if since is None:
        return time_text("since", releases.since(release)) if release is not None else ""
    known = since.isascii() and since.isdigit() and len(since) <= _MAX_DIGITS
    return time_text("since", int(since)) if known else ""
