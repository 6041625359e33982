"""Controller: takes each ChangePod to its end state, with or without an AlterShield server. Besides people, only this
controller writes the status of ChangePods."""

from collections.abc import Callable
from typing import Protocol

from altershield.api.kinds import ChangePod, ChangePodStatus, ConditionType, PodState, Verdict
from altershield.api.meta import find_condition
from reconciler.batches.transitions import Answer, Ask, BatchSnapshot, Call, Later, decide
from reconciler.machinery.caches import Caches, Key
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.writer import Writer


class Server(Protocol):
    """The client of an AlterShield server."""

    async def ask(self, call: Call, change_pod: ChangePod) -> Answer:
        """Send a request about a batch. It never raises: if the server cannot be reached, the answer is `NoResult`."""
        ...


class BatchReconciler:
    """Its keys are the namespace and name of a ChangePod. `server` is None if none is configured. Timeouts are in
    seconds."""

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
                # stored before the call: after a restart in between, the call is repeated, not lost
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
        """Count the verdicts of a batch that is done now. For a batch that was done before, count the pods if a person
        fails it."""
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
