"""Losses of pods that no gatekeeper reviewed: no gatekeeper answered, or the API server calls none (for example when
a kubelet evicts the pod, or the node is lost)."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from altershield.budgets.pods import Pod
from reconciler.cluster.caches import Key

_MAX_PODS = 100  # of one budget
_SECONDS = 30.0  # after its deletion, in which a pod is reported
_DROPPED_SECONDS = 60.0
"""Seconds for which a dropped record is remembered: longer than `_SECONDS`, and longer than the usual delay of a
watch."""


class Gone(NamedTuple):
    """A pod that was available when it was deleted, or that a kubelet or the end of its node took."""

    name: str
    at: float
    """Unix seconds."""


class Departures:
    """The pods that were lost since the last reconcile of their budget, and the records that were dropped lately. Every
    replica keeps both, because each may become the leader."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pods: dict[Key, dict[str, Gone]] = {}
        self._dropped: dict[Key, dict[str, float]] = {}
        """When the record of a uid was dropped, the oldest first."""

    def add(self, budget: Key, old: Pod, new: Pod | None) -> None:
        """Keep the pod if this change deletes an available pod that the budget covers, or if a kubelet or the end of
        its node took the pod: such a pod is marked as not ready first."""
        deleted = new is None or new.terminating
        taken = old.exists and (old.taken or (new is not None and new.uid == old.uid and new.taken))
        if not ((deleted and (old.available or taken)) or (taken and new is not None and new.lost)):
            return
        found = self._pods.setdefault(budget, {})
        if len(found) < _MAX_PODS:
            found[old.uid] = Gone(old.name, self._clock())

    def drop_records(self, budget: Key, uids: Iterable[str]) -> None:
        """Remember that the budget has no record of these pods any more. The deletions of the pods may be seen later,
        because another replica dropped the records, or because the watch of pods is slower."""
        now, dropped = self._clock(), self._dropped.setdefault(budget, {})
        for uid in uids:
            dropped.pop(uid, None)
            dropped[uid] = now
        while dropped and now - (first := next(iter(dropped.items())))[1] > _DROPPED_SECONDS:
            del dropped[first[0]]

    def forget(self, budget: Key) -> None:
        """Forget a deleted budget."""
        self._pods.pop(budget, None)
        self._dropped.pop(budget, None)

    def put_back(self, budget: Key, gone: Mapping[str, Gone]) -> None:
        """Keep pods that were taken and could not be reported."""
        self._pods[budget] = {**gone, **self._pods.get(budget, {})}

    def take(self, budget: Key) -> Mapping[str, Gone]:
        """The pods that were lost since the last call and whose records were not dropped, by uid. Pods that were
        deleted more than `_SECONDS` ago are left out: another leader may have dropped their records since then."""
        found, dropped = self._pods.pop(budget, {}), self._dropped.get(budget, {})
        now = self._clock()
        return {uid: gone for uid, gone in found.items() if now - gone.at < _SECONDS and uid not in dropped}
