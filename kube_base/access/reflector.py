"""Keeps a cache up to date: list all objects, then watch from there. client-go calls this a reflector.

If the API server supports it, list and watch are one stream: the existing objects, a bookmark, then the changes. The
server sends a streamed list object by object from its cache. It holds a list in pages in memory as a whole, and before
1.31 it reads such a list from etcd. Both lists show the latest state, because the requests name no resourceVersion. An
older state could undo changes in the cache.

How the reflector reacts to the API server:

- The watch ends (timeout, lost connection, no data): it watches again from the last resourceVersion.
- The server no longer has that resourceVersion (410): it lists again. Objects that are not in the list are deleted.
- A list is incomplete: it lists again. Received objects stay, and no other object is deleted.
- The server refuses to stream a list (422 before 1.34, or with the feature off) or ignores the request for it: it lists
  in pages from then on.
- The server is unreachable or overloaded, or denies the request: it retries with backoff. The cache keeps its objects.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

import msgspec

from kube_base.access.backoff import delay
from kube_base.access.bodies import ObjectList
from kube_base.access.cache import Cache
from kube_base.access.client import Client
from kube_base.access.errors import (
    BadRequestError,
    GoneError,
    InvalidError,
    KubernetesError,
    UnreachableError,
    UnreadableError,
)
from kube_base.access.objects import KeySet, key_of, metadata_of, resource_version_of
from kube_base.access.queue import as_backlog
from kube_base.access.time_slices import time_slices
from kube_base.access.watch_stream import WatchEvent
from kube_base.meta import version_number
from kube_base.resources import Resource

logger = logging.getLogger(__name__)

_SERVER_TIMEOUT = 300  # seconds; up to twice as many, so that watches do not all end at the same moment
_HEALTHY = 5.0  # seconds that a watch must last to reset the backoff
_CHANGES = ("ADDED", "MODIFIED", "DELETED")
_LIST_END_TIMEOUT = 30.0  # seconds without data after which a streamed list counts as not supported
_MAX_INCOMPLETE = 3  # incomplete streamed lists in a row, before one list in pages is tried

_LIST_END_ANNOTATION = "k8s.io/initial-events-end"


class Selection(NamedTuple):
    """The objects to list and watch; in all namespaces if `namespace` is empty."""

    resource: Resource
    namespace: str
    label_selector: str
    field_selector: str
    metadata_only: bool


class _NotStreamedError(KubernetesError):
    """The API server does not stream lists."""


class Reflector:
    """Lists and watches the objects of `selection`, and puts them into `cache`."""

    def __init__(self, client: Client, selection: Selection, cache: Cache[Any]) -> None:
        self._client = client
        self._selection = selection
        self._cache = cache
        self._resume = ""  # the resourceVersion to watch from; empty: list first
        self._first_list = True  # since `run` began, no list is complete
        self._in_pages = False  # the API server does not stream lists
        self._incomplete_lists = 0  # incomplete streamed lists in a row
        self._started_at: float | None = None
        self._received_at: float | None = None
        self._reported = ""  # the error that was logged last
        self.synced = asyncio.Event()
        """Set once the first list is complete."""
        self.watching = asyncio.Event()
        """Set from the end of a complete list until the next list begins."""
        self.lists = 0
        """The number of complete lists that were begun."""
        self.relists = 0
        """The number of complete lists after the first one."""

    @property
    def age(self) -> float:
        """Seconds since data was last received, or since `run` began; 0 while `run` does not run."""
        since = self._started_at if self._received_at is None else self._received_at
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    async def run(self) -> None:
        """List and watch until cancelled. Each call begins with a list, because the resource may have been deleted and
        created again since the last call."""
        self._started_at = asyncio.get_running_loop().time()
        self._first_list = True
        self._resume = ""
        try:
            await self._list_and_watch()
        finally:
            self._started_at = self._received_at = None  # `age` is 0 while nothing is watched

    async def _list_and_watch(self) -> None:
        failures = 0
        while True:
            began = asyncio.get_running_loop().time()
            error = await self._until_error()
            if isinstance(error, GoneError | UnreadableError):
                self._resume = ""
                self.watching.clear()
            if isinstance(error, _NotStreamedError):
                continue
            if self._worked_since(began):
                failures = 0
                if self._resume:
                    continue
            failures += 1
            wait = delay(failures, error)
            self._report(error, wait)
            await asyncio.sleep(wait)

    async def _until_error(self) -> KubernetesError:
        """List if necessary, then watch. Return the error that ended it."""
        try:
            if self._resume:
                await self._watch(None)
            elif self._client.streaming_lists and not self._in_pages and self._incomplete_lists < _MAX_INCOMPLETE:
                async with contextlib.AsyncExitStack() as turn:
                    await turn.enter_async_context(self._client.lists)
                    await self._watch(turn)
            else:
                async with self._client.lists:
                    await self._list()
                await self._watch(None)
        except KubernetesError as error:
            return error
        return KubernetesError("the API server ended the watch as soon as it began")

    def _worked_since(self, began: float) -> bool:
        return asyncio.get_running_loop().time() - began >= _HEALTHY and self._received_since(began)

    def _received_since(self, began: float) -> bool:
        return self._received_at is not None and self._received_at >= began

    def _report(self, error: KubernetesError, wait: float) -> None:
        """Log one warning per cause, until data is received again."""
        cause = str(error)
        logger.log(
            logging.DEBUG if cause == self._reported else logging.WARNING,
            "cannot list or watch, retrying",
            extra={"resource": self._cache.name, "cause": cause, "wait_seconds": round(wait, 2)},
        )
        self._reported = cause

    def _received(self) -> None:
        self._received_at = asyncio.get_running_loop().time()
        if self._reported:
            self._reported = ""
            logger.info("listing and watching again", extra={"resource": self._cache.name})

    def _begin_list(self) -> KeySet:
        """Begin a complete list. Return the cached keys. `_end_list` needs the keys that the list does not contain."""
        if self.synced.is_set():
            self.relists += 1
        self.lists += 1
        self.watching.clear()
        return self._cache.begin_list()

    async def _end_list(self, unlisted: KeySet, version: str) -> None:
        """End a complete list at `version`: delete the objects that it does not contain, and watch from there."""
        slices = time_slices()
        self._cache.watched_version = version_number(version)  # from here on, responses of older writes are ignored
        for key in (*unlisted, *self._cache.unconfirmed(version_number(version))):
            self._cache.drop(key, version_number(version))
            await slices.yield_if_over()
        self._cache.changed_version = version_number(version)  # only after the unlisted objects are removed
        self._resume = version
        self._incomplete_lists = 0
        self._first_list = False
        self.synced.set()
        self.watching.set()

    async def _list(self) -> None:
        """List in pages."""
        unlisted = self._begin_list()
        version = ""
        slices = time_slices()
        async with contextlib.aclosing(self.pages(self._selection.namespace)) as pages:
            async for page in pages:
                self._received()
                version = page.metadata.resource_version
                for item in page.items:
                    with self._lane():
                        unlisted.discard(key_of(self._cache.apply(item)))
                    await slices.yield_if_over()
        await self._end_list(unlisted, version)

    def pages(self, namespace: str) -> AsyncGenerator[ObjectList[msgspec.Raw], None]:
        """The objects of `namespace` (of all if empty), in pages."""
        chosen = self._selection
        return self._client.pages(
            chosen.resource,
            namespace,
            label_selector=chosen.label_selector,
            field_selector=chosen.field_selector,
            metadata_only=chosen.metadata_only,
        )

    async def _watch(self, turn: contextlib.AsyncExitStack | None) -> None:
        """Watch from the last resourceVersion. With `turn`, a streamed list comes first; when it is complete, `turn` is
        closed, so that another resource can be listed."""
        slices = time_slices()
        listing = turn is not None
        unlisted = self._begin_list() if listing else None
        clock = asyncio.get_running_loop().time
        began = extended_at = clock()
        try:
            async with (
                asyncio.timeout(_LIST_END_TIMEOUT if listing else None) as timeout,
                contextlib.aclosing(self._events(listing=listing)) as events,
            ):
                async for event in events:
                    with self._lane():
                        metadata = self._apply(event)
                    if unlisted is not None and turn is not None:
                        if event.type != "BOOKMARK":
                            unlisted.discard(key_of(metadata))
                        elif metadata.annotations.get(_LIST_END_ANNOTATION) != "true":
                            raise self._not_streamed("the stream does not mark the end of the list")
                        else:
                            missing, unlisted = unlisted, None
                            timeout.reschedule(None)
                            await self._end_list(missing, metadata.resource_version)
                            del missing  # frees the memory of all keys: the watch lasts for minutes
                            await turn.aclose()
                    elif resource_version_of(metadata) > self._cache.watched_version:
                        self._cache.watched_version = resource_version_of(metadata)
                        if event.type in _CHANGES:
                            self._cache.changed_version = resource_version_of(metadata)
                        self._resume = metadata.resource_version
                    await slices.yield_if_over()
                    if unlisted is not None and clock() - extended_at > 1.0:  # at most once a second
                        extended_at = clock()
                        timeout.reschedule(extended_at + _LIST_END_TIMEOUT)
        except (InvalidError, BadRequestError) as error:
            if unlisted is None:
                raise
            raise self._not_streamed(str(error)) from error
        except TimeoutError as error:
            if not self._received_since(began):
                raise UnreachableError(f"no response within {_LIST_END_TIMEOUT:g} s") from error
            raise self._not_streamed(
                f"the stream did not mark the end of the list within {_LIST_END_TIMEOUT:g} s"
            ) from error
        finally:
            self._incomplete_lists += unlisted is not None and self._received_since(began)

    def _not_streamed(self, cause: str) -> _NotStreamedError:
        self._in_pages = True
        logger.info(
            "the API server does not stream this list, reading it in pages",
            extra={"resource": self._cache.name, "cause": cause},
        )
        return _NotStreamedError(cause)

    def _events(self, *, listing: bool) -> AsyncGenerator[WatchEvent, None]:
        chosen = self._selection
        return self._client.watch(
            chosen.resource,
            chosen.namespace,
            resource_version=self._resume,
            initial_events=listing,
            label_selector=chosen.label_selector,
            field_selector=chosen.field_selector,
            metadata_only=chosen.metadata_only,
            server_timeout=_SERVER_TIMEOUT + random.randrange(_SERVER_TIMEOUT),  # noqa: S311  (spreads load)
            on_data=self._received,
        )

    def _lane(self) -> contextlib.AbstractContextManager[None]:
        """For the keys that handlers add. Objects of the first list have not changed. A later list calls handlers only
        for objects that have changed since the watch ended."""
        return as_backlog() if self._first_list else contextlib.nullcontext()

    def _apply(self, event: WatchEvent) -> Any:
        """Apply an event to the cache. Return the metadata of its object."""
        if event.type in ("ADDED", "MODIFIED"):
            return self._cache.apply(event.object)
        metadata = metadata_of(event.object)
        if event.type == "DELETED":
            self._cache.drop(key_of(metadata), resource_version_of(metadata))
        return metadata
