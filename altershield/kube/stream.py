"""A watch's stream of bytes, cut into its events."""

from collections.abc import AsyncIterator, Callable

import aiohttp
import msgspec

from altershield.kube.errors import ApiError, UnreachableError, UnreadableError, from_status

_MAX_LINE = 2**26  # bytes of one watch event; etcd takes objects of 1.5 MiB, as JSON they are a few times larger


class WatchEvent(msgspec.Struct):
    """One line of a watch. `type` is ADDED, MODIFIED, DELETED or BOOKMARK; `object` is still bytes."""

    type: str
    object: msgspec.Raw


_decoder = msgspec.json.Decoder(WatchEvent)


async def events(content: aiohttp.StreamReader, heard: Callable[[], None]) -> AsyncIterator[WatchEvent]:
    """The events of a stream; `heard` is called for whatever comes. ApiError for an ERROR event."""
    async for line in _lines(content, heard):
        if line.strip():
            try:
                event = _decoder.decode(line)
            except (msgspec.DecodeError, RecursionError) as error:
                raise UnreadableError(f"the API server's answer cannot be read: {error}") from error
            if event.type == "ERROR":
                raise _error(event.object)
            yield event


def _error(data: msgspec.Raw) -> ApiError:
    """The error that an ERROR event carries as a Status."""
    try:
        status = msgspec.json.decode(data, type=dict)
    except (msgspec.DecodeError, RecursionError):
        status = {}
    code = status.get("code")
    return from_status(code if isinstance(code, int) else 500, status)


async def _lines(content: aiohttp.StreamReader, heard: Callable[[], None]) -> AsyncIterator[bytes]:
    """The lines of a stream, each chunk looked at once however long a line is."""
    parts: list[bytes] = []
    size = 0
    async for chunk in content.iter_any():
        heard()
        end, *following = chunk.split(b"\n")
        parts.append(end)
        size += len(end)
        for start in following:
            yield b"".join(parts)
            parts, size = [start], len(start)
        if size > _MAX_LINE:
            raise UnreadableError(f"a watch event is larger than {_MAX_LINE >> 20} MiB")
    if size:
        raise UnreachableError("the watch was cut in the middle of an event")
