"""The registry: one line for each admission handler. Handlers of one request run in the order of the lines.

To add a handler: one file below `gatekeeper/handlers/` and one line here (docs/architecture.md).
"""

from altershield.admission.registration import Condition, Operation, Phase, Registration
from altershield.workloads import ADAPTERS

WORKLOADS = tuple(adapter.resource for adapter in ADAPTERS)

_CREATE, _UPDATE = Operation.CREATE, Operation.UPDATE
_MUTATE, _VALIDATE = Phase.MUTATE, Phase.VALIDATE

CHANGED = Condition(
    "template-or-labels-changed",
    "request.operation != 'UPDATE' || object.spec.template != oldObject.spec.template || "
    "object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({})",
)
"""Only labels and templates matter to releases. Scaling, annotations and the bookkeeping of the kind's own controller,
which are most updates, proceed without the gatekeeper even while no gatekeeper answers."""

REGISTRY: tuple[Registration, ...] = (
    Registration("releases.version:stamp", _MUTATE, WORKLOADS, (_CREATE, _UPDATE), condition=CHANGED),
    Registration("releases.template_labels:purge", _MUTATE, WORKLOADS, (_CREATE, _UPDATE), condition=CHANGED),
    Registration("releases.inheritance:inherit", _MUTATE, WORKLOADS, (_CREATE,), condition=CHANGED),
    Registration("releases.ownership:protect", _MUTATE, WORKLOADS, (_UPDATE,), condition=CHANGED),
    Registration("releases.suspension:deny_suspended", _VALIDATE, WORKLOADS, (_UPDATE,), condition=CHANGED),
    Registration("releases.rolled_back:deny_rolled_back", _VALIDATE, WORKLOADS, (_CREATE, _UPDATE), condition=CHANGED),
)
