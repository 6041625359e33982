"""Controller: takes each ChangePod to its end, with an AlterShield server or without."""

from collections.abc import Callable
from typing import Protocol

from altershield.api.kinds import PASS, UNPASS, ChangePod, ChangePodStatus, ConditionType, PodState
from altershield.api.meta import find_condition
from reconciler.caches import Caches, Key
from reconciler.decisions.change_pods import Answer, Observed, decide
from reconciler.decisions.effects import Ask, Call, Requeue
from reconciler.metrics import Metrics
from reconciler.writer import Writer


class Server(Protocol):
    """An AlterShield server."""

    async def ask(self, call: Call, change_pod: ChangePod) -> Answer:
        """Call it about a batch. Never raises: what cannot be reached has `NotYet` answered."""
        ...


class ChangePodsController:
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
        record = self._caches.change_pods.get(*key)
        if record is None or record.metadata.deletion_timestamp is not None:
            return None
        answer: Answer | None = None
        while True:
            observed = Observed(record, self._server is not None, answer, self._pre_timeout, self._post_timeout)
            status, effects = decide(record.status, observed, self._clock())
            if status != record.status:
                # stored before the server is called: a restart in between calls again rather than never
                saved = await self._writer.save_status(self._caches.change_pods, record, status)
                self._count(record, status)
                record = saved
            match effects:
                case (Ask(call),) if self._server is not None:
                    answer = await self._server.ask(call, record)
                case (Requeue(seconds),):
                    return seconds
                case _:
                    return None

    def _count(self, record: ChangePod, status: ChangePodStatus) -> None:
        """Count the verdicts of a batch that is done, and later those with which somebody fails it after all."""
        if status.status != PodState.EXECUTE_DONE:
            return
        results = {result.pod: result.verdict for result in status.pod_results if result.verdict}
        verdicts = [PASS if results.get(pod.pod, PASS) == PASS else UNPASS for pod in record.spec.pod_infos]
        if record.status.status == PodState.EXECUTE_DONE:
            fails_now = _fails(status) and not _fails(record.status)
            verdicts = [verdict for verdict in verdicts if fails_now and verdict == UNPASS]
        for verdict in verdicts:
            self._metrics.verifications.labels(verdict).inc()


def _fails(status: ChangePodStatus) -> bool:
    verified = find_condition(status.conditions, ConditionType.VERIFIED)
    return verified is not None and verified.status == "False"
