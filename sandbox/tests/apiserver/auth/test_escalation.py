"""The check against privilege escalation in writes of roles and bindings."""

import pytest

from kube_sandbox.apiserver.attributes import Attributes, Object, User
from kube_sandbox.apiserver.auth import escalation
from kube_sandbox.apiserver.auth.authentication import administrator
from kube_sandbox.apiserver.auth.authorization import GROUP, Authorizer, Rule
from kube_sandbox.apiserver.errors import StatusError
from support.stored import Stored, a_binding, a_role, a_rule, user

JOE = User("joe", ("system:authenticated",))
PLURALS = {"Role": "roles", "ClusterRole": "clusterroles"} | {
    "RoleBinding": "rolebindings",
    "ClusterRoleBinding": "clusterrolebindings",
}


def write(stored: Stored, obj: Object, old: Object | None = None, who: User = JOE) -> None:
    metadata = obj["metadata"]
    attributes = Attributes(
        who,
        "update" if old else "create",
        group=GROUP,
        version="v1",
        plural=PLURALS[obj["kind"]],
        kind=obj["kind"],
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        obj=obj,
        old=old,
    )
    escalation.check(attributes, Authorizer(stored))


def holding(*rules: Rule) -> Stored:
    """A store in which joe holds these rules in the namespace `apps`."""
    return Stored(a_role("held", *rules, namespace="apps"), a_binding("b", "held", user("joe"), namespace="apps"))


@pytest.mark.parametrize(
    ("held", "granted"),
    [
        (a_rule("get list", "pods"), a_rule("get", "pods")),
        (a_rule("*", "*", "*"), a_rule("frob", "anything", "some.io")),
        (a_rule("get", "*/scale", "apps"), a_rule("get", "deployments/scale", "apps")),
        (a_rule("get", "pods", names="one two"), a_rule("get", "pods", names="two")),
        ({"nonResourceURLs": ["/x/*"], "verbs": ["*"]}, {"nonResourceURLs": ["/x/y"], "verbs": ["get"]}),
    ],
)
def test_user_may_grant_rules_that_the_user_holds(held: Rule, granted: Rule) -> None:
    write(holding(held), a_role("new", granted, namespace="apps"))


@pytest.mark.parametrize(
    ("held", "granted", "missing"),
    [
        (a_rule("get", "pods"), a_rule("get list", "pods"), '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}'),
        (
            a_rule("get", "pods", names="one"),
            a_rule("get", "pods"),
            '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',
        ),
        (
            a_rule("get", "*/scale", "apps"),
            a_rule("get", "deployments", "apps"),
            '{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}',
        ),
        (
            a_rule("get", "pods"),
            {"nonResourceURLs": ["/x"], "verbs": ["get"]},
            '{NonResourceURLs:["/x"], Verbs:["get"]}',
        ),
    ],
)
def test_granting_a_rule_that_the_user_does_not_hold_is_refused(held: Rule, granted: Rule, missing: str) -> None:
    with pytest.raises(StatusError) as refused:
        write(holding(held), a_role("new", granted, namespace="apps"))
    assert refused.value.code == 403
    assert refused.value.message == (
        'roles.rbac.authorization.k8s.io "new" is forbidden: user "joe" (groups=["system:authenticated"]) is '
        f"attempting to grant RBAC permissions not currently held:\n{missing}"
    )


def test_refusal_lists_missing_rules_per_resource_and_name() -> None:
    granted = a_rule("get list frob", "pods nodes"), a_rule("*", "*", "x.io", names="a b")
    with pytest.raises(StatusError) as refused:
        write(holding(a_rule("get list", "pods")), a_role("new", *granted, namespace="apps"))
    assert refused.value.message.splitlines()[1:] == [
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list" "frob"]}',
        '{APIGroups:[""], Resources:["pods"], Verbs:["frob"]}',
        '{APIGroups:["x.io"], Resources:["*"], ResourceNames:["a"], Verbs:["*"]}',
        '{APIGroups:["x.io"], Resources:["*"], ResourceNames:["b"], Verbs:["*"]}',
    ]


def test_user_with_verb_escalate_may_write_any_role() -> None:
    write(holding(a_rule("escalate", "roles", GROUP)), a_role("new", a_rule("*", "*", "*"), namespace="apps"))


def test_administrator_may_write_any_role() -> None:
    write(Stored(), a_role("new", a_rule("*", "*", "*")), who=administrator())


def test_aggregation_rule_needs_cluster_admin_rights() -> None:
    role = a_role("new")
    role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    stored = Stored(a_role("held", a_rule("*", "clusterroles", GROUP)), a_binding("b", "held", user("joe")))
    stored.objects[0]["rules"][0]["verbs"] = ["create"]
    with pytest.raises(StatusError, match="must have cluster-admin privileges to use the aggregationRule"):
        write(stored, role)


def test_change_of_finalizers_only_is_not_checked() -> None:
    old = a_role("r", a_rule("*", "*", "*"), namespace="apps")
    new = {**old, "metadata": {**old["metadata"], "finalizers": ["x"]}}
    write(Stored(), new, old)
    with pytest.raises(StatusError):
        write(Stored(), {**old, "metadata": {**old["metadata"], "labels": {"x": "y"}}}, old)


def test_binding_a_role_needs_its_rules_or_verb_bind() -> None:
    binding = a_binding("b2", "held", user("eve"), namespace="apps")
    write(holding(a_rule("get", "pods")), binding)
    strong = a_role("strong", a_rule("get", "secrets"), namespace="apps")
    binding = a_binding("b2", "strong", user("eve"), namespace="apps")
    stored = holding(a_rule("get", "pods"))
    stored.add(strong)
    with pytest.raises(StatusError, match=r'rolebindings\.rbac\.authorization\.k8s\.io "b2" is forbidden'):
        write(stored, binding)
    stored = holding(a_rule("bind", "roles", GROUP, names="strong"))
    stored.add(strong)
    write(stored, binding)


def test_binding_to_a_missing_role_is_not_found() -> None:
    with pytest.raises(StatusError) as refused:
        write(Stored(), a_binding("b2", "gone", user("eve"), namespace="apps"))
    assert refused.value.code == 404
    assert refused.value.message == 'rolebindings.rbac.authorization.k8s.io "gone" not found'
