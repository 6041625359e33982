"""The bodies of reviews: bounds on their size, their time and the bytes of all of them together.

Nearly all reviews are small: at most `SMALL` bytes with few values. They are read and decided at once, and bounded by
the number of connections. Larger ones share a budget of bytes. A few are read at a time, and one is decided at a time.
Smaller ones go first, but a large one that has waited for long goes before a smaller one that has just come. After each
decision the event loop runs some times before the next one, so that small reviews that have arrived meanwhile are
answered first. So callers who send large reviews delay other large reviews only.
"""

import asyncio
import contextlib
import heapq
import itertools

from aiohttp import web

from altershield.process.listener import ask_for_body
from gatekeeper.errors import ReviewError
from gatekeeper.intake import memory
from gatekeeper.intake.structure import is_dense, problem

MAX_BODY = 8 * 1024 * 1024
"""Bytes of a review: it carries the object twice, and etcd takes 1.5 MiB of one."""
SMALL = 96 * 1024
"""Bytes of a review that is read and decided at once, unless it has many values."""
BUDGET = 64 * 1024 * 1024
"""Bytes of all larger reviews together."""

_TINY = 8 * 1024  # bytes of a review that is decided at once whatever is in it: 0.6 ms at most
_MEASURED = 256 * 1024  # larger reviews are measured before they are decoded
_BODY_SECONDS = 5.0  # for a body to arrive; API servers wait for an answer for two or three seconds
_READERS = 2  # large bodies that are read at the same time; nothing is read from the other connections
_PACE = 1024 * 1024  # bytes per second: a review of 1 MiB waits for small ones that come within a second after it
_PART_SECONDS = 0.05  # for the next part of a large body, while others wait to be read
_LOOPS = 5  # times that the event loop runs between two turns; a small review on an open connection needs three
_TURN_SECONDS = 2.0  # for the turn of a large review
_BUSY = "the gatekeeper is busy with large reviews; send the request again"
_SHRINK = "make the object smaller: move large texts out of the pod template, for example into a ConfigMap"


def arrived(request: web.BaseRequest) -> bytes | None:
    """The body of a review that is decided at once whatever is in it, if it has arrived together with the header. None:
    `Intake.take` reads it."""
    content = request.content
    return content.read_nowait() if content.is_eof() and content.total_bytes <= _TINY else None


class Body:
    """The body of a review. The bytes of a large body are counted until it is released."""

    def __init__(self, data: bytes = b"", due: float = 0.0) -> None:
        self.data = data
        self.due = due
        """Bodies that are large or have many values are read and decided in the order of these times."""
        self.size = 0
        """Bytes that are counted; 0 for a small body."""
        self.has_turn = False
        self.deadline: asyncio.Timeout | None = None
        self.was_dropped = False
        """All bodies together were too large."""


class Intake:
    """The bodies of all reviews."""

    def __init__(self) -> None:
        self.buffered = 0
        """Bytes of large bodies in memory."""
        self._bodies: set[Body] = set()
        self._turns = _Turns()
        self._readers = _Places(_READERS)

    async def take(self, request: web.BaseRequest) -> Body:
        """Read the body of a request. The caller decides the review at once and then calls `release`. ReviewError (4xx)
        if the body is too large, too slow, cut short or too complex to be decoded; ReviewError (503) if there is no
        room for it."""
        content = request.content
        if content.is_eof() and content.total_bytes <= SMALL:  # usually the body arrives together with the header
            data = content.read_nowait()
            if not _is_dense(data):
                return Body(data)
            body = Body(data, due(request.content_length))
            await self._turn(request, body)
            return body
        body = Body(due=due(request.content_length))
        if (request.content_length or 0) > MAX_BODY:
            raise too_large()
        await ask_for_body(request)
        try:
            async with asyncio.timeout(_BODY_SECONDS) as body.deadline:
                body.data = await self._read(request, body)
                if body.size or _is_dense(body.data):
                    body.deadline.reschedule(None)
                    await self._turn(request, body)
        except TimeoutError:
            self._drop(body)
            if body.was_dropped:
                raise ReviewError(_BUSY, 503) from None
            raise ReviewError("the body did not arrive in time", 408) from None
        except BaseException:
            self._drop(body)
            raise
        return body

    async def _turn(self, request: web.BaseRequest, body: Body) -> None:
        """Wait for the turn of a body that is large or has many values, and check its structure."""
        await self._turns.wait(body.due)
        body.has_turn = True
        self._bodies.discard(body)  # it is not dropped any more
        memory.begin_large()
        try:
            _check(request, body.data)
        except BaseException:
            self.release(body)
            raise

    def release(self, body: Body) -> None:
        """Call this when the review was decided."""
        body.data = b""
        self._forget(body)
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
            stalls = 0
            while not content.at_eof():
                await self._readers.take(stalls, body.due)  # callers that sent nothing in their time come last
                try:
                    async with asyncio.timeout(_PART_SECONDS):
                        chunks.append(await content.readany())
                except TimeoutError:
                    stalls += 1
                    continue
                finally:
                    self._readers.give()
                size += len(chunks[-1])
                self._grow(body, size)
                await asyncio.sleep(0)  # other connections first
        except (web.RequestPayloadError, ValueError) as error:
            raise ReviewError(f"the body is broken: {error}") from error
        return b"".join(chunks)

    def _grow(self, body: Body, size: int) -> None:
        """Count the bytes of a body. If all together exceed the budget, drop the largest, which may be this one."""
        if size <= SMALL:
            return
        if size > MAX_BODY:
            raise too_large()
        self._bodies.add(body)
        self.buffered += size - body.size
        body.size = size
        while self.buffered > BUDGET:
            largest = max(self._bodies, key=lambda each: each.size)
            self._drop(largest)
            if largest is body:
                raise ReviewError(_BUSY, 503)
            largest.was_dropped = True
            if largest.deadline is not None:
                largest.deadline.reschedule(asyncio.get_running_loop().time())

    def _drop(self, body: Body) -> None:
        if body in self._bodies:
            self._bodies.discard(body)
            self._forget(body)

    def _forget(self, body: Body) -> None:
        """Do not count the bytes of a body any more."""
        if body.size:
            self.buffered -= body.size
            body.size = 0
            memory.give_back_soon()


_Entry = tuple[tuple[float, ...], int, asyncio.Future[None]]
"""The key, a number that orders equal keys, and a future that is done when the task gets its place."""


class _Places:
    """A semaphore with priorities: of the tasks that wait for a place, the one with the lowest key gets the next."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._numbers = itertools.count()
        self._waiting: list[_Entry] = []

    async def take(self, *key: float) -> None:
        """Wait for a place. Call `give` afterwards."""
        if self._free:
            self._free -= 1
            return
        entry = (key, next(self._numbers), asyncio.get_running_loop().create_future())
        heapq.heappush(self._waiting, entry)
        try:
            await entry[2]
        except BaseException:
            if entry[2].cancelled():
                self._forget(entry)
            else:
                self.give()  # the place came in the same moment
            raise

    def give(self) -> None:
        """Leave a place to the next task."""
        while self._waiting:
            *_, place = heapq.heappop(self._waiting)
            if not place.done():
                place.set_result(None)
                return
        self._free += 1

    def _forget(self, entry: _Entry) -> None:
        with contextlib.suppress(ValueError):  # `give` has found it already
            self._waiting.remove(entry)
            heapq.heapify(self._waiting)


class _Turns:
    """One large review is decided at a time, the one that is due first. Between two of them the event loop runs
    `_LOOPS` times. A wait of a fixed time would delay large reviews even if there are no small ones."""

    def __init__(self) -> None:
        self._places = _Places(1)

    async def wait(self, due: float) -> None:
        """Wait for a turn. Call `done` afterwards. ReviewError (503) if no turn comes in time."""
        try:
            async with asyncio.timeout(_TURN_SECONDS):
                await self._places.take(due)
        except TimeoutError:
            raise ReviewError(_BUSY, 503) from None

    def done(self, loops: int = _LOOPS) -> None:
        if loops:
            asyncio.get_running_loop().call_soon(self.done, loops - 1)
        else:
            self._places.give()


def due(size: int | None) -> float:
    """The time at which a body that comes now is due. `size` is the Content-Length, None if there is none."""
    return asyncio.get_running_loop().time() + (size or MAX_BODY) / _PACE


def _is_dense(data: bytes) -> bool:
    try:
        return len(data) > _TINY and is_dense(data)
    except ValueError as error:
        raise ReviewError(f"the review {error}; {_SHRINK}", 413) from None


def _check(request: web.BaseRequest, data: bytes) -> None:
    """Check a large body before it is decoded. ReviewError (413) if it must not be decoded; ConnectionResetError if the
    caller has gone."""
    if request.transport is None:
        raise ConnectionResetError("the caller is gone")
    if len(data) > SMALL:
        _is_dense(data)
    found = problem(data) if len(data) > _MEASURED else ""
    if found:
        raise ReviewError(f"the review {found}; {_SHRINK}", 413)


def too_large() -> ReviewError:
    return ReviewError(
        f"the review is larger than {MAX_BODY // 2**20} MiB (it has the old and the new object); {_SHRINK}; if the "
        "webhook's failurePolicy is Ignore, the release passes, and AlterShield records it as ungated and verifies it",
        413,
    )
