"""The pods of a version that failed for which the workload's controller would wait without end. Pure functions."""

from collections.abc import Iterable

from altershield.releases import rolled_back
from altershield.workloads import BY_KIND, is_pod_of_revision
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload
from reconciler.releases.effects import DeletePod
from reconciler.releases.pod_groups import PodGroups
from reconciler.releases.snapshot import Snapshot


def stuck_pods(workload: Workload, pods: Iterable[Pod]) -> tuple[DeletePod, ...]:
    """The deletions of the pods of a failed version for which the workload's controller would wait without end.

    A pod that a partition holds back is created again with the revision that was rolled out completely. A pod that has
    this revision is not deleted, because its replacement would be deleted too before it is ready.
    """
    if not workload.waits_for_ready:
        return ()
    return tuple(DeletePod(pod) for pod in pods if pod.exists and not pod.ready and not _is_kept(workload, pod))


def _is_kept(workload: Workload, pod: Pod) -> bool:
    """Whether the pod is created again with the same template when it is deleted."""
    ordinal = pod.metadata.name.rpartition("-")[2]
    return pod.hash == workload.kept_revision and ordinal.isdecimal() and int(ordinal) < workload.kept_below


def stuck_pods_of_older_versions(snapshot: Snapshot, groups: PodGroups) -> tuple[DeletePod, ...]:
    """The deletions of such pods of versions that were rolled back earlier. A pod that was ready when its version was
    rolled back may have become unready since."""
    adapter = BY_KIND[snapshot.workload.kind]
    gone = [each.status.source for each in snapshot.others if rolled_back(each) and each.status.source.uid]
    return stuck_pods(
        snapshot.workload,
        (
            pod
            for pod in groups.older
            if any(is_pod_of_revision(adapter, pod, source.name, source.uid) for source in gone)
        ),
    )
