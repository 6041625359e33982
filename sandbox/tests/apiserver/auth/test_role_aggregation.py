"""Aggregated ClusterRoles."""

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.auth.authorization import GROUP, Rule
from kube_sandbox.apiserver.auth.role_aggregation import RoleAggregation
from kube_sandbox.apiserver.storage.store import Store
from support.stored import a_role, a_rule

STORAGE = (GROUP, "clusterroles")
ONE, TWO = a_rule("get", "ones"), a_rule("get", "twos")


def a_store() -> Store:
    store = Store()
    store.observer = RoleAggregation(store).on_change
    return store


def labelled(name: str, label: str, *rules: Rule, gathers: str = "") -> Object:
    role = a_role(name, *rules)
    role["metadata"]["labels"] = {label: "yes"}
    if gathers:
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {gathers: "yes"}}]}
    return role


def rules(store: Store, name: str) -> list[Rule]:
    role = store.get(*STORAGE, name)
    assert role is not None
    gathered: list[Rule] = role["rules"]
    return gathered


def test_aggregated_role_follows_the_roles_that_it_selects() -> None:
    store = a_store()
    store.create(STORAGE, labelled("total", "x", a_rule("*", "*"), gathers="to-total"))
    assert rules(store, "total") == []
    part = store.create(STORAGE, labelled("part", "to-total", ONE))
    store.create(STORAGE, labelled("other", "to-total", TWO, ONE))
    assert rules(store, "total") == [TWO, ONE]
    store.delete(STORAGE, part)
    assert rules(store, "total") == [TWO, ONE]
    store.create(STORAGE, labelled("more", "to-total", a_rule("get", "threes")))
    assert rules(store, "total") == [a_rule("get", "threes"), TWO, ONE]


def test_aggregated_role_includes_rules_of_aggregated_roles() -> None:
    store = a_store()
    store.create(STORAGE, labelled("admin", "x", gathers="to-admin"))
    store.create(STORAGE, labelled("edit", "to-admin", gathers="to-edit"))
    store.create(STORAGE, labelled("part", "to-edit", ONE))
    assert rules(store, "admin") == rules(store, "edit") == [ONE]


def test_roles_that_aggregate_each_other_settle() -> None:
    store = a_store()
    store.create(STORAGE, labelled("a", "to-b", gathers="to-a"))
    store.create(STORAGE, labelled("b", "to-a", gathers="to-b"))
    store.create(STORAGE, labelled("c", "to-a", ONE))
    assert rules(store, "a") == rules(store, "b") == [ONE]
