"""What becomes of pending deletions. Only the leading reconciler decides this."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import NamedTuple

from altershield.api.flow_control import MAX_PENDING, Pending, PodDeletionFlowControl
from altershield.api.meta import time_of
from altershield.flow_control.decision import REPEATED, Working
from altershield.flow_control.windows import CLOCK_ERROR

HELD = 5
"""Seconds for which a confirmed deletion stays pending, so that a request that follows at once finds it, also in a
gatekeeper whose cache still has the pod."""

ANSWER_IN_EFFECT = 34
"""Seconds after which the API server gives up a request (k8s.io/apiserver, endpoints/filters/request_deadline.go)."""

GIVE_BACK_AFTER = ANSWER_IN_EFFECT + CLOCK_ERROR + REPEATED + 1
"""Seconds after which a pod that still exists proves that its deletion did not happen. Times are whole seconds."""

ASK_AFTER = 2
"""Seconds after which a pod that the cache does not know is read from the API server."""

ABANDONED = 900
"""Seconds after which a pending deletion ends although the pod cannot be read. It stays counted."""


class Seen(Enum):
    """The pod of a pending deletion."""

    ENDING = auto()
    """It is terminating, or gone."""
    ALIVE = auto()
    """The API server has it, it is not terminating, and the question was decisive."""


class Question(NamedTuple):
    """A pod to be read from the API server."""

    uid: str
    namespace: str
    name: str
    decisive: bool
    """If the pod is alive, its deletion did not happen. Before that time, it may still happen."""


def questions(policy: PodDeletionFlowControl, seen: Mapping[str, Seen], now: float) -> list[Question]:
    """The pods that are to be read from the API server now. `seen`: those that a cache knows to be ending. A cache that
    still has a pod proves nothing: it may be older than the deletion."""
    found = []
    for uid, pending in policy.status.pending.items():
        age = now - time_of(pending.time, now)
        decisive = age >= GIVE_BACK_AFTER
        if uid not in seen and (decisive or age >= ASK_AFTER):
            found.append(Question(uid, pending.namespace, pending.name, decisive))
    return found


def settle(work: Working, read: Mapping[str, Seen]) -> list[Pending]:
    """End the pending deletions that are decided. Return them.

    `read`: what caches and the API server said of their pods. A deletion that happened stays counted. One that did not
    happen is given back.
    """
    ended = []
    crowded = len(work.pending) > MAX_PENDING // 2
    for uid, pending in list(work.pending.items()):
        age = work.now - time_of(pending.time, work.now)
        if read.get(uid) == Seen.ENDING and (age >= HELD or crowded):
            work.drop(uid, give_back=False)
        elif read.get(uid) == Seen.ALIVE and age >= GIVE_BACK_AFTER:
            work.drop(uid, give_back=True)
        elif age >= ABANDONED:
            work.drop(uid, give_back=False)
        else:
            continue
        ended.append(pending)
    return ended
