"""The permissions are exactly the required ones: a missing rule stops the reconciler, any other rule is too much."""

from collections.abc import Iterable
from typing import Any

import pytest

from altershield.api.names import SYSTEM_NAMESPACE
from command.install import rbac
from reconciler.manager import SUBJECTS
from reconciler.subject import Subject

WORKLOADS = [("apps", "deployments"), ("apps", "statefulsets"), ("apps", "daemonsets"), ("apps.kruise.io", "clonesets")]
WANTED = {
    ("", "namespaces"): "list watch",
    ("", "nodes"): "list watch",
    ("", "pods"): "get list watch patch delete",
    ("", "events"): "list create patch",
    ("", "persistentvolumeclaims"): "list",
    **dict.fromkeys(WORKLOADS, "get list watch patch"),
    **{(group, f"{plural}/finalizers"): "update" for group, plural in WORKLOADS},
    ("apps", "replicasets"): "get list watch patch",
    ("apps", "controllerrevisions"): "get list create patch delete",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "list watch",
}
"""What all subjects need. The next tests are about what each subject needs in addition."""
FOR_CALLBACKS = {
    ("authentication.k8s.io", "tokenreviews"): "create",
    ("authorization.k8s.io", "subjectaccessreviews"): "create",
}
FOR_JOBS = {("batch", "jobs"): "get create delete"}


def granted(rules: Iterable[dict[str, Any]]) -> set[tuple[str, str, str]]:
    """The group, resource and verb of each permission."""
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize(
    ("more", "wanted"),
    [({}, WANTED), ({"callbacks": True}, WANTED | FOR_CALLBACKS), ({"jobs": True}, WANTED | FOR_JOBS)],
)
def test_cluster_role_has_exactly_the_required_rules(more: dict[str, bool], wanted: dict[tuple[str, str], str]) -> None:
    (role,) = [obj for obj in rbac.objects(SYSTEM_NAMESPACE, **more) if obj["kind"] == "ClusterRole"]
    of_all = {(group, resource, verb) for (group, resource), verbs in wanted.items() for verb in verbs.split()}
    of_subjects = granted(right.rule for subject in SUBJECTS for right in subject.rights)
    assert granted(role["rules"]) == of_all | of_subjects


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_subject_may_do_what_it_writes_and_nothing_else_without_a_reason(subject: Subject[Any]) -> None:
    writes = set()
    for resource, verbs in subject.writes:
        for verb, _, part in (each.partition(" ") for each in verbs):
            writes.add((resource.group, f"{resource.plural}/{part}" if part else resource.plural, verb))
    everywhere = (*rbac.CLUSTER_RULES, *rbac.SYSTEM_RULES, *rbac.SERVER_RULES)
    assert writes <= granted(everywhere)
    unexplained = granted(right.rule for right in subject.rights if not right.why)
    assert {each for each in unexplained - writes if each[2] not in ("list", "watch")} == set()


def test_cluster_role_reads_only_the_crds_of_optional_kinds() -> None:
    named = [rule for rule in rbac.CLUSTER_RULES if "resourceNames" in rule]
    assert [(rule["resources"], rule["resourceNames"]) for rule in named] == [
        (["customresourcedefinitions"], ["clonesets.apps.kruise.io"])
    ]


def test_view_edit_and_admin_include_only_read_permissions() -> None:
    reader, *_ = rbac.user_roles()
    labels = [key.rpartition("/")[2] for key in reader["metadata"]["labels"] if "aggregate-to-" in key]
    assert labels == ["aggregate-to-view", "aggregate-to-edit", "aggregate-to-admin"]
    rule, optional = reader["rules"]
    assert rule["resources"] == [kind.resource.plural for subject in SUBJECTS for kind in subject.kinds]
    assert (optional["apiGroups"], optional["resources"]) == (["apps.kruise.io"], ["clonesets"])
    for each in reader["rules"]:
        assert set(each["verbs"]) == {"get", "list", "watch"}


def test_role_verdicts_is_not_aggregated_and_may_only_patch_status() -> None:
    _, verdicts, *_ = rbac.user_roles()
    assert not [key for key in verdicts["metadata"]["labels"] if "aggregate-to-" in key]
    verbs = {(resource, verb) for rule in verdicts["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert {("changeworkloads/status", "patch"), ("changepods/status", "patch")} <= verbs
    assert {resource for resource, verb in verbs if verb not in ("get", "list", "watch")} == {
        "changeworkloads/status", "changepods/status",
    }  # fmt: skip
    assert not [verb for _, verb in verbs if verb.startswith(("delete", "create", "update"))]


def test_role_policies_is_not_aggregated_and_may_not_write_the_status() -> None:
    _, _, _, policies, *_ = rbac.user_roles()
    assert not [key for key in policies["metadata"]["labels"] if "aggregate-to-" in key]
    (rule,) = policies["rules"]
    assert rule["resources"] == ["defensepolicies"]
    assert set(rule["verbs"]) == {"get", "list", "watch", "create", "update", "patch", "delete"}


def test_role_breaker_is_not_aggregated_and_may_patch_only_the_status() -> None:
    breaker = next(role for role in rbac.user_roles() if role["metadata"]["name"] == "altershield-breaker")
    assert not [key for key in breaker["metadata"]["labels"] if "aggregate-to-" in key]
    verbs = {(resource, verb) for rule in breaker["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert {each for each in verbs if each[1] not in ("get", "list", "watch")} == {
        ("poddeletionflowcontrols/status", "patch")
    }


def test_role_budgets_is_aggregated_to_edit_and_admin_and_may_not_write_the_status() -> None:
    *_, budgets = rbac.user_roles()
    labels = [key.rpartition("/")[2] for key in budgets["metadata"]["labels"] if "aggregate-to-" in key]
    assert labels == ["aggregate-to-edit", "aggregate-to-admin"]
    (rule,) = budgets["rules"]
    assert rule["resources"] == ["podunavailablebudgets"]
