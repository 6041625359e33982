"""The file with the token that signs requests."""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

from kube_base.errors import UsageError

logger = logging.getLogger(__name__)

_PERIOD = 1.0  # seconds between two readings
_MAX_TOKEN = 4096  # bytes


def read_token(path: Path) -> str:
    """The token in a file, without the white space around it. UsageError if there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_TOKEN + 1)
        token = data.decode().strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(f"cannot read the server's token in {path}: {reason}; see --server-token-file") from error
    if not token or len(data) > _MAX_TOKEN:
        raise UsageError(f"the file {path} contains no token of 1 to {_MAX_TOKEN} bytes; see --server-token-file")
    return token


class TokenFile:
    """A token that is read again when its file changes. Files are read in a thread, at most once a second."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns seconds."""
        self._path = path
        self._clock = clock
        self._token = ""
        self._read_at = float("-inf")
        self._lock = asyncio.Lock()
        self._readable = True

    async def current(self) -> str:
        """The token for the next request. If the file can no longer be read, the last one. UsageError if there was
        never one."""
        if not self._token or self._clock() >= self._read_at + _PERIOD:
            await self._read(self._read_at)
        return self._token

    async def differs(self, used: str) -> bool:
        """Whether the file, read now, contains another token than `used`: the server may have refused an old one."""
        await self._read(self._read_at)
        return self._token != used

    async def _read(self, seen: float) -> None:
        async with self._lock:
            if self._read_at != seen:
                return  # another call has read the file meanwhile
            try:
                self._token = await asyncio.to_thread(read_token, self._path)
                self._readable = True
            except UsageError as error:
                if not self._token:
                    raise
                if self._readable:
                    logger.warning("the token cannot be read; the last one is used", extra={"cause": str(error)})
                self._readable = False
            self._read_at = self._clock()
