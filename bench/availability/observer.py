"""Replays the watch of pods, and finds the budgets that were overdrawn by admitted disruptions.

It shares no code with the gatekeeper. It knows only the pods' events, and the pods whose disruptions were admitted.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class PodEvent(NamedTuple):
    """An event of the watch. `type` is ADDED, MODIFIED or DELETED; `pod` is the whole object."""

    type: str
    pod: dict[str, Any]

    @property
    def version(self) -> int:
        return int(self.pod["metadata"]["resourceVersion"])


@dataclass(frozen=True)
class Budget:
    """The budget of the pods with the label `app: NAME`. `total`: the number of these pods when no pod is missing."""

    name: str
    total: int
    desired: int


@dataclass(frozen=True)
class Overdraft:
    """At `version`, `unavailable` pods were missing because of admitted disruptions. Only `allowed` pods may be."""

    budget: str
    version: int
    unavailable: int
    allowed: int


@dataclass(frozen=True)
class Replay:
    overdrafts: tuple[Overdraft, ...]
    most: int
    """The largest number of pods of one budget that were unavailable at once because of admitted disruptions."""
    disrupted: int
    """How often an available pod became unavailable because of an admitted disruption."""
    unasked: int
    """How often an available pod became unavailable although no disruption of it was admitted."""


def replay(events: Iterable[PodEvent], budgets: Sequence[Budget], admitted: Collection[str]) -> Replay:
    """Replay the events in the order of their resource versions. `admitted`: the uids of the pods for which at least
    one disruption was admitted."""
    pods = {budget.name: _Pods(budget, admitted) for budget in budgets}
    overdrafts, most, disrupted, unasked = [], 0, 0, 0
    for event in sorted(events, key=lambda each: each.version):
        covered = pods.get(event.pod["metadata"].get("labels", {}).get("app", ""))
        if covered is None:
            continue
        lost = covered.apply(event)
        if lost is not None:
            disrupted, unasked = disrupted + lost, unasked + (not lost)
        unavailable, budget = covered.unavailable, covered.budget
        most = max(most, unavailable)
        if lost and unavailable > budget.total - budget.desired:
            overdrafts.append(Overdraft(budget.name, event.version, unavailable, budget.total - budget.desired))
    return Replay(tuple(overdrafts), most, disrupted, unasked)


@dataclass
class _Pods:
    """The pods of a budget at one point of the replay."""

    budget: Budget
    admitted: Collection[str]
    available: set[str] = field(default_factory=set)
    missing: dict[str, bool] = field(default_factory=dict)
    """The pods that were available, are unavailable now, and have no available replacement, oldest first. True: the pod
    does not come back."""

    def apply(self, event: PodEvent) -> bool | None:
        """Apply an event. Returns None if no pod became unavailable; otherwise, whether a disruption of the pod was
        admitted."""
        uid = event.pod["metadata"]["uid"]
        if _is_available(event):
            self._add(uid)
            return None
        lost = uid in self.available
        if lost or uid in self.missing:
            self.missing[uid] = self.missing.get(uid, False) or _is_gone(event)
        self.available.discard(uid)
        return uid in self.admitted if lost else None

    def _add(self, uid: str) -> None:
        if uid in self.available:
            return
        self.available.add(uid)
        if uid in self.missing:
            del self.missing[uid]
        elif replaced := next((each for each, gone in self.missing.items() if gone), None):
            del self.missing[replaced]

    @property
    def unavailable(self) -> int:
        """How many pods are unavailable because of admitted disruptions. A surge of pods makes up for them."""
        charged = sum(uid in self.admitted for uid in self.missing)
        return max(0, min(charged, self.budget.total - len(self.available)))


def _is_available(event: PodEvent) -> bool:
    conditions = event.pod.get("status", {}).get("conditions", ())
    ready = any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)
    return ready and not _is_gone(event)


def _is_gone(event: PodEvent) -> bool:
    is_over = event.pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return event.type == "DELETED" or "deletionTimestamp" in event.pod["metadata"] or is_over
