"""Splits the bytes of a watch into events."""

from collections.abc import AsyncIterator, Callable

import aiohttp
import msgspec

from kube_base.access.errors import ApiError, UnreachableError, UnreadableError, from_status

_MAX_LINE = 2**26  # bytes of one event; objects in etcd have up to 1.5 MiB, their JSON is a few times larger


class WatchEvent(msgspec.Struct):
    """One line of a watch. `type` is ADDED, MODIFIED, DELETED or BOOKMARK; `object` is not decoded."""

    type: str
    object: msgspec.Raw


_decoder = msgspec.json.Decoder(WatchEvent)


async def events(content: aiohttp.StreamReader, on_data: Callable[[], None]) -> AsyncIterator[WatchEvent]:
    """The events of a watch. `on_data` is called for every chunk. ApiError for an ERROR event."""
    async for line in _lines(content, on_data):
        if line.strip():
            try:
                event = _decoder.decode(line)
            except (msgspec.DecodeError, RecursionError) as error:
                raise UnreadableError(f"the API server's response cannot be decoded: {error}") from error
            if event.type == "ERROR":
                raise _error(event.object)
            yield event


def _error(data: msgspec.Raw) -> ApiError:
    """The error for the Status in an ERROR event."""
    try:
        status = msgspec.json.decode(data, type=dict)
    except (msgspec.DecodeError, RecursionError):
        status = {}
    code = status.get("code")
    return from_status(code if isinstance(code, int) else 500, status)


async def _lines(content: aiohttp.StreamReader, on_data: Callable[[], None]) -> AsyncIterator[bytes]:
    """The lines of a stream. Each chunk is scanned once, so a long line costs no more than short ones."""
    parts: list[bytes] = []
    size = 0
    async for chunk in content.iter_any():
        on_data()
        end, *following = chunk.split(b"\n")
        parts.append(end)
        size += len(end)
        for start in following:
            yield b"".join(parts)
            parts, size = [start], len(start)
        chunk, following = b"", []  # frees the memory: the next chunk may come in a minute
        if size > _MAX_LINE:
            raise UnreadableError(f"a watch event is larger than {_MAX_LINE >> 20} MiB")
    if size:
        raise UnreachableError("the watch ended in the middle of an event")
