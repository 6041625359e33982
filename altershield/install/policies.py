"""The ValidatingAdmissionPolicies: who gave a verdict or made a request is the user of the request to the API server.

The API server evaluates them. So they hold whether a gatekeeper runs or not, and in namespaces that are not governed.
"""

from typing import Any

from altershield.api.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CHANGE_PODS,
    CHANGE_WORKLOADS,
    Resource,
)
from altershield.install.rbac import LABELS, NAME

Object = dict[str, Any]

RESOURCES = {each.kind: each for each in (ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS)}
"""The resource of each kind."""

_USER = "request.userInfo.username"

_REQUEST = f"""\
!has(object.status) || !has(object.status.request) ||
(has(oldObject.status) && has(oldObject.status.request) && object.status.request == oldObject.status.request) ||
(has(object.status.request.by) && object.status.request.by == {_USER})"""

_ACTIONS = """\
(has(object.status) && has(object.status.actions) ? object.status.actions : []) ==
(has(oldObject.status) && has(oldObject.status.actions) ? oldObject.status.actions : [])"""

_BEFORE = "has(oldObject.status) && has(oldObject.status.podResults) ? oldObject.status.podResults : []"

# The third line compares each result with each earlier one, which the API server limits. It is evaluated only if a user
# removes the verdict of another user.
_RESULTS = f"""\
!has(object.status) || !has(object.status.podResults) ||
object.status.podResults.filter(r, has(r.by) && r.by != {_USER}) ==
variables.before.filter(r, has(r.by) && r.by != {_USER}) ||
object.status.podResults.all(r, !has(r.by) || r.by == {_USER} || r in variables.before)"""


def policies(reconciler: str) -> list[Object]:
    """The policies and their bindings. `reconciler`: the user name of the reconciler's service account, which the
    policies do not bind: it gives the verdicts of users who approve a release."""
    requests = _policy(
        "requests",
        CHANGE_WORKLOADS,
        reconciler,
        [
            _validation(_REQUEST, "'status.request.by has to be your user name: ' + request.userInfo.username"),
            _validation(_ACTIONS, "'only AlterShield writes status.actions'"),
        ],
    )
    verdicts = _policy(
        "verdicts",
        CHANGE_PODS,
        reconciler,
        [_validation(_RESULTS, "'by of a new verdict has to be your user name: ' + request.userInfo.username")],
        variables=[{"name": "before", "expression": _BEFORE}],
    )
    return [requests, _binding(requests), verdicts, _binding(verdicts)]


def _policy(
    suffix: str,
    resource: Resource,
    reconciler: str,
    validations: list[Object],
    *,
    variables: list[Object] | None = None,
) -> Object:
    rule = {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "operations": ["UPDATE"],
        "resources": [f"{resource.plural}/status"],
        "scope": "Namespaced",
    }
    return {
        **_head(ADMISSION_POLICIES, f"{NAME}-{suffix}"),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": [rule]},
            "matchConditions": [{"name": "not-the-reconciler", "expression": f"{_USER} != '{reconciler}'"}],
            **({"variables": variables} if variables else {}),
            "validations": validations,
        },
    }


def _validation(expression: str, message: str) -> Object:
    return {"expression": " ".join(expression.split()), "messageExpression": message, "reason": "Forbidden"}


def _binding(policy: Object) -> Object:
    name = policy["metadata"]["name"]
    return {
        **_head(ADMISSION_POLICY_BINDINGS, name),
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }


def _head(resource: Resource, name: str) -> Object:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "labels": LABELS},
    }
