"""ValidatingAdmissionPolicies: CEL expressions that a request has to meet.

The rules are those of kube-apiserver's `pkg/admission/plugin/policy/validating`. Parameters are not supported: the
validation refuses a policy with `paramKind`. There is no type checking: `status.typeChecking` stays empty. Audit
annotations have no effect, because this server writes no audit log.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kube_sandbox.apiserver.admission.built_in import forbidden
from kube_sandbox.apiserver.admission.webhooks import match
from kube_sandbox.apiserver.admission.webhooks.candidates import Candidates
from kube_sandbox.apiserver.admission.webhooks.conditions import Evaluation, EvaluationError, Evaluations
from kube_sandbox.apiserver.admission.webhooks.match import GROUP, Hook
from kube_sandbox.apiserver.admission.webhooks.review import Invocation
from kube_sandbox.apiserver.attributes import Attributes, Object, Reader
from kube_sandbox.apiserver.errors import StatusError

_Bound = tuple[Object, Object]
"""A policy and one of its bindings."""
_ALL: list[Object] = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}  # any other reason: 422


@dataclass(frozen=True, slots=True)
class _Failure:
    """A validation that is false or cannot be evaluated."""

    message: str
    reason: str


class Policies:
    """The stored policies with their bindings."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._bound: Candidates[_Bound] = Candidates(
            lambda: [reader.list(GROUP, f"validatingadmission{kind}") for kind in ("policies", "policybindings")],
            _bound,
            lambda bound: bound[0]["spec"]["matchConstraints"].get("resourceRules") or (),
        )

    def check(self, attributes: Attributes, evaluations: Evaluations) -> None:
        """Evaluate the policies for a request. Adds to `attributes.warnings`. Raises StatusError when a policy denies
        it.

        As in the real server, the request is denied with the message of the first policy that denies it.
        """
        denied: StatusError | None = None
        for policy, binding in self._bound.of(attributes):
            actions = binding["spec"].get("validationActions") or ()
            for failure in _failures(policy, binding, attributes, self._reader, evaluations):
                if "Warn" in actions:
                    attributes.warnings.append(
                        f"Validation failed for ValidatingAdmissionPolicy '{_name(policy)}' with binding "
                        f"'{_name(binding)}': {failure.message}"
                    )
                if "Deny" in actions and denied is None:
                    denied = _denied(attributes, policy, binding, failure)
        if denied is not None:
            raise denied


def _bound(policies: Sequence[Object], bindings: Sequence[Object]) -> Iterator[_Bound]:
    """Each binding with its policy, in the order of the bindings' names."""
    named = {_name(policy): policy for policy in policies}
    for binding in sorted(bindings, key=_name):
        policy = named.get(str(binding["spec"].get("policyName")))
        if policy is not None:
            yield policy, binding


def _failures(
    policy: Object, binding: Object, attributes: Attributes, reader: Reader, evaluations: Evaluations
) -> Iterator[_Failure]:
    spec = policy["spec"]
    narrowed = binding["spec"].get("matchResources")
    if narrowed and _matched(_name(binding), narrowed, {}, attributes, reader, evaluations) is None:
        return
    conditions = {key: spec[key] for key in ("matchConditions", "failurePolicy") if key in spec}
    matched = _matched(_name(policy), spec.get("matchConstraints") or {}, conditions, attributes, reader, evaluations)
    if matched is None:
        return
    namespace = attributes.namespace_or_self
    evaluation = Evaluation(
        attributes,
        matched,
        evaluations.authorizer,
        namespace=reader.get("", "namespaces", namespace) if namespace else None,
        variables=spec.get("variables") or (),
    )
    for validation in spec.get("validations") or ():
        expression = validation["expression"]
        reason = validation.get("reason") or "Invalid"
        try:
            met = evaluation.run(expression) is True
        except EvaluationError as error:
            if spec.get("failurePolicy") != "Ignore":
                yield _Failure(f"expression '{expression}' resulted in error: {error}", "Invalid")
            continue
        if not met:
            yield _Failure(_message(evaluation, validation), reason)


def _message(evaluation: Evaluation, validation: Object) -> str:
    if expression := validation.get("messageExpression"):
        try:
            text = evaluation.run(expression)
        except EvaluationError:
            text = None
        if isinstance(text, str) and text.strip() and "\n" not in text:
            return text.strip()
    message = str(validation.get("message") or "").strip()
    return message or f"failed expression: {str(validation['expression']).strip()}"


def _denied(attributes: Attributes, policy: Object, binding: Object, failure: _Failure) -> StatusError:
    message = (
        f"ValidatingAdmissionPolicy '{_name(policy)}' with binding '{_name(binding)}' denied request: {failure.message}"
    )
    error = forbidden(attributes, message)
    details = {**(error.details or {}), "causes": [{"message": message}]}
    return StatusError(_CODES.get(failure.reason, 422), error.message, reason=failure.reason, details=details)


def _matched(
    name: str,
    resources: Object,
    conditions: Object,
    attributes: Attributes,
    reader: Reader,
    evaluations: Evaluations,
) -> Invocation | None:
    """The invocation if MatchResources select the request, else None.

    MatchResources have the rules and selectors of a webhook. In addition, they have `excludeResourceRules`, and rules
    with `resourceNames`. Without rules, they select each request."""

    def hook(rules: Sequence[Object] | None, **more: object) -> Hook:
        named = [each for each in rules or () if _has_name(each, attributes.name)]
        return Hook(name, {"name": name, "rules": _ALL if rules is None else named, **more})

    rules = resources.get("resourceRules")
    if rules is not None and not match.rules_for(rules, attributes):
        return None
    excluded = resources.get("excludeResourceRules")
    if excluded and match.match(hook(excluded), attributes, reader, evaluations) is not None:
        return None
    kept = {key: resources[key] for key in ("namespaceSelector", "objectSelector", "matchPolicy") if key in resources}
    return match.match(hook(rules, **kept, **conditions), attributes, reader, evaluations)


def _has_name(rule: Object, name: str) -> bool:
    """Whether the `resourceNames` of a rule select the name. An empty list selects each name."""
    names = rule.get("resourceNames")
    return not names or name in names


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])
