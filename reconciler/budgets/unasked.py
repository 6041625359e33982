"""Disruptions that no gatekeeper was asked about: none answered, or nobody has to ask (a lost node, for example)."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from altershield.budgets.pods import Pod
from reconciler.machinery.caches import Key

_MAX_PODS = 100
_SECONDS = 30.0


class Gone(NamedTuple):
    """A pod that was available when it was deleted."""

    name: str
    at: float
    """Unix seconds."""


class Departures:
    """The pods that were available when they were deleted, since the last reconcile of their budget."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pods: dict[Key, dict[str, Gone]] = {}

    def add(self, budget: Key, old: Pod, new: Pod | None) -> None:
        """Take a change of a pod that the budget covers."""
        if not old.available or (new is not None and not new.terminating):
            return
        found = self._pods.setdefault(budget, {})
        if len(found) < _MAX_PODS:
            found[old.uid] = Gone(old.name, self._clock())

    def take(self, budget: Key) -> Mapping[str, Gone]:
        """The pods since the last call, by uid. Those of a long time ago are left out: their records are gone, for
        example because another reconciler was the leader."""
        found = self._pods.pop(budget, {})
        now = self._clock()
        return {uid: gone for uid, gone in found.items() if now - gone.at < _SECONDS}
