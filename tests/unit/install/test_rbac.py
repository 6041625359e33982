"""Exactly what is needed: every rule that is missing stops the reconciler, every other one is too much."""

from collections import defaultdict

from altershield.api.names import SYSTEM_NAMESPACE
from altershield.install import rbac

OURS = "app.ops.cloud.alipay.com"
WORKLOADS = [
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("apps", "daemonsets"),
    ("apps.kruise.io", "clonesets"),
]
WANTED = {
    ("", "namespaces"): "list watch",
    ("", "nodes"): "list watch",
    ("", "pods"): "list watch patch delete",
    ("", "events"): "list create patch",
    **dict.fromkeys(WORKLOADS, "get list watch patch"),
    **{(group, f"{plural}/finalizers"): "update" for group, plural in WORKLOADS},
    ("apps", "replicasets"): "get list watch patch",
    ("apps", "controllerrevisions"): "get list",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "list watch",
    (OURS, "changeworkloads"): "list watch create patch delete",
    (OURS, "changeworkloads/finalizers"): "update",
    (OURS, "changeworkloads/status"): "patch",
    (OURS, "changepods"): "list watch create delete",
    (OURS, "changepods/status"): "patch",
    (OURS, "opsconfiginfoes"): "list watch",
    (OURS, "opsconfiginfoes/status"): "patch",
}


def test_the_cluster_role_allows_what_is_needed_and_nothing_else() -> None:
    (role,) = [obj for obj in rbac.objects(SYSTEM_NAMESPACE) if obj["kind"] == "ClusterRole"]
    granted = defaultdict(set)
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                granted[group, resource] |= set(rule["verbs"])
    assert granted == {key: set(verbs.split()) for key, verbs in WANTED.items()}


def test_of_definitions_only_those_of_optional_kinds_are_read() -> None:
    named = [rule for rule in rbac.CLUSTER_RULES if "resourceNames" in rule]
    assert [(rule["resources"], rule["resourceNames"]) for rule in named] == [
        (["customresourcedefinitions"], ["clonesets.apps.kruise.io"])
    ]
