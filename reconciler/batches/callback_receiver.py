"""Receives the callbacks of an AlterShield server, in each replica. The result is stored in the ChangePod, where the
leader finds it."""

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import assert_never

from altershield.api.change_pod import ChangePod
from altershield.api.check_results import MAX_FAILED_RULES, CheckState, FailedRule
from altershield.api.check_specs import Phase
from altershield.api.resources import CHANGE_PODS
from kube_base.access.backoff import retry_conflicts
from kube_base.access.client import Client
from kube_base.access.errors import NotFoundError
from reconciler.batches.batch_reconciler import BatchReconciler
from reconciler.batches.nodes import Reception, awaits_repetition
from reconciler.checks.check import Fail, Pass
from reconciler.cluster.batch import Batch
from reconciler.cluster.caches import Caches
from reconciler.cluster.orders import order_id, release_uid
from reconciler.endpoints.callback import Callback, CheckType
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.outcome import CallbackOutcome
from reconciler.server.messages import Stage

logger = logging.getLogger(__name__)

_WITHOUT_RESULT = (Phase.PRE, CheckState.UNKNOWN)
_PHASES = {Stage.PRE: Phase.PRE, Stage.POST: Phase.POST}
_ATTEMPTS = 8  # in about 20 seconds: the server sends a result once, and the cache of this replica may be behind
_WAITS = (0.0, 1.0, 2.0, 60.0)
"""Seconds before each attempt to find the batch. A fast server sends its callback before the id is stored, and the
cache of this replica may be behind. Before the last wait, a batch of the order must still await its id: otherwise the
callback is refused while the server waits for the answer."""
_CLOCK_ERROR = 5.0  # seconds between the clocks of this replica and of the leader, which starts checks
_REMEMBERED = 4096  # ids of batches that do not exist any more
_CANDIDATES = 20  # batches that are read to find the batch of a node


class CallbackReceiver:
    """The results of the server's checks. `clock` returns Unix seconds."""

    def __init__(self, client: Client, caches: Caches, reconciler: BatchReconciler, clock: Callable[[], float]) -> None:
        self._client = client
        self._caches = caches
        self._reconciler = reconciler
        self._clock = clock
        self._changed: dict[str, set[asyncio.Event]] = {}
        """By id: the callbacks that look for the batch. A change of the batch sets their events."""
        self._gone: OrderedDict[str, None] = OrderedDict()
        """Ids of batches that were deleted, for example to verify their pods again. A callback about such an id must
        not count for another batch whose id is not known."""
        caches.batches.add_handler(self._on_batch)

    async def receive(self, callback: Callback) -> None:
        """Store the verdict on the batch that has the id `callback.node` on the server.

        EndpointError, and nothing is changed: AlterShield has not opened this node for a batch of this order (404); the
        check is over, or the order is closed (409). The server sends some verdicts twice or late. The leader polls for
        lost verdicts. KubernetesError if the API server does not take the write.
        """
        if callback.check_type is not CheckType.BATCH:  # AlterShield starts no other checks
            raise _unknown()
        begun_by = self._clock() + _CLOCK_ERROR
        await retry_conflicts(lambda: self._store(callback, begun_by), _ATTEMPTS)

    async def _store(self, callback: Callback, begun_by: float) -> None:
        change_pod = await self._change_pod(callback, begun_by)
        if change_pod is None:
            raise _unknown()
        order, node, phase = callback.order, callback.node, _PHASES[callback.stage]
        match await self._reconciler.receive(change_pod, order, node, phase, _result(callback)):
            case Reception.STORED | Reception.REPEATED:
                pass
            case Reception.DOUBTFUL:
                logger.info(
                    "a callback decides nothing: it may be about an earlier run of the check",
                    extra={"order": order, "node": node},
                )
            case Reception.LATE:
                message = "the check of this node is over, or its order is closed: nothing has changed"
                raise EndpointError(message, 409, CallbackOutcome.LATE)
            case Reception.UNKNOWN:
                raise _unknown()
            case _ as never:
                assert_never(never)

    async def _change_pod(self, callback: Callback, begun_by: float) -> ChangePod | None:
        """The ChangePod that the callback is about, as the API server has it now, or None.

        A fast server sends its callback before the id of the node is stored, so the callback waits. If the answer with
        the id was lost, the node belongs to the batch of the order that has no id. If several batches have no id, the
        callback is refused. A callback also waits while it is not known whether the server runs the check again.
        """
        with self._changes(callback.node) as changed:
            for seconds in _WAITS:
                if seconds == _WAITS[-1] and not self._is_awaited(callback, begun_by):
                    return None
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), seconds)
                changed.clear()  # before the caches are read, so that no change is missed
                batch = self._caches.batch_of_node(callback.node)
                if batch is not None:
                    found = await self._live(batch.metadata.name, batch.metadata.namespace)
                    if found is None or seconds == _WAITS[-1] or not awaits_repetition(found.status):
                        return found
                    continue
                if callback.node in self._gone:
                    return None
                if seconds and (found := await self._batch_without_node(callback.order, begun_by)) is not None:
                    return found
        return None

    @contextlib.contextmanager
    def _changes(self, node: str) -> Iterator[asyncio.Event]:
        """The event is set when the batch with this id changes, and when the id is stored."""
        changed = asyncio.Event()
        of_node = self._changed.setdefault(node, set())
        of_node.add(changed)
        try:
            yield changed
        finally:
            of_node.discard(changed)
            if not of_node:
                del self._changed[node]

    def _on_batch(self, old: Batch | None, new: Batch | None) -> None:
        if old is not None and old.node and (new is None or new.node != old.node):
            self._gone[old.node] = None
            if len(self._gone) > _REMEMBERED:
                self._gone.popitem(last=False)
        if new is not None:
            for changed in self._changed.get(new.node, ()):
                changed.set()

    async def _batch_without_node(self, order: str, begun_by: float) -> ChangePod | None:
        """The only batch of the order that may have a node on the server whose id is not known, or None. A large
        release always starts checks: those that began after the callback came (`begun_by`) do not count."""
        candidates = self._candidates(order, begun_by)
        if len(candidates) > _CANDIDATES:
            return None
        found: list[ChangePod] = []
        for batch in candidates:
            change_pod = batch.unfinished or await self._live(batch.metadata.name, batch.metadata.namespace)
            if change_pod is not None and self._reconciler.awaits_node(change_pod, begun_by):
                found.append(change_pod)
        return await self._live(found[0].metadata.name, found[0].metadata.namespace) if len(found) == 1 else None

    def _is_awaited(self, callback: Callback, begun_by: float) -> bool:
        """Whether the node is known, or may be that of a batch of the order."""
        known = self._caches.batch_of_node(callback.node) is not None
        return known or bool(self._candidates(callback.order, begun_by))

    def _candidates(self, order: str, begun_by: float) -> list[Batch]:
        """The batches of the order that may have a node whose id is not known."""
        release = self._caches.release_of_uid(release_uid(order))
        if release is None or order_id(release) != order:
            return []
        return [each for each in self._caches.batches_of(release) if self._may_await_node(each, begun_by)]

    def _may_await_node(self, batch: Batch, begun_by: float) -> bool:
        """Whether the cache shows that the batch may have a node whose id is not known."""
        if batch.unfinished is not None:
            return self._reconciler.awaits_node(batch.unfinished, begun_by)
        return not batch.node and any((phase, state) == _WITHOUT_RESULT for _, phase, state in batch.checks)

    async def _live(self, name: str, namespace: str) -> ChangePod | None:
        try:
            return await self._client.get(CHANGE_PODS, name, namespace, as_=ChangePod)
        except NotFoundError:
            return None


def _unknown() -> EndpointError:
    message = "AlterShield has not opened this node for a batch of this order: nothing has changed"
    return EndpointError(message, 404, CallbackOutcome.UNKNOWN)


def _result(callback: Callback) -> Pass | Fail:
    text = callback.message or _reason(callback)
    if callback.verdict.passed:
        return Pass(text, max((rule.began for rule in callback.rules if rule.verdict not in ("", "NONE")), default=0))
    # rules that may not be ignored come first, so that the limit drops other rules before them
    failed = sorted((rule for rule in callback.rules if rule.failed), key=lambda rule: rule.skippable)
    rules = [FailedRule(rule.execution, rule.name or rule.rule, rule.skippable) for rule in failed]
    newest = max((rule.began for rule in failed), default=0)
    return Fail(text, newest, tuple(rules[:MAX_FAILED_RULES]))


def _reason(callback: Callback) -> str:
    """The message of a verdict without the messages of rules."""
    if callback.verdict.passed:
        return "" if callback.rules else "the server ran no rule"
    return f"the AlterShield server's verdict is {callback.verdict}"
