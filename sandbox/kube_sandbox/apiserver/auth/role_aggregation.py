"""Role aggregation: a ClusterRole with an `aggregationRule` has the rules of the ClusterRoles that it selects.

In a real cluster, the clusterrole-aggregation controller of kube-controller-manager does this. Here the rules change
in the same call as the selected ClusterRoles.
"""

from collections.abc import Iterator, Sequence

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.auth.authorization import GROUP, Rule
from kube_sandbox.apiserver.storage import selectors
from kube_sandbox.apiserver.storage.store import Change, Storage, Store

_CLUSTER_ROLES = (GROUP, "clusterroles")


class RoleAggregation:
    """Updates the rules of aggregated roles in a store when a ClusterRole changes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def on_change(self, storage: Storage, change: Change) -> None:
        if storage != _CLUSTER_ROLES:
            return
        stale = next(out_of_date(self._store.list(*_CLUSTER_ROLES)), None)
        if stale is None:
            return
        name, rules = stale
        item = self._store.item(_CLUSTER_ROLES, "", name)
        if item is not None:
            # The update calls this method again, which updates the next role: roles may aggregate aggregated roles.
            self._store.update(_CLUSTER_ROLES, item, {**item.copy(), "rules": rules})


def out_of_date(roles: Sequence[Object]) -> Iterator[tuple[str, list[Rule]]]:
    """The aggregated roles whose rules are not up to date: their names and their new rules.

    The new rules are those of the selected roles in the order of their names, without repetitions.
    """
    by_name = sorted(roles, key=lambda role: str(role["metadata"]["name"]))
    for role in by_name:
        role_selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
        if not role_selectors or role["metadata"].get("deletionTimestamp"):
            continue
        aggregated: list[Rule] = []
        for other in by_name:
            labels = other["metadata"].get("labels") or {}
            if other is not role and any(selectors.matches(selector, labels) for selector in role_selectors):
                aggregated += [rule for rule in other.get("rules") or () if rule not in aggregated]
        if aggregated != (role.get("rules") or []):
            yield role["metadata"]["name"], aggregated
