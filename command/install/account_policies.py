"""The ValidatingAdmissionPolicies for AlterShield's own account. RBAC lets the account patch workloads, their
ReplicaSets and pods in all namespaces, and cannot name labels or fields.

The account may change only objects in governed namespaces:

- Of workloads, the pod template (a rollback), the fields that pause the rollout, and the labels of AlterShield.
  `gatekeeper/handlers/releases/rollback_only.py` decides which pod template it may write.
- Of workloads, the fields by which a release in steps is held, in a write that also changes or removes the annotation
  `rollout`. The gatekeeper writes these fields into the account's request, and the policies see the result. Where a
  namespace is not governed any more, the account may remove the annotation and restore the fields.
- Of ReplicaSets and pods, the labels of AlterShield.
- Jobs, ControllerRevisions and budgets that it has created. It may also delete an entry of the history whose label
  somebody removed, because the new entry has the same name.

Of ConfigMaps, it may create and delete its records of open orders. RBAC lets it do so in the system namespace only.

The policies also apply to the account of `helm test`. So `altershield check` can show that they are in force, without a
permission to act as AlterShield's account.
"""

from altershield.api import labels
from altershield.api.annotations import ROLLOUT
from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from altershield.releases import history
from altershield.workloads import ADAPTERS
from command.install.admission_policy import (
    USER,
    Object,
    admission_policy,
    equal_but,
    policy_of_rules,
    resource_rule,
    validation,
)
from kube_base.resources import CONFIG_MAPS, DISRUPTION_BUDGETS, JOBS, PODS

_WRITABLE = {adapter.resource.full_name: ["template", adapter.pause_field] for adapter in ADAPTERS}
"""The fields of `spec`, by resource and group."""

_HELD = {
    adapter.resource.full_name: list(dict.fromkeys(path.split("/")[2] for path in adapter.held_fields))
    for adapter in ADAPTERS
}
"""The fields of `spec` that a release in steps holds, by resource and group."""

_RESOURCE = "request.resource.resource + '.' + request.resource.group"

_OWN_LABELS = [*labels.OWNED, labels.IGNORED_SUSPEND]
_POD_LABELS = [labels.VERSION, labels.OPERATE_FINISHED]
_BUDGETS = (POD_UNAVAILABLE_BUDGETS, DISRUPTION_BUDGETS)
_MARKS = {
    JOBS.plural: labels.CHECK,
    history.RESOURCE.plural: labels.HISTORY,
    CONFIG_MAPS.plural: labels.ORDER,
    **{each.plural: labels.MANAGED_BY for each in _BUDGETS},
}
"""The label of the objects that the account creates, by resource."""

_GOVERNED = f"""\
namespaceObject != null && has(namespaceObject.metadata.labels) &&
'{labels.GOVERNED}' in namespaceObject.metadata.labels &&
namespaceObject.metadata.labels['{labels.GOVERNED}'] == '{labels.GOVERNED_VALUE}'"""

NOT_GOVERNED = f"AlterShield changes nothing in a namespace without the label {labels.GOVERNED}"
NOT_THIS = "the account of AlterShield may not change this"
"""Denials begin with one of these."""

_NOT_GOVERNED = f"'{NOT_GOVERNED}'"
_ACCOUNT = f"'{NOT_THIS}: '"
_LABELS = {
    "newLabels": "has(object.metadata.labels) ? dyn(object.metadata.labels) : dyn({})",
    "oldLabels": "has(oldObject.metadata.labels) ? dyn(oldObject.metadata.labels) : dyn({})",
}
_ANNOTATIONS = {
    "newAnnotations": "has(object.metadata.annotations) ? dyn(object.metadata.annotations) : dyn({})",
    "oldAnnotations": "has(oldObject.metadata.annotations) ? dyn(oldObject.metadata.annotations) : dyn({})",
}
# `dyn` makes maps of typed objects, so that unknown fields of later versions of Kubernetes are compared too
_SPECS = {"newSpec": "dyn(object.spec)", "oldSpec": "dyn(oldObject.spec)"}


def _same(field: str, empty: str) -> str:
    """Whether a field of the metadata is unchanged."""
    value = "(has({0}.metadata.{1}) ? dyn({0}.metadata.{1}) : dyn({2}))"
    return f"{value.format('object', field, empty)} == {value.format('oldObject', field, empty)}"


_IS_GOVERNED = validation(_GOVERNED, _NOT_GOVERNED)
_KEEPS_OWNERS = validation(
    f"{_same('ownerReferences', '[]')} && {_same('finalizers', '[]')}",
    f"{_ACCOUNT} + 'owner references and finalizers'",
)


def account_policies(*accounts: str) -> list[Object]:
    """The policies and their bindings. `accounts`: the user names of the service accounts."""
    ours = {"the-account": f"{USER} in {list(accounts)}"}
    rules = [resource_rule([PODS], ["DELETE"]), resource_rule([PODS], ["CREATE"], ["eviction"])]
    deletions = policy_of_rules(
        "own-deletions", [{**each, "scope": "Namespaced"} for each in rules], ours, [_IS_GOVERNED]
    )
    return [*_workloads(ours), *_pods(ours), *deletions, *_created(ours)]


def _workloads(ours: dict[str, str]) -> list[Object]:
    variables = {
        **_LABELS,
        **_ANNOTATIONS,
        **_SPECS,
        "governed": _GOVERNED,
        # of a release in steps; each write of the annotation is a change
        "moves": f"'{ROLLOUT}' in variables.oldAnnotations && (!('{ROLLOUT}' in variables.newAnnotations) || "
        f"variables.newAnnotations['{ROLLOUT}'] != variables.oldAnnotations['{ROLLOUT}']) || "
        f"!('{ROLLOUT}' in variables.oldAnnotations) && '{ROLLOUT}' in variables.newAnnotations",
        "ends": f"'{ROLLOUT}' in variables.oldAnnotations && !('{ROLLOUT}' in variables.newAnnotations)",
        "labels": f"variables.governed ? {_OWN_LABELS} : []",
        "writable": f"(variables.governed ? {_WRITABLE}[{_RESOURCE}] : []) + "
        f"(variables.moves ? {_HELD}[{_RESOURCE}] : [])",
    }
    unchanged = (  # but for managedFields, from which the end of a hold removes an entry
        "variables.newSpec == variables.oldSpec && variables.newLabels == variables.oldLabels && "
        "variables.newAnnotations == variables.oldAnnotations"
    )
    return admission_policy(
        "own-workloads",
        [adapter.resource for adapter in ADAPTERS],
        ours,
        [
            validation(f"variables.governed || variables.ends || ({unchanged})", _NOT_GOVERNED),
            _KEEPS_OWNERS,
            validation(
                equal_but("oldLabels", "newLabels", "variables.labels"), f"{_ACCOUNT} + 'labels that are not its own'"
            ),
            validation(
                f"variables.governed || ({equal_but('oldAnnotations', 'newAnnotations', str([ROLLOUT]))})",
                f"{_ACCOUNT} + 'annotations other than {ROLLOUT}'",
            ),
            validation(
                equal_but("oldSpec", "newSpec", "variables.writable"),
                f"{_ACCOUNT} + 'fields of spec other than ' + variables.writable.join(', ')",
            ),
        ],
        variables=variables,
    )


def _pods(ours: dict[str, str]) -> list[Object]:
    return admission_policy(
        "own-pods",
        [PODS, *(adapter.intermediate for adapter in ADAPTERS if adapter.intermediate is not None)],
        ours,
        [
            _IS_GOVERNED,
            _KEEPS_OWNERS,
            validation(
                f"{_same('annotations', '{}')} && {equal_but('oldLabels', 'newLabels', str(_POD_LABELS))}",
                f"{_ACCOUNT} + 'annotations, and labels that are not its own'",
            ),
            validation("object.spec == oldObject.spec", f"{_ACCOUNT} + 'spec'"),
        ],
        variables=_LABELS,
    )


def _created(ours: dict[str, str]) -> list[Object]:
    """Of the objects that the account creates."""
    return admission_policy(
        "own-objects",
        [JOBS, history.RESOURCE, *_BUDGETS, CONFIG_MAPS],
        ours,
        [
            validation(
                f"request.operation == 'DELETE' || request.resource.resource == '{CONFIG_MAPS.plural}' || "
                f"({_GOVERNED})",
                _NOT_GOVERNED,
            ),
            validation(
                "has(variables.kept.metadata.labels) && variables.mark in variables.kept.metadata.labels && "
                f"(variables.mark != '{labels.MANAGED_BY}' || "
                f"variables.kept.metadata.labels[variables.mark] == '{labels.MANAGED_BY_VALUE}') || "
                "request.operation == 'DELETE' && has(oldObject.metadata.annotations) && "
                f"'{history.ANNOTATION}' in oldObject.metadata.annotations",
                f"{_ACCOUNT} + 'the object has no label ' + variables.mark",
            ),
        ],
        operations=("CREATE", "UPDATE", "DELETE"),
        variables={
            "mark": f"{_MARKS}[request.resource.resource]",
            "kept": "request.operation == 'CREATE' ? object : oldObject",
        },
    )
