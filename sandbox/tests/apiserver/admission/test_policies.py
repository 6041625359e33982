"""Which requests ValidatingAdmissionPolicies deny."""

import pytest

from kube_sandbox.apiserver.admission.policies import Policies
from kube_sandbox.apiserver.admission.webhooks.conditions import Evaluations
from kube_sandbox.apiserver.attributes import Attributes, Object
from kube_sandbox.apiserver.auth.authentication import administrator
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.validation.admission_policy import admission_policy, admission_policy_binding
from support.stored import Stored, an_object

RULE: Object = {
    "operations": ["UPDATE"],
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "resources": ["deployments"],
    "scope": "*",
}


def policy(*validations: Object, **spec: object) -> Object:
    made = an_object("ValidatingAdmissionPolicy", "p", api_version="admissionregistration.k8s.io/v1")
    constraints = {"matchPolicy": "Equivalent", "resourceRules": [RULE]}
    made["spec"] = {
        "failurePolicy": "Fail",
        "matchConstraints": constraints,
        "validations": list(validations),
        **spec,
    }
    return made


def binding(*actions: str, **spec: object) -> Object:
    made = an_object("ValidatingAdmissionPolicyBinding", "b", api_version="admissionregistration.k8s.io/v1")
    made["spec"] = {"policyName": "p", "validationActions": list(actions or ("Deny",)), **spec}
    return made


def check(*stored: Object, replicas: int = 3) -> Attributes:
    """An update of a Deployment from 1 to so many replicas."""
    obj, old = (
        an_object("Deployment", "sleep", "apps", api_version="apps/v1") | {"spec": {"replicas": number}}
        for number in (replicas, 1)
    )
    attributes = Attributes(
        administrator(),
        "update",
        group="apps",
        version="v1",
        plural="deployments",
        kind="Deployment",
        namespace="apps",
        name="sleep",
        operation="UPDATE",
        obj=obj,
        old=old,
    )
    Policies(Stored(an_object("Namespace", "apps"), *stored)).check(attributes, Evaluations(attributes, None))
    return attributes


FEW: Object = {"expression": "object.spec.replicas < 3"}


def test_request_that_meets_the_expression_passes() -> None:
    check(policy(FEW), binding(), replicas=2)


@pytest.mark.parametrize(
    ("validation", "code", "message"),
    [
        (FEW, 422, "failed expression: object.spec.replicas < 3"),
        (FEW | {"message": "too many"}, 422, "too many"),
        (FEW | {"reason": "Forbidden"}, 403, "failed expression: object.spec.replicas < 3"),
        (FEW | {"message": "no", "messageExpression": "'not ' + request.userInfo.username"}, 422, "not "),
        (FEW | {"message": "no", "messageExpression": "object.nothing"}, 422, "no"),
        ({"expression": "object.nothing == 1"}, 422, "expression 'object.nothing == 1' resulted in error: no such key"),
    ],
)
def test_denial_has_the_message_and_the_reason_of_the_validation(validation: Object, code: int, message: str) -> None:
    with pytest.raises(StatusError) as denied:
        check(policy(validation), binding())
    assert denied.value.code == code
    start = "deployments.apps \"sleep\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
    assert denied.value.message.startswith(start + message)
    assert (denied.value.details or {})["causes"] == [{"message": denied.value.message.partition("forbidden: ")[2]}]


def test_policy_without_a_binding_has_no_effect() -> None:
    check(policy(FEW))


def test_policy_that_ignores_failures_admits_what_it_cannot_evaluate() -> None:
    check(policy({"expression": "object.nothing == 1"}, failurePolicy="Ignore"), binding())


def test_binding_with_warn_admits_with_a_warning() -> None:
    (warning,) = check(policy(FEW | {"message": "too many"}), binding("Warn")).warnings
    assert warning == "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': too many"


@pytest.mark.parametrize(
    ("spec", "denied"),
    [
        ({"matchConditions": [{"name": "n", "expression": "request.userInfo.username == 'nobody'"}]}, False),
        ({"matchConditions": [{"name": "n", "expression": "request.userInfo.username != 'nobody'"}]}, True),
        ({"matchConstraints": {"resourceRules": [RULE | {"resources": ["deployments/status"]}]}}, False),
        ({"matchConstraints": {"resourceRules": [RULE], "excludeResourceRules": [RULE]}}, False),
        ({"matchConstraints": {"resourceRules": [RULE | {"resourceNames": ["other"]}]}}, False),
        ({"matchConstraints": {"resourceRules": [RULE | {"resourceNames": ["sleep"]}]}}, True),
    ],
)
def test_policy_is_about_the_requests_that_it_selects(spec: Object, denied: bool) -> None:
    if not denied:
        check(policy(FEW, **spec), binding())
        return
    with pytest.raises(StatusError):
        check(policy(FEW, **spec), binding())


def test_binding_narrows_the_requests_of_its_policy() -> None:
    check(policy(FEW), binding(matchResources={"namespaceSelector": {"matchLabels": {"governed": "yes"}}}))
    with pytest.raises(StatusError):
        check(policy(FEW), binding(matchResources={"namespaceSelector": {}}))


def test_expressions_use_variables_and_the_namespace() -> None:
    variables = [
        {"name": "wanted", "expression": "object.spec.replicas"},
        {"name": "many", "expression": "variables.wanted > 2 && namespaceObject.metadata.name == 'apps'"},
    ]
    check(policy({"expression": "!variables.many"}, variables=variables), binding(), replicas=2)
    with pytest.raises(StatusError):
        check(policy({"expression": "!variables.many"}, variables=variables), binding())


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"failurePolicy": "Never"}, "spec.failurePolicy"),
        ({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}, "spec.paramKind"),
        ({"matchConstraints": None}, "spec.matchConstraints"),
        ({"matchConstraints": {"resourceRules": []}}, "spec.matchConstraints.resourceRules"),
        ({"validations": []}, "spec.validations"),
        ({"validations": [{"expression": "1 +"}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": " "}]}, "spec.validations[0].expression"),
        ({"validations": [FEW | {"reason": "Tired"}]}, "spec.validations[0].reason"),
    ],
)
def test_invalid_policy_is_refused(spec: Object, field: str) -> None:
    assert field in [each["field"] for each in admission_policy(policy(FEW, **spec), None)]
    assert not list(admission_policy(policy(FEW), None))


@pytest.mark.parametrize("actions", [("Deny", "Warn"), ("Deny", "Deny"), ("Refuse",)])
def test_invalid_binding_is_refused(actions: tuple[str, ...]) -> None:
    assert list(admission_policy_binding(binding(*actions), None))
    assert not list(admission_policy_binding(binding(), None))
    assert list(admission_policy_binding(binding(policyName=""), None))
