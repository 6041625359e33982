"""The registry: one line for each admission handler. The handlers of a request run in this order.

To add a handler, add one file below `gatekeeper/handlers/` and one line here (docs/architecture.md).
"""

from altershield.admission.registration import Condition, Feature, Operation, Phase, Registration
from altershield.api import deletion_protection, released_by
from altershield.api.annotations import ROLLOUT
from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from altershield.workloads import ADAPTERS
from altershield.workloads.applied import LAST_APPLIED
from kube_base.resources import CRDS, NAMESPACES, PODS, RESTART_REQUESTS

WORKLOADS = tuple(adapter.resource for adapter in ADAPTERS)

_CREATE, _UPDATE, _DELETE = Operation.CREATE, Operation.UPDATE, Operation.DELETE
_MUTATE, _VALIDATE = Phase.MUTATE, Phase.VALIDATE

_ROLLOUT = f"metadata.?annotations[?'{ROLLOUT}']"
_EMPTY = {
    "paused": "false",
    "minReadySeconds": "0",
    "progressDeadlineSeconds": "0",
    "strategy": "{}",
    "updateStrategy": "{}",
}
"""The fields of `spec` that a release in steps holds, by their values if they are missing."""

_HELD = " || ".join(
    f"object.spec.?{field}.orValue({empty}) != oldObject.spec.?{field}.orValue({empty})"
    for field, empty in _EMPTY.items()
)
STEPPED = Condition(
    "released-or-labelled-or-held",
    "request.operation != 'UPDATE' || object.spec.template != oldObject.spec.template || "
    "object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({}) || "
    f"object.{_ROLLOUT}.orValue('') != oldObject.{_ROLLOUT}.orValue('') || "
    f"(oldObject.{_ROLLOUT}.hasValue() && ({_HELD}))",
)
"""Only changes of labels and templates matter to releases, and of a workload that is released in steps, the held
fields. Most updates scale or annotate a workload, or come from its controller. The API server does not call the
gatekeeper for these updates, so they succeed even if no gatekeeper answers."""

_RELEASED_BY = f"metadata.?annotations[?'{released_by.ANNOTATION}'].orValue('')"
_APPLIED = f"metadata.?annotations[?'{LAST_APPLIED}'].orValue('')"
MUTABLE = Condition(
    f"{STEPPED.name}-or-attributed",
    f"{STEPPED.expression} || object.{_RELEASED_BY} != oldObject.{_RELEASED_BY} || "
    f"(oldObject.{_ROLLOUT}.hasValue() && object.{_APPLIED} != oldObject.{_APPLIED})",
)
"""The mutating handlers also restore the annotation with the user who released the version, and read what the user
applied to a workload that is released in steps."""

_LABELS = "oldObject.metadata.?labels"
CASCADING = Condition(
    "protected-from-cascading-deletion",
    "!has(oldObject.metadata.deletionTimestamp) && "
    f"({_LABELS}[?'{deletion_protection.LABEL}'].orValue('') == '{deletion_protection.Level.CASCADING}' || "
    f"{_LABELS}[?'{deletion_protection.CASCADING_LABEL}'].orValue('') == '{deletion_protection.CASCADING_VALUE}')",
)
"""The API server calls the gatekeeper only for objects with this protection. So no other deletion depends on a
gatekeeper."""

_MAY_BE_REFUSED = (
    "!has(oldObject.metadata.deletionTimestamp) && "
    "!(oldObject.?status.phase.orValue('') in ['Succeeded', 'Failed']) && "
    "!oldObject.metadata.?annotations[?'kubernetes.io/config.mirror'].hasValue()"
)
DELETABLE = Condition("deletable", _MAY_BE_REFUSED)
"""The API server does not call the gatekeeper for the kubelet's final deletes, for ended pods and for mirror pods. So
these deletions do not depend on a gatekeeper."""
DISRUPTABLE = Condition(
    "disruptable",
    f"{_MAY_BE_REFUSED} && (object.spec != oldObject.spec || "
    "object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({}) || "
    "object.metadata.?ownerReferences.orValue([]) != oldObject.metadata.?ownerReferences.orValue([]))",
)
"""The API server does not call the gatekeeper for most updates of pods: they change annotations or finalizers, and
disrupt nothing."""

REGISTRY: tuple[Registration, ...] = (
    Registration("releases.version:stamp", _MUTATE, WORKLOADS, (_CREATE, _UPDATE), condition=MUTABLE),
    Registration("releases.ownership:purge", _MUTATE, WORKLOADS, (_CREATE, _UPDATE), condition=MUTABLE),
    Registration("releases.inheritance:inherit", _MUTATE, WORKLOADS, (_CREATE,), condition=MUTABLE),
    Registration("releases.ownership:protect", _MUTATE, WORKLOADS, (_UPDATE,), condition=MUTABLE),
    Registration("releases.released_by:attribute", _MUTATE, WORKLOADS, (_CREATE, _UPDATE), condition=MUTABLE),
    Registration("releases.steps:hold", _MUTATE, WORKLOADS, (_CREATE, _UPDATE), condition=MUTABLE),
    Registration("releases.rollback_only:deny_other_templates", _VALIDATE, WORKLOADS, (_UPDATE,), condition=STEPPED),
    Registration("releases.duties:deny_own_repair", _VALIDATE, WORKLOADS, (_CREATE, _UPDATE), condition=STEPPED),
    Registration("releases.suspension:deny_suspended", _VALIDATE, WORKLOADS, (_UPDATE,), condition=STEPPED),
    Registration("releases.only_warns:warn", _VALIDATE, WORKLOADS, (_UPDATE,), condition=STEPPED),
    Registration("releases.leftovers:warn", _VALIDATE, WORKLOADS, (_UPDATE,), condition=STEPPED),
    Registration("releases.rolled_back:deny_rolled_back", _VALIDATE, WORKLOADS, (_CREATE, _UPDATE), condition=STEPPED),
    Registration(
        "releases.gates:deny_closed", _VALIDATE, WORKLOADS, (_CREATE, _UPDATE), condition=STEPPED, does_io=True
    ),
    Registration("releases.steps:deny_unheld", _VALIDATE, WORKLOADS, (_CREATE, _UPDATE), condition=STEPPED),
    Registration("releases.limits:count_admitted", _VALIDATE, WORKLOADS, (_CREATE, _UPDATE), condition=STEPPED),
    Registration(
        "deletions.namespace:deny_with_content",
        _VALIDATE,
        (NAMESPACES,),
        (_DELETE,),
        condition=CASCADING,
        feature=Feature.DELETIONS,
        does_io=True,
    ),
    Registration(
        "deletions.custom_resource_definition:deny_with_objects",
        _VALIDATE,
        (CRDS,),
        (_DELETE,),
        condition=CASCADING,
        feature=Feature.DELETIONS,
        does_io=True,
    ),
    Registration(
        "flow_control.pods:refuse_deletion_early", _VALIDATE, (PODS,), (_DELETE,),
        condition=DELETABLE, feature=Feature.PODS, does_io=True,
    ),
    Registration(
        "flow_control.pods:refuse_eviction_early", _VALIDATE, (PODS,), (_CREATE,),
        subresource="eviction", feature=Feature.PODS, does_io=True,
    ),
    Registration(
        "budgets.deletion:judge", _VALIDATE, (PODS,), (_DELETE,),
        condition=DELETABLE, feature=Feature.PODS, does_io=True,
    ),
    Registration(
        "budgets.update:judge", _VALIDATE, (PODS,), (_UPDATE,),
        condition=DISRUPTABLE, feature=Feature.PODS, does_io=True,
    ),
    Registration(
        "budgets.update:judge", _VALIDATE, (PODS,), (_UPDATE,),
        subresource="resize", condition=DISRUPTABLE, feature=Feature.PODS, does_io=True,
    ),
    Registration(
        "budgets.eviction:judge", _VALIDATE, (PODS,), (_CREATE,),
        subresource="eviction", feature=Feature.PODS, does_io=True,
    ),
    Registration(
        "flow_control.pods:count_deletion", _VALIDATE, (PODS,), (_DELETE,),
        condition=DELETABLE, feature=Feature.PODS, does_io=True,
    ),
    Registration(
        "flow_control.pods:count_eviction", _VALIDATE, (PODS,), (_CREATE,),
        subresource="eviction", feature=Feature.PODS, does_io=True,
    ),
    Registration(
        "budgets.restart:judge", _VALIDATE, (RESTART_REQUESTS,), (_CREATE,), feature=Feature.PODS, does_io=True
    ),
    Registration("budgets.overlap:deny", _VALIDATE, (POD_UNAVAILABLE_BUDGETS,), (_CREATE,), feature=Feature.BUDGETS),
)  # fmt: skip
