"""The registry: one line for each admission handler. The handlers of a request run in this order.

To add a handler, add one file below `gatekeeper/handlers/` and one line here (docs/architecture.md).
"""

from altershield.admission.registration import Condition, Operation, Phase, Registration
from altershield.api import released_by
from altershield.workloads import ADAPTERS

WORKLOADS = tuple(adapter.resource for adapter in ADAPTERS)

_CREATE, _UPDATE = Operation.CREATE, Operation.UPDATE
_MUTATE, _VALIDATE = Phase.MUTATE, Phase.VALIDATE

CHANGED = Condition(
    "template-or-labels-changed",
    "request.operation != 'UPDATE' || object.spec.template != oldObject.spec.template || "
    "object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({})",
)
"""Only labels and templates matter to releases. Most updates scale, annotate or come from the controller of the kind.
The API server does not call the gatekeeper for them, so they succeed also if no gatekeeper answers."""

_RELEASED_BY = f"metadata.?annotations[?'{released_by.ANNOTATION}'].orValue('')"
MUTABLE = Condition(
    "template-or-labels-or-released-by-changed",
    f"{CHANGED.expression} || object.{_RELEASED_BY} != oldObject.{_RELEASED_BY}",
)
"""The mutating handlers also restore the annotation that says who released the version."""

REGISTRY: tuple[Registration, ...] = (
    Registration("releases.version:stamp", _MUTATE, WORKLOADS, (_CREATE, _UPDATE), condition=MUTABLE),
    Registration("releases.template_labels:purge", _MUTATE, WORKLOADS, (_CREATE, _UPDATE), condition=MUTABLE),
    Registration("releases.inheritance:inherit", _MUTATE, WORKLOADS, (_CREATE,), condition=MUTABLE),
    Registration("releases.ownership:protect", _MUTATE, WORKLOADS, (_UPDATE,), condition=MUTABLE),
    Registration("releases.released_by:attribute", _MUTATE, WORKLOADS, (_CREATE, _UPDATE), condition=MUTABLE),
    Registration("releases.rollback_only:deny_other_templates", _VALIDATE, WORKLOADS, (_UPDATE,), condition=CHANGED),
    Registration("releases.suspension:deny_suspended", _VALIDATE, WORKLOADS, (_UPDATE,), condition=CHANGED),
    Registration("releases.only_warns:warn", _VALIDATE, WORKLOADS, (_UPDATE,), condition=CHANGED),
    Registration("releases.rolled_back:deny_rolled_back", _VALIDATE, WORKLOADS, (_CREATE, _UPDATE), condition=CHANGED),
)
