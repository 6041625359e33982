"""The pods that ended and are replaced by others, and why they ended; and those that are ending. Without I/O."""

from collections import deque
from typing import NamedTuple

import msgspec

from altershield.workloads.pods import PREEMPTED, Pod, Trouble

_KEPT = 20


class _Ended(NamedTuple):
    name: str
    words: Trouble


class Predecessors:
    """The pods that ended and are not replaced yet, without those that were deleted on purpose; and the names of all
    pods that are terminating."""

    def __init__(self) -> None:
        self._ended: deque[_Ended] = deque(maxlen=_KEPT)
        self._terminating: dict[str, str] = {}

    def see(self, pod: Pod) -> None:
        """Take over a new or changed pod of the workload, of any version."""
        if pod.metadata.deleting:
            self._terminating[pod.metadata.uid] = pod.metadata.name

    def remove(self, uid: str) -> None:
        """The pod was deleted."""
        self._terminating.pop(uid, None)

    @property
    def terminating(self) -> list[str]:
        """The names of the pods that are terminating, sorted."""
        return sorted(self._terminating.values())

    def ended(self, pod: Pod) -> None:
        """A pod of the release ended or is about to be deleted."""
        trouble = pod.trouble
        if trouble is None or not trouble.tells:
            return
        if (pod.ended and not pod.metadata.deleting) or trouble.reason == PREEMPTED:
            self._ended.append(_Ended(pod.metadata.name, trouble))

    @property
    def last(self) -> str:
        """The pod that ended last, and why; empty if none ended."""
        return f"{self._ended[-1].name}: {self._ended[-1].words}" if self._ended else ""

    def take(self, pod: Pod) -> Trouble | None:
        """Why the pod ended that a new pod replaces; None if no pod ended. A pod with the same name counts first."""
        same = [each for each in self._ended if each.name == pod.metadata.name]
        for each in (*same, *self._ended):
            self._ended.remove(each)
            where = f"predecessor {each.name}"
            return msgspec.structs.replace(each.words, where=f"{where} {each.words.where}".rstrip())
        return None

    def forget(self) -> None:
        """All pods that ended have been replaced."""
        self._ended.clear()
