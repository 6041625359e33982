"""The gates that are closed for a release, and whether it is held rather than denied."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from altershield import releases
from altershield.api import labels, released_by
from altershield.api.annotations import PROBE
from altershield.api.change_workload import Written, releaser
from altershield.api.fingerprint import Template, canonical, metadata
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.gates.rules import Judged
from altershield.api.released_by import MAX_MANAGER, MAX_USER
from altershield.api.rollout import WaitingFor
from altershield.gates.fields.changes import Fields
from altershield.gates.limits import LIMITS
from altershield.gates.overrides import Asked
from altershield.gates.release import Closed
from altershield.gates.release import Release as Judgeable
from altershield.rollout.obstacles import obstacle
from altershield.rollout.waits import for_gates
from altershield.workloads import BY_KIND
from gatekeeper.errors import ReviewError
from gatekeeper.handlers.releases.back import goes_back, present_release, succeeded
from gatekeeper.handlers.releases.bypass import bypass
from gatekeeper.handlers.releases.reasons import Reason
from gatekeeper.handlers.releases.version import released_version
from gatekeeper.handlers.releases.workload import Change, pods_of, workload_ref
from gatekeeper.listers import Listers
from gatekeeper.texts import clean

_MAX_USER = 1024  # bytes
_RESTARTED = "kubectl.kubernetes.io/restartedAt"


def closed_for(change: Change, listers: Listers) -> tuple[Closed, ...]:
    """The gates that are closed for a release; empty also if nothing is released, if the reconciler releases, and, but
    for guards against old values, for the version before. ReviewError (503): the caches of gates are not filled yet, so
    the failure policy of the webhook decides."""
    gates = listers.gates
    if gates.filled and not gates.exist:
        return ()  # in most clusters, so first
    version = released_version(change)
    if not version or change.user == listers.reconciler:
        return ()
    if not gates.filled:
        raise ReviewError("the caches of release gates are not filled yet", 503)
    if not gates.may_be_closed(change.namespace, change.received):
        return ()
    return change.once(_closed, listers, version)


def _closed(change: Change, listers: Listers, version: str) -> tuple[Closed, ...]:
    closed = listers.gates.closed(judgeable(change, listers), change.received)
    if not closed or not goes_back(change, version, listers):
        return closed
    return tuple(each for each in closed if each.judges_back) if succeeded(change, listers) else ()


def held_for(change: Change, listers: Listers) -> tuple[WaitingFor, ...]:
    """What the release is admitted without a pod for, until it begins by itself: closed gates, and limits, under which
    AlterShield lets releases begin one after the other. Empty: there is nothing, a gate denies, an override passes the
    gates, or the workload cannot be held so."""
    if listers.gates.filled and not listers.gates.may_hold(change.namespace):
        return ()
    enforced = tuple(each for each in closed_for(change, listers) if each.enforced)
    paced = _is_paced(change, listers)
    if not (enforced or paced) or not can_hold(change, listers, enforced):
        return ()
    asked = asked_for(change, released_version(change))
    if enforced and listers.overrides.match(enforced, asked, change.received):
        return ()
    return tuple(dict.fromkeys((*for_gates(enforced), *(WaitingFor.LIMIT,) * paced)))


def _is_paced(change: Change, listers: Listers) -> bool:
    """Whether a limit holds the release also while it has room. Going back begins at once."""
    gates, version = listers.gates, released_version(change)
    if not gates.exist or not version or change.user == listers.reconciler:
        return False
    return gates.paces(judgeable(change, listers)) and not goes_back(change, version, listers)


def can_hold(change: Change, listers: Listers, enforced: Sequence[Closed]) -> bool:
    """Whether all of these closed gates hold a release, and the workload can be held without a pod."""
    if not all(each.holds for each in enforced) or not listers.rollout:
        return False
    adapter, created = BY_KIND[change.resource.group_kind], change.old_object is None
    if not adapter.keeps_base or adapter.obstacle(change.object.held_spec):
        return False
    return not obstacle(replicas=pods_of(change), releaser=change.object.releaser, created=created, has_steps=True)


def own_labels(change: Change) -> Mapping[str, str]:
    """The labels of the workload after the change, without AlterShield's own: they change on the way from the mutating
    to the validating webhook."""
    return {key: value for key, value in (change.object.labels or {}).items() if key not in labels.OWNED}


def asked_for(change: Change, version: str) -> Asked:
    """The release, for overrides."""
    uid = change.old_object.metadata.uid if change.old_object is not None else ""
    return Asked(change.namespace, change.resource.kind, change.name, uid, version, clean(change.user, _MAX_USER))


def judgeable(change: Change, listers: Listers) -> Judgeable:
    """The release, for gates."""
    new, old = change.object, change.old_object
    found = [each.labels or {} for each in (old, new) if each is not None]
    last = released_by.read(old.released_by) if old is not None else None
    if last is not None and last.labels:
        found.append(last.labels)
    return Judgeable(
        namespace=change.namespace,
        namespace_labels=listers.gates.labels_of(change.namespace),
        labels=tuple(found),
        judged=_judged(change),
        workload=NamedWorkload.of(change.namespace, workload_ref(change)),
        version=released_version(change),
        repairs=new.repairs and bypass(change, listers) is Reason.IGNORED_SUSPEND,
        succeeded=_succeeded(change, listers) if listers.gates.have(LIMITS) else 0.0,
        admitted=listers.admissions.recent(change.received),
        fields=partial(change.once, _fields),
        written=partial(_written, change, listers),
    )


def _succeeded(change: Change, listers: Listers) -> float:
    """When the present release succeeded, Unix seconds; 0: it did not."""
    release = present_release(change, listers)
    return float(releases.since(release)) if release is not None and releases.passed(release) else 0.0


def _fields(change: Change) -> Fields:
    """The fields that the release changes. Templates are decoded only where a FieldGuard judges the release."""
    old = change.old_object
    return Fields(
        _decoded(old.spec.template) if old is not None else None,
        _decoded(change.object.spec.template),
    )


def _decoded(template: Template) -> dict[str, Any]:
    """ReviewError: it cannot be read."""
    try:
        found: dict[str, Any] = orjson.loads(canonical(template))
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError) as error:  # encoding fails for deep nesting
        raise ReviewError(f"a pod template in the request cannot be read: {error}") from error
    annotations = (found["metadata"] or {}).get("annotations")
    if isinstance(annotations, dict):
        annotations.pop(PROBE, None)  # this is a question about the time, not about fields
    return found


def _written(change: Change, listers: Listers) -> Written | None:
    """What the same field manager or user wrote last, as the ChangeWorkload of the present version knows it."""
    found = present_release(change, listers)
    own = releaser(change.user[:MAX_USER], change.field_manager[:MAX_MANAGER])
    return next((each for each in found.written if each.releaser == own), None) if found is not None else None


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
