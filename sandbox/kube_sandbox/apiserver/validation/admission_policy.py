"""Validation of ValidatingAdmissionPolicies and their bindings (k8s.io/kubernetes,
pkg/apis/admissionregistration/validation). CEL expressions are compiled, but their types are not checked."""

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.validation import causes
from kube_sandbox.apiserver.validation.causes import Causes
from kube_sandbox.apiserver.validation.meta import label_selector
from kube_sandbox.apiserver.validation.webhook import cel_expression, match_conditions, operation_rule

_ACTIONS = ("Audit", "Deny", "Warn")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")


def admission_policy(obj: Object, _: Object | None) -> Causes:
    spec, path = obj["spec"], "spec"
    yield from causes.one_of(f"{path}.failurePolicy", spec.get("failurePolicy"), ("Fail", "Ignore"))
    if spec.get("paramKind"):
        yield causes.forbidden(f"{path}.paramKind", "the sandbox does not support parameters of policies")
    yield from match_conditions(spec.get("matchConditions") or (), f"{path}.matchConditions")
    for index, variable in enumerate(spec.get("variables") or ()):
        yield from _expression(variable, "expression", f"{path}.variables[{index}]")
    resources = spec.get("matchConstraints")
    if resources is None:
        yield causes.required(f"{path}.matchConstraints")
    else:
        yield from _resources(resources, f"{path}.matchConstraints")
        yield from causes.non_empty(f"{path}.matchConstraints.resourceRules", resources.get("resourceRules"))
    validations = spec.get("validations") or ()
    if not validations and not spec.get("auditAnnotations"):
        yield causes.required(f"{path}.validations", "validations or auditAnnotations must contain at least one item")
    for index, validation in enumerate(validations):
        where = f"{path}.validations[{index}]"
        yield from _expression(validation, "expression", where)
        if validation.get("messageExpression"):
            yield from _expression(validation, "messageExpression", where)
        if (reason := validation.get("reason")) is not None and reason not in _REASONS:
            yield causes.unsupported(f"{where}.reason", reason, _REASONS)


def admission_policy_binding(obj: Object, _: Object | None) -> Causes:
    spec, path = obj["spec"], "spec"
    yield from causes.non_empty(f"{path}.policyName", spec.get("policyName"))
    if spec.get("paramRef"):
        yield causes.forbidden(f"{path}.paramRef", "the sandbox does not support parameters of policies")
    if (resources := spec.get("matchResources")) is not None:
        yield from _resources(resources, f"{path}.matchResources")
    actions = spec.get("validationActions") or []
    yield from causes.non_empty(f"{path}.validationActions", actions)
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield causes.unsupported(f"{path}.validationActions[{index}]", action, _ACTIONS)
        elif action in actions[:index]:
            yield causes.duplicate(f"{path}.validationActions[{index}]", action)
    if "Deny" in actions and "Warn" in actions:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        yield causes.invalid(f"{path}.validationActions", actions, why)


def _resources(resources: Object, path: str) -> Causes:
    for field in ("namespaceSelector", "objectSelector"):
        yield from label_selector(resources.get(field) or {}, f"{path}.{field}")
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(resources.get(field) or ()):
            yield from operation_rule(rule, f"{path}.{field}[{index}]")


def _expression(holder: Object, field: str, path: str) -> Causes:
    expression = str(holder.get(field) or "").strip()
    if expression:
        yield from cel_expression(expression, f"{path}.{field}")
    else:
        yield causes.required(f"{path}.{field}", f"{field} is not specified")
