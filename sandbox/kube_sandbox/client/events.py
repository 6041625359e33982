"""Writes Events, which `kubectl describe` shows. Tasks of their own write them, so that no controller waits."""

import asyncio
import contextlib
import logging
import secrets
import time
from collections import OrderedDict
from typing import NamedTuple, Protocol, Self

import msgspec

from kube_sandbox.client.client import Client
from kube_sandbox.client.errors import AlreadyExistsError, KubernetesError, NotFoundError, ServerError, UnreachableError
from kube_sandbox.client.resources import EVENTS, Resource
from kube_sandbox.times import rfc3339

logger = logging.getLogger(__name__)

_MAX_MESSAGE = 1024
_MAX_NAME = 253
_WRITERS = 4  # one alone would delay Events by seconds while many pods fail
_MAX_WAITING = 1000  # different Events that wait to be written; further ones are dropped
_MAX_WRITTEN = 4096  # written Events whose count can still be raised
_SAME_EVENT = 600.0  # seconds; a repetition within this time raises the count of the Event
_TRIES = 5
_RETRY = 1.0  # seconds


class _Metadata(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...


class ObjectRef(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The object that an Event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    field_path: str = ""
    """A part of the object, for example `spec.containers{app}`."""

    @classmethod
    def of(cls, resource: Resource, metadata: _Metadata, field_path: str = "") -> Self:
        return cls(resource.api_version, resource.kind, metadata.name, metadata.namespace, metadata.uid, field_path)


class _Content(NamedTuple):
    """The values of an Event. Events with equal values are repetitions of one Event."""

    regarding: ObjectRef
    type: str
    reason: str
    message: str


class _Times(msgspec.Struct):
    name: str
    count: int
    first: float  # Unix seconds
    last: float


class EventRecorder:
    """Writes the Events of `component`, four at a time, while `run` runs."""

    def __init__(self, client: Client, component: str) -> None:
        self._client = client
        self._component = component
        self._waiting: OrderedDict[_Content, _Times] = OrderedDict()
        self._written: OrderedDict[_Content, _Times] = OrderedDict()
        self._writing: set[_Content] = set()
        self._wake = asyncio.Event()

    def event(self, regarding: ObjectRef, type_: str, reason: str, message: str) -> None:
        """Queue an Event. `type_` is Normal or Warning; `reason` is one word in camel case."""
        content, now = _Content(regarding, type_, reason, message[:_MAX_MESSAGE]), time.time()
        if waiting := self._waiting.get(content):
            waiting.count += 1
            waiting.last = now
        elif len(self._waiting) < _MAX_WAITING:
            self._waiting[content] = _Times(_event_name(regarding.name), 1, now, now)
            self._wake.set()

    async def run(self) -> None:
        """Write queued Events until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_WRITERS):
                group.create_task(self._write_queued())

    async def _write_queued(self) -> None:
        while True:
            await self._wake.wait()
            # Skip an Event whose earlier occurrence is still being written by another task: its count must not be lost.
            content = next((each for each in self._waiting if each not in self._writing), None)
            if content is None:
                self._wake.clear()
                continue
            times = self._waiting.pop(content)
            self._writing.add(content)
            try:
                await self._try_to_write(content, times)
            finally:
                self._writing.discard(content)
                self._wake.set()

    async def _try_to_write(self, content: _Content, times: _Times) -> None:
        for _ in range(_TRIES):
            try:
                await self._write(content, times)
            except (ServerError, UnreachableError):
                await asyncio.sleep(_RETRY)
                continue
            except KubernetesError as error:  # for example, its namespace was deleted
                logger.debug("cannot write an Event about %s: %s", content.regarding.name, error)
            return

    async def _write(self, content: _Content, times: _Times) -> None:
        namespace = content.regarding.namespace or "default"
        known = self._written.get(content)
        if known is not None and times.first - known.last < _SAME_EVENT:
            count = known.count + times.count
            patch = {"count": count, "lastTimestamp": rfc3339(times.last)}
            with contextlib.suppress(NotFoundError):  # the Event was deleted: write a new one
                await self._client.patch(EVENTS, patch, known.name, namespace)
                self._remember(content, _Times(known.name, count, known.first, times.last))
                return
        body = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": times.name, "namespace": namespace},
            "involvedObject": content.regarding,
            "type": content.type,
            "reason": content.reason,
            "message": content.message,
            "firstTimestamp": rfc3339(times.first),
            "lastTimestamp": rfc3339(times.last),
            "count": times.count,
            "source": {"component": self._component},
            "reportingComponent": self._component,
        }
        with contextlib.suppress(AlreadyExistsError):  # an earlier attempt succeeded, but its response was lost
            await self._client.create(EVENTS, body, namespace)
        self._remember(content, times)

    def _remember(self, content: _Content, times: _Times) -> None:
        self._written[content] = times
        self._written.move_to_end(content)
        if len(self._written) > _MAX_WRITTEN:
            self._written.popitem(last=False)


def _event_name(regarding: str) -> str:
    """A new name that starts with the name of the object."""
    return f"{regarding[: _MAX_NAME - 17].rstrip('-.')}.{secrets.token_hex(8)}"
