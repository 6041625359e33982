"""The pods of older versions for which the controller of a workload waits without end. Pure functions.

Some controllers replace pods in order, and wait until each is ready, whatever its template is
(kubernetes/kubernetes#67250). If a pod of an older version never becomes ready, the present version is never rolled out
until somebody deletes the pod.
"""

from collections.abc import Iterable

from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload


def blocking_pods(workload: Workload, pods: Iterable[Pod]) -> list[Pod]:
    """The pods with an older template that are not ready, so that the controller waits for them. `pods` belong to the
    workload.

    Empty until the controller has processed the present spec, and if it does not wait for pods. Not included: pods that
    the controller deletes because of their ordinals, and pods that would be created again with the same template.
    """
    if not (workload.waits_for_ready and workload.up_to_date and workload.update_revision):
        return []
    return [
        pod
        for pod in pods
        if pod.exists
        and not pod.ready
        and pod.hash not in ("", workload.update_revision)
        and _is_wanted(workload, pod)
        and not _is_kept(workload, pod)
    ]


def _is_kept(workload: Workload, pod: Pod) -> bool:
    """Whether the pod is created again with the same template when it is deleted: a partition keeps it at the old
    version, and it has the revision that was rolled out completely."""
    number = _ordinal(pod)
    return pod.hash == workload.kept_revision and number is not None and number < workload.in_force.kept_below


def _is_wanted(workload: Workload, pod: Pod) -> bool:
    """Whether the controller keeps a pod with this ordinal."""
    number = _ordinal(pod)
    return number is not None and (workload.ends_at is None or number < workload.ends_at)


def _ordinal(pod: Pod) -> int | None:
    """The ordinal in the name of the pod, or None."""
    found = pod.metadata.name.rpartition("-")[2]
    return int(found) if found.isascii() and found.isdecimal() else None
