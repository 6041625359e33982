"""The fields of a protected object that the handlers of deletions read, and the refusal of its deletion."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from altershield.api import deletion_protection
from altershield.api.deletion_protection import Level
from gatekeeper.handlers.deletions.reasons import Reason
from gatekeeper.request import Metadata, Object, Request, T
from gatekeeper.response import Denial, Response
from gatekeeper.texts import clean
from kube_base.errors import ReportedError

WEBHOOK_SECONDS = 9.0
"""The time of a handler. The API server waits for 10 seconds."""
_READING = 8.0  # seconds
_MAX_CAUSE = 512  # bytes
_MAX_MESSAGE = 4096  # bytes
_EMPTY = Response(reason=Reason.EMPTY)


class _Annotations(msgspec.Struct, frozen=True):
    reason: str = msgspec.field(default="", name=deletion_protection.REASON)


class ProtectedMetadata(Metadata, frozen=True, rename="camel"):
    deletion_timestamp: str | None = None
    annotations: _Annotations | None = None


class Protected(Object, frozen=True, rename="camel"):
    """The fields of a protected object that the handlers read."""

    metadata: ProtectedMetadata

    @property
    def needs_reading(self) -> bool:
        """Whether the content of the object decides. A terminating object passes, because nothing can stop its
        deletion. A ValidatingAdmissionPolicy decides about the level `Always`."""
        metadata = self.metadata
        return (
            metadata.deletion_timestamp is None and deletion_protection.level(metadata.labels or {}) == Level.CASCADING
        )

    @property
    def reason(self) -> str:
        """The owner's reason, in one line."""
        annotations = self.metadata.annotations
        return clean(annotations.reason[: deletion_protection.MAX_REASON], _MAX_CAUSE) if annotations else ""


async def decided(
    request: Request[T], found: Protected, content: Callable[[], Awaitable[str]], advice: str
) -> Response:
    """Refuse if there is content. `content` reads it and returns its name and number, `active pods 3>0`; empty if there
    is none. `advice` says how to empty the object. If the content cannot be read, refuse the deletion too."""
    try:
        async with asyncio.timeout(_READING):
            because = await content()
    except TimeoutError:
        return _unknown(request, found, f"reading it took longer than {_READING:.0f} s")
    except ReportedError as error:
        return _unknown(request, found, clean(str(error), _MAX_CAUSE))
    if not because:
        return _EMPTY
    return _refused(request, found, because, advice, Reason.HAS_CONTENT)


def _unknown(request: Request[T], found: Protected, cause: str) -> Response:
    advice = "delete it when the gatekeeper can read its content"
    return _refused(request, found, f"content that cannot be read ({cause})", advice, Reason.CONTENT_UNKNOWN)


def _refused(request: Request[T], found: Protected, because: str, advice: str, reason: Reason) -> Response:
    resource, name = request.resource, found.metadata.name
    command = deletion_protection.unprotect_command(resource.plural, name, "", found.labels or {})
    text = deletion_protection.refusal(
        Level.CASCADING, because, f"{resource.kind} {name}", found.reason, f"{advice}, or take the label off: {command}"
    )
    denial = Denial(message=clean(text, _MAX_MESSAGE), reason="Forbidden")
    return Response(denial=denial, reason=reason)
