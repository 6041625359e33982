"""Builds a ValidatingAdmissionPolicy and its binding."""

import types
from collections.abc import Mapping, Sequence
from typing import Any

from altershield.api.resources import ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS, Resource
from altershield.install.rbac import LABELS, NAME

Object = dict[str, Any]

RESOURCES = {each.kind: each for each in (ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS)}
"""The resource of each kind."""

USER = "request.userInfo.username"
"""The expression for the name of the user who sent the request."""


def admission_policy(
    suffix: str,
    resources: Sequence[Resource],
    conditions: Mapping[str, str],
    validations: list[Object],
    *,
    operations: Sequence[str] = ("UPDATE",),
    subresource: str = "",
    variables: Mapping[str, str] = types.MappingProxyType({}),
    objects: Mapping[str, Any] = types.MappingProxyType({}),
) -> list[Object]:
    """A policy, and a binding that denies. `conditions`, `variables`: expressions by name. `objects`: a selector."""
    rules = [
        {
            "apiGroups": [each.group],
            "apiVersions": [each.version],
            "operations": list(operations),
            "resources": [f"{each.plural}/{subresource}" if subresource else each.plural],
            "scope": "Namespaced",
        }
        for each in resources
    ]
    named = [{"name": name, "expression": one_line(text)} for name, text in variables.items()]
    policy = {
        **_head(ADMISSION_POLICIES, suffix),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                # the API server's defaults, without which GitOps tools would report a difference
                "namespaceSelector": {},
                "objectSelector": dict(objects),
                "resourceRules": rules,
            },
            "matchConditions": [{"name": name, "expression": text} for name, text in conditions.items()],
            **({"variables": named} if named else {}),
            "validations": validations,
        },
    }
    name = policy["metadata"]["name"]
    binding = {
        **_head(ADMISSION_POLICY_BINDINGS, suffix), "spec": {"policyName": name, "validationActions": ["Deny"]},
    }  # fmt: skip
    return [policy, binding]


def validation(expression: str, message: str) -> Object:
    """`message`: an expression."""
    return {"expression": one_line(expression), "messageExpression": message, "reason": "Forbidden"}


def one_line(expression: str) -> str:
    return " ".join(expression.split())


def _head(resource: Resource, suffix: str) -> Object:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": f"{NAME}-{suffix}", "labels": LABELS},
    }
