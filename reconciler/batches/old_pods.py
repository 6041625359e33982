"""The pods of a workload that have other versions than a release."""

from altershield.api.change_workload import ChangeWorkload
from altershield.api.check_specs import CheckSpec
from altershield.workloads import BY_KIND, named_kind
from altershield.workloads.pods import Pod
from reconciler.checks.placeholders import escaped, generated
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import WorkloadKey

_NAMED = 500
"""The maximum number of pods: a query has a maximum length."""


def needs_old_pods(spec: CheckSpec) -> bool:
    """Whether a check asks about these pods. Finding them takes time with many pods."""
    check = spec.prometheus
    if check is None:
        return False
    queries = (check.query, check.baseline_query, check.count_query, check.baseline_count_query)
    return check.compare is not None or any("$old_pods" in query for query in queries)


def old_pods(caches: Caches, release: ChangeWorkload) -> tuple[str, ...]:
    """Regular expressions of the names of these pods, in order. If the workload controls its pods by an object in
    between, these are the names that this object gives, so that a pod that is replaced does not change them."""

    def is_old(pod: Pod) -> bool:
        return pod.exists and pod.version != release.spec.reversion

    kind = named_kind(release.spec.workload_ref)
    name = release.spec.workload_ref.name
    adapter = BY_KIND.get(kind)
    if adapter is None:
        return ()
    workload = caches.workload(WorkloadKey(kind, release.metadata.namespace, name))
    if workload is None:
        return ()
    if adapter.intermediate is not None:
        older = (each for each in caches.sets_of(workload) if each.metadata.uid != release.status.source.uid)
        patterns = (generated(each.metadata.name) for each in older if any(map(is_old, caches.pods_of_set(each))))
        return tuple(sorted(filter(None, patterns)))
    return tuple(sorted(escaped(pod.metadata.name) for pod in caches.pods_of(workload) if is_old(pod))[:_NAMED])
