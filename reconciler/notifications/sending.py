"""Sends one notification, and says whether it has to be sent again."""

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.notifications.occurrences import Occurrence
from reconciler.notifications.receiver_messages import message
from reconciler.outbound.outbound_client import Outbound
from reconciler.outbound.outbound_errors import NoAnswerError, OutboundError
from reconciler.receivers.file import Receiver

MAX_RETRY_AFTER = 300.0
_RETRIED = (408, 425, 429)


@dataclass(frozen=True, slots=True)
class Sent:
    """The receiver has accepted the notification."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The receiver refuses the notification. It is not sent again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Retry:
    """The notification has to be sent again."""

    reason: str
    after: float = 0.0
    """The least number of seconds until then."""
    may_be_taken: bool = False
    """Whether the receiver may have accepted it: the request was sent and has no answer."""


Outcome = Sent | Refused | Retry


class Sender:
    """`clock` returns Unix seconds."""

    def __init__(self, outbound: Outbound, clock: Callable[[], float]) -> None:
        self._outbound = outbound
        self._clock = clock

    async def send(self, receiver: Receiver, occurrence: Occurrence, cluster: str) -> Outcome:
        """Send a notification once. No reason contains the URL's path or a token. It never raises."""
        request = message(receiver, occurrence, cluster, self._clock())
        try:
            reply = await self._outbound.request("POST", request.url, headers=request.headers, body=request.body)
        except OutboundError as error:
            return Retry(str(error), may_be_taken=isinstance(error, NoAnswerError))
        if 200 <= reply.status < 300:
            return Sent()
        reason = f"the receiver answers HTTP {reply.status}"
        if reply.status >= 500 or reply.status in _RETRIED:
            return Retry(reason, _retry_after(reply.headers.get("Retry-After", "")))
        return Refused(reason)


def _retry_after(text: str) -> float:
    """The header Retry-After in seconds; 0 if it has none. Dates are not read."""
    digits = text.strip()
    return min(float(digits), MAX_RETRY_AFTER) if digits.isascii() and digits.isdigit() and len(digits) < 9 else 0.0
