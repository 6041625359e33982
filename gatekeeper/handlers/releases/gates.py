"""A release begins only while no gate is closed for it: release windows, freezes and limits."""

from collections.abc import Mapping
from typing import Any

from altershield import releases
from altershield.api import labels
from altershield.api.fingerprint import Template, metadata
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.gates.rules import Judged
from altershield.api.pages import GATES
from altershield.gates import texts
from altershield.gates.release import Closed
from altershield.gates.release import Release as Judgeable
from gatekeeper.errors import ReviewError
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.back import goes_back
from gatekeeper.handlers.releases.bypass import bypass
from gatekeeper.handlers.releases.reasons import Reason
from gatekeeper.handlers.releases.texts import namespace_option
from gatekeeper.handlers.releases.version import released_version
from gatekeeper.handlers.releases.workload import Change, Workload, workload_ref
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Cause, Decision, Denial, Outcome, Response
from gatekeeper.texts import clean, warning
from kube_base.times import rfc3339

_MAX_NAME = 253  # bytes
_MAX_MESSAGE = 1024  # bytes
_MAX_CAUSES = 8
_RESTARTED = "kubectl.kubernetes.io/restartedAt"


@handler(reads=Workload, outcomes=(Outcome(Decision.DENIED, Reason.GATE_CLOSED),))
def deny_closed(change: Change, listers: Listers) -> Response:
    """Deny a release while a gate is closed for it. Going back to the version before is always possible.

    ReviewError (503): the caches of gates are not filled yet, so the failure policy of the webhook decides.
    """
    gates = listers.gates
    if gates.filled and not gates.exist:
        return NOTHING  # in most clusters, so first
    version = released_version(change)
    if not version or change.user == listers.reconciler:
        return NOTHING
    if not gates.filled:
        raise ReviewError("the caches of release gates are not filled yet", 503)
    release = judgeable(change, version, listers)
    closed = gates.closed(release, change.received)
    if not closed or goes_back(change, version, listers):
        return NOTHING
    enforced = tuple(each for each in closed if each.enforced)
    if not enforced:
        return Response(warnings=tuple(warning(f"AlterShield: with mode enforce: {texts.sentence(e)}") for e in closed))
    message = _message(change, enforced)
    return Response(
        warnings=_advice(change, enforced),
        audit={"version": version, "reason": message},
        denial=Denial(message, "Forbidden", causes=_causes(enforced, gates.opens_at(release, change.received))),
        reason=Reason.GATE_CLOSED,
    )


def judgeable(change: Change, version: str, listers: Listers) -> Judgeable:
    """The release of `version` that a change makes."""
    new, old = change.object, change.old_object
    found = [each.labels or {} for each in (old, new) if each is not None]
    return Judgeable(
        namespace=change.namespace,
        namespace_labels=listers.gates.labels_of(change.namespace),
        labels=tuple(found),
        judged=_judged(change),
        workload=NamedWorkload.of(change.namespace, workload_ref(change)),
        version=version,
        repairs=new.repairs and bypass(change, listers) is Reason.IGNORED_SUSPEND,
        succeeded=_succeeded(change, listers),
        admitted=listers.admissions.recent(change.received),
    )


def _succeeded(change: Change, listers: Listers) -> float:
    """When the present release succeeded; 0: it did not."""
    present = change.old_object.label(labels.VERSION) if change.old_object is not None else None
    release = listers.release(change.namespace, workload_ref(change), present) if present else None
    return float(releases.since(release)) if release is not None and releases.passed(release) else 0.0


def _judged(change: Change) -> Judged:
    old = change.old_object
    if old is None:
        return Judged.CREATE
    new, before = change.object.spec.template, old.spec.template
    restarts = new.spec == before.spec and _without_restart(new) == _without_restart(before)
    return Judged.RESTART if restarts else Judged.UPDATE


def _without_restart(template: Template) -> Mapping[str, Any]:
    found = dict(metadata(template) or {})
    annotations = found.pop("annotations", None)
    kept = (
        {key: value for key, value in annotations.items() if key != _RESTARTED} if isinstance(annotations, dict) else {}
    )
    return {**found, "annotations": kept}


def _message(change: Change, closed: tuple[Closed, ...]) -> str:
    text = f"AlterShield: {change.kind} {clean(change.name, _MAX_NAME)} may not be released now: "
    others = texts.others(closed)
    return clean(text + texts.sentence(closed[0]) + (f"; {others}" if others else ""), _MAX_MESSAGE)


def _advice(change: Change, closed: tuple[Closed, ...]) -> tuple[str, ...]:
    command = f"altershield gates{namespace_option(change)} {change.kind}/{clean(change.name, _MAX_NAME)}"
    return (
        *(warning(f"AlterShield: {texts.sentence(each)}") for each in closed[1:_MAX_CAUSES]),
        warning(f"to see what is closed and until when, run: {command}"),
        warning("going back to the version before is possible at any time: altershield rollback, or apply it again"),
        warning(f"this page explains release gates: {GATES}"),
    )


def _causes(closed: tuple[Closed, ...], opens_at: float) -> tuple[Cause, ...]:
    """One for each gate, and the time at which the release may begin, if it is known."""
    found = [Cause(each.kind, texts.sentence(each), f"{each.namespace}/{each.name}") for each in closed[:_MAX_CAUSES]]
    if opens_at:
        found.append(Cause("OpensAt", rfc3339(opens_at)))
    return tuple(found)
