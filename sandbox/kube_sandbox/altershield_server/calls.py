"""The recorded calls. The oldest are dropped."""

from collections import deque
from dataclasses import dataclass
from typing import Any

from kube_sandbox.altershield_server.vocabulary import Call

_KEPT = 10_000
_MAX_BODY = 64 << 10  # characters
_IDS = ("bizExecOrderId", "nodeId", "batchNo")


@dataclass(slots=True, kw_only=True)
class Recorded:
    """One call of the API."""

    number: int
    """Counts from 1."""

    time: float
    """Unix seconds."""

    call: Call
    platform: str
    """From the header."""

    timestamp: str
    signed: bool
    """Whether there is a signature header."""

    body: dict[str, Any]
    """The JSON of the request, or the query of a GET; empty if it could not be read. Only the ids if it is large."""

    status: int | None = None
    """The HTTP status of the answer; None while it is processed, and if the connection was closed."""

    code: str | None = None
    """The result code of the envelope."""

    message: str | None = None
    fault: str = ""
    """The kind of the scripted fault, or `down`."""

    def keep(self, body: dict[str, Any], size: int) -> None:
        """Keep the body, or only the ids of a large body to save memory."""
        self.body = body if size <= _MAX_BODY else {name: body[name] for name in _IDS if _is_short(body.get(name))}

    @property
    def order(self) -> str:
        return str(self.body.get("bizExecOrderId", ""))

    @property
    def batch(self) -> int | None:
        number = self.body.get("batchNo")
        return number if isinstance(number, int) else None


def _is_short(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and len(value) <= _MAX_BODY)


class Calls(deque[Recorded]):
    """The newest 10,000 calls, the oldest first."""

    def __init__(self) -> None:
        super().__init__(maxlen=_KEPT)
        self._number = 0

    def add(self, **fields: Any) -> Recorded:
        self._number += 1
        recorded = Recorded(number=self._number, **fields)
        self.append(recorded)
        return recorded

    def of(self, *calls: Call) -> list[Recorded]:
        """The recorded calls of these names."""
        return [each for each in self if each.call in calls]
