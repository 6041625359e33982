"""The pods of a namespace in groups, so that a decision compares labels and owners once for each group."""

from collections.abc import Collection, Iterable

from altershield.budgets.pods import Pod
from altershield.workloads.meta import Owner, Packed


class Group:
    """Pods with the same owner and the same labels."""

    __slots__ = ("labels", "owner", "pods")

    def __init__(self, owner: Owner, labels: dict[str, str]) -> None:
        self.owner = owner
        self.labels = labels
        self.pods: dict[Packed, Pod] = {}


class PodIndex:
    """Groups of pods by namespace. Call `put` for each event of an informer."""

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        self._groups: dict[str, dict[tuple[str, int], Group]] = {}
        self._changes: dict[str, int] = {}
        for pod in pods:
            self.put(None, pod)

    def put(self, old: Pod | None, new: Pod | None) -> None:
        """Replace `old` by `new`, as the handler of an informer."""
        if old is not None and (new is None or _key(old) != _key(new) or old.packed_uid != new.packed_uid):
            self._remove(old)
        if new is not None:
            # `pods.read` shares equal labels only as long as it remembers them, so equal labels can be two objects
            groups = self._groups.setdefault(new.namespace, {})
            group = groups.get(_key(new))
            if group is None:
                group = groups[_key(new)] = Group(new.owner, new.labels)
            group.pods[new.packed_uid] = new
        changed = new if new is not None else old
        if changed is not None:
            self._changes[changed.namespace] = self._changes.get(changed.namespace, 0) + 1

    def _remove(self, pod: Pod) -> None:
        groups = self._groups.get(pod.namespace, {})
        group = groups.get(_key(pod))
        if group is None:
            return
        group.pods.pop(pod.packed_uid, None)
        if not group.pods:
            del groups[_key(pod)]
        if not groups:
            self._groups.pop(pod.namespace, None)

    def groups(self, namespace: str) -> Collection[Group]:
        return self._groups.get(namespace, {}).values()

    def changes(self, namespace: str) -> int:
        """The number of events of the namespace so far."""
        return self._changes.get(namespace, 0)


def _key(pod: Pod) -> tuple[str, int]:
    return pod.owner.uid, id(pod.labels)
