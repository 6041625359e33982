"""Records Events, which `kubectl describe` shows. They are written in the background and do not delay the caller.

There are two sorts. `event` records what happened now: a repetition within ten minutes increases the count of the
existing Event, and a crash loses an Event that is not written yet. `announce` records what is stored elsewhere, and may
be called again and again, by any process: the name of the Event contains its identity, so it is written once.

At most four Events are written at the same time. The Events of one object are written in their order. At most 1000
different Events wait for the API server. Further Events are dropped and counted.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections import OrderedDict, defaultdict
from typing import NamedTuple, Self

import msgspec

from kube_base.access.backoff import delay
from kube_base.access.client import Client
from kube_base.access.errors import (
    AlreadyExistsError,
    InvalidError,
    KubernetesError,
    NamespaceTerminatingError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnreachableError,
    UnreadableError,
)
from kube_base.access.objects import Metadata
from kube_base.access.queue import WorkQueue
from kube_base.resources import EVENTS, Resource
from kube_base.times import rfc3339

logger = logging.getLogger(__name__)

NORMAL = "Normal"
WARNING = "Warning"

RETRY = 60.0
"""Seconds after which an announcement that was refused is tried again."""

_MAX_MESSAGE = 1024  # bytes, the limit of events.k8s.io
_MAX_NAME = 253
_MAX_WAITING = 1000
_MAX_REMEMBERED = 4096
_AGGREGATE = 600.0  # seconds
_KEPT = 3600.0  # seconds for which API servers keep an Event by default
_WRITERS = 4
_TRIES = 5  # after error responses of the server; an unreachable API server is retried without limit


class ObjectRef(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The object an Event is about, as in core/v1."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    field_path: str = ""
    """A part of the object, for example `spec.containers{app}`."""

    @classmethod
    def of(cls, resource: Resource, metadata: Metadata, field_path: str = "") -> Self:
        return cls(resource.api_version, resource.kind, metadata.name, metadata.namespace, metadata.uid, field_path)


class _EventKey(NamedTuple):
    """The fields that are equal in repeated Events. `identity`: of an announcement, else empty."""

    regarding: ObjectRef
    type: str
    reason: str
    message: str
    identity: str = ""


class _Waiting(msgspec.Struct):
    count: int
    first: float  # Unix seconds
    last: float


class _Written(msgspec.Struct, frozen=True):
    name: str
    count: int
    last: float


class _Announced(NamedTuple):
    is_over: bool
    """Whether the Event is written, or can never be written."""
    until: float
    """When this is forgotten, in seconds of the event loop."""


class EventRecorder:
    """Writes the Events of `component` while `run` runs."""

    def __init__(self, client: Client, component: str) -> None:
        self._client = client
        self._component = component
        self._waiting: defaultdict[ObjectRef, dict[_EventKey, _Waiting]] = defaultdict(dict)
        self._count = 0  # of all Events in `_waiting`
        self._objects: WorkQueue[ObjectRef] = WorkQueue()
        self._written: OrderedDict[_EventKey, _Written] = OrderedDict()
        self._announced: OrderedDict[str, _Announced] = OrderedDict()
        """By identity: announcements that were written or refused."""
        self.dropped = 0
        """The number of Events that were not written: too many waited, or the API server refused them."""

    def event(self, regarding: ObjectRef, type_: str, reason: str, message: str) -> None:
        """Record an Event. `type_` is Normal or Warning, `reason` one word in camel case."""
        now = time.time()
        self._add(_EventKey(regarding, type_, reason, _shortened(message)), now, now)

    def announce(
        self,
        regarding: ObjectRef,
        type_: str,
        reason: str,
        message: str,
        *,
        identity: str,
        at: float | None = None,
    ) -> None:
        """Record the Event with this identity, unless it exists already. `identity`: at most sixteen lower-case letters
        and digits. `at`: its time, Unix seconds; None: now.

        If the API server refuses the Event, a later call tries again, but not within `RETRY` seconds.
        """
        if self._known(identity) is None:
            at = time.time() if at is None else at
            self._add(_EventKey(regarding, type_, reason, _shortened(message), identity), at, at)

    def is_announced(self, identity: str) -> bool:
        """Whether this process wrote the Event with this identity in the last hour, or found it, or found that it can
        never be written."""
        known = self._known(identity)
        return known is not None and known.is_over

    def _known(self, identity: str) -> _Announced | None:
        known = self._announced.get(identity)
        return known if known is not None and known.until > asyncio.get_running_loop().time() else None

    def _add(self, event_key: _EventKey, first: float, last: float) -> None:
        regarding = event_key.regarding
        waiting = self._waiting[regarding].get(event_key) if regarding in self._waiting else None
        if waiting is not None:
            waiting.count += 0 if event_key.identity else 1
            waiting.last = last
        elif self._count < _MAX_WAITING:
            self._count += 1
            self._waiting[regarding][event_key] = _Waiting(1, first, last)
            self._objects.add(regarding)
        else:
            self.dropped += 1

    async def run(self) -> None:
        """Write the recorded Events until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_WRITERS):
                group.create_task(self._write_all())

    async def _write_all(self) -> None:
        """Write one Event of each object in turn. Two Events of one object are never written at the same time."""
        while True:
            regarding = await self._objects.get()
            try:
                event_key, waiting = self._take(regarding)
                await self._write(event_key, waiting)
                if regarding in self._waiting:
                    self._objects.add(regarding)
            finally:
                self._objects.done(regarding)

    def _take(self, regarding: ObjectRef) -> tuple[_EventKey, _Waiting]:
        """Remove and return the oldest waiting Event of the object."""
        of_object = self._waiting[regarding]
        event_key = next(iter(of_object))
        waiting = of_object.pop(event_key)
        self._count -= 1
        if not of_object:
            del self._waiting[regarding]
        return event_key, waiting

    async def _write(self, event_key: _EventKey, waiting: _Waiting) -> None:
        if self.is_announced(event_key.identity):
            return  # it was announced again while it was being written
        # one name for all tries: a repeated create gets AlreadyExists
        name = _event_name(event_key.regarding.name, event_key.identity or secrets.token_hex(8))
        failures = 0
        while True:
            try:
                await self._send(event_key, waiting, name)
            except KubernetesError as error:
                failures += 1
                if _may_retry(error, failures):
                    await asyncio.sleep(delay(failures, error))
                    continue
                self._drop(event_key, error)
                never = isinstance(error, InvalidError | NotFoundError | NamespaceTerminatingError)
                self._settle(event_key, is_over=never)
            else:
                self._settle(event_key, is_over=True)
            return

    def _settle(self, event_key: _EventKey, *, is_over: bool) -> None:
        """Remember what became of an announcement."""
        if not event_key.identity:
            return
        until = asyncio.get_running_loop().time() + (_KEPT if is_over else RETRY)
        self._announced[event_key.identity] = _Announced(is_over, until)
        self._announced.move_to_end(event_key.identity)
        if len(self._announced) > _MAX_REMEMBERED:
            self._announced.popitem(last=False)

    async def _send(self, event_key: _EventKey, waiting: _Waiting, name: str) -> None:
        namespace = event_key.regarding.namespace or "default"
        known = self._written.get(event_key)
        if known is not None and waiting.first - known.last < _AGGREGATE:
            count = known.count + waiting.count
            patch = {"count": count, "lastTimestamp": rfc3339(waiting.last)}
            with contextlib.suppress(NotFoundError):  # deleted by somebody: create a new one
                await self._client.patch(EVENTS, patch, known.name, namespace)
                self._remember(event_key, _Written(known.name, count, waiting.last))
                return
        with contextlib.suppress(AlreadyExistsError):  # an earlier try without a response has succeeded
            await self._client.create(EVENTS, self._manifest(event_key, waiting, name, namespace), namespace)
        self._remember(event_key, _Written(name, waiting.count, waiting.last))

    def _manifest(self, event_key: _EventKey, waiting: _Waiting, name: str, namespace: str) -> dict[str, object]:
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": event_key.regarding,
            "type": event_key.type,
            "reason": event_key.reason,
            "message": event_key.message,
            "firstTimestamp": rfc3339(waiting.first),
            "lastTimestamp": rfc3339(waiting.last),
            "count": waiting.count,
            "source": {"component": self._component},
            "reportingComponent": self._component,
        }

    def _remember(self, event_key: _EventKey, written: _Written) -> None:
        if event_key.identity:
            return
        self._written[event_key] = written
        self._written.move_to_end(event_key)
        if len(self._written) > _MAX_REMEMBERED:
            self._written.popitem(last=False)

    def _drop(self, event_key: _EventKey, error: KubernetesError) -> None:
        self.dropped += 1
        regarding = event_key.regarding
        logger.log(
            # Events of a namespace that is deleted or being deleted do not matter
            logging.DEBUG if isinstance(error, NotFoundError | NamespaceTerminatingError) else logging.WARNING,
            "could not write an Event",
            extra={
                "regarding": f"{regarding.kind} {regarding.namespace}/{regarding.name}",
                "reason": event_key.reason,
                "cause": str(error),
            },
        )


def _may_retry(error: KubernetesError, failures: int) -> bool:
    """Whether to try again: without limit if the API server is unreachable, a few times after an error response,
    because this Event alone may be the cause."""
    if isinstance(error, TooManyRequestsError | ServerError | UnreadableError):
        return failures < _TRIES
    return isinstance(error, UnreachableError)


def _event_name(regarding: str, suffix: str) -> str:
    """A name that begins with the object's name, as the names of other components' Events do. `suffix`: at most sixteen
    characters."""
    return f"{regarding[: _MAX_NAME - 17].rstrip('-.')}.{suffix}"


def _shortened(message: str) -> str:
    data = message.encode(errors="replace")
    if len(data) <= _MAX_MESSAGE:
        return data.decode()
    return data[: _MAX_MESSAGE - 3].decode(errors="ignore") + "…"
