"""Builds a ValidatingAdmissionPolicy and its binding."""

import types
from collections.abc import Mapping, Sequence
from typing import Any

from altershield.api.names import INSTALLED
from altershield.api.released_by import MAX_USER
from command.install.rbac import NAME
from kube_base.resources import ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS, Resource

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
    """A policy for objects in namespaces, and its binding, which denies. `conditions`, `variables`: expressions by
    name. `objects`: a label selector."""
    rules = [resource_rule([each], operations, (subresource,), scope="Namespaced") for each in resources]
    return policy_of_rules(suffix, rules, conditions, validations, variables=variables, objects=objects)


def resource_rule(
    resources: Sequence[Resource],
    operations: Sequence[str],
    subresources: Sequence[str] = ("",),
    *,
    version: str = "",
    scope: str = "*",
) -> Object:
    """A rule for resources of one group and for their subresources. The empty subresource is the resource itself. If
    `version` is empty, the rule has the version of the first resource."""
    plurals = [f"{each.plural}/{part}" if part else each.plural for each in resources for part in subresources]
    return {
        "apiGroups": [resources[0].group],
        "apiVersions": [version or resources[0].version],
        "operations": list(operations),
        "resources": plurals,
        "scope": scope,
    }


def policy_of_rules(
    suffix: str,
    rules: Sequence[Object],
    conditions: Mapping[str, str],
    validations: list[Object],
    *,
    variables: Mapping[str, str] = types.MappingProxyType({}),
    objects: Mapping[str, Any] = types.MappingProxyType({}),
    action: str = "Deny",
) -> list[Object]:
    """A policy and its binding. `action`: Deny, or Warn."""
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
                "resourceRules": list(rules),
            },
            "matchConditions": [{"name": name, "expression": one_line(text)} for name, text in conditions.items()],
            **({"variables": named} if named else {}),
            "validations": validations,
        },
    }
    name = policy["metadata"]["name"]
    binding = {
        **_head(ADMISSION_POLICY_BINDINGS, suffix), "spec": {"policyName": name, "validationActions": [action]},
    }  # fmt: skip
    return [policy, binding]


def is_user(name: str) -> str:
    """Whether the user who sent the request has this name, which the gatekeeper cuts."""
    return f"({name} == {USER} || (size({name}) == {MAX_USER} && {USER}.startsWith({name})))"


def validation(expression: str, message: str) -> Object:
    """A validation. `expression` and `message` are expressions."""
    return {"expression": one_line(expression), "messageExpression": message, "reason": "Forbidden"}


def equal_but(old: str, new: str, keys: str) -> str:
    """Whether two variables that hold maps are equal, apart from these keys."""
    return f"""\
variables.{new}.all(k, k in {keys} ||
(k in variables.{old} && variables.{old}[k] == variables.{new}[k])) &&
variables.{old}.all(k, k in {keys} || k in variables.{new})"""


def one_line(expression: str) -> str:
    return " ".join(expression.split())


def _head(resource: Resource, suffix: str) -> Object:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": f"{NAME}-{suffix}", "labels": INSTALLED},
    }
