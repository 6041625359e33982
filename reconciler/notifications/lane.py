"""The notifications for one receiver: a bounded queue, a rate limit, and repetitions. Namespaces take turns, so that
one with many failed releases does not delay the others. Within a namespace, the order stays."""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Protocol

from kube_base.access.backoff import jittered
from reconciler.notifications.occurrences import Occurrence, lasts
from reconciler.notifications.sending import Outcome, Refused, Retry, Sent
from reconciler.receivers.file import Receiver
from reconciler.receivers.vocabulary import NotificationResult, Type

logger = logging.getLogger(__name__)

MAX_AGE = 3600.0
"""Seconds after which no notification about an event is sent any more."""

MAX_QUEUE = 3600
"""The maximum number of waiting notifications. The rate limit allows no more of them within `MAX_AGE`."""

_INTERVAL = 1.0  # seconds between two notifications; Slack allows one a second
_BURST = 10
_FIRST_RETRY, _LAST_RETRY = 1.0, 300.0


class Send(Protocol):
    async def __call__(self, receiver: Receiver, occurrence: Occurrence, cluster: str) -> Outcome: ...


class Lane:
    """`ended` is called with each event whose notification was sent or refused, and with each end of a state that
    became too old. `count` counts a result. `clock` returns Unix seconds."""

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
        self._waiting: dict[str, Occurrence] = {}  # by id
        self._turns: dict[str, dict[str, Occurrence]] = {}  # the same in order, by namespace, the next one first
        self._offered: dict[str, float] = {}
        self._ids: dict[str, list[str]] = {}  # of those that wait, by the uid of the release
        self._may_be_taken: set[str] = set()  # ids of those that wait, and whose alert the receiver may have opened
        self._arrived = asyncio.Event()
        self._tokens = float(_BURST)
        self._filled = asyncio.get_running_loop().time()
        self._full = False

    def offer(self, occurrence: Occurrence) -> None:
        """Queue a notification about this event, unless one waits already or the event is too old."""
        if occurrence.id in self._waiting or self._is_old(occurrence):
            return
        if len(self._waiting) >= MAX_QUEUE:
            self._drop_old()
        if len(self._waiting) >= MAX_QUEUE:
            self._count(self.receiver, NotificationResult.DROPPED)
            if not self._full:
                logger.warning("notifications are dropped: too many wait", extra={"receiver": self.receiver.name})
            self._full = True
            return
        self._full = False
        self._waiting[occurrence.id] = occurrence
        self._turns.setdefault(occurrence.namespace, {})[occurrence.id] = occurrence
        self._offered[occurrence.id] = self._clock()
        self._ids.setdefault(occurrence.uid, []).append(occurrence.id)
        self._arrived.set()

    def waits_for(self, uid: str) -> bool:
        """Whether a notification about the release with this uid waits."""
        return uid in self._ids

    def withdraw(self, uid: str, present: Collection[Occurrence]) -> None:
        """Drop the waiting notifications about states of the release with this uid that are over. `present`: the events
        that are true now. An alert that the receiver may have opened is ended."""
        ids = {each.id for each in present}
        for each in [self._waiting[id_] for id_ in self._ids.get(uid, ())]:
            if lasts(each.event, self.receiver) and not each.resolved and each.id not in ids:
                opened = each.id in self._may_be_taken
                self._forget(each)
                if opened:
                    self.offer(replace(each, resolved=True))

    def _forget(self, occurrence: Occurrence) -> None:
        if self._waiting.pop(occurrence.id, None) is None:
            return
        self._may_be_taken.discard(occurrence.id)
        del self._offered[occurrence.id]
        del self._turns[occurrence.namespace][occurrence.id]
        if not self._turns[occurrence.namespace]:
            del self._turns[occurrence.namespace]
        ids = self._ids[occurrence.uid]
        ids.remove(occurrence.id)
        if not ids:
            del self._ids[occurrence.uid]

    async def run(self) -> None:
        """Send until cancelled."""
        failures = 0
        while True:
            self._drop_old()
            while not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
            await self._pace()
            if not self._waiting:
                continue
            occurrence = self._next()
            outcome = await self._attempt(occurrence)
            if isinstance(outcome, Retry):
                failures += 1
                await self._postpone(occurrence, outcome, failures)
            else:
                failures = 0
                self._end(occurrence, outcome)

    def _next(self) -> Occurrence:
        """The event whose turn it is. The next turn is that of another namespace, if one waits."""
        namespace = next(iter(self._turns))
        self._turns[namespace] = self._turns.pop(namespace)
        return next(iter(self._turns[namespace].values()))

    async def _postpone(self, occurrence: Occurrence, outcome: Retry, failures: int) -> None:
        """Put the event behind the others of its namespace, because the receiver may fail for this event only. Wait."""
        if failures == 1:
            self._log("a notification could not be sent; it is repeated", occurrence, outcome.reason)
        opened = outcome.may_be_taken and not occurrence.resolved and Type(self.receiver.type).ends
        if occurrence.id in self._waiting:
            queue = self._turns[occurrence.namespace]
            queue[occurrence.id] = queue.pop(occurrence.id)
            if opened:
                self._may_be_taken.add(occurrence.id)
        elif opened:  # its state ended during the attempt
            self.offer(replace(occurrence, resolved=True))
        await asyncio.sleep(jittered(failures, outcome.after, first=_FIRST_RETRY, last=_LAST_RETRY))

    def _drop_old(self) -> None:
        dropped = 0
        for queue in list(self._turns.values()):
            while queue and self._is_old(first := next(iter(queue.values()))):
                dropped += 1
                self._forget(first)
                self._count(self.receiver, NotificationResult.DROPPED)
                if first.resolved:  # other events are not offered again, because they are too old
                    self._ended(self.receiver, first)
        if dropped:
            extra = {"receiver": self.receiver.name, "notifications": dropped}
            logger.warning("notifications were dropped: they could not be sent within an hour", extra=extra)

    async def _attempt(self, occurrence: Occurrence) -> Outcome:
        try:
            return await self._send(self.receiver, occurrence, self.cluster)
        except Exception as error:  # a message that cannot be made must not stop the others
            logger.exception("cannot make a notification", extra={"receiver": self.receiver.name})
            return Refused(type(error).__name__)

    def _end(self, occurrence: Occurrence, outcome: Sent | Refused) -> None:
        self._forget(occurrence)
        if isinstance(outcome, Sent):
            self._count(self.receiver, NotificationResult.SENT)
        else:
            self._count(self.receiver, NotificationResult.FAILED)
            self._log("a notification was not sent", occurrence, outcome.reason)
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
        since = self._offered.get(occurrence.id, self._clock()) if occurrence.resolved else occurrence.time
        return self._clock() - since > MAX_AGE

    def _log(self, text: str, occurrence: Occurrence, reason: str) -> None:
        place = f"{occurrence.namespace}/{occurrence.release}"
        extra = {"receiver": self.receiver.name, "event": occurrence.event, "release": place, "cause": reason}
        logger.warning(text, extra=extra)
