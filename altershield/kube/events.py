"""Records Events, which `kubectl describe` shows. They are written in the background and do not delay the caller.

A repetition within ten minutes increases the count of the existing Event. At most four Events are written at the same
time. The Events of one object are written in their order. At most 1000 different Events wait for the API server.
Further Events are dropped and counted.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections import OrderedDict, defaultdict
from typing import NamedTuple, Self

import msgspec

from altershield.api.meta import PartialObjectMeta, rfc3339
from altershield.api.resources import EVENTS, Resource
from altershield.kube.backoff import delay
from altershield.kube.client import Client
from altershield.kube.errors import (
    AlreadyExistsError,
    KubernetesError,
    NamespaceTerminatingError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnreachableError,
    UnreadableError,
)
from altershield.kube.queue import WorkQueue

logger = logging.getLogger(__name__)

NORMAL = "Normal"
WARNING = "Warning"

_MAX_MESSAGE = 1024  # bytes, the limit of events.k8s.io
_MAX_NAME = 253
_MAX_WAITING = 1000
_MAX_REMEMBERED = 4096
_AGGREGATE = 600.0  # seconds
_WRITERS = 4
_TRIES = 5  # after error responses of the server; an unreachable API server is retried without limit


class ObjectRef(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The object an Event is about, as in core/v1."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    @classmethod
    def of(cls, resource: Resource, metadata: PartialObjectMeta) -> Self:
        return cls(resource.api_version, resource.kind, metadata.name, metadata.namespace, metadata.uid)


class _EventKey(NamedTuple):
    """The fields that are equal in repeated Events."""

    regarding: ObjectRef
    type: str
    reason: str
    message: str


class _Waiting(msgspec.Struct):
    count: int
    first: float  # Unix seconds
    last: float


class _Written(msgspec.Struct, frozen=True):
    name: str
    count: int
    last: float


class EventRecorder:
    """Writes the Events of `component` while `run` runs."""

    def __init__(self, client: Client, component: str) -> None:
        self._client = client
        self._component = component
        self._waiting: defaultdict[ObjectRef, dict[_EventKey, _Waiting]] = defaultdict(dict)
        self._count = 0  # of all Events in `_waiting`
        self._objects: WorkQueue[ObjectRef] = WorkQueue()
        self._written: OrderedDict[_EventKey, _Written] = OrderedDict()
        self.dropped = 0
        """The number of Events that were not written: too many waited, or the API server refused them."""

    def event(self, regarding: ObjectRef, type_: str, reason: str, message: str) -> None:
        """Record an Event. `type_` is Normal or Warning, `reason` one word in camel case."""
        event_key = _EventKey(regarding, type_, reason, _shortened(message))
        now = time.time()
        waiting = self._waiting[regarding].get(event_key) if regarding in self._waiting else None
        if waiting is not None:
            waiting.count += 1
            waiting.last = now
        elif self._count < _MAX_WAITING:
            self._count += 1
            self._waiting[regarding][event_key] = _Waiting(1, now, now)
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
        name = _event_name(event_key.regarding.name)  # one name for all tries: a repeated create gets AlreadyExists
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
            return

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


def _event_name(regarding: str) -> str:
    """A new name that begins with the object's name, as the names of other components' Events do."""
    return f"{regarding[: _MAX_NAME - 17].rstrip('-.')}.{secrets.token_hex(8)}"


def _shortened(message: str) -> str:
    data = message.encode(errors="replace")
    if len(data) <= _MAX_MESSAGE:
        return data.decode()
    return data[: _MAX_MESSAGE - 3].decode(errors="ignore") + "…"
