"""Which pods of a workload exist, by a list from the API server. The watch may be behind the list, or ahead of it. Pure
functions."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from altershield.workloads.pods import Pod
from kube_base.meta import version_number


class ListedPods(NamedTuple):
    """The pods of a workload at one moment."""

    pods: Mapping[str, Pod]
    """By uid."""
    version: int
    """The resourceVersion of the list."""


def existing(listed: ListedPods, cached: Callable[[Pod], Pod | None], known: Mapping[str, Pod]) -> dict[str, Pod]:
    """The pods that exist, by uid, each as new as it is known.

    - `cached`: returns the cached pod with the name of a listed pod, after the cache has taken over the list. None or
      another pod: the listed pod was deleted after the list.
    - `known`: the pods that were known before. If one is not in the list, it was created after the list if it is newer,
      and deleted before the list if it is not.
    """
    newest = ((uid, cached(pod)) for uid, pod in listed.pods.items())
    found = {uid: pod for uid, pod in newest if pod is not None and pod.metadata.uid == uid}
    created = {
        uid: pod
        for uid, pod in known.items()
        if uid not in listed.pods and version_number(pod.metadata.resource_version) > listed.version
    }
    return found | created
