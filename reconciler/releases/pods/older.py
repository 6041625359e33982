"""The pods of other versions of a workload, and how many pods of the present version should exist beside them. Without
I/O."""

from collections.abc import Iterator

from altershield.api.amounts import scaled
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload


class OlderPods:
    """`len` is their number."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._ending: set[str] = set()
        """The uids of the pods that are terminating or have ended."""

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[Pod]:
        return iter(self._pods.values())

    @property
    def by_uid(self) -> dict[str, Pod]:
        return self._pods

    @property
    def ending(self) -> int:
        """How many of them are terminating or have ended."""
        return len(self._ending & self._pods.keys())

    def staying(self) -> list[Pod]:
        """Those that neither are terminating nor have ended."""
        return [pod for uid, pod in self._pods.items() if uid not in self._ending]

    def update(self, pod: Pod) -> None:
        """Take over a new or changed pod of another version."""
        uid = pod.metadata.uid
        if pod.exists:
            self._pods[uid] = pod
        elif uid in self._pods:
            self._ending.add(uid)

    def remove(self, uid: str) -> bool:
        """Remove a pod that was deleted, or that belongs to the present version or to no version of the workload.
        Returns whether it was here."""
        self._ending.discard(uid)
        return self._pods.pop(uid, None) is not None

    def wanted(self, workload: Workload) -> int:
        """The number of pods of the present version that should exist now.

        It is the number that the rollout is to reach. Under OnDelete, it is the number of replicas minus the number of
        pods of other versions. If no pods of other versions exist, it is the number of replicas, because a partition
        keeps only existing pods at the old version.
        """
        reach, replicas = workload.in_force.reach, workload.replicas
        if reach is None:
            return max(0, replicas - len(self._pods))
        return reach if self._pods else replicas

    def leave_room_for(self, pod: Pod, workload: Workload) -> bool:
        """Whether a pod of the present version counts towards `wanted`. These pods do not count: pods that a
        StatefulSet is about to delete, and pods that its partition keeps at the old version."""
        ordinal = pod.metadata.name.rpartition("-")[2]
        if workload.ends_at is None or not ordinal.isdecimal():
            return True
        return (workload.in_force.kept_below if self._pods else 0) <= int(ordinal) < workload.ends_at

    def are_too_many(self, workload: Workload, present: int) -> bool:
        """Whether more pods exist than the workload is to have. `present`: the number of pods of the present version.

        If no pods of other versions exist, this does not matter.
        """
        if not self._pods or workload.in_force.reach is None:
            return False
        if workload.ends_at is not None:
            return False  # see `leave_room_for`
        if workload.steps is not None:
            # its controller rests: a DaemonSet keeps pods on nodes that are not ready, and a Deployment those that were
            # created while somebody's fields were in force, changed without a gatekeeper
            return False
        counted = max(present, workload.updated)  # the status may still count a pod whose deletion is known here
        replicas = workload.replicas
        older = len(self._pods) - len(self._ending)
        surge = scaled(workload.in_force.max_surge, replicas, round_up=True) or 0
        return counted > replicas or counted + older > replicas + surge
