"""Reads from the API server, for decisions that must not rest on a cache."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from kube_base.access.client import Client
from kube_base.access.errors import UnreadableError
from kube_base.resources import Resource

_PAGE = 500  # objects


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    deletion_timestamp: str | None = None


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class Found(msgspec.Struct, frozen=True):
    """The fields of a listed object that handlers read."""

    metadata: _Metadata = _Metadata()
    status: _Status = _Status()


def stays(found: Found) -> bool:
    """Whether the object is not terminating."""
    return found.metadata.deletion_timestamp is None


class Live(Protocol):
    """Reads from the API server. Only handlers whose docstring says why they need it may use it."""

    async def count(
        self,
        resource: Resource,
        namespace: str,
        wanted: Callable[[Found], bool],
        *,
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> int:
        """The number of wanted objects on the first page that has one. 0: there is none in the namespace (empty: in any
        namespace). KubernetesError: the objects cannot be read."""


class LiveReads:
    """Reads with a client of their own, so that they do not take the connections of the informers."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def count(
        self,
        resource: Resource,
        namespace: str,
        wanted: Callable[[Found], bool],
        *,
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> int:
        pages = self._client.pages(
            resource, namespace, field_selector=field_selector, metadata_only=metadata_only, limit=_PAGE
        )
        async for page in pages:
            try:
                number = sum(wanted(msgspec.json.decode(item, type=Found)) for item in page.items)
            except (msgspec.DecodeError, RecursionError) as error:
                raise UnreadableError(
                    f"an object of the list of {resource.plural} cannot be decoded: {error}"
                ) from error
            if number:
                return number
        return 0
