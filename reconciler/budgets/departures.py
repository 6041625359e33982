"""Disruptions that no gatekeeper was asked about: none answered, or nobody has to ask (a lost node, for example)."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from altershield.budgets.pods import Pod
from reconciler.machinery.caches import Key

_MAX_PODS = 100
_SECONDS = 30.0
_DROPPED_SECONDS = 60.0
"""Longer than `_SECONDS`, and than the watch of pods is usually behind."""


class Gone(NamedTuple):
    """A pod that was available when it was deleted."""

    name: str
    at: float
    """Unix seconds."""


class Departures:
    """The pods that were available when they were deleted, since the last reconcile of their budget; and the records
    that were dropped lately. Every reconciler keeps both, because each may become the leader."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pods: dict[Key, dict[str, Gone]] = {}
        self._dropped: dict[Key, dict[str, float]] = {}
        """When the record of a uid was dropped, the oldest first."""

    def add(self, budget: Key, old: Pod, new: Pod | None) -> None:
        """Take a change of a pod that the budget covers."""
        if not old.available or (new is not None and not new.terminating):
            return
        found = self._pods.setdefault(budget, {})
        if len(found) < _MAX_PODS:
            found[old.uid] = Gone(old.name, self._clock())

    def drop_records(self, budget: Key, uids: Iterable[str]) -> None:
        """Take a change of a budget that has no record of these pods any more. Their departures may be seen later:
        another reconciler dropped the records, or the watch of pods is slower."""
        now, dropped = self._clock(), self._dropped.setdefault(budget, {})
        for uid in uids:
            dropped.pop(uid, None)
            dropped[uid] = now
        while dropped and now - (first := next(iter(dropped.items())))[1] > _DROPPED_SECONDS:
            del dropped[first[0]]

    def forget(self, budget: Key) -> None:
        """Take the deletion of a budget."""
        self._pods.pop(budget, None)
        self._dropped.pop(budget, None)

    def take(self, budget: Key) -> Mapping[str, Gone]:
        """The pods since the last call whose records were not dropped, by uid. Those of a long time ago are left out:
        their records are gone, for example because another reconciler was the leader."""
        found, dropped = self._pods.pop(budget, {}), self._dropped.get(budget, {})
        now = self._clock()
        return {uid: gone for uid, gone in found.items() if now - gone.at < _SECONDS and uid not in dropped}
