"""Controller: a pod that came up is marked with the time at which it did."""

from collections.abc import Callable

from altershield.api import labels
from reconciler.caches import Caches, Key
from reconciler.decisions import pods as facts
from reconciler.writer import Writer, label_path


class PodsController:
    def __init__(self, caches: Caches, writer: Writer, clock: Callable[[], float]) -> None:
        self._caches = caches
        self._writer = writer
        self._clock = clock

    async def reconcile(self, key: Key) -> float | None:
        pod = self._caches.pods.get(*key)
        if pod is None or not pod.version or facts.finished(pod) or not self._caches.governed(key[0]):
            return None
        if facts.exists(pod) and facts.ready(pod):
            mark = {"op": "add", "path": label_path(labels.OPERATE_FINISHED), "value": str(int(self._clock()))}
            await self._writer.patch(self._caches.pods, pod, [mark])
        return None
