"""The end of pending deletions: each is confirmed or given back. Only the leading reconciler decides this."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import NamedTuple

from altershield.api.flow_control import MAX_PENDING, Pending, PodDeletionFlowControl
from altershield.api.meta import time_of
from altershield.flow_control.decision import REPEATED, Working
from altershield.flow_control.windows import CLOCK_ERROR

DROP_AFTER = 5
"""Seconds for which a confirmed deletion stays pending. A repeated request then finds it and is not counted again, even
if the gatekeeper's cache still has the pod."""

ANSWER_IN_EFFECT = 34
"""Seconds after which the API server no longer carries out a request (k8s.io/apiserver,
endpoints/filters/request_deadline.go)."""

GIVE_BACK_AFTER = ANSWER_IN_EFFECT + CLOCK_ERROR + REPEATED + 1
"""Seconds after the count of a deletion. If the pod still exists then, its deletion did not happen. One of the seconds
is there because times are stored as whole seconds."""

ASK_AFTER = 2
"""Seconds after the count of a deletion at which its pod is first read from the API server."""

ABANDONED = 900
"""Seconds after which a pending deletion ends although the pod cannot be read. It stays counted."""


class Seen(Enum):
    """The state of the pod of a pending deletion."""

    ENDING = auto()
    """The pod is terminating, or does not exist any more."""
    ALIVE = auto()
    """The API server returned the pod, which is not terminating, as the answer to a decisive question."""


class Question(NamedTuple):
    """A pod to be read from the API server."""

    uid: str
    namespace: str
    name: str
    decisive: bool
    """If the pod is alive, its deletion did not happen. While a question is not decisive, the deletion may still
    happen."""


def questions(policy: PodDeletionFlowControl, seen: Mapping[str, Seen], now: float) -> list[Question]:
    """The pods that have to be read from the API server now. `seen`: the pods that are ending according to a cache, by
    uid. A pod that a cache still has proves nothing, because the cache may be older than the deletion."""
    found = []
    for uid, pending in policy.status.pending.items():
        age = now - time_of(pending.time, now)
        decisive = age >= GIVE_BACK_AFTER
        if uid not in seen and (decisive or age >= ASK_AFTER):
            found.append(Question(uid, pending.namespace, pending.name, decisive))
    return found


def settle(work: Working, read: Mapping[str, Seen]) -> list[Pending]:
    """End the pending deletions whose outcome is known. Return them.

    `read`: the states of their pods, from caches and the API server, by uid. A deletion that happened stays counted.
    The count of a deletion that did not happen is given back.
    """
    ended = []
    crowded = len(work.pending) > MAX_PENDING // 2
    for uid, pending in list(work.pending.items()):
        age = work.now - time_of(pending.time, work.now)
        if read.get(uid) == Seen.ENDING and (age >= DROP_AFTER or crowded):
            work.drop(uid, give_back=False)
        elif read.get(uid) == Seen.ALIVE and age >= GIVE_BACK_AFTER:
            work.drop(uid, give_back=True)
        elif age >= ABANDONED:
            work.drop(uid, give_back=False)
        else:
            continue
        ended.append(pending)
    return ended
