"""The notifications for one receiver, in their order: a bounded queue, a rate limit, and repetitions."""

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Protocol

from altershield.kube.backoff import jittered
from reconciler.notifications.occurrences import LASTING, Occurrence
from reconciler.notifications.receivers import Receiver
from reconciler.notifications.sending import Outcome, Refused, Sent
from reconciler.notifications.vocabulary import NotificationResult

logger = logging.getLogger(__name__)

MAX_QUEUE = 500
MAX_AGE = 3600.0
"""Seconds after which an event is not told any more."""

_INTERVAL = 1.0  # seconds between two notifications; Slack allows one a second
_BURST = 10
_FIRST_RETRY, _LAST_RETRY = 1.0, 300.0


class Send(Protocol):
    async def __call__(self, receiver: Receiver, occurrence: Occurrence, cluster: str) -> Outcome: ...


class Lane:
    """`ended` is called with each event that is sent, refused or too old. `count` counts a result. `clock` returns Unix
    seconds."""

    def __init__(
        self,
        receiver: Receiver,
        cluster: str,
        send: Send,
        ended: Callable[[Receiver, Occurrence], None],
        count: Callable[[Receiver, NotificationResult], None],
        clock: Callable[[], float],
    ) -> None:
        self.receiver = receiver
        self.cluster = cluster
        self._send = send
        self._ended = ended
        self._count = count
        self._clock = clock
        self._waiting: dict[str, Occurrence] = {}  # by id, in order
        self._offered: dict[str, float] = {}
        self._arrived = asyncio.Event()
        self._tokens = float(_BURST)
        self._filled = asyncio.get_running_loop().time()
        self._full = False

    def offer(self, occurrence: Occurrence) -> None:
        """Tell the receiver of this event, unless it waits already, or is too old."""
        if occurrence.id in self._waiting or self._is_old(occurrence):
            return
        if len(self._waiting) >= MAX_QUEUE:
            self._count(self.receiver, NotificationResult.DROPPED)
            if not self._full:
                logger.warning("notifications are dropped: too many wait", extra={"receiver": self.receiver.name})
            self._full = True
            return
        self._full = False
        self._waiting[occurrence.id] = occurrence
        self._offered[occurrence.id] = self._clock()
        self._arrived.set()

    def withdraw(self, uid: str, present: Collection[Occurrence]) -> None:
        """Do not tell of states of the release with this uid that are over."""
        ids = {each.id for each in present}
        for each in [each for each in self._waiting.values() if each.uid == uid]:
            if each.event in LASTING and not each.resolved and each.id not in ids:
                self._forget(each)

    def _forget(self, occurrence: Occurrence) -> None:
        self._waiting.pop(occurrence.id, None)
        self._offered.pop(occurrence.id, None)

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            while not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
            await self._deliver(next(iter(self._waiting.values())))

    async def _deliver(self, occurrence: Occurrence) -> None:
        """Send the event until it is sent, refused, withdrawn or too old."""
        failures = 0
        while occurrence.id in self._waiting:
            if self._is_old(occurrence):
                self._end(occurrence, NotificationResult.DROPPED, "it could not be sent in time")
                return
            await self._pace()
            outcome = await self._attempt(occurrence)
            if isinstance(outcome, Sent):
                self._end(occurrence, NotificationResult.SENT)
                return
            if isinstance(outcome, Refused):
                self._end(occurrence, NotificationResult.FAILED, outcome.reason)
                return
            failures += 1
            if failures == 1:
                self._log("a notification could not be sent, it is repeated", occurrence, outcome.reason)
            await asyncio.sleep(jittered(failures, outcome.after, first=_FIRST_RETRY, last=_LAST_RETRY))

    async def _attempt(self, occurrence: Occurrence) -> Outcome:
        try:
            return await self._send(self.receiver, occurrence, self.cluster)
        except Exception as error:  # a message that cannot be made must not stop the others
            logger.exception("could not make a notification", extra={"receiver": self.receiver.name})
            return Refused(type(error).__name__)

    def _end(self, occurrence: Occurrence, result: NotificationResult, reason: str = "") -> None:
        self._forget(occurrence)
        self._count(self.receiver, result)
        if reason:
            self._log("a notification was not sent", occurrence, reason)
        self._ended(self.receiver, occurrence)

    async def _pace(self) -> None:
        """Wait until the rate limit allows one more."""
        now = asyncio.get_running_loop().time()
        self._tokens = min(_BURST, self._tokens + (now - self._filled) / _INTERVAL)
        self._filled = now
        if self._tokens < 1:
            await asyncio.sleep((1 - self._tokens) * _INTERVAL)
            self._tokens, self._filled = 1.0, asyncio.get_running_loop().time()
        self._tokens -= 1

    def _is_old(self, occurrence: Occurrence) -> bool:
        # the end of a state has no time of its own
        since = self._offered.get(occurrence.id, self._clock()) if occurrence.resolved else occurrence.since
        return self._clock() - since > MAX_AGE

    def _log(self, text: str, occurrence: Occurrence, reason: str) -> None:
        place = f"{occurrence.namespace}/{occurrence.release}"
        extra = {"receiver": self.receiver.name, "event": occurrence.event, "release": place, "cause": reason}
        logger.warning(text, extra=extra)
