"""Watches: the changes of one type after a resource version, as a stream of JSON lines.

All watches of a type read the same list of changes, each from its own position. The JSON of an object is encoded once.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator

import orjson
from aiohttp import web

from kube_sandbox.apiserver.context import Api, Call
from kube_sandbox.apiserver.errors import StatusError, not_allowed
from kube_sandbox.apiserver.http import codec, requests
from kube_sandbox.apiserver.http.responses import add_warnings, with_type
from kube_sandbox.apiserver.http.selection import Selection, select
from kube_sandbox.apiserver.printers import tables
from kube_sandbox.apiserver.storage.store import Change, Item, sorted_by_key
from kube_sandbox.apiserver.verbs import reads

_DEFAULT_TIMEOUT = 1800  # seconds; the real server selects a random time between this and twice this
_BOOKMARK_BEFORE_END = 2.0
_BATCH = 500  # initial objects that are sent before the event loop runs other tasks
_INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}


async def watch(api: Api, call: Call) -> web.StreamResponse:
    """Serve a watch request until its timeout, until the client disconnects, or until the server stops."""
    if not isinstance(call.request, web.Request):
        raise not_allowed()
    query = call.query
    reads.check_list_options(query, watch=True)
    selection = select(call.resource, call.attributes.namespace, call.attributes.name, query)
    version = query.get("resourceVersion", "")
    try:
        revision = reads.parse_version(version) if version else 0
    except StatusError as error:
        raise StatusError(500, error.message.removeprefix("invalid resource version: "), reason="") from error
    initial = requests.boolean(query, "sendInitialEvents") if "sendInitialEvents" in query else revision == 0
    collection = api.store.collection(call.resource.storage)
    # This error is reported in the HTTP status, so check it before the response starts.
    if not initial and revision and revision < collection.compacted_revision:
        raise reads.too_old(revision, collection.compacted_revision)
    timeout = requests.integer(query, "timeoutSeconds") or _DEFAULT_TIMEOUT
    response = web.StreamResponse()
    response.content_type = call.form.media_type
    response.headers["Cache-Control"] = "no-cache, private"
    add_warnings(response, call.attributes.warnings)
    response.enable_chunked_encoding()
    await response.prepare(call.request)
    stream = _Stream(call, selection)
    try:
        async for data in _events(api, stream, revision, timeout, initial=initial):
            await response.write(data)
        await response.write_eof()
    except (ConnectionResetError, asyncio.IncompleteReadError):
        pass  # the client disconnected
    return response


async def _events(api: Api, stream: "_Stream", revision: int, seconds: float, *, initial: bool) -> AsyncIterator[bytes]:
    """The events of a watch, in chunks of one or more lines."""
    call = stream.call
    collection = api.store.collection(call.resource.storage)
    bookmarks = requests.boolean(call.query, "allowWatchBookmarks")
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    if initial:
        if revision > api.store.revision:  # the real server first waits three seconds for this revision
            yield _error_line(reads.version_too_large(revision, api.store.revision))
            return
        revision = api.store.revision
        initial_items = sorted_by_key(collection.items.values())
        for start in range(0, len(initial_items), _BATCH):
            batch = initial_items[start : start + _BATCH]
            yield b"".join(stream.line("ADDED", item) for item in batch if stream.selects(item))
            await asyncio.sleep(0)
        if bookmarks:
            yield stream.bookmark(revision, _INITIAL_EVENTS_END)
    elif revision == 0:
        revision = api.store.revision
    next_bookmark = loop.time() + min(api.bookmark_interval, max(seconds - _BOOKMARK_BEFORE_END, 0.1))
    while True:
        if revision < collection.compacted_revision:
            yield _error_line(reads.too_old(revision, collection.compacted_revision))
            return
        changes = collection.changes_since(revision)
        if changes:
            lines = [line for change in changes for line in stream.event(change)]
            revision = changes[-1].item.revision
            if lines:
                yield b"".join(lines)
            continue
        now = loop.time()
        if now >= end or collection.closed:
            return
        if bookmarks and now >= next_bookmark:
            revision = max(revision, api.store.revision)
            yield stream.bookmark(revision, {})
            next_bookmark = now + api.bookmark_interval
            continue
        await collection.next_change(min(end, next_bookmark) - now if bookmarks else end - now)


def _error_line(error: StatusError) -> bytes:
    return b'{"type":"ERROR","object":%b}\n' % orjson.dumps(error.status)


class _Stream:
    """Selects the changes of one watch and encodes them."""

    def __init__(self, call: Call, selection: Selection) -> None:
        self.call = call
        self._selection = selection
        self._first = True

    def selects(self, item: Item) -> bool:
        return self._selection.matches(item.object)

    def event(self, change: Change) -> Iterator[bytes]:
        """The line of a change, if the watch selects it. An object that starts to match the selection is ADDED; one
        that no longer matches it is DELETED."""
        before = change.previous is not None and self.selects(change.previous)
        after = not change.deleted and self.selects(change.item)
        if after:
            yield self.line("MODIFIED" if before else "ADDED", change.item)
        elif before and change.deleted:
            yield self.line("DELETED", change.item)
        elif before and change.previous is not None:
            last_selected = change.previous.copy()
            last_selected["metadata"]["resourceVersion"] = str(change.item.revision)
            yield self.line("DELETED", Item(last_selected, change.item.revision))

    def line(self, type_: str, item: Item) -> bytes:
        return b'{"type":"%b","object":%b}\n' % (type_.encode(), self._object(item))

    def bookmark(self, revision: int, annotations: dict[str, str]) -> bytes:
        """A BOOKMARK line: it contains only the revision that the watch has reached."""
        metadata: dict[str, object] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        body = orjson.dumps({"metadata": metadata})
        form, resource = self.call.form, self.call.resource
        match form.shape:
            case "Table":
                data = self._table(Item({"metadata": metadata}, revision))
            case "PartialObjectMetadata":
                data = with_type(f"meta.k8s.io/{form.version}", "PartialObjectMetadata", body)
            case _:
                data = with_type(resource.api_version, resource.kind, body)
        return b'{"type":"BOOKMARK","object":%b}\n' % data

    def _object(self, item: Item) -> bytes:
        match self.call.form.shape:
            case "Table":
                return self._table(item)
            case "PartialObjectMetadata":
                return reads.partial_metadata(item, self.call.form.version)
        return codec.encode(self.call.resource, item)

    def _table(self, item: Item) -> bytes:
        """A table with one row. Only the first table of a watch contains the column definitions."""
        call = self.call
        metadata = {"resourceVersion": item.object["metadata"]["resourceVersion"]}
        columns, self._first = self._first, False
        return tables.table(call.resource, [item], metadata, call.query, call.form.version, columns=columns)
