"""Records requests in the status of objects that several processes write. A request is answered after its record is
stored.

For each object, a process has one write under way at a time. The requests that arrive meanwhile share the next one. So
many requests cause few writes, and writes of processes seldom conflict. The API server refuses a status that is based
on an older version of the object. The process then reads the object and decides again. So processes together never
admit more than the object allows.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from kube_base.access.client import Client
from kube_base.access.errors import ConflictError, KubernetesError, NotFoundError, UnreachableError
from kube_base.access.informer import Informer
from kube_base.access.objects import Key, Metadata, T

logger = logging.getLogger(__name__)

R = TypeVar("R")
A = TypeVar("A")

_TRIES = 6  # decisions about one request, while other clients change the object
_SECONDS = 2.5  # for one request to the API server
_FRESH = 1.0  # seconds after a read in which a decision that needs a fresh object needs no new read


@dataclass(frozen=True, slots=True)
class Decision(Generic[T, A]):
    """What follows from one version of an object for some requests."""

    answers: Sequence[A]
    """In the order of the requests. They are valid once `changed` is stored."""
    changed: T | None = None
    """The object with the status to be stored. None: no write is needed."""
    needs_fresh: bool = False
    """Without a write, the answers are valid only if the object was read just now."""


class Answered(NamedTuple, Generic[T, A]):
    answer: A
    stored: T | None
    """The object with the record of the request. None: nothing was written."""


class _Change(NamedTuple, Generic[T]):
    apply: Callable[[T], T | None]


class _Waiting(Generic[T, R, A]):
    """A request or a change, and the future of its outcome. A caller that gives up cancels the future."""

    def __init__(self, request: R | _Change[T]) -> None:
        self.request = request
        self.tries = 0
        self.outcome: asyncio.Future[Answered[T, A] | KubernetesError | None] = (
            asyncio.get_running_loop().create_future()
        )

    def end(self, outcome: Answered[T, A] | KubernetesError | None) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)


class SharedStatus(Generic[T, R, A]):
    """The status of the objects of one kind. `informer` caches the objects, as `as_`. `decide` is pure: it gets an
    object and the requests that wait for it. It sees each request again after a conflict."""

    def __init__(
        self,
        client: Client,
        informer: Informer[T],
        as_: type[T],
        decide: Callable[[T, Sequence[R]], Decision[T, A]],
    ) -> None:
        self._client = client
        self._informer = informer
        self._resource = informer.resource
        self._as = as_
        self._decide = decide
        self._waiting: dict[Key, list[_Waiting[T, R, A]]] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._read_at: dict[Key, float] = {}
        """When an object was last read from the API server, by the event loop's clock. The latest one is the last."""

    async def ask(self, metadata: Metadata, request: R) -> Answered[T, A] | None:
        """Decide about a request by the object of this name, and store its record. None: there is no such object.
        KubernetesError: no record is known to be stored. There is no time limit: a caller that gives up cancels this,
        and its request is not recorded any more, unless the write is under way."""
        outcome = await self._add(metadata, request).outcome
        if isinstance(outcome, KubernetesError):
            raise outcome
        return outcome

    def change(self, metadata: Metadata, apply: Callable[[T], T | None]) -> None:
        """Store a change that nobody waits for. `apply` returns the changed object; None: there is nothing to change
        any more. If it cannot be stored, it is lost."""
        self._add(metadata, _Change(apply))

    def _add(self, metadata: Metadata, request: R | _Change[T]) -> _Waiting[T, R, A]:
        key = metadata.namespace, metadata.name
        waiting: _Waiting[T, R, A] = _Waiting(request)
        self._waiting.setdefault(key, []).append(waiting)
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._run(key))
        return waiting

    async def _run(self, key: Key) -> None:
        """Answer the requests about an object until none waits. An error ends those that were tried. Requests that came
        later get a write of their own."""
        waiting = self._waiting[key]
        try:
            while waiting:
                try:
                    await self._settle(key, waiting)
                except KubernetesError as error:
                    _end([each for each in waiting if each.tries], error)
                except Exception as error:
                    logger.exception("cannot decide about a status")
                    _end([each for each in waiting if each.tries], KubernetesError(str(error)))
        finally:
            del self._waiting[key], self._tasks[key]
            _end(waiting, UnreachableError("the process ends"))

    async def _settle(self, key: Key, waiting: list[_Waiting[T, R, A]]) -> None:
        """Answer the requests that wait. Those that come during a read join them."""
        found = self._informer.get(*key)
        is_fresh = found is not None and self._is_fresh(key)
        while together := _together(waiting):
            if found is None and not is_fresh:
                found, is_fresh = await self._read(key), True
            if found is None:
                _end(together, None)
                return
            changed = found
            for each in together:
                if isinstance(each.request, _Change):
                    changed = each.request.apply(changed) or changed
            asked = [(each, each.request) for each in together if not isinstance(each.request, _Change)]
            decision = self._decide(changed, [request for _, request in asked])
            changed = decision.changed or changed
            if changed is not found:
                try:
                    changed = await self._write(key, changed)
                except ConflictError:
                    found, is_fresh = await self._read(key), True
                    continue
                except NotFoundError:
                    found, is_fresh = None, True
                    continue
            elif decision.needs_fresh and not is_fresh:
                found, is_fresh = await self._read(key), True
                continue
            stored = changed if decision.changed is not None else None
            for (each, _), answer in zip(asked, decision.answers, strict=True):
                each.end(Answered(answer, stored))
            _end(together, None)  # the changes
            return

    async def _read(self, key: Key) -> T | None:
        namespace, name = key
        try:
            return await self._observed(key, self._client.get(self._resource, name, namespace, as_=self._as))
        except NotFoundError:
            return None

    async def _write(self, key: Key, changed: T) -> T:
        """Replace the status. ConflictError: the object has changed since it was read."""
        namespace, name = key
        return await self._observed(
            key,
            self._client.replace(self._resource, changed, name, namespace, subresource="status", as_=self._as),
        )

    async def _observed(self, key: Key, request: Awaitable[T]) -> T:
        """The answer of the API server, which is put into the cache before the watch brings it."""
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(_SECONDS):
                found = await request
        except TimeoutError as error:
            raise UnreachableError(f"the API server took longer than {_SECONDS:g} s") from error
        self._read_at.pop(key, None)
        self._read_at[key] = began
        while self._read_at[first := next(iter(self._read_at))] <= began - _FRESH:
            del self._read_at[first]
        self._informer.observe(found)
        return found

    def _is_fresh(self, key: Key) -> bool:
        return asyncio.get_running_loop().time() - self._read_at.get(key, -_FRESH) < _FRESH


def _together(waiting: list[_Waiting[T, R, A]]) -> list[_Waiting[T, R, A]]:
    """Those that still wait, for one more try."""
    for each in waiting:
        each.tries += 1
        if each.tries > _TRIES:
            each.end(ConflictError(f"other clients changed the object {_TRIES} times", code=409))
    waiting[:] = [each for each in waiting if not each.outcome.done()]
    return list(waiting)


def _end(waiting: Sequence[_Waiting[T, R, A]], outcome: KubernetesError | None) -> None:
    for each in waiting:
        if isinstance(each.request, _Change) and outcome is not None and not each.outcome.done():
            logger.info("a change of a status is not stored", extra={"cause": str(outcome)})
        each.end(outcome)
