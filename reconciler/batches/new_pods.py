"""The pods of a release, for the checks that run after it."""

import msgspec

from altershield.api.change_pod import ChangePod
from altershield.api.change_workload import ChangeWorkload
from altershield.api.pod_verdicts import PodInfo
from altershield.workloads import named_kind
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import WorkloadKey

_NAMED = 500
"""The maximum number of pods: a query has a maximum length."""


def with_pods(change_pod: ChangePod, caches: Caches, release: ChangeWorkload) -> ChangePod:
    """The ChangePod with the pods of the version that exist now, in the order of their names. It is not stored so."""
    ref = release.spec.workload_ref
    workload = caches.workload(WorkloadKey(named_kind(ref), release.metadata.namespace, ref.name))
    pods = [each for each in caches.pods_of(workload) if each.exists] if workload is not None else []
    own = sorted((each.metadata.name, each) for each in pods if each.version == release.spec.reversion)
    infos = tuple(
        PodInfo(pod=name, uid=pod.metadata.uid, host_name=name, namespace=pod.metadata.namespace, ip=pod.ip)
        for name, pod in own[:_NAMED]
    )
    return msgspec.structs.replace(change_pod, spec=msgspec.structs.replace(change_pod.spec, pod_infos=infos))
