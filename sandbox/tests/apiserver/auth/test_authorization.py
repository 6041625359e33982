"""RBAC: decisions, reasons and default roles."""

import pytest

from kube_sandbox.apiserver.attributes import Attributes, Object, User
from kube_sandbox.apiserver.auth import authorization, default_roles
from kube_sandbox.apiserver.auth.authentication import ANONYMOUS, administrator
from kube_sandbox.apiserver.auth.authorization import GROUP, Authorizer
from kube_sandbox.apiserver.auth.role_aggregation import out_of_date
from support.stored import Stored, a_binding, a_role, a_rule, group, service_account, user

JOE = User("joe", ("dev", "system:authenticated"))
BOB = User("system:serviceaccount:apps:bob", ("system:serviceaccounts",))


def asked(verb: str, plural: str, who: User = JOE, **rest: str) -> Attributes:
    return Attributes(who, verb, plural=plural, **rest)  # type: ignore[arg-type]  # only texts here


def allowed(stored: Stored, attributes: Attributes) -> bool:
    return Authorizer(stored).authorize(attributes) is None


def with_rule(rule: Object) -> Stored:
    return Stored(a_role("r", rule), a_binding("b", "r", user("joe")))


@pytest.mark.parametrize("subject", [user("joe"), group("dev")])
def test_cluster_role_binding_allows_its_subjects_the_rules_of_the_role(subject: Object) -> None:
    stored = Stored(a_role("r", a_rule("get", "pods")), a_binding("b", "r", subject))
    assert allowed(stored, asked("get", "pods"))
    assert not allowed(stored, asked("get", "pods", BOB))
    assert not allowed(stored, asked("list", "pods"))
    assert not allowed(stored, asked("get", "secrets"))
    assert not allowed(stored, asked("get", "pods", group="apps"))


def test_role_binding_allows_requests_in_its_namespace_only() -> None:
    stored = Stored(
        a_role("r", a_rule("get", "pods"), namespace="apps"), a_binding("b", "r", user("joe"), namespace="apps")
    )
    assert allowed(stored, asked("get", "pods", namespace="apps"))
    assert not allowed(stored, asked("get", "pods", namespace="other"))
    assert not allowed(stored, asked("get", "pods"))


def test_role_binding_allows_to_get_its_own_namespace() -> None:
    stored = Stored(
        a_role("r", a_rule("get", "namespaces"), namespace="apps"),
        a_binding("b", "r", user("joe"), namespace="apps"),
    )
    assert allowed(stored, asked("get", "namespaces", name="apps"))
    assert not allowed(stored, asked("list", "namespaces"))


@pytest.mark.parametrize("namespace", ["", "apps"])
def test_service_account_subject_without_namespace_is_in_the_bindings_namespace(namespace: str) -> None:
    stored = Stored(
        a_role("r", a_rule("get", "pods"), namespace="apps"),
        a_binding("b", "r", service_account("bob", namespace), namespace="apps"),
    )
    assert allowed(stored, asked("get", "pods", BOB, namespace="apps"))


@pytest.mark.parametrize(
    ("resources", "plural", "subresource", "match"),
    [
        ("pods", "pods", "", True),
        ("pods", "pods", "log", False),
        ("pods/log", "pods", "log", True),
        ("pods/log", "pods", "", False),
        ("*", "pods", "log", True),
        ("*/scale", "deployments", "scale", True),
        ("*/scale", "deployments", "status", False),
        ("*/scale", "deployments", "", False),
        ("pods/*", "pods", "log", False),
    ],
)
def test_rule_allows_a_subresource_only_if_it_names_it(
    resources: str, plural: str, subresource: str, match: bool
) -> None:
    stored = with_rule(a_rule("get", resources))
    assert allowed(stored, asked("get", plural, subresource=subresource)) is match


def test_rule_with_resource_names_does_not_allow_list() -> None:
    stored = with_rule(a_rule("get list", "configmaps", names="one two"))
    assert allowed(stored, asked("get", "configmaps", name="two"))
    assert not allowed(stored, asked("get", "configmaps", name="three"))
    assert not allowed(stored, asked("list", "configmaps"))


@pytest.mark.parametrize(
    ("pattern", "path", "match"),
    [("/api", "/api", True), ("/api", "/api/v1", False), ("/api/*", "/api/v1", True), ("*", "/x", True)],
)
def test_non_resource_url_matches_exactly_or_by_prefix_with_an_asterisk(pattern: str, path: str, match: bool) -> None:
    stored = with_rule({"nonResourceURLs": [pattern], "verbs": ["get"]})
    assert allowed(stored, Attributes(JOE, "get", path=path)) is match


def test_group_system_masters_is_allowed_everything() -> None:
    assert allowed(Stored(), asked("frob", "anything", administrator()))


def test_reason_names_binding_role_and_subject() -> None:
    stored = Stored(
        a_role("r", a_rule("get", "pods")),
        a_binding("b", "r", service_account("bob"), namespace="apps", role_kind="ClusterRole"),
    )
    decision = Authorizer(stored).decide(asked("get", "pods", BOB, namespace="apps"))
    assert decision.reason == ('RBAC: allowed by RoleBinding "b/apps" of ClusterRole "r" to ServiceAccount "bob/apps"')


def test_refusal_names_the_missing_roles() -> None:
    stored = Stored(a_binding("b", "gone", user("joe")), a_binding("b", "gone", user("joe"), namespace="apps"))
    reason = Authorizer(stored).authorize(asked("get", "pods", namespace="apps"))
    assert reason == (
        'RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, '
        'role.rbac.authorization.k8s.io "gone" not found]'
    )


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            asked("list", "deployments", group="apps", namespace="default"),
            'deployments.apps is forbidden: User "joe" cannot list resource "deployments" in API group "apps" '
            'in the namespace "default"',
        ),
        (
            asked("patch", "deployments", group="apps", namespace="default", name="sleep", subresource="status"),
            'deployments.apps "sleep" is forbidden: User "joe" cannot patch resource "deployments/status" in API '
            'group "apps" in the namespace "default"',
        ),
        (
            asked("get", "nodes", name="n1"),
            'nodes "n1" is forbidden: User "joe" cannot get resource "nodes" in API group "" at the cluster scope',
        ),
        (
            asked("get", "namespaces", name="x"),
            'namespaces "x" is forbidden: User "joe" cannot get resource "namespaces" in API group "" '
            'in the namespace "x"',
        ),
        (Attributes(JOE, "get", path="/a<b>"), 'forbidden: User "joe" cannot get path "/a&lt;b&gt;"'),
    ],
)
def test_refusal_reads_as_from_kube_apiserver(attributes: Attributes, message: str) -> None:
    error = authorization.forbidden(attributes, "")
    assert (error.code, error.message) == (403, message)
    assert authorization.forbidden(attributes, "RBAC: x").message == f"{message}: RBAC: x"


@pytest.fixture
def defaults() -> Stored:
    """The default roles, with aggregated rules."""
    stored = Stored(*default_roles.objects())
    while stale := next(out_of_date(stored.list(GROUP, "clusterroles")), None):
        role = stored.get(GROUP, "clusterroles", stale[0])
        assert role is not None
        role["rules"] = stale[1]
    return stored


def test_anonymous_user_may_get_health_and_version_only(defaults: Stored) -> None:
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        assert allowed(defaults, Attributes(ANONYMOUS, "get", path=path))
    for path in ("/api", "/apis", "/metrics", "/healthz/etcd", "/"):
        assert not allowed(defaults, Attributes(ANONYMOUS, "get", path=path))
    assert not allowed(defaults, asked("list", "pods", ANONYMOUS))


def test_authenticated_user_may_read_discovery_and_create_access_reviews(defaults: Stored) -> None:
    assert allowed(defaults, Attributes(JOE, "get", path="/openapi/v3"))
    assert allowed(defaults, asked("create", "selfsubjectaccessreviews", group="authorization.k8s.io"))
    assert not allowed(defaults, asked("list", "pods"))


@pytest.mark.parametrize(
    ("role", "may", "may_not"),
    [
        ("view", [("list", "deployments")], [("create", "deployments"), ("get", "secrets")]),
        ("edit", [("create", "deployments"), ("list", "deployments")], [("create", "rolebindings")]),
        ("admin", [("create", "deployments"), ("create", "rolebindings")], [("create", "resourcequotas")]),
    ],
)
def test_default_roles_view_edit_and_admin_include_each_other(
    defaults: Stored, role: str, may: list[tuple[str, str]], may_not: list[tuple[str, str]]
) -> None:
    defaults.add(a_binding("b", role, user("joe"), namespace="apps", role_kind="ClusterRole"))
    groups = {"deployments": "apps", "rolebindings": "rbac.authorization.k8s.io"}
    for verb, plural in may:
        assert allowed(defaults, asked(verb, plural, group=groups.get(plural, ""), namespace="apps"))
    for verb, plural in may_not:
        assert not allowed(defaults, asked(verb, plural, group=groups.get(plural, ""), namespace="apps"))
