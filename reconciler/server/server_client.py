"""The calls to an AlterShield server. One release is one order, one batch is one node of the order.

No call is repeated here. After UnavailableError, the caller may repeat each call but one: `start_batch` creates another
node each time. Repeat it only if the error's `delivered` is False.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

import msgspec

from altershield.texts import one_line
from reconciler.server import answers, messages
from reconciler.server.answers import Polled
from reconciler.server.breaker import Breaker
from reconciler.server.messages import BatchFinish, BatchStart, FinishState, Order, Stage
from reconciler.server.server_errors import AlterShieldServerError, NotAllowedError, RejectedError, UnavailableError
from reconciler.server.server_settings import Settings
from reconciler.server.transport import Call, Transport

T = TypeVar("T")

_HEARTBEAT = "/openapi/v1/heartbeat/config"

_MAX_CHANGES = 100  # calls at the same time
_MAX_READS = 50  # polls and heartbeats have a limit of their own, so that they do not delay the others

_PRE_RUNS = ("PRE_AOP_SUBMIT", "PRE_AOP")
_POST_RUNS = ("POST_AOP_SUBMIT", "POST_AOP")

_RESULTS = {UnavailableError: "unavailable", RejectedError: "rejected", NotAllowedError: "not_allowed"}


class ServerClient:
    """A client with one connection pool, for the running event loop. Close it, or use `async with`.

    Each call raises UnavailableError, RejectedError or NotAllowedError. A call ends within about ten seconds, if it
    does not wait for others.
    """

    def __init__(self, settings: Settings, *, now: Callable[[], float] = time.time) -> None:
        """`now` returns Unix seconds."""
        self.settings = settings
        self.calls: dict[tuple[str, str], int] = {}
        """Number of calls by name and result: `ok`, `unavailable`, `rejected`, `not_allowed` or `cancelled`. Read-only
        for other modules."""
        self._now = now
        self._breaker = Breaker(settings.url, lambda: asyncio.get_running_loop().time())
        self._changes = asyncio.Semaphore(_MAX_CHANGES)
        self._reads = asyncio.Semaphore(_MAX_READS)
        self._transport = Transport(settings, now)

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def available(self) -> bool:
        """False after five calls in a row found the server unavailable, until it answers again."""
        return self._breaker.available

    @property
    def cause(self) -> str:
        """Why the server is unavailable: the message of the last failed call. Empty after an answer."""
        return self._breaker.cause

    async def create_order(self, order: Order) -> None:
        """Create the order of a release. An order that exists is a success; it keeps its first content."""
        call = _post(f"create the order {order.id}", "submitChangeExecOrder", messages.order_body(self.settings, order))
        try:
            await self._send("create_order", call)
        except RejectedError as error:
            if error.code != answers.DUPLICATE:
                raise

    async def start_batch(self, start: BatchStart) -> str:
        """Create a node for a batch and start its check before the batch. Returns the node's id.

        Not idempotent: each call that the server receives creates a node.
        """
        body = messages.start_body(self.settings, start)
        call = _post(f"start batch {start.number} of the order {start.order}", "submitChangeExecBatchStartNotify", body)
        return (await self._send("start_batch", call, answers.StartedNode)).node_id

    async def finish_batch(self, finish: BatchFinish) -> bool:
        """Report the end of a batch, which starts its check after the batch. False if this check is running, because
        then an earlier call arrived.

        NotAllowedError with the state PRE_AOP_SUBMIT or PRE_AOP: the check before the batch is running; call again
        later. Do not repeat a call that succeeded: after the end of the check, the server accepts it and checks
        nothing.
        """
        body = messages.finish_body(self.settings, finish)
        try:
            await self._send(
                "finish_batch",
                _post(f"finish the batch {finish.node} of the order {finish.order}", "submitChangeFinishNotify", body),
            )
        except NotAllowedError as error:
            if error.state not in _POST_RUNS:
                raise
            return False
        return True

    async def poll(self, order: str, node: str, stage: Stage) -> Polled:
        """The verdict on a node so far; see `Polled` about `fail`. RejectedError 101: the node was skipped."""
        body = messages.poll_body(self.settings, order, node, stage)
        call = _post(f"read the {stage} verdict on the batch {node} of the order {order}", "retrieveChangeCheck", body)
        return (await self._send("poll", call, answers.CheckResult, self._reads)).polled

    async def close_order(self, order: str, state: FinishState, message: str) -> None:
        """Report the end of a release, as the last call of its order."""
        body = messages.close_body(self.settings, order, state, message, self._now())
        await self._send("close_order", _post(f"close the order {order}", "finishChangeExecOrderAction", body))

    async def resubmit(self, order: str, node: str) -> None:
        """Run the check before a batch again. Success also if it is running."""
        call = _post(
            f"repeat the check of the batch {node} of the order {order}",
            "resubmitChangeStartNotifyAction",
            messages.node_body(self.settings, order, node),
        )
        try:
            await self._send("resubmit", call)
        except NotAllowedError as error:
            if error.state not in _PRE_RUNS:
                raise

    async def skip(
        self, order: str, node: str, stage: Stage, rules: Sequence[str], operator: str, comment: str
    ) -> None:
        """Mark failed rules as ignored, for `operator`. `rules` are the `ruleExeId` of a callback, at least one.
        Success also if the node is skipped already.

        After it, the server refuses all calls for this node with 101. RejectedError 000: rules are still running.
        """
        body = messages.skip_body(self.settings, order, node, stage, rules, operator, comment)
        try:
            await self._send(
                "skip", _post(f"skip rules of the batch {node} of the order {order}", "skipChangeCheckAction", body)
            )
        except RejectedError as error:
            if not answers.is_skipped(error.code, error.text):
                raise

    async def enabled(self) -> bool:
        """Whether the server checks releases of our scene. If not, do not call it: checks count as passed."""
        query = {"platform": self.settings.platform}
        call = Call("read the heartbeat", _HEARTBEAT, None, query)
        switches = await self._send("enabled", call, answers.Switches, self._reads)
        return switches.enabled(self.settings.scene)

    async def _send(
        self,
        name: str,
        call: Call,
        type_: type[T] = msgspec.Raw,  # type: ignore[assignment]  # the content is not read by default
        limit: asyncio.Semaphore | None = None,
    ) -> T:
        """The content of the answer."""
        result = "cancelled"
        try:
            # The breaker comes second: calls that wait for others must not begin after it has opened.
            async with limit or self._changes:
                with self._breaker.call():
                    content = await self._transport.send(call, type_)
            result = "ok"
        except AlterShieldServerError as error:
            result = _RESULTS[type(error)]
            raise
        finally:
            key = name, result
            self.calls[key] = self.calls.get(key, 0) + 1
        return content


def _post(purpose: str, action: str, body: Mapping[str, Any]) -> Call:
    return Call(one_line(purpose, 512), f"/openapi/v1/exe/{action}", body)
