"""Which old pods of a held workload are evicted now, if its controller replaces none by itself. Pure functions."""

from collections.abc import Iterable

from altershield.workloads.pods import Pod


def evictions(older: Iterable[Pod], *, left: int, unavailable: int, most: int) -> tuple[Pod, ...]:
    """The old pods to evict.

    `older`: the old pods that exist, on nodes that are ready. `left`: how many more pods may get the version, without
    those that replace pods which are ending now. `unavailable`: how many of the workload's pods are not available now.
    `most`: how many may be, by the user's own strategy. A pod that is not ready is evicted first: it is unavailable
    already.
    """
    room = max(0, most - unavailable)
    found: list[Pod] = []
    for pod in sorted(older, key=lambda each: (each.ready, each.metadata.name)):
        if len(found) >= left or (pod.ready and not room):
            break
        room -= pod.ready
        found.append(pod)
    return tuple(found)
