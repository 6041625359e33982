"""Controller: accepts the spec of each FieldGuard, or says in its status what is wrong. A wrong spec leaves the one
that was accepted last in force."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from altershield.api.announcements import Announcement, announcement
from altershield.api.condition_types import ConditionType
from altershield.api.gates.field_guards import KIND, FieldChange, FieldGuard, FieldGuardStatus
from altershield.api.meta import Condition, set_condition
from altershield.api.resources import FIELD_GUARDS
from altershield.api.rights import Right
from altershield.gates.field_guards import guarded, in_force, problems
from altershield.gates.fields.paths import Path
from kube_base.access.events import EventRecorder, ObjectRef
from reconciler.cluster.accepted_specs import rejected, selector_not_allowed, turned
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.watch import Scope, Watch
from reconciler.cluster.writer import Writer
from reconciler.machinery.announcer import Announcer
from reconciler.subject import Controller, Parts, Subject

WATCH = Watch(FIELD_GUARDS, FieldGuard, Scope.GOVERNED_AND_SYSTEM)

_SHOWN = 3  # wrong paths that a message names


class GuardReconciler:
    """Its keys are the namespace and name of a FieldGuard. `clock` returns Unix seconds."""

    def __init__(self, caches: Caches, writer: Writer, recorder: EventRecorder, clock: Callable[[], float]) -> None:
        self._caches = caches
        self._writer = writer
        self._announcer = Announcer(recorder, clock)
        self._clock = clock

    async def reconcile(self, key: Key) -> float | None:
        guard = self._caches[WATCH].get(*key)
        if guard is None or guard.metadata.deletion_timestamp is not None:
            return None
        now, uid = self._clock(), guard.metadata.uid
        status = status_of(guard, self._caches.system_namespace, now)
        if status != guard.status:
            new = _announcements(guard.status.conditions, status.conditions, now)
            left = self._announcer.with_new(uid, status.announcements, new)
            guard = await self._writer.save_status(
                self._caches[WATCH], guard, msgspec.structs.replace(status, announcements=left)
            )
        return self._announcer.write(ObjectRef.of(FIELD_GUARDS, guard.metadata), uid, guard.status.announcements)


def status_of(guard: FieldGuard, system_namespace: str, now: float) -> FieldGuardStatus:
    """The status of a guard at `now`, Unix seconds."""
    generation, status = guard.metadata.generation, guard.status
    reason, message = _problem(guard, system_namespace)
    if not reason:
        condition = Condition(ConditionType.ACCEPTED, "True", "Valid", "the guard is in force")
        status = msgspec.structs.replace(status, accepted=guard.spec, accepted_generation=generation)
    else:
        condition = rejected(reason, message, has_accepted=status.accepted is not None)
    condition = msgspec.structs.replace(condition, observed_generation=generation)
    conditions = set_condition(status.conditions, condition, now)
    return msgspec.structs.replace(status, conditions=conditions, observed_generation=generation)


def _problem(guard: FieldGuard, system_namespace: str) -> tuple[str, str]:
    """Reason and message, if the spec is not accepted; else empty texts."""
    found = problems(guard.spec)
    if found:
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        return "PathInvalid", "; ".join(found[:_SHOWN]) + more
    message = selector_not_allowed(guard, "guard", system_namespace)
    return ("NamespaceSelectorNotAllowed", message) if message else ("", "")


def _announcements(before: Sequence[Condition], after: Sequence[Condition], now: float) -> list[Announcement]:
    """The Events of a guard that is newly rejected, rejected for another reason, or accepted again."""
    wanted = turned(before, after)
    if wanted is None:
        return []
    if wanted.is_true:
        return [announcement("GuardAccepted", wanted.message, now, normal=True)]
    return [announcement("GuardRejected", wanted.message, now)]


def kept_paths(caches: Caches, namespace: str) -> Mapping[str, Path]:
    """The paths whose values releases in this namespace keep, for `Reverted`. Those of guards that select other
    workloads are included: a workload may get another label."""
    guards = (
        in_force(each)
        for each in caches[WATCH].all()
        if each.metadata.namespace in (namespace, caches.system_namespace)
        and each.status.accepted is not None
        and any(FieldChange.REVERTED in rule.changes for rule in each.status.accepted.rules)
    )
    return guarded(each for each in guards if each is not None)


def start(parts: Parts[Key]) -> Controller[Key]:
    parts.queue_changes_of(parts.caches[WATCH])
    parts.acceptance.count(FIELD_GUARDS.kind, parts.caches[WATCH].all)
    guards = GuardReconciler(parts.caches, parts.writer, parts.recorder, parts.clock)
    return Controller(reconcile=guards.reconcile)


GUARDS = Subject(
    "field-guards",
    start,
    kinds=(KIND,),
    rights=(Right((FIELD_GUARDS,), "list watch"), Right((FIELD_GUARDS,), "patch", "status")),
    watches=(WATCH,),
    writes=((FIELD_GUARDS, ("patch status",)),),
    workers=4,
)
