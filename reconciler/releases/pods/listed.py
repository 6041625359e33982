"""Which pods of a workload exist, by a list from the API server. The watch may be behind the list, or ahead of it. Pure
functions."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from altershield.workloads.pods import Pod
from kube_base.meta import version_number


class ListedPods(NamedTuple):
    """The pods of a workload at one moment."""

    pods: Sequence[Pod]
    version: int
    """The resourceVersion of the list."""


def existing(listed: ListedPods, cached: Callable[[Pod], Pod | None], known: Iterable[Pod]) -> list[Pod]:
    """The pods that exist, each as new as it is known.

    - `cached`: returns the cached pod with the name of a listed pod, after the cache has taken over the list. None or
      another pod: the listed pod was deleted after the list.
    - `known`: the pods that were known before. If one is not in the list, it was created after the list if it is newer,
      and deleted before the list if it is not.
    """
    there = {pod.metadata.uid for pod in listed.pods}
    newest = ((pod.metadata.uid, cached(pod)) for pod in listed.pods)
    found = [pod for uid, pod in newest if pod is not None and pod.metadata.uid == uid]
    created = (
        pod
        for pod in known
        if pod.metadata.uid not in there and version_number(pod.metadata.resource_version) > listed.version
    )
    return [*found, *created]
