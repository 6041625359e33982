"""What AlterShield may do in a cluster: exactly what gatekeeper and reconciler call, nothing more."""

from collections.abc import Sequence
from typing import Any

from altershield.api.names import SERVICE_ACCOUNT
from altershield.api.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    GROUP,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
)

Object = dict[str, Any]

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

CLUSTER_RULES = (
    _rule("", ["namespaces"], "list watch"),
    _rule("", ["pods"], "list watch patch"),
    _rule("", ["events"], "create patch"),
    _rule("apps", ["deployments"], "list watch patch"),
    _rule("apps", ["replicasets"], "get list watch patch"),
    # owner references with blockOwnerDeletion, where the API server enforces who may set them
    _rule("apps", ["deployments/finalizers"], "update"),
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


def objects(namespace: str) -> list[Object]:
    """The service account and its permissions, `namespace` being the system namespace."""
    subject = {"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": namespace}
    rbac = "rbac.authorization.k8s.io"

    def obj(kind: str, scope: str, **content: Any) -> Object:
        api_version = "v1" if kind == "ServiceAccount" else f"{rbac}/v1"
        metadata = {"name": NAME, "labels": LABELS} | ({"namespace": scope} if scope else {})
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}

    def reference(kind: str) -> Object:
        return {"apiGroup": rbac, "kind": kind, "name": NAME}

    return [
        obj("ServiceAccount", namespace),
        obj("ClusterRole", "", rules=list(CLUSTER_RULES)),
        obj("ClusterRoleBinding", "", roleRef=reference("ClusterRole"), subjects=[subject]),
        obj("Role", namespace, rules=list(SYSTEM_RULES)),
        obj("RoleBinding", namespace, roleRef=reference("Role"), subjects=[subject]),
    ]
