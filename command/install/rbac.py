"""The permissions of AlterShield and of its users. AlterShield has exactly the permissions that gatekeeper and
reconciler use."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import yaml

from altershield.api.budgets import BREAK_GLASS_GROUP
from altershield.api.names import INSTALLED, SERVICE_ACCOUNT
from altershield.api.resources import GROUP, POD_UNAVAILABLE_BUDGETS
from altershield.api.rights import APPROVE, Right
from altershield.gates.judge import GATES
from altershield.workloads import ADAPTERS
from kube_base.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CRDS,
    DISRUPTION_BUDGETS,
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SUBJECT_ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    Resource,
)
from reconciler.manager import SUBJECTS

Object = dict[str, Any]

_RBAC = CLUSTER_ROLES.group

NAME = "altershield"


def _rule(groups: str, resources: Sequence[str], verbs: str) -> Object:
    return {"apiGroups": [groups], "resources": list(resources), "verbs": verbs.split()}


RESOURCES = {
    resource.kind: resource
    for resource in (SERVICE_ACCOUNTS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS)
}
"""The resource of each kind."""


def _each_group(resources: Iterable[Resource], verbs: str, subresource: str = "", why: str = "") -> Iterator[Right]:
    """One rule per API group. `resources` are sorted by group."""
    for number, (_, members) in enumerate(groupby(dict.fromkeys(resources), key=lambda resource: resource.group)):
        yield Right(tuple(members), verbs, subresource, why="" if number else why)


_WORKLOADS = [adapter.resource for adapter in ADAPTERS]
_BETWEEN = [adapter.intermediate for adapter in ADAPTERS if adapter.intermediate is not None]
_REVISIONS = [adapter.revisions for adapter in ADAPTERS if adapter.revisions not in _BETWEEN]
_OPTIONAL = tuple(adapter.crd for adapter in ADAPTERS if adapter.crd)
_OPTIONAL_WORKLOADS = [adapter.resource for adapter in ADAPTERS if adapter.crd]
_DEFINITIONS = Right((CRDS,), "list watch", names=_OPTIONAL, why="To see which kinds that are not built in exist.")

CLUSTER_RIGHTS = (
    Right((NAMESPACES, NODES), "list watch"),
    Right((PODS,), "get list watch patch delete", why="`get` to see whether a deletion that was admitted happened."),
    Right((EVENTS,), "list create patch"),
    Right(
        (PERSISTENT_VOLUME_CLAIMS,),
        "list",
        why="Whether a Namespace that is protected from cascading deletion is empty.",
    ),
    *_each_group(
        _WORKLOADS,
        "get list watch patch",
        why="The kinds of workloads, and the objects that contain their released pod templates.",
    ),
    *_each_group(_BETWEEN, "get list watch patch"),
    *_each_group(_REVISIONS, "get list create patch delete"),
    *_each_group(
        _WORKLOADS,
        "update",
        "finalizers",
        why="For owner references with blockOwnerDeletion (admission plugin OwnerReferencesPermissionEnforcement).",
    ),
    _DEFINITIONS,
    *(right for subject in SUBJECTS for right in subject.rights),
)
"""The permissions in all namespaces: what all subjects of the reconciler need, then what each subject declares."""

CLUSTER_RULES = tuple(right.rule for right in CLUSTER_RIGHTS)

CALLBACK_RULES = (
    _rule(TOKEN_REVIEWS.group, [TOKEN_REVIEWS.plural], "create"),
    _rule(SUBJECT_ACCESS_REVIEWS.group, [SUBJECT_ACCESS_REVIEWS.plural], "create"),
)
"""The permissions that the callback port needs in addition: to authenticate and to authorize its callers."""

JOB_RULES = (_rule(JOBS.group, [JOBS.plural], "get create delete"),)
"""The permissions that checks with Jobs need in addition. A Job can run as any service account of its namespace. So the
admission policies let only users who may create Jobs write a DefensePolicy with a Job."""

LOG_RULES = (_rule("", [f"{PODS.plural}/log"], "get"),)
"""The permission that checks of logs need in addition. Logs may have secrets. So the admission policies let only users
who may read the logs of the namespace write a DefensePolicy with such a check."""

SYSTEM_RULES = (
    _rule(GROUP, ["opsconfiginfoes"], "create"),
    _rule("coordination.k8s.io", ["leases"], "get create update"),
    _rule("", ["configmaps"], "list watch"),  # the calendars of ReleaseWindows
)
"""The permissions in the system namespace only."""

SERVER_RULES = (_rule("", ["configmaps"], "list watch create delete"),)
"""The permissions in the system namespace for the records of orders that are open on an AlterShield server."""


# the objects that decisions about PodUnavailableBudgets read; `get` for objects that a cache does not have yet
_BUDGET_READS = (
    _rule("", ["namespaces"], "list watch"),
    _rule("", ["pods"], "get list watch"),
    *(right.rule for right in _each_group(_WORKLOADS, "get list watch")),
    *(right.rule for right in _each_group(_BETWEEN, "get list watch")),
    _DEFINITIONS.rule,
    _rule(DISRUPTION_BUDGETS.group, [DISRUPTION_BUDGETS.plural], "list watch"),
)

_GATES = [gate.resource.plural for gate in GATES]

GATEKEEPER_RULES = (
    _rule(GROUP, ["changeworkloads", "defensepolicies", *_GATES], "list watch"),
    *_BUDGET_READS,
    # `get` after a conflict of two writers of the status
    _rule(GROUP, [POD_UNAVAILABLE_BUDGETS.plural], "get list watch"),
    _rule(GROUP, [f"{POD_UNAVAILABLE_BUDGETS.plural}/status"], "update"),
    _rule(GROUP, ["poddeletionflowcontrols"], "get list watch"),
    _rule(GROUP, ["poddeletionflowcontrols/status"], "update"),
    _rule(GROUP, ["releaseoverrides"], "get list watch"),
    _rule(GROUP, ["releaseoverrides/status"], "update"),
    # to find out whether a Namespace or CustomResourceDefinition that is protected from cascading deletion is empty
    _rule("", ["pods", "persistentvolumeclaims"], "list"),
    _rule(GROUP, ["changepods", "opsconfiginfoes"], "list"),
)
"""The permissions of a gatekeeper with an account of its own, in all namespaces. They are a part of `CLUSTER_RULES`."""

GATEKEEPER_SYSTEM_RULES = (_rule(GROUP, ["opsconfiginfoes"], "list watch"),)
"""The permissions of the gatekeeper in the system namespace."""


READER_RIGHTS = (
    Right(tuple(kind.resource for subject in SUBJECTS for kind in subject.kinds), "get list watch"),
    # the built-in ClusterRole `view` includes only the built-in kinds of workloads
    *_each_group(_OPTIONAL_WORKLOADS, "get list watch"),
)
"""The permissions to read releases, their pods, the settings, the policies, the budgets and the flow controls, and the
workloads of the kinds that are not built in."""

VERDICT_RULES = (
    _rule(GROUP, ["changeworkloads", "changepods"], "get list watch"),
    _rule(GROUP, ["changeworkloads/status", "changepods/status"], "get patch"),
)
"""The permissions to give verdicts and to make requests. `kubectl patch --subresource=status` reads the object.
`altershield approve` also creates a SelfSubjectReview, which every user may do."""

APPROVAL_RULES = (
    _rule(GROUP, ["changeworkloads"], f"get list watch {APPROVE}"),
    _rule(GROUP, ["changeworkloads/status"], "get patch"),
)
"""The permissions to promote a release after a step with `approval`."""

POLICY_RULES = (_rule(GROUP, ["defensepolicies"], "get list watch create update patch delete"),)
"""The permissions to write DefensePolicies."""

RELEASE_MANAGER_RULES = (_rule(GROUP, _GATES, "get list watch create update patch delete"),)
"""The permissions to write the gates of releases: windows, freezes, limits and guards of fields."""

BREAKGLASS_RULES = (_rule(GROUP, ["releaseoverrides"], "get list watch create override"),)
"""The permissions to let a release pass closed gates. In AlterShield's namespace, an admission policy asks for the verb
`override`."""

BREAKER_RULES = (
    _rule(GROUP, ["poddeletionflowcontrols"], "get list watch"),
    _rule(GROUP, ["poddeletionflowcontrols/status"], "get patch"),
)
"""The permissions to open and reset the breakers of PodDeletionFlowControls, but not to edit their limits."""

BREAK_GLASS_RULES = ({**_rule("", ["groups"], "impersonate"), "resourceNames": [BREAK_GLASS_GROUP]},)
"""The permission to pass budgets and limits in an emergency, by impersonation of a group. `kubectl --as` also needs the
permission to impersonate a user. RBAC cannot express "oneself", so an administrator grants that permission by name."""

BUDGET_RULES = (_rule(GROUP, ["podunavailablebudgets"], "get list watch create update patch delete"),)
"""The permissions to write PodUnavailableBudgets. Their status is not included, because its records keep several
gatekeepers from exceeding a budget."""

_READERS = ("view", "edit", "admin")
"""The built-in ClusterRoles that include READER_RIGHTS by aggregation."""
_EDITORS = ("edit", "admin")
"""The built-in ClusterRoles that include BUDGET_RULES, as they include PodDisruptionBudgets."""


def text(rights: Iterable[Right]) -> str:
    """The rules in YAML, for the chart, with comments."""
    return "".join(
        (f"# {right.why}\n" if right.why else "")
        + yaml.safe_dump([right.rule], sort_keys=False, default_flow_style=None, width=110)
        for right in rights
    )


def user_roles() -> list[Object]:
    """The ClusterRoles for users. An administrator binds users to them.

    The built-in ClusterRoles `view`, `edit` and `admin` include the permissions to read. No built-in ClusterRole
    includes verdicts: a user who may give a verdict may end a suspension, and users with `edit` or `admin` make the
    releases that are verified. For the same reason, none includes approvals of releases in steps, and none includes
    DefensePolicies: a policy can switch verification off. None includes breakers, which can stop all deletions of pods,
    and none includes the gates of releases: users would open them for their own releases.
    `edit` and `admin` include PodUnavailableBudgets, as they include PodDisruptionBudgets. No role may delete a
    ChangeWorkload, because this would end a suspension.
    """
    return [
        _cluster_role(f"{NAME}-view", INSTALLED | _aggregated(_READERS), [right.rule for right in READER_RIGHTS]),
        _cluster_role(f"{NAME}-verdicts", INSTALLED, VERDICT_RULES),
        _cluster_role(f"{NAME}-approvals", INSTALLED, APPROVAL_RULES),
        _cluster_role(f"{NAME}-policies", INSTALLED, POLICY_RULES),
        _cluster_role(f"{NAME}-release-manager", INSTALLED, RELEASE_MANAGER_RULES),
        _cluster_role(f"{NAME}-breakglass", INSTALLED, BREAKGLASS_RULES),
        _cluster_role(f"{NAME}-breaker", INSTALLED, BREAKER_RULES),
        _cluster_role(f"{NAME}-break-glass", INSTALLED, BREAK_GLASS_RULES),
        _cluster_role(f"{NAME}-budgets", INSTALLED | _aggregated(_EDITORS), BUDGET_RULES),
    ]


def _aggregated(roles: Iterable[str]) -> dict[str, str]:
    return {f"{_RBAC}/aggregate-to-{role}": "true" for role in roles}


def _cluster_role(name: str, labels: dict[str, str], rules: Sequence[Object]) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": CLUSTER_ROLES.kind,
        "metadata": {"name": name, "labels": labels},
        "rules": list(rules),
    }


def objects(
    namespace: str, *, server: bool = False, callbacks: bool = False, jobs: bool = False, logs: bool = False
) -> list[Object]:
    """The service account and its permissions. `namespace` is the system namespace. With `server`, an AlterShield
    server is configured; with `callbacks`, the reconciler serves the callback port; with `jobs`, checks may be Jobs;
    with `logs`, they may read the logs of pods."""
    subject = {"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": namespace}

    def obj(kind: str, scope: str, **content: Any) -> Object:
        api_version = "v1" if kind == "ServiceAccount" else f"{_RBAC}/v1"
        metadata = {"name": NAME, "labels": INSTALLED} | ({"namespace": scope} if scope else {})
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}

    def reference(kind: str) -> Object:
        return {"apiGroup": _RBAC, "kind": kind, "name": NAME}

    return [
        obj("ServiceAccount", namespace),
        obj(
            "ClusterRole",
            "",
            rules=[
                *CLUSTER_RULES,
                *(CALLBACK_RULES if callbacks else ()),
                *(JOB_RULES if jobs else ()),
                *(LOG_RULES if logs else ()),
            ],
        ),
        obj("ClusterRoleBinding", "", roleRef=reference("ClusterRole"), subjects=[subject]),
        obj("Role", namespace, rules=[*SYSTEM_RULES, *(SERVER_RULES if server else ())]),
        obj("RoleBinding", namespace, roleRef=reference("Role"), subjects=[subject]),
    ]


def secret_reader(namespace: str, *names: str, system_namespace: str) -> list[Object]:
    """The permission to read the Secrets `names` of a namespace (without names: all Secrets), for the checks of its
    policies. No command grants it: RBAC cannot select Secrets by their label, so somebody has to decide about each
    namespace or Secret."""
    metadata = {"name": f"{NAME}-check-secrets", "namespace": namespace, "labels": INSTALLED}
    rule = _rule("", ["secrets"], "get") | ({"resourceNames": list(names)} if names else {})
    subject = {"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": system_namespace}
    role = {"apiGroup": _RBAC, "kind": ROLES.kind, "name": metadata["name"]}
    head = {"apiVersion": f"{_RBAC}/v1", "metadata": metadata}
    return [
        {**head, "kind": ROLES.kind, "rules": [rule]},
        {**head, "kind": ROLE_BINDINGS.kind, "roleRef": role, "subjects": [subject]},
    ]
