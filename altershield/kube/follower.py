"""How a cache follows the cluster: list everything, then watch from there.

Where the API server offers it, list and watch are one stream: what is there, a mark, and what changes. The server
sends such a list object by object out of its cache; a list in pages it has to hold as a whole, and before 1.31 to
read from etcd. Both show the latest state (no resourceVersion is asked for): an older one could undo what we know.

What the API server may do, and what follows:

- ends a watch (its timeout), cuts it, falls silent: watched again from the last resourceVersion that was seen;
- has forgotten that version (410): listed again, and what the list lacks is told as deleted;
- cuts a list: listed again; what came counts, what did not is not missed;
- refuses to stream a list (422 before 1.34, or with the feature off), or ignores that it was asked to: listed in
  pages from then on;
- is gone, overloaded or refuses: tried again, backing off; the cache goes on showing what was last known.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

import msgspec

from altershield.api.resources import Resource
from altershield.kube.backoff import delay
from altershield.kube.cache import Cache
from altershield.kube.client import Client, ObjectList, WatchEvent
from altershield.kube.errors import (
    BadRequestError,
    GoneError,
    InvalidError,
    KubernetesError,
    UnreachableError,
    UnreadableError,
)
from altershield.kube.objects import bare, key_of, number, version_of
from altershield.kube.places import Names
from altershield.kube.turns import turns

logger = logging.getLogger(__name__)

_SERVER_TIMEOUT = 300  # seconds, up to twice as many: so that watches do not all end at once
_HEALTHY = 5.0  # seconds a watch must last for the backoff to start anew
_MARK_TIMEOUT = 30.0  # seconds of silence in which a streamed list's end should have come
_MOST_CUTS = 3  # streamed lists in a row that may be cut before one in pages is tried

_LIST_ENDS = "k8s.io/initial-events-end"


class Selection(NamedTuple):
    """Which objects are asked for; of all namespaces where `namespace` is empty."""

    resource: Resource
    namespace: str
    label_selector: str
    field_selector: str
    metadata_only: bool


class _NotStreamedError(KubernetesError):
    """The API server does not mark the end of a streamed list."""


class Follower:
    """Brings what the API server sends into `cache`."""

    def __init__(self, client: Client, selection: Selection, cache: Cache[Any]) -> None:
        self._client = client
        self._selection = selection
        self._cache = cache
        self._resume = ""  # where to watch on from; empty: list first
        self._in_pages = False  # the API server streams no lists
        self._cuts = 0  # streamed lists in a row that did not come to their end
        self._began: float | None = None
        self._heard_at: float | None = None
        self._reported = ""  # the trouble that the log already tells of
        self.synced = asyncio.Event()
        """Set once the first list is complete."""
        self.following = asyncio.Event()
        """Set while a list is complete and the watch goes on from there."""
        self.lists = 0
        """Lists of everything that were begun."""
        self.relists = 0
        """Lists after the first one."""

    @property
    def age(self) -> float:
        """Seconds since the API server last sent anything, or since `run` began."""
        since = self._began if self._heard_at is None else self._heard_at
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    async def run(self) -> None:
        """Follow the cluster until cancelled. Begun again, it lists again: what it follows may have come anew."""
        self._began = asyncio.get_running_loop().time()
        self._resume = ""
        try:
            await self._follow()
        finally:
            self._began = self._heard_at = None  # nothing is followed, so nothing grows old

    async def _follow(self) -> None:
        failures = 0
        while True:
            began = asyncio.get_running_loop().time()
            error = await self._until_it_ends()
            if isinstance(error, GoneError | UnreadableError):
                self._resume = ""
                self.following.clear()
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

    async def _until_it_ends(self) -> KubernetesError:
        """List where necessary and watch; what it ended with."""
        try:
            if self._resume:
                await self._watch(None)
            elif self._client.streaming_lists and not self._in_pages and self._cuts < _MOST_CUTS:
                await self._watch(self._begin_list())
            else:
                await self._list()
                await self._watch(None)
        except KubernetesError as error:
            return error
        return KubernetesError("the API server ended the watch as soon as it began")

    def _worked_since(self, began: float) -> bool:
        return asyncio.get_running_loop().time() - began >= _HEALTHY and self._heard_since(began)

    def _heard_since(self, began: float) -> bool:
        return self._heard_at is not None and self._heard_at >= began

    def _report(self, error: KubernetesError, wait: float) -> None:
        """One warning per cause, until the API server is heard again."""
        cause = str(error)
        logger.log(
            logging.DEBUG if cause == self._reported else logging.WARNING,
            "cannot follow the cluster, trying again",
            extra={"resource": self._cache.name, "cause": cause, "wait_seconds": round(wait, 2)},
        )
        self._reported = cause

    def _heard(self) -> None:
        self._heard_at = asyncio.get_running_loop().time()
        if self._reported:
            self._reported = ""
            logger.info("following the cluster again", extra={"resource": self._cache.name})

    def _begin_list(self) -> Names:
        """A list of everything begins; gives what is known, of which the list is to confirm what is still there."""
        if self.synced.is_set():
            self.relists += 1
        self.lists += 1
        self.following.clear()
        return self._cache.begin_list()

    async def _end_list(self, unlisted: Names, version: str) -> None:
        """Everything was listed at `version`: what was not is gone, and the watch goes on from there."""
        turn = turns()
        self._cache.passed = number(version)  # from here on, answers of older writes are late
        for key in (*unlisted, *self._cache.unconfirmed(number(version))):
            self._cache.drop(key, number(version))
            await turn.give_way()
        self._resume = version
        self._cuts = 0
        self.synced.set()
        self.following.set()

    async def _list(self) -> None:
        """A list in pages."""
        unlisted = self._begin_list()
        version = ""
        turn = turns()
        async with contextlib.aclosing(self.pages(self._selection.namespace)) as pages:
            async for page in pages:
                self._heard()
                version = page.metadata.resource_version
                for item in page.items:
                    unlisted.discard(key_of(self._cache.take(item)))
                    await turn.give_way()
        await self._end_list(unlisted, version)

    def pages(self, namespace: str) -> AsyncGenerator[ObjectList[msgspec.Raw], None]:
        """What is there, of one namespace or of all where it is empty."""
        chosen = self._selection
        return self._client.pages(
            chosen.resource,
            namespace,
            label_selector=chosen.label_selector,
            field_selector=chosen.field_selector,
            metadata_only=chosen.metadata_only,
        )

    async def _watch(self, unlisted: Names | None) -> None:
        """Watch on from where we are. With `unlisted`, a streamed list comes first, which is to confirm these."""
        turn = turns()
        listing = unlisted is not None
        clock = asyncio.get_running_loop().time
        began = patient_since = clock()
        try:
            async with (
                asyncio.timeout(_MARK_TIMEOUT if listing else None) as patience,
                contextlib.aclosing(self._events(listing=listing)) as events,
            ):
                async for event in events:
                    metadata = self._bring(event)
                    if unlisted is not None:
                        if event.type != "BOOKMARK":
                            unlisted.discard(key_of(metadata))
                        elif metadata.annotations.get(_LIST_ENDS) != "true":
                            raise self._not_streamed("it sends no end of the list")
                        else:
                            missing, unlisted = unlisted, None
                            patience.reschedule(None)
                            await self._end_list(missing, metadata.resource_version)
                    elif version_of(metadata) > self._cache.passed:
                        self._cache.passed = version_of(metadata)
                        self._resume = metadata.resource_version
                    await turn.give_way()
                    if unlisted is not None and clock() - patient_since > 1.0:  # there are hundreds of thousands
                        patient_since = clock()
                        patience.reschedule(patient_since + _MARK_TIMEOUT)
        except (InvalidError, BadRequestError) as error:
            if unlisted is None:
                raise
            raise self._not_streamed(str(error)) from error
        except TimeoutError as error:
            if not self._heard_since(began):
                raise UnreachableError(f"no answer within {_MARK_TIMEOUT:g} s") from error
            raise self._not_streamed(f"no end of the list came within {_MARK_TIMEOUT:g} s") from error
        finally:
            self._cuts += unlisted is not None and self._heard_since(began)

    def _not_streamed(self, cause: str) -> _NotStreamedError:
        self._in_pages = True
        logger.info("lists are read in pages", extra={"resource": self._cache.name, "cause": cause})
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
            heard=self._heard,
        )

    def _bring(self, event: WatchEvent) -> Any:
        """Bring an event into the cache; its object's metadata."""
        if event.type in ("ADDED", "MODIFIED"):
            return self._cache.take(event.object)
        metadata = bare(event.object)
        if event.type == "DELETED":
            self._cache.drop(key_of(metadata), version_of(metadata))
        return metadata
