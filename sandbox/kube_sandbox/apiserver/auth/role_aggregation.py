"""ClusterRoles whose rules are those of the ClusterRoles that they select (`aggregationRule`).

What kube-controller-manager's clusterrole-aggregation controller does; a change here shows at once.
"""

from collections.abc import Iterator, Sequence

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.auth.authorization import GROUP, Rule
from kube_sandbox.apiserver.storage import selectors
from kube_sandbox.apiserver.storage.store import Change, Storage, Store

_CLUSTER_ROLES = (GROUP, "clusterroles")


class RoleAggregation:
    """Keeps the rules of aggregating roles in a store up to date."""

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
            # comes back here: roles may gather from roles that gather
            self._store.update(_CLUSTER_ROLES, item, {**item.copy(), "rules": rules})


def out_of_date(roles: Sequence[Object]) -> Iterator[tuple[str, list[Rule]]]:
    """Names of aggregating roles whose rules are not what they gather, and what they do: the rules of the selected
    roles in the order of their names, each once."""
    by_name = sorted(roles, key=lambda role: str(role["metadata"]["name"]))
    for role in by_name:
        chosen = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
        if not chosen or role["metadata"].get("deletionTimestamp"):
            continue
        gathered: list[Rule] = []
        for other in by_name:
            labels = other["metadata"].get("labels") or {}
            if other is not role and any(selectors.matches(selector, labels) for selector in chosen):
                gathered += [rule for rule in other.get("rules") or () if rule not in gathered]
        if gathered != (role.get("rules") or []):
            yield role["metadata"]["name"], gathered
