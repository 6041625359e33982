"""Who may do what in a cluster: AlterShield itself exactly what gatekeeper and reconciler call, and its users."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from altershield.api.names import SERVICE_ACCOUNT
from altershield.api.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CRDS,
    GROUP,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Resource,
)
from altershield.workloads import ADAPTERS

Object = dict[str, Any]

_RBAC = CLUSTER_ROLES.group

NAME = "altershield"
LABELS = {
    "app.kubernetes.io/name": "altershield",
    "app.kubernetes.io/part-of": "altershield",
    "app.kubernetes.io/component": "gate",
}


def _rule(groups: str, resources: Sequence[str], verbs: str) -> Object:
    return {"apiGroups": [groups], "resources": list(resources), "verbs": verbs.split()}


RESOURCES = {
    resource.kind: resource
    for resource in (SERVICE_ACCOUNTS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS)
}
"""Where the objects of each kind go."""


def _each_group(resources: Iterable[Resource], verbs: str, subresource: str = "") -> Iterator[Object]:
    """One rule per API group, as it takes; `resources` of one group follow each other."""
    for group, members in groupby(dict.fromkeys(resources), key=lambda resource: resource.group):
        plurals = [resource.plural for resource in members]
        yield _rule(group, [f"{plural}/{subresource}" if subresource else plural for plural in plurals], verbs)


_WORKLOADS = [adapter.resource for adapter in ADAPTERS]
_BETWEEN = [adapter.intermediate for adapter in ADAPTERS if adapter.intermediate is not None]
_REVISIONS = [adapter.revisions for adapter in ADAPTERS if adapter.revisions not in _BETWEEN]
_OPTIONAL = [adapter.crd for adapter in ADAPTERS if adapter.crd]

CLUSTER_RULES = (
    _rule("", ["namespaces", "nodes"], "list watch"),
    _rule("", ["pods"], "list watch patch delete"),
    _rule("", ["events"], "list create patch"),
    *_each_group(_WORKLOADS, "get list watch patch"),
    *_each_group(_BETWEEN, "get list watch patch"),
    *_each_group(_REVISIONS, "get list"),
    # owner references with blockOwnerDeletion, where the API server enforces who may set them
    *_each_group(_WORKLOADS, "update", "finalizers"),
    # whether the cluster has the kinds that are not Kubernetes' own
    {**_rule(CRDS.group, [CRDS.plural], "list watch"), "resourceNames": _OPTIONAL},
    _rule(GROUP, ["changeworkloads/finalizers"], "update"),
    _rule(GROUP, ["changeworkloads"], "list watch create patch delete"),
    _rule(GROUP, ["changepods"], "list watch create delete"),
    _rule(GROUP, ["changeworkloads/status", "changepods/status", "opsconfiginfoes/status"], "patch"),
    _rule(GROUP, ["opsconfiginfoes"], "list watch"),
)
"""What is read and written in every namespace."""

SYSTEM_RULES = (
    _rule(GROUP, ["opsconfiginfoes"], "create"),
    _rule("coordination.k8s.io", ["leases"], "get create update"),
)
"""What is written in the system namespace alone."""


READER_RULES = (_rule(GROUP, ["changeworkloads", "changepods", "opsconfiginfoes"], "get list watch"),)
"""What users read: releases, their verified pods, and the settings."""

VERDICT_RULES = (
    _rule(GROUP, ["changeworkloads", "changepods"], "get list watch"),
    _rule(GROUP, ["changeworkloads/status", "changepods/status"], "get patch"),
)
"""What giving verdicts and asking for rollbacks takes; `kubectl patch --subresource=status` reads what it patches."""

_AGGREGATED_TO = ("view", "edit", "admin")
"""The built-in roles that READER_RULES become a part of."""


def user_roles() -> list[Object]:
    """The ClusterRoles for users, whom an administrator binds to them.

    Reading is part of the built-in roles `view`, `edit` and `admin`. Giving verdicts is part of none: whoever may give
    a verdict may lift a suspension, and users with `edit` or `admin` are the ones whose releases are judged. Neither
    role may delete a record, because a suspension would end with it.
    """
    aggregated = {f"{_RBAC}/aggregate-to-{role}": "true" for role in _AGGREGATED_TO}
    return [
        _cluster_role(f"{NAME}-view", LABELS | aggregated, READER_RULES),
        _cluster_role(f"{NAME}-verdicts", LABELS, VERDICT_RULES),
    ]


def _cluster_role(name: str, labels: dict[str, str], rules: Sequence[Object]) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": CLUSTER_ROLES.kind,
        "metadata": {"name": name, "labels": labels},
        "rules": list(rules),
    }


def objects(namespace: str) -> list[Object]:
    """The service account and its permissions, `namespace` being the system namespace."""
    subject = {"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": namespace}

    def obj(kind: str, scope: str, **content: Any) -> Object:
        api_version = "v1" if kind == "ServiceAccount" else f"{_RBAC}/v1"
        metadata = {"name": NAME, "labels": LABELS} | ({"namespace": scope} if scope else {})
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}

    def reference(kind: str) -> Object:
        return {"apiGroup": _RBAC, "kind": kind, "name": NAME}

    return [
        obj("ServiceAccount", namespace),
        obj("ClusterRole", "", rules=list(CLUSTER_RULES)),
        obj("ClusterRoleBinding", "", roleRef=reference("ClusterRole"), subjects=[subject]),
        obj("Role", namespace, rules=list(SYSTEM_RULES)),
        obj("RoleBinding", namespace, roleRef=reference("Role"), subjects=[subject]),
    ]
