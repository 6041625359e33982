"""Controller: reports in the status of each DefensePolicy whether it is accepted, which spec is in force, and whether
another policy has precedence for all of its workloads."""

from collections.abc import Callable

import msgspec

from altershield.api.announcements import Announcement, announcement
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition, find_condition, set_condition
from altershield.api.policy import DefensePolicy, DefensePolicySpec, DefensePolicyStatus
from altershield.api.resources import DEFENSE_POLICIES
from altershield.policies.selection import InForce, shadowed_by
from kube_base.access.events import EventRecorder, ObjectRef
from reconciler.cluster.accepted_specs import rejected
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.writer import Writer
from reconciler.machinery.announcer import Announcer
from reconciler.policies.acceptance import ReceiverRule, UrlRule, any_receiver, any_url, in_force, problem


class PolicyReconciler:
    """Its keys are the namespace and name of a DefensePolicy. `clock` returns Unix seconds."""

    def __init__(
        self,
        caches: Caches,
        writer: Writer,
        recorder: EventRecorder,
        clock: Callable[[], float],
        url_rule: UrlRule = any_url,
        receiver_rule: ReceiverRule = any_receiver,
    ) -> None:
        self._caches = caches
        self._writer = writer
        self._announcer = Announcer(recorder, clock)
        self._clock = clock
        self._url_rule = url_rule
        self._receiver_rule = receiver_rule

    async def reconcile(self, key: Key) -> float | None:
        """Update the status. A policy that is newly rejected, or rejected for another reason, gets the Event
        PolicyRejected. A policy that newly names receivers which do not exist gets the Event UnknownReceiver."""
        policy = self._caches.policies.get(*key)
        if policy is None or policy.metadata.deletion_timestamp is not None:
            return None
        status, uid = self._status(policy), policy.metadata.uid
        if status != policy.status:
            events = self._events(policy.status, status)
            announcements = self._announcer.with_new(uid, status.announcements, events)
            policy = await self._writer.save_status(
                self._caches.policies, policy, msgspec.structs.replace(status, announcements=announcements)
            )
        return self._announcer.write(ObjectRef.of(DEFENSE_POLICIES, policy.metadata), uid, policy.status.announcements)

    def _events(self, before: DefensePolicyStatus, after: DefensePolicyStatus) -> list[Announcement]:
        known, wanted = (find_condition(each.conditions, ConditionType.ACCEPTED) for each in (before, after))
        if wanted is None or (known is not None and known.message == wanted.message):
            return []
        if not wanted.is_true:
            return [announcement("PolicyRejected", wanted.message, self._clock())]
        if wanted.reason == "UnknownReceiver":
            return [announcement("UnknownReceiver", wanted.message, self._clock())]
        return []

    def _status(self, policy: DefensePolicy) -> DefensePolicyStatus:
        generation, now = policy.metadata.generation, self._clock()
        found = in_force(policy, self._url_rule)
        wrong = problem(policy.spec, self._url_rule)
        # the policy stays accepted: removing a receiver must not change how releases are verified
        unknown = self._receiver_rule(policy.spec.notify or (), policy.metadata.namespace) if wrong is None else ""
        if unknown:
            message = f"the policy is in force, but spec.notify has no effect for some receivers: {unknown}"
            accepted = Condition(ConditionType.ACCEPTED, "True", "UnknownReceiver", message)
        elif wrong is None:
            accepted = Condition(ConditionType.ACCEPTED, "True", "Valid", "the policy is in force")
        else:
            accepted = rejected(wrong.reason, wrong.message, has_accepted=found is not None)
        conditions = policy.status.conditions
        for condition in (accepted, self._shadowed(found)):
            dated = msgspec.structs.replace(condition, observed_generation=generation)
            conditions = set_condition(conditions, dated, now)
        return DefensePolicyStatus(
            accepted=found.spec if found is not None else None,
            accepted_generation=found.generation if found is not None else 0,
            announcements=policy.status.announcements,
            conditions=conditions,
            observed_generation=generation,
        )

    def _shadowed(self, policy: InForce[DefensePolicySpec] | None) -> Condition:
        if policy is None:
            return Condition(ConditionType.SHADOWED, "False", "NotInForce", "no spec of this policy is in force")
        found = (in_force(each, self._url_rule) for each in self._caches.policies_of(policy.namespace))
        other = shadowed_by(policy, [each for each in found if each is not None])
        if other is None:
            return Condition(
                ConditionType.SHADOWED, "False", "Selectable", "no other policy has precedence for all of its workloads"
            )
        message = (
            f"the DefensePolicy {other.name} selects every workload that this policy selects, and has precedence: "
            f"its priority is {other.spec.priority}, and that of this policy is {policy.spec.priority}"
        )
        if other.spec.priority == policy.spec.priority:
            message += "; of equal priorities, the first one by name applies"
        return Condition(ConditionType.SHADOWED, "True", "OtherHasPrecedence", message)
