"""The check of an AlterShield server. It turns requests about a batch into calls of the server's API, and the server's
answers into results."""

import asyncio
import contextlib
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from altershield.api.change_workload import ChangeWorkload
from altershield.api.check_specs import Phase
from altershield.api.names import change_pod_number
from reconciler.checks.check import (
    Availability,
    Fail,
    Lost,
    NotRepeated,
    NotStarted,
    Pass,
    Pending,
    PollAnswer,
    StartAnswer,
    Started,
    Subject,
    Unknown,
)
from reconciler.cluster.caches import Caches
from reconciler.cluster.orders import order_id, order_of, workload_of
from reconciler.cluster.ownership import workload_key
from reconciler.server.answers import Polled
from reconciler.server.messages import BatchFinish, BatchStart, FinishState, Location, Stage
from reconciler.server.server_client import ServerClient
from reconciler.server.server_errors import AlterShieldServerError, NotAllowedError, RejectedError, UnavailableError

_REMEMBERED = 4096  # orders, and answers about batches
_HEARTBEAT_SECONDS = 15.0
_REPEATED = 1.0  # seconds after the second check began: this start may be a repeated one
_SECOND_CHECK = "POST_AOP"  # the beginning of the states of a node while the second check runs, and after it
_STAGES = {Phase.PRE: Stage.PRE, Phase.POST: Stage.POST}


K = TypeVar("K")
V = TypeVar("V")


def _remember(known: OrderedDict[K, V], key: K, value: V) -> V:
    """Store a value, without growing beyond the bound. Returns the value."""
    known[key] = value
    if len(known) > _REMEMBERED:
        known.popitem(last=False)
    return value


class AlterShieldServer:
    """`clock` returns Unix seconds. `record` records that the order of a release is open; UnavailableError if this
    fails."""

    def __init__(
        self,
        client: ServerClient,
        caches: Caches,
        clock: Callable[[], float],
        record: Callable[[ChangeWorkload], Awaitable[None]],
    ) -> None:
        self._client = client
        self._caches = caches
        self._clock = clock
        self._record = record
        self._enabled = True
        self._orders: OrderedDict[str, None] = OrderedDict()
        """Ids of orders that the server has, so that they are not created before each batch."""
        self._finished: OrderedDict[str, None] = OrderedDict()
        """Ids of batches whose end the server has accepted. If the check has ended meanwhile, a second report would
        hide the result from polls."""
        self._failures: OrderedDict[tuple[str, Phase], Fail] = OrderedDict()
        """Failures that polls found at the deadline. The call that finds out that the check is over hides its result,
        so a repeated poll would not find the failure."""

    @property
    def availability(self) -> Availability:
        """Whether a request can be sent now."""
        if not self._client.available:
            return Availability.UNREACHABLE
        return Availability.AVAILABLE if self._enabled else Availability.SWITCHED_OFF

    @property
    def enabled(self) -> bool:
        """Whether the server's kill switch lets it check releases."""
        return self._enabled

    async def follow(self) -> None:
        """Read the server's kill switch until cancelled. This also finds out when an unreachable server is back."""
        while True:
            with contextlib.suppress(AlterShieldServerError):
                self._enabled = await self._client.enabled()
            await asyncio.sleep(_HEARTBEAT_SECONDS)

    async def report(self, release: ChangeWorkload) -> None:
        """Create the order of a release if the server does not have it yet. It is recorded first, so that it is closed
        whatever happens to the release. AlterShieldServerError."""
        order = order_id(release)
        if order in self._orders:
            return
        await self._record(release)
        await self._client.create_order(order_of(release))
        _remember(self._orders, order, None)

    async def close(self, release: ChangeWorkload, state: FinishState, message: str) -> None:
        """Close the order of a release. AlterShieldServerError."""
        await self.close_order(order_id(release), state, message)

    async def close_order(self, order: str, state: FinishState, message: str) -> None:
        """Close the order with this id. AlterShieldServerError."""
        await self._client.close_order(order, state, message)

    @property
    def repeatable(self) -> frozenset[Phase]:
        """Only the check after the batch. The server answers a second start of it without a second check; but if the
        check has ended, polls do not see its result any more. So it is started again only after a restart. A second
        start of the check before the batch runs the check twice."""
        return frozenset({Phase.POST})

    async def start(self, subject: Subject) -> StartAnswer:
        """Start the first check by submitting the batch, or run it again; or start the second check by reporting that
        the pods of the batch came up."""
        entry = subject.entry
        try:
            if subject.phase is Phase.PRE and entry is not None and entry.repeated:
                return await self._repeat(subject)
            return await (self._submit(subject) if subject.phase is Phase.PRE else self._finish(subject))
        except UnavailableError as error:
            return Lost(str(error)) if error.delivered else NotStarted(str(error))
        except AlterShieldServerError as error:
            return Unknown(str(error))

    async def poll(self, subject: Subject, handle: str, *, last: bool) -> PollAnswer:
        """Ask for a result. A server answers `fail` also while the check is running. So a polled failure counts only
        at the deadline, and only if the check is over then."""
        if known := self._failures.get((handle, subject.phase)):
            return known
        try:
            found = await self._poll(subject, handle)
            if not found.finished:
                return Pending()
            if found.verdict.passed:
                return Pass(found.message)
            entry = subject.entry
            if last and entry is not None and entry.repeated and entry.reason:
                return Pending(entry.reason)  # the server passed it, because its time expired there
            if not last or not await self._is_over(subject, handle):
                return Pending()
        except UnavailableError as error:
            return Pending(str(error))
        except AlterShieldServerError as error:
            return Unknown(str(error))
        why = found.message or "the server reports a failure, but has not sent the rules that failed"
        return _remember(self._failures, (handle, subject.phase), Fail(why))

    async def end(self, subject: Subject, handle: str) -> None:
        """Nothing: the end of the release closes its order."""

    async def _submit(self, subject: Subject) -> StartAnswer:
        release, change_pod = subject.release, subject.change_pod
        try:
            await self.report(release)
        except UnavailableError as error:
            return NotStarted(str(error))  # the batch itself was not submitted
        number, total = change_pod_number(change_pod.metadata.name), self._batches(release)
        node = await self._client.start_batch(
            BatchStart(
                order=order_id(release),
                workload=workload_of(release),
                number=number,
                total=max(number, total),
                last=number >= total > 0,
                pods=[
                    Location(namespace=pod.namespace, pod=pod.pod, ip=pod.ip, host=pod.host_name)
                    for pod in change_pod.spec.pod_infos
                ],
                start_time=self._clock(),
            )
        )
        return Started(node)

    async def _repeat(self, subject: Subject) -> StartAnswer:
        """Run the first check again, on the node that the batch has. The server refuses this after the batch was
        finished there, and if it does not know the node any more."""
        node = subject.change_pod.status.change_pod_id
        try:
            await self._client.resubmit(order_id(subject.release), node)
        except (NotAllowedError, RejectedError) as error:
            return NotRepeated(str(error))
        self._failures.pop((node, Phase.PRE), None)
        return Started(node)

    async def skip(
        self, release: ChangeWorkload, node: str, phase: Phase, rules: Sequence[str], operator: str, comment: str
    ) -> None:
        """Tell the server that `operator` ignores these rules, by the ids of their executions. After it, the server
        refuses each other call about the node. AlterShieldServerError."""
        await self._client.skip(order_id(release), node, _STAGES[phase], rules, operator, comment)

    async def _finish(self, subject: Subject) -> StartAnswer:
        node = subject.change_pod.status.change_pod_id
        if node in self._finished:
            return Started(node)
        if self._clock() - subject.started >= _REPEATED:
            found = await self._poll(subject, node)
            if found.finished and found.verdict.passed:
                return Pass(found.message)  # of an earlier call; a second one would hide it
        try:
            await self._client.finish_batch(self._finish_of(subject.release, node, ""))
        except NotAllowedError as error:
            if not error.state.startswith(_SECOND_CHECK):
                return Lost(str(error))  # for the server, the first check is still running
        _remember(self._finished, node, None)
        return Started(node)

    async def _poll(self, subject: Subject, node: str) -> Polled:
        return await self._client.poll(order_id(subject.release), node, _STAGES[subject.phase])

    async def _is_over(self, subject: Subject, node: str) -> bool:
        """Whether the check has ended on the server. Only one answer shows this: the server accepts the end of the
        batch. The server refuses it while a check is running, for an unknown node, and from an unknown caller. If the
        first check failed, the end is reported as a failure, because the batch does not go on."""
        failure = "the check before this batch failed" if subject.phase is Phase.PRE else ""
        try:
            return await self._client.finish_batch(self._finish_of(subject.release, node, failure))
        except (NotAllowedError, RejectedError):
            return False

    def _finish_of(self, release: ChangeWorkload, node: str, failure: str) -> BatchFinish:
        return BatchFinish(
            order=order_id(release),
            node=node,
            workload=workload_of(release),
            success=not failure,
            message=failure,
            finish_time=self._clock(),
        )

    def _batches(self, release: ChangeWorkload) -> int:
        """The number of batches that the release will have; 0 if it is not known."""
        workload = self._caches.workload(workload_key(release))
        return math.ceil(workload.replicas / release.spec.count_threshold) if workload is not None else 0
