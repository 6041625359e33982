"""The ValidatingAdmissionPolicies. Who gave a verdict or made a request is the user of the request to the API server. A
DefensePolicy lets its author do nothing through AlterShield that the author may not do.

The API server evaluates them. So they hold whether a gatekeeper runs or not, and in namespaces that are not governed.
"""

import types
from collections.abc import Mapping, Sequence
from typing import Any

from altershield.api import labels
from altershield.api.policy import MAX_CHECKS
from altershield.api.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CHANGE_PODS,
    CHANGE_WORKLOADS,
    DEFENSE_POLICIES,
    JOBS,
    SECRETS,
    Resource,
)
from altershield.install.rbac import LABELS, NAME
from altershield.releases import history

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

_NOTIFIED = _ACTIONS.replace("actions", "notified")

_BEFORE = "has(oldObject.status) && has(oldObject.status.podResults) ? oldObject.status.podResults : []"

# The third line compares each result with each earlier one, which the API server limits. It is evaluated only if a user
# removes the verdict of another user.
_RESULTS = f"""\
!has(object.status) || !has(object.status.podResults) ||
object.status.podResults.filter(r, has(r.by) && r.by != {_USER}) ==
variables.before.filter(r, has(r.by) && r.by != {_USER}) ||
object.status.podResults.all(r, !has(r.by) || r.by == {_USER} || r in variables.before)"""

_CHECKS = "has(object.spec) && has(object.spec.checks) ? object.spec.checks : []"
_CHANGED = "request.operation == 'CREATE' || !has(oldObject.spec) || !has(object.spec) || object.spec != oldObject.spec"
_SECRETS = " + ".join(
    f"variables.checks.filter(c, has(c.{kind}) && has(c.{kind}.secretRef)).map(c, c.{kind}.secretRef.name)"
    for kind in ("http", "prometheus")
)
_SAME_STATUS = (
    "has(object.status) == has(oldObject.status) && (!has(object.status) || object.status == oldObject.status)"
)
_SAME_POLICY = """\
request.operation == 'CREATE' ? !has(object.spec.policy) :
has(object.spec.policy) == has(oldObject.spec.policy) &&
(!has(object.spec.policy) || object.spec.policy == oldObject.spec.policy)"""


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
            _validation(_NOTIFIED, "'only AlterShield writes status.notified'"),
        ],
    )
    verdicts = _policy(
        "verdicts",
        CHANGE_PODS,
        reconciler,
        [_validation(_RESULTS, "'by of a new verdict has to be your user name: ' + request.userInfo.username")],
        variables=[{"name": "before", "expression": _BEFORE}],
    )
    found = [requests, verdicts, _checks(reconciler), *_copies(reconciler), _history(reconciler)]
    return [obj for policy in found for obj in (policy, _binding(policy))]


def _checks(reconciler: str) -> Object:
    """A user who writes a DefensePolicy with a Job must be allowed to create Jobs in its namespace; with a Secret, to
    read this Secret. The reconciler does both with its own permissions.

    A policy of the system namespace applies to all namespaces, so its author must be allowed to create Jobs in all of
    them. The API server limits the cost of an expression to two questions to the authorizer (k8s.io/apiserver,
    pkg/cel/library/cost.go), so there is one expression for each Secret.
    """
    may_create = (
        f"authorizer.group('{JOBS.group}').resource('{JOBS.plural}').namespace(variables.scope).check('create')"
    )
    where = "variables.scope == '' ? 'all namespaces' : 'the namespace ' + variables.scope"

    def may_read(number: int) -> Object:
        name = f"variables.secrets[{number}]"
        asked = f"authorizer.group('').resource('{SECRETS.plural}').namespace(request.namespace).name({name})"
        return _validation(
            f"size(variables.secrets) <= {number} || {asked}.check('get').allowed()",
            f"'you may not read the Secret ' + {name} + ', so no DefensePolicy of yours may name it'",
        )

    return _policy(
        "checks",
        DEFENSE_POLICIES,
        reconciler,
        [
            _validation(
                f"!variables.checks.exists(c, has(c.job)) || {may_create}.allowed()",
                f"'you may not create Jobs in ' + ({where}) + ', so no DefensePolicy of yours may have one'",
            ),
            _validation(
                f"size(variables.secrets) <= {MAX_CHECKS}", f"'a DefensePolicy may name {MAX_CHECKS} Secrets at most'"
            ),
            *map(may_read, range(MAX_CHECKS)),
        ],
        operations=("CREATE", "UPDATE"),
        subresource="",
        conditions={"changed": _CHANGED},
        variables=[
            {"name": "checks", "expression": _CHECKS},
            {"name": "secrets", "expression": _SECRETS},
            {
                "name": "scope",
                "expression": f"'{reconciler}'.startsWith('system:serviceaccount:' + request.namespace + ':') ? '' : "
                "request.namespace",
            },
        ],
    )


def _copies(reconciler: str) -> list[Object]:
    """The spec of a policy that is in force is in the policy's status, and in the ChangeWorkloads of its releases. Only
    the reconciler writes these copies. Otherwise a user could write there what `_checks` denies."""
    return [
        _policy(
            "accepted",
            DEFENSE_POLICIES,
            reconciler,
            [_validation(_SAME_STATUS, "'only AlterShield writes the status of DefensePolicies'")],
        ),
        _policy(
            "applied",
            CHANGE_WORKLOADS,
            reconciler,
            [_validation(_SAME_POLICY, "'only AlterShield writes spec.policy of ChangeWorkloads'")],
            operations=("CREATE", "UPDATE"),
            subresource="",
        ),
    ]


def _history(reconciler: str) -> Object:
    """Only the reconciler writes the entries of the history. Otherwise a user who may write ControllerRevisions, but no
    workloads, could have the pod template of an entry released by a rollback, with the permissions of the reconciler;
    and could change who released or approved a version.

    Changes of the owners stay possible: the garbage collector makes them. Users who may do everything in the namespace
    can write entries too, for example backup tools with the role `cluster-admin`.
    """
    content = ", ".join(
        _metadata("{0}", *each) for each in (("labels", labels.HISTORY), ("annotations", history.ANNOTATION))
    )
    content = f"[{content}, {{0}}.revision]"
    may_do_all = "authorizer.group('*').resource('*').namespace(request.namespace).check('*').allowed()"
    policy = _policy(
        "history",
        history.RESOURCE,
        reconciler,
        [
            _validation(
                f"(request.operation == 'UPDATE' && variables.now == variables.before) || {may_do_all}",
                "'only AlterShield writes the history of workloads'",
            )
        ],
        operations=("CREATE", "UPDATE"),
        subresource="",
        variables=[
            {"name": "now", "expression": content.format("object")},
            {"name": "before", "expression": content.format("oldObject")},
        ],
    )
    # ControllerRevisions without the label are not evaluated, so an error cannot block the controllers of Kubernetes
    selector = {"matchExpressions": [{"key": labels.HISTORY, "operator": "Exists"}]}
    policy["spec"]["matchConstraints"]["objectSelector"] = selector
    return policy


def _metadata(obj: str, field: str, key: str) -> str:
    """The value of a label or annotation; empty without it."""
    values = f"{obj}.metadata.{field}"
    return f"(has({values}) && '{key}' in {values} ? {values}['{key}'] : '')"


def _policy(
    suffix: str,
    resource: Resource,
    reconciler: str,
    validations: list[Object],
    *,
    operations: Sequence[str] = ("UPDATE",),
    subresource: str = "status",
    conditions: Mapping[str, str] = types.MappingProxyType({}),
    variables: list[Object] | None = None,
) -> Object:
    """By default, a policy for updates of the status."""
    named = {"not-the-reconciler": f"{_USER} != '{reconciler}'", **conditions}
    rule = {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "operations": list(operations),
        "resources": [f"{resource.plural}/{subresource}" if subresource else resource.plural],
        "scope": "Namespaced",
    }
    return {
        **_head(ADMISSION_POLICIES, f"{NAME}-{suffix}"),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                # the API server's defaults, without which GitOps tools would report a difference
                "namespaceSelector": {},
                "objectSelector": {},
                "resourceRules": [rule],
            },
            "matchConditions": [{"name": name, "expression": text} for name, text in named.items()],
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
