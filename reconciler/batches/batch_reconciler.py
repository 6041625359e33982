"""Controller: takes each ChangePod to its end, with an AlterShield server or without. It alone writes their status,
people aside."""

from collections.abc import Callable
from typing import Protocol

from altershield.api.kinds import ChangePod, ChangePodStatus, ConditionType, PodState, Verdict
from altershield.api.meta import find_condition
from reconciler.batches.transitions import Answer, Ask, BatchSnapshot, Call, Later, decide
from reconciler.machinery.caches import Caches, Key
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.writer import Writer


class Server(Protocol):
    """An AlterShield server."""

    async def ask(self, call: Call, change_pod: ChangePod) -> Answer:
        """Call it about a batch. Never raises: what cannot be reached has `NoResult` answered."""
        ...


class BatchReconciler:
    """`server` is None where none is configured; the timeouts are seconds."""

    def __init__(
        self,
        caches: Caches,
        writer: Writer,
        metrics: Metrics,
        clock: Callable[[], float],
        *,
        server: Server | None,
        pre_timeout: int,
        post_timeout: int,
    ) -> None:
        self._caches = caches
        self._writer = writer
        self._metrics = metrics
        self._clock = clock
        self._server = server
        self._pre_timeout = pre_timeout
        self._post_timeout = post_timeout

    async def reconcile(self, key: Key) -> float | None:
        batch = self._caches.batches.get(*key)
        if batch is None or batch.unfinished is None or batch.metadata.deleting:
            return None
        change_pod = batch.unfinished
        answer: Answer | None = None
        while True:
            snapshot = BatchSnapshot(
                change_pod, self._server is not None, answer, self._pre_timeout, self._post_timeout
            )
            status, following = decide(change_pod.status, snapshot, self._clock())
            if status != change_pod.status:
                # stored before the server is called: a restart in between calls again rather than never
                saved = await self._writer.save_batch(change_pod, status)
                self._count(change_pod, status)
                change_pod = saved
            match following:
                case Ask(call) if self._server is not None:
                    answer = await self._server.ask(call, change_pod)
                case Later(seconds):
                    return seconds
                case _:
                    return None

    def _count(self, change_pod: ChangePod, status: ChangePodStatus) -> None:
        """Count the verdicts of a batch that is done, and later those with which somebody fails it after all."""
        if status.status != PodState.EXECUTE_DONE:
            return
        results = {result.pod: result.verdict for result in status.pod_results if result.verdict}
        verdicts = [
            Verdict.PASS if results.get(pod.pod, Verdict.PASS) == Verdict.PASS else Verdict.UNPASS
            for pod in change_pod.spec.pod_infos
        ]
        if change_pod.status.status == PodState.EXECUTE_DONE:
            fails_now = _fails(status) and not _fails(change_pod.status)
            verdicts = [verdict for verdict in verdicts if fails_now and verdict == Verdict.UNPASS]
        for verdict in verdicts:
            self._metrics.verifications.labels(verdict).inc()


def _fails(status: ChangePodStatus) -> bool:
    verified = find_condition(status.conditions, ConditionType.VERIFIED)
    return verified is not None and verified.status == "False"
