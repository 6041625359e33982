"""Requests of the API server's own process, which do not pass through a connection."""

from dataclasses import dataclass

from aiohttp import web
from multidict import CIMultiDict, MultiDict


@dataclass(slots=True)
class LocalRequest:
    """A request with the attributes of aiohttp's request that the API server reads. It cannot be a watch."""

    method: str
    path: str
    query: MultiDict[str]
    headers: CIMultiDict[str]
    body: bytes
    host: str = ""
    transport: None = None

    async def read(self) -> bytes:
        return self.body


Request = web.Request | LocalRequest
