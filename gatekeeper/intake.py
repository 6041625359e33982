"""The bodies of reviews: bounds on their size, their time and the bytes of all of them together.

Nearly all reviews are small (`SMALL`): they are read and decided at once, and bounded by the number of connections.
Larger ones share a budget of bytes, and are decided one at a time, the smallest first, with pauses in which small
reviews are answered. So whoever sends large reviews delays other large reviews only.
"""

import asyncio
import heapq
import itertools
import time

from aiohttp import hdrs, web

from gatekeeper import memory
from gatekeeper.errors import ReviewError
from gatekeeper.structure import is_dense, problem

MAX_BODY = 8 * 1024 * 1024
"""Bytes of a review: it carries the object twice, and etcd takes 1.5 MiB of one."""
SMALL = 32 * 1024
"""Bytes of a review that is read and decided at once, unless its JSON is dense."""
BUDGET = 64 * 1024 * 1024
"""Bytes of all larger reviews together."""

_TINY = 8 * 1024  # bytes of a review that is decided at once whatever is in it: 0.6 ms at most
_MEASURED = 256 * 1024  # larger reviews are measured before they are decoded
_BODY_SECONDS = 5.0  # for a body to arrive; API servers wait for an answer for two or three seconds
_READERS = 4  # large bodies that are read at the same time; the others wait in the buffers of their connections
_REST_SECONDS = 1.0  # for the rest of a large body, once it is read
_PAUSES = 2.0  # the pause after a turn, in lengths of the turn
_TURN_SECONDS = 2.0  # for the turn of a large review
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_AGAIN = "the gatekeeper is busy with large reviews; send the request again"
_SHRINK = "make the object smaller: move large texts out of the pod template, for example into a ConfigMap"


class Body:
    """The body of a review. A large one is counted until it is released."""

    def __init__(self) -> None:
        self.data = b""
        self.size = 0
        """Bytes that are counted; 0 for a small body."""
        self.has_turn = False
        self.deadline: asyncio.Timeout | None = None
        self.gives_way = False


class Intake:
    """The bodies of all reviews."""

    def __init__(self) -> None:
        self.held = 0
        """Bytes of large bodies in memory."""
        self._bodies: set[Body] = set()
        self._turns = _Turns()
        self._readers = asyncio.Semaphore(_READERS)

    async def take(self, request: web.BaseRequest) -> Body:
        """The body of a request, to be decided at once and then released. ReviewError where it is too large, too slow,
        cut, not to be decoded, or where there is no room for it."""
        body = Body()
        content = request.content
        if content.is_eof() and content.total_bytes <= SMALL:  # usually the body comes with the header
            body.data = content.read_nowait()
            if not _is_dense(body.data):
                return body
            await self._turn(request, body)
            return body
        if (request.content_length or 0) > MAX_BODY:
            raise too_large()
        if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and not content.is_eof():
            await request.writer.write(_CONTINUE)
            request.writer.output_size = 0  # the answer has not begun
        try:
            async with asyncio.timeout(_BODY_SECONDS) as body.deadline:
                body.data = await self._read(request, body)
                if _is_dense(body.data) or body.size:
                    body.deadline.reschedule(None)
                    await self._turn(request, body)
        except TimeoutError:
            self._drop(body)
            if body.gives_way:
                raise ReviewError(_AGAIN, 503) from None
            raise ReviewError("the body did not arrive in time", 408) from None
        except BaseException:
            self._drop(body)
            raise
        return body

    async def _turn(self, request: web.BaseRequest, body: Body) -> None:
        """Wait for the turn of a large or dense body, and measure it."""
        await self._turns.wait(len(body.data))
        body.has_turn = True
        self._bodies.discard(body)  # it does not give way any more
        memory.begin_large()
        try:
            _check(request, body.data)
        except BaseException:
            self.release(body)
            raise

    def release(self, body: Body) -> None:
        """The body was decided."""
        body.data = b""
        self.held -= body.size
        body.size = 0
        if body.has_turn:
            body.has_turn = False
            memory.end_large()
            self._turns.done()

    async def _read(self, request: web.BaseRequest, body: Body) -> bytes:
        content = request.content
        if content.is_eof():
            data = content.read_nowait()
            self._grow(body, len(data))
            return data
        chunks: list[bytes] = []
        size = 0
        try:
            while not content.at_eof() and size <= SMALL:
                chunks.append(await content.readany())
                size += len(chunks[-1])
                self._grow(body, size)
            if not content.at_eof():
                async with self._readers, asyncio.timeout(_REST_SECONDS):
                    while not content.at_eof():
                        chunks.append(await content.readany())
                        size += len(chunks[-1])
                        self._grow(body, size)
                        await asyncio.sleep(0)  # other connections first
        except (web.RequestPayloadError, ValueError) as error:
            raise ReviewError(f"the body is broken: {error}") from error
        return b"".join(chunks)

    def _grow(self, body: Body, size: int) -> None:
        """Count the bytes of a body. Where there are too many, the largest body gives way, which may be this one."""
        if size <= SMALL:
            return
        if size > MAX_BODY:
            raise too_large()
        self._bodies.add(body)
        self.held += size - body.size
        body.size = size
        while self.held > BUDGET:
            largest = max(self._bodies, key=lambda each: each.size)
            self._drop(largest)
            if largest is body:
                raise ReviewError(_AGAIN, 503)
            largest.gives_way = True
            if largest.deadline is not None:
                largest.deadline.reschedule(asyncio.get_running_loop().time())

    def _drop(self, body: Body) -> None:
        if body in self._bodies:
            self._bodies.discard(body)
            self.held -= body.size
            body.size = 0


class _Turns:
    """One large review is decided at a time, the smallest first. After each there is a pause."""

    def __init__(self) -> None:
        self._taken = False
        self._began = 0.0
        self._numbers = itertools.count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    async def wait(self, size: int) -> None:
        """Wait for a turn; then `done` has to be called. ReviewError where it does not come in time."""
        if self._taken:
            turn = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (size, next(self._numbers), turn))
            try:
                async with asyncio.timeout(_TURN_SECONDS):
                    await turn
            except BaseException as error:
                if turn.done() and not turn.cancelled():
                    self._next()  # it came in the same moment
                else:
                    turn.cancel()
                if isinstance(error, TimeoutError):
                    raise ReviewError(_AGAIN, 503) from None
                raise
        self._taken = True
        self._began = time.perf_counter()

    def done(self) -> None:
        while self._waiting and self._waiting[0][2].done():  # it waits no more
            heapq.heappop(self._waiting)
        if self._waiting:
            pause = _PAUSES * (time.perf_counter() - self._began)
            asyncio.get_running_loop().call_later(pause, self._next)
        else:
            self._taken = False

    def _next(self) -> None:
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._taken = False


def _is_dense(data: bytes) -> bool:
    try:
        return len(data) > _TINY and is_dense(data)
    except ValueError as error:
        raise ReviewError(f"the review {error}; {_SHRINK}", 413) from None


def _check(request: web.BaseRequest, data: bytes) -> None:
    """Refuse what must not be decoded; ConnectionResetError where nobody waits for an answer any more."""
    if request.transport is None:
        raise ConnectionResetError("the caller is gone")
    found = problem(data) if len(data) > _MEASURED else ""
    if found:
        raise ReviewError(f"the review {found}; {_SHRINK}", 413)


def too_large() -> ReviewError:
    return ReviewError(
        f"the review is larger than {MAX_BODY // 2**20} MiB (it has the old and the new object); {_SHRINK}; where the "
        "webhook's failurePolicy is Ignore, the release passes all the same, is recorded as ungated and verified",
        413,
    )
