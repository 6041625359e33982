"""Which old pods of a held workload are evicted now, if its controller replaces none by itself. Pure functions."""

from collections.abc import Callable
from dataclasses import dataclass

from altershield.workloads.pods import Pod


@dataclass(frozen=True, slots=True)
class Fleet:
    """The pods of a workload that should have one on each of `replicas` nodes."""

    replicas: int
    pods: int
    """The pods of the version that exist."""
    up: int
    """Those of them that are available, by the user's own strategy."""
    staying: tuple[Pod, ...]
    """The old pods that neither are terminating nor have ended."""
    ending: int
    """The other old pods that are known. A pod that was terminating before the reconciler started is not."""
    min_ready: int
    """The user's own `minReadySeconds`."""
    now: float
    """Unix seconds."""

    @property
    def unavailable(self) -> int:
        """How many nodes have no available pod: pods of any version that are not available count, and nodes without
        one."""
        return self.replicas - self.up - sum(map(self.is_available, self.staying))

    def is_available(self, pod: Pod) -> bool:
        """Whether an old pod is available, by the user's own strategy."""
        return pod.ready and (self.min_ready <= 0 or pod.ready_at + self.min_ready <= self.now)

    @property
    def changes_at(self) -> float | None:
        """When the next old pod is available if it stays ready, Unix seconds; None if none waits for that."""
        waiting = (pod.ready_at for pod in self.staying if pod.ready and not self.is_available(pod))
        first = min(waiting, default=None)
        return float(first + self.min_ready) if first is not None else None

    @property
    def given(self) -> int:
        """How many pods have the version, or get it without a further eviction: a node without an old pod gets it."""
        return max(self.pods + self.ending, self.replicas - len(self.staying))


def evictions(
    fleet: Fleet,
    *,
    allowed: int,
    most: int,
    base: str,
    on_ready_node: Callable[[Pod], bool],
    selected: Callable[[Pod], bool] | None = None,
    at_least: int,
) -> tuple[Pod, ...]:
    """The old pods to evict. Pods on nodes that are not ready stay: nothing would replace them there.

    `allowed`: how many pods may have the version. `most`: how many may be unavailable at once, by the user's own
    strategy. A pod that is not available is evicted first, as the controller would do; then pods of another version
    than `base`: a version that failed does not serve through the soaks of its repair.

    `selected`: whether a pod is on a node that the steps select. These are evicted before all others, whatever their
    number, and with them the pods of another version than `base`, if they are at most `at_least`. None: the steps
    select no nodes.
    """
    left = allowed - fleet.given
    if left <= 0 and selected is None:
        return ()  # most decisions: the pods of the step are there
    chosen = _chosen(fleet, base, selected, at_least) if selected is not None else set()
    left -= sum(pod.metadata.uid in chosen and on_ready_node(pod) for pod in fleet.staying)
    room = max(0, most - fleet.unavailable)
    found: list[Pod] = []

    def order(pod: Pod) -> tuple[bool, bool, bool, str]:
        return pod.metadata.uid not in chosen, fleet.is_available(pod), pod.version == base, pod.metadata.name

    for pod in sorted(fleet.staying, key=order):
        own, available = pod.metadata.uid in chosen, fleet.is_available(pod)
        if not own and left <= 0:
            break
        if (room or not available) and on_ready_node(pod):
            room -= available
            left -= not own
            found.append(pod)
    return tuple(found)


def _chosen(fleet: Fleet, base: str, selected: Callable[[Pod], bool], at_least: int) -> set[str]:
    """The uids of the pods that are evicted whatever their number."""
    rest = [pod for pod in fleet.staying if not selected(pod)]
    failed = {pod.metadata.uid for pod in rest if pod.version != base}
    others = {pod.metadata.uid for pod in rest} - (failed if len(failed) <= at_least else set())
    return {pod.metadata.uid for pod in fleet.staying} - others
