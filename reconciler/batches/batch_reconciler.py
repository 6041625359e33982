"""Controller: takes each ChangePod to its end state, with or without an AlterShield server. The status of ChangePods is
written by this controller, by people, and by the receiver of the server's callbacks."""

from collections.abc import Callable
from typing import Protocol

from altershield.api.kinds import ChangePod, ChangePodStatus, ConditionType, PodState, Verdict
from altershield.api.meta import find_condition
from reconciler.batches.transitions import Answer, Ask, Availability, BatchSnapshot, Call, Checked, Later, decide
from reconciler.machinery.caches import Caches, Key
from reconciler.machinery.metrics import UNCHECKED_ENDS, Metrics
from reconciler.machinery.writer import Writer


class Server(Protocol):
    """The client of an AlterShield server."""

    @property
    def availability(self) -> Availability:
        """Whether a request can be sent now."""
        ...

    async def ask(self, call: Call, change_pod: ChangePod) -> Answer:
        """Send a request about a batch. It never raises: if the server cannot be reached, the answer is `NotSent` or
        `NoResult`."""
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
            status, following = decide(change_pod.status, self._snapshot(change_pod, answer), self._clock())
            if status != change_pod.status:
                change_pod = await self._save(change_pod, status)  # before the request
            match following:
                case Ask(call) if self._server is not None:
                    answer = await self._server.ask(call, change_pod)
                case Later(seconds):
                    return seconds
                case _:
                    return None

    async def receive(self, change_pod: ChangePod, result: Checked) -> None:
        """Store the result of the server's check on a batch. ConflictError: the ChangePod has changed meanwhile."""
        status, _ = decide(change_pod.status, self._snapshot(change_pod, result), self._clock())
        if status != change_pod.status:
            await self._save(change_pod, status)

    def _snapshot(self, change_pod: ChangePod, answer: Answer | None) -> BatchSnapshot:
        server = self._server.availability if self._server is not None else Availability.NOT_CONFIGURED
        return BatchSnapshot(change_pod, server, answer, self._pre_timeout, self._post_timeout)

    async def _save(self, change_pod: ChangePod, status: ChangePodStatus) -> ChangePod:
        saved = await self._writer.save_batch(change_pod, status)
        self._count(change_pod, status)
        return saved

    def _count(self, change_pod: ChangePod, status: ChangePodStatus) -> None:
        """Count the verdicts of a batch that is done now. For a batch that was done before, count the pods if a person
        fails it."""
        if status.status != PodState.EXECUTE_DONE:
            return
        results = {result.pod: result.verdict for result in status.pod_results if result.verdict}
        given = [results.get(pod.pod, "") for pod in change_pod.spec.pod_infos]
        if change_pod.status.status == PodState.EXECUTE_DONE:
            fails_now = _fails(status) and not _fails(change_pod.status)
            given = [verdict for verdict in given if fails_now and verdict not in ("", Verdict.PASS)]
        for verdict in given:
            if not verdict and self._server is not None and status.message in UNCHECKED_ENDS:
                self._metrics.unchecked.labels(status.message).inc()
            else:
                passed = verdict in ("", Verdict.PASS)
                self._metrics.verifications.labels(Verdict.PASS if passed else Verdict.UNPASS).inc()


def _fails(status: ChangePodStatus) -> bool:
    verified = find_condition(status.conditions, ConditionType.VERIFIED)
    return verified is not None and verified.status == "False"
