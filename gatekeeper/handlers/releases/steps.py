"""Releases in steps: a release is held at its first step, and the held fields follow the annotation of the hold."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

from altershield.api.annotations import ROLLOUT
from altershield.api.policy import Mode
from altershield.api.rollout import Rollout, WaitingFor
from altershield.policies.selection import InForce
from altershield.policies.stored import Spec
from altershield.releases.steps import labels_text
from altershield.rollout import admission, obstacles
from altershield.rollout.admission import Admitted, State, Wanted
from altershield.rollout.edits import newly_applied
from altershield.rollout.steps import AT_ONCE, next_step, of_kind, selects_nodes, step_pods, steps_of
from altershield.rollout.waits import Waits, waits_of
from altershield.workloads import BY_KIND
from altershield.workloads.held import difference
from altershield.workloads.hold import Hold
from gatekeeper.errors import ReviewError
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.closed import held_for, own_labels
from gatekeeper.handlers.releases.reasons import RESTORED, Reason
from gatekeeper.handlers.releases.texts import rollback_command, why_command
from gatekeeper.handlers.releases.version import new_version, released_version
from gatekeeper.handlers.releases.workload import Change, Workload, failed_pods_of, last_applied, pods_of
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Decision, Denial, Outcome, Response
from gatekeeper.texts import advice, clean, warning
from kube_base.times import rfc3339

_CALLED_AGAIN = 60  # seconds that a request may last at most, and its calls of webhooks with it
_MAX_NAME = 253  # bytes
_TRY_AGAIN = "TooManyRequests"

_time = lru_cache(maxsize=16)(rfc3339)  # each review of a second needs the same texts


@handler(reads=Workload, outcomes=(Outcome(Decision.PATCHED, Reason.HELD), RESTORED))
def hold(change: Change, listers: Listers) -> Response:
    """Hold a release of which a policy wants steps, and make the held fields follow the annotation of the hold. An
    annotation that anybody but the reconciler writes has no effect.

    What a mutating webhook writes gets no field manager. So the owner of the workload can go on applying its manifest.
    """
    policy, begin = _policy(change, listers), held_for(change, listers)
    if policy is None and not begin and not _is_held(change):
        return NOTHING
    admitted = _admitted(change, listers, policy, begin)
    warnings = _only_warned(change, policy)
    if admitted is None:
        return Response(warnings=warnings) if warnings else NOTHING
    new = change.object
    annotations = {ROLLOUT: admitted.annotation} if admitted.annotation != new.rollout else {}
    operations = difference(change.once(_sent).spec, admitted.spec)
    warnings += _warnings(change, admitted)
    audit = _audit(admitted, change)
    if not (annotations or operations or warnings or audit):
        return NOTHING
    reason = None
    if annotations or operations:
        reason = Reason.RESTORED if admitted.restored else Reason.HELD
    return Response(annotations=annotations, patch=operations, warnings=warnings, audit=audit, reason=reason)


@handler(reads=Workload, outcomes=(Outcome(Decision.DENIED, Reason.NOT_HELD),))
def deny_unheld(change: Change, listers: Listers) -> Response:
    """Deny a release that should be held and is not, and held fields that do not follow the annotation: the mutating
    webhook was not called, or its answer came too late. Another try passes."""
    policy, begin = _policy(change, listers), held_for(change, listers)
    if policy is None and not begin and not _is_held(change):
        return NOTHING
    admitted = _admitted(change, listers, policy, begin)
    if admitted is None or admission.follows(change.once(_sent), admitted):
        return NOTHING
    what = f"{change.kind} {clean(change.name, _MAX_NAME)}"
    if released_version(change) and admitted.hold is not None:
        text = f"AlterShield: {what} was not held at its first step, try again"
    else:
        text = f"AlterShield: {what} has other values than its release in steps gives it, try again"
    return Response(
        audit={"reason": text}, denial=Denial(message=text, reason=_TRY_AGAIN, code=429), reason=Reason.NOT_HELD
    )


def _policy(change: Change, listers: Listers) -> InForce[Spec] | None:
    """The policy with steps that applies to this release; None if there is none, nothing is released, or the setting
    `rollout` is off. ReviewError (503): the cache of policies is not filled yet, so the failure policy of the webhook
    decides."""
    policies, old = listers.policies, change.old_object
    filled = policies.filled
    if filled and not policies.have_steps:
        return None  # in most clusters, so first
    if old is None or change.user == listers.reconciler or not released_version(change):
        return None
    if not listers.rollout:
        return None  # nothing is held; the reconciler restores what is
    if not filled:
        raise ReviewError("the cache of DefensePolicies is not filled yet", 503)
    found = policies.of(change.namespace, own_labels(change))
    return found if found is not None and found.spec.rollout is not None else None


def _is_held(change: Change) -> bool:
    return change.object.is_held or (change.old_object is not None and change.old_object.is_held)


def _admitted(
    change: Change, listers: Listers, policy: InForce[Spec] | None, begin: tuple[WaitingFor, ...]
) -> Admitted | None:
    """How the workload should be; None: there is nothing to hold or to restore. `begin`: the gates for which it is
    held without a pod."""
    old = change.old_object
    wanted = _wanted(change, policy, begin)
    wants = wanted is not None
    if not wants and not _is_held(change):
        return None
    return admission.admit(
        admission.Change(
            adapter=BY_KIND[change.resource.group_kind],
            old=_state(old) if old is not None else None,
            new=change.once(_sent),
            version=released_version(change),
            base=new_version(old.spec.template, None) if wants and old is not None else "",
            by_reconciler=change.user == listers.reconciler,
            wanted=wanted,
            obstacle=_obstacle(change, wanted.rollout) if wanted is not None else "",
            replicas=pods_of(change),
            failed=failed_pods_of(change),
            labels=own_labels(change) if wants else {},
            applied=_newly_applied(change) if old is not None and old.is_held else {},
            time=_time(int(change.received)),
            since=_time(int(change.received) - _CALLED_AGAIN),
        )
    )


def _newly_applied(change: Change) -> dict[str, Any]:
    old = change.old_object
    before = last_applied(old) if old is not None else None
    return newly_applied(BY_KIND[change.resource.group_kind], before, last_applied(change.object))


def _sent(change: Change) -> State:
    return _state(change.object)


def _state(workload: Workload) -> State:
    return State(workload.rollout, workload.held_spec)


def _wanted(change: Change, policy: InForce[Spec] | None, begin: tuple[WaitingFor, ...]) -> Wanted | None:
    """The steps of the policy, if it is enforced; one step with all pods, if the release only waits for gates."""
    if policy is not None and policy.spec.mode == Mode.ENFORCE and policy.spec.rollout is not None:
        spec, name = policy.spec, f"{policy.namespace}/{policy.name}@{policy.generation}"
        rollout = _own_steps(change, policy.spec.rollout) or policy.spec.rollout
        return Wanted(rollout, name, replace(waits_of(spec.checks), begin=begin))
    return Wanted(AT_ONCE, "", Waits(begin=begin)) if begin else None


def _own_steps(change: Change, rollout: Rollout) -> Rollout | None:
    """The steps of a workload of this kind; None if the policy has none for it."""
    return of_kind(rollout, evicts=BY_KIND[change.resource.group_kind].evicts)


def _obstacle(change: Change, rollout: Rollout | None) -> str:
    return obstacles.obstacle(
        replicas=pods_of(change),
        releaser=change.object.releaser,
        created=change.old_object is None,
        has_steps=rollout is None or _own_steps(change, rollout) is not None,
    )


def _only_warned(change: Change, policy: InForce[Spec] | None) -> tuple[str, ...]:
    """The warning of a policy that only warns."""
    if policy is None or policy.spec.rollout is None or policy.spec.mode != Mode.WARN:
        return ()
    rollout = _own_steps(change, policy.spec.rollout)
    if rollout is None or _obstacle(change, policy.spec.rollout):
        return ()
    first = next_step(rollout, 0, pods_of(change))
    reached = f"{step_pods(rollout, first, pods_of(change))} of {pods_of(change)} pods first"
    if selects_nodes(rollout, first):
        reached = f"the pods on nodes with the labels {labels_text(steps_of(rollout)[first - 1])} first"
    text = (
        f"AlterShield: with mode enforce, this release of {change.kind} {change.name} would reach {reached}; "
        f"the DefensePolicy {policy.namespace}/{policy.name} has mode warn"
    )
    return (warning(text),)


def _warnings(change: Change, admitted: Admitted) -> tuple[str, ...]:
    warnings = []
    if admitted.hold is not None:
        what = f"AlterShield: {change.kind} {change.name} is released in steps"
        if _resumes(change, admitted.hold):
            warnings.append(warning(f"{what}, and waits before its first pod: {why_command(change)} says for what"))
            warnings.append(advice("to go back to the version before, run", rollback_command(change)))
        elif admitted.edited:
            fields = ", ".join(path[1:].replace("/", ".") for path in admitted.edited)
            warnings.append(warning(f"{what}: {fields} takes effect when the release is over"))
    if admitted.restored and admitted.annotation != change.object.rollout:
        outcome = "it was removed" if admitted.annotation is None else "it came back"
        warnings.append(warning(f"AlterShield: only AlterShield writes the annotation {ROLLOUT}: {outcome}"))
    return tuple(warnings)


def _resumes(change: Change, known: Hold) -> bool:
    """Whether the request resumes a Deployment that is paused because no pod gets the version yet."""
    old = change.old_object
    if known.pods or old is None or released_version(change):
        return False
    return bool(old.held_spec.get("paused")) and not change.once(_sent).spec.get("paused")


def _audit(admitted: Admitted, change: Change) -> dict[str, str]:
    if admitted.obstacle:
        return {"not-in-steps": admitted.obstacle}
    if admitted.hold is not None and released_version(change):
        return {"in-steps": admitted.hold.policy}
    return {}
