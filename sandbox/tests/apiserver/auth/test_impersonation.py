"""Impersonation headers."""

import pytest

from kube_sandbox.apiserver.attributes import Attributes, User
from kube_sandbox.apiserver.auth.authentication import administrator
from kube_sandbox.apiserver.auth.authorization import Authorizer, Rule
from kube_sandbox.apiserver.auth.impersonation import impersonate
from kube_sandbox.apiserver.errors import StatusError
from support.stored import Stored, a_binding, a_role, a_rule, user

JOE = User("joe", ("system:authenticated",))
_AUTHENTICATION = "authentication.k8s.io"


def act(who: User, *rules: Rule, **headers: str) -> User:
    """The effective user when `who`, with these rules, lists pods with these headers."""
    stored = Stored(a_role("r", *rules), a_binding("b", "r", user("joe")))
    sent = [(f"Impersonate-{name.replace('_', '-')}", value) for name, value in headers.items()]
    attributes = Attributes(who, "list", version="v1", plural="pods", namespace="apps")
    return impersonate(sent, attributes, Authorizer(stored))


def test_request_without_headers_keeps_its_user() -> None:
    assert act(JOE) is JOE


def test_administrator_may_impersonate_user_groups_uid_and_extra() -> None:
    assert act(administrator(), User="ann") == User("ann", ("system:authenticated",))
    ann = act(administrator(), User="ann", Group="g", Uid="7", Extra_Scopes="s")
    assert ann == User("ann", ("g", "system:authenticated"), "7", {"scopes": ("s",)})


def test_impersonated_service_account_or_anonymous_user_gets_its_groups() -> None:
    bob = act(administrator(), User="system:serviceaccount:apps:bob")
    assert bob.groups == ("system:serviceaccounts", "system:serviceaccounts:apps", "system:authenticated")
    assert act(administrator(), User="system:anonymous").groups == ("system:unauthenticated",)


@pytest.mark.parametrize(
    ("headers", "printed"),
    [
        ({"Group": "g"}, 'UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)'),
        ({"Uid": "u"}, 'UID:"u", Groups:[]string(nil), Extra:map[string][]string(nil)'),
        (
            {"Extra_Foo%2fBar": "s"},
            'UID:"", Groups:[]string(nil), Extra:map[string][]string{"foo/bar":[]string{"s"}}',
        ),
    ],
)
def test_headers_without_a_user_name_are_a_bad_request(headers: dict[str, str], printed: str) -> None:
    with pytest.raises(StatusError) as refused:
        act(administrator(), **headers)
    assert refused.value.code == 400
    expected = f'requested &user.DefaultInfo{{Name:"", {printed}}} without impersonating a user name'
    assert refused.value.message == expected


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (
            {"User": "ann"},
            'pods is forbidden: User "joe" cannot impersonate-on:user-info:list resource "pods" in API group "" '
            'in the namespace "apps"',
        ),
        (
            {"User": "system:serviceaccount:apps:bob"},
            'pods is forbidden: User "joe" cannot impersonate-on:serviceaccount:list resource "pods" in API group "" '
            'in the namespace "apps"',
        ),
        (
            {"User": "system:serviceaccount:apps:bob", "Group": "g"},
            'serviceaccounts "bob" is forbidden: User "joe" cannot impersonate resource "serviceaccounts" in API '
            'group "" in the namespace "apps"',
        ),
        (
            {"User": "system:node:n1"},
            'pods is forbidden: User "joe" cannot impersonate-on:arbitrary-node:list resource "pods" in API group "" '
            'in the namespace "apps"',
        ),
    ],
)
def test_user_without_rights_may_not_impersonate(headers: dict[str, str], message: str) -> None:
    with pytest.raises(StatusError) as refused:
        act(JOE, **headers)
    assert (refused.value.code, refused.value.message) == (403, message)


def test_impersonation_of_user_group_uid_and_extra_each_needs_its_own_right() -> None:
    users = a_rule("impersonate", "users", names="ann")
    assert act(JOE, users, User="ann").name == "ann"
    for headers in ({"User": "eve"}, {"User": "ann", "Group": "g"}, {"User": "ann", "Uid": "u"}):
        with pytest.raises(StatusError):
            act(JOE, users, **headers)
    extra = a_rule("impersonate", "userextras/scopes", _AUTHENTICATION)
    assert act(JOE, users, extra, User="ann", Extra_Scopes="s").extra == {"scopes": ("s",)}
    edit = a_rule("impersonate", "serviceaccounts")
    assert act(JOE, edit, User="system:serviceaccount:apps:bob").name == "system:serviceaccount:apps:bob"


def test_constrained_impersonation_needs_rights_for_the_user_and_for_the_request() -> None:
    constrained = [
        a_rule("impersonate:user-info", "users", _AUTHENTICATION, names="ann"),
        a_rule("impersonate-on:user-info:list", "pods"),
    ]
    assert act(JOE, *constrained, User="ann").name == "ann"
    with pytest.raises(StatusError):
        act(JOE, constrained[0], User="ann")
    groups = a_rule("impersonate:user-info", "groups", _AUTHENTICATION)
    assert act(JOE, *constrained, groups, User="ann", Group="g").groups == ("g", "system:authenticated")
    with pytest.raises(StatusError, match="impersonating the system:masters group is not allowed"):
        act(JOE, *constrained, groups, User="ann", Group="system:masters")
