"""Events as `kubectl describe` shows them, written beside the work they tell of and never in its way.

What happens again within ten minutes raises the count of the Event that is there. A few are written at once, those
of one object in their order. Only so many different ones wait for the API server; more are dropped and counted.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections import OrderedDict, defaultdict
from typing import NamedTuple, Self

import msgspec

from altershield.api.meta import ObjectMeta, rfc3339
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
_TRIES = 5  # for an answer that says the server is in trouble; an API server that is gone is waited for


class ObjectRef(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The object an Event is about, as in core/v1."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    @classmethod
    def of(cls, resource: Resource, metadata: ObjectMeta) -> Self:
        return cls(resource.api_version, resource.kind, metadata.name, metadata.namespace, metadata.uid)


class _Happening(NamedTuple):
    """What makes two Events the same."""

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
    """Writes Events that `component` reports, while `run` runs."""

    def __init__(self, client: Client, component: str) -> None:
        self._client = client
        self._component = component
        self._waiting: defaultdict[ObjectRef, dict[_Happening, _Waiting]] = defaultdict(dict)
        self._count = 0  # of what waits, of all objects together
        self._objects: WorkQueue[ObjectRef] = WorkQueue()
        self._written: OrderedDict[_Happening, _Written] = OrderedDict()
        self.dropped = 0
        """Events that were not written: too many waited, or the API server refused them."""

    def event(self, regarding: ObjectRef, type_: str, reason: str, message: str) -> None:
        """Note that something happened; `type_` is Normal or Warning, `reason` one word in camel case."""
        happening = _Happening(regarding, type_, reason, _shortened(message))
        now = time.time()
        waiting = self._waiting[regarding].get(happening) if regarding in self._waiting else None
        if waiting is not None:
            waiting.count += 1
            waiting.last = now
        elif self._count < _MAX_WAITING:
            self._count += 1
            self._waiting[regarding][happening] = _Waiting(1, now, now)
            self._objects.add(regarding)
        else:
            self.dropped += 1

    async def run(self) -> None:
        """Write what happened until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_WRITERS):
                group.create_task(self._write_in_turn())

    async def _write_in_turn(self) -> None:
        """Take one Event of one object after the other; no two of one object are written at once."""
        while True:
            regarding = await self._objects.get()
            try:
                happening, waiting = self._take(regarding)
                await self._write(happening, waiting)
                if regarding in self._waiting:
                    self._objects.add(regarding)
            finally:
                self._objects.done(regarding)

    def _take(self, regarding: ObjectRef) -> tuple[_Happening, _Waiting]:
        """The object's oldest Event that waits."""
        of_object = self._waiting[regarding]
        happening = next(iter(of_object))
        waiting = of_object.pop(happening)
        self._count -= 1
        if not of_object:
            del self._waiting[regarding]
        return happening, waiting

    async def _write(self, happening: _Happening, waiting: _Waiting) -> None:
        name = _event_name(happening.regarding.name)  # chosen once: a repeated create then finds its own Event
        failures = 0
        while True:
            try:
                await self._send(happening, waiting, name)
            except KubernetesError as error:
                failures += 1
                if _is_worth_a_retry(error, failures):
                    await asyncio.sleep(delay(failures, error))
                    continue
                self._drop(happening, error)
            return

    async def _send(self, happening: _Happening, waiting: _Waiting, name: str) -> None:
        namespace = happening.regarding.namespace or "default"
        known = self._written.get(happening)
        if known is not None and waiting.first - known.last < _AGGREGATE:
            count = known.count + waiting.count
            patch = {"count": count, "lastTimestamp": rfc3339(waiting.last)}
            with contextlib.suppress(NotFoundError):  # somebody deleted it: write it anew
                await self._client.patch(EVENTS, patch, known.name, namespace)
                self._remember(happening, _Written(known.name, count, waiting.last))
                return
        with contextlib.suppress(AlreadyExistsError):  # an earlier try went through after all
            await self._client.create(EVENTS, self._manifest(happening, waiting, name, namespace), namespace)
        self._remember(happening, _Written(name, waiting.count, waiting.last))

    def _manifest(self, happening: _Happening, waiting: _Waiting, name: str, namespace: str) -> dict[str, object]:
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": happening.regarding,
            "type": happening.type,
            "reason": happening.reason,
            "message": happening.message,
            "firstTimestamp": rfc3339(waiting.first),
            "lastTimestamp": rfc3339(waiting.last),
            "count": waiting.count,
            "source": {"component": self._component},
            "reportingComponent": self._component,
        }

    def _remember(self, happening: _Happening, written: _Written) -> None:
        self._written[happening] = written
        self._written.move_to_end(happening)
        if len(self._written) > _MAX_REMEMBERED:
            self._written.popitem(last=False)

    def _drop(self, happening: _Happening, error: KubernetesError) -> None:
        self.dropped += 1
        regarding = happening.regarding
        logger.log(
            # nobody misses the Events of a namespace that is gone or going
            logging.DEBUG if isinstance(error, NotFoundError | NamespaceTerminatingError) else logging.WARNING,
            "could not write an Event",
            extra={
                "regarding": f"{regarding.kind} {regarding.namespace}/{regarding.name}",
                "reason": happening.reason,
                "cause": str(error),
            },
        )


def _is_worth_a_retry(error: KubernetesError, failures: int) -> bool:
    """An API server that is gone is waited for; one that answers with trouble only for a while, since it may be
    about this Event alone."""
    if isinstance(error, TooManyRequestsError | ServerError | UnreadableError):
        return failures < _TRIES
    return isinstance(error, UnreachableError)


def _event_name(regarding: str) -> str:
    """A new name that begins with the object's, as `kubectl get events` readers expect."""
    return f"{regarding[: _MAX_NAME - 17].rstrip('-.')}.{secrets.token_hex(8)}"


def _shortened(message: str) -> str:
    data = message.encode(errors="replace")
    if len(data) <= _MAX_MESSAGE:
        return data.decode()
    return data[: _MAX_MESSAGE - 3].decode(errors="ignore") + "…"
