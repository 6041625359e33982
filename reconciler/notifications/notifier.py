"""Controller: notifies receivers about the events of releases. It is level-triggered: the events follow from the
ChangeWorkload and its batches, and `status.notified` has the notifications that were sent or refused.

A notification is stored there after it was sent. So a crash in between repeats it once, with the same id.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace

import msgspec
from prometheus_client import Counter

from altershield.api.change_workload import MAX_NOTIFIED
from altershield.images import named
from altershield.releases import is_of_template
from kube_base.access.queue import as_backlog
from reconciler.cluster.batch import Batch
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.ownership import workload_key
from reconciler.cluster.release import Release
from reconciler.cluster.writer import Writer
from reconciler.notifications.lane import Lane, Send
from reconciler.notifications.occurrences import Occurrence, approval_needed, lasts, occurrence, occurrences
from reconciler.notifications.sending import Sender
from reconciler.receivers.file import Delivery, Receiver, allowed, chosen
from reconciler.receivers.vocabulary import Event, NotificationResult, Type

_REMEMBERED = 4096  # releases
_RESOLVED = "/resolved"

Enqueue = Callable[[Key], None]


class Notifier:
    """Its keys are the namespace and name of a ChangeWorkload. `enqueue` puts a key into its queue. `clock` returns
    Unix seconds."""

    def __init__(
        self,
        caches: Caches,
        writer: Writer,
        sent: Counter,
        clock: Callable[[], float],
        delivery: Delivery,
        enqueue: Enqueue,
        send: Send | None = None,
    ) -> None:
        self._caches = caches
        self._writer = writer
        self._sent = sent
        self._clock = clock
        self._file, self._outbound = delivery
        self._enqueue = enqueue
        self._send = send or Sender(delivery.outbound, clock).send
        self._lanes: dict[str, Lane] = {}
        self._changed = asyncio.Event()
        """Whether the lanes may not match the file."""
        self._file.add_handler(self._changed.set)
        self._ended: OrderedDict[str, set[str]] = OrderedDict()
        """By the uid of the ChangeWorkload: the entries of notifications that ended and may not be stored yet."""
        self._gone: OrderedDict[Key, Release] = OrderedDict()
        """Deleted ChangeWorkloads whose alerts have to end, also those that are being sent."""

    def on_release(self, old: Release | None, new: Release | None) -> None:
        """A ChangeWorkload has changed, in any replica."""
        release = new or old
        if release is None:
            return
        key, begun = (release.metadata.namespace, release.metadata.name), self._has_begun(release)
        if new is None and begun and self._lanes:
            self._gone[key] = release
            self._gone.move_to_end(key)
            if len(self._gone) > _REMEMBERED:
                self._gone.popitem(last=False)
        if begun or self._is_wanted(release):
            self._enqueue(key)

    def _has_begun(self, release: Release) -> bool:
        """Whether a notification about the release was sent, or waits."""
        uid = release.metadata.uid
        waits = any(lane.waits_for(uid) for lane in self._lanes.values())
        return waits or uid in self._ended or bool(release.status.notified)

    def _is_wanted(self, release: Release) -> bool:
        """Whether a receiver wants an event of the release. Most releases succeed, which few receivers want."""
        found = occurrences(release, ()) if self._lanes else ()
        return any(_wants(lane.receiver, each) for each in found for lane in self._lanes.values())

    def on_batch(self, old: Batch | None, new: Batch | None) -> None:
        """A ChangePod has changed, in any replica."""
        for batch in (old, new):
            if batch is not None and approval_needed(batch) is not None:
                self._enqueue(batch.release)

    async def run(self) -> None:
        """Send notifications, and follow the file of the receivers, until cancelled. Only the leader calls this."""
        self._changed.set()
        tasks: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            group.create_task(self._file.follow())
            try:
                while True:
                    await self._changed.wait()
                    self._changed.clear()
                    self._renew(group, tasks)
            finally:
                self._lanes.clear()

    def _renew(self, group: asyncio.TaskGroup, tasks: dict[str, asyncio.Task[None]]) -> None:
        """Bring the lanes in line with the file. A lane whose receiver has not changed goes on."""
        present = self._file.current
        self._outbound.allowed = allowed(present.receivers)
        wanted = {each.name: each for each in present.receivers}
        for name, lane in list(self._lanes.items()):
            if (wanted.get(name), present.cluster) != (lane.receiver, lane.cluster):
                del self._lanes[name]
                tasks.pop(name).cancel()
        for name, receiver in wanted.items():
            if name not in self._lanes:
                lane = Lane(receiver, present.cluster, self._send, self._on_end, self._count, self._clock)
                self._lanes[name] = lane
                tasks[name] = group.create_task(lane.run())
        with as_backlog():
            for release in self._caches.releases.all():
                self.on_release(None, release)
            for batch in self._caches.batches.all():
                self.on_batch(None, batch)

    async def reconcile(self, key: Key) -> float | None:
        """Offer the events of a release to the lanes, and store the notifications that ended. It sends nothing
        itself."""
        release = self._caches.releases.get(*key)
        gone = self._gone.get(key)
        if gone is not None and (release is None or release.metadata.uid != gone.metadata.uid):
            for lane in self._lanes.values():
                lane.withdraw(gone.metadata.uid, ())
            self._end_alerts(gone, self._known(gone), [])
        if release is None:
            return None
        known = self._known(release)
        images = self._images(release)
        present = [replace(each, images=images) for each in occurrences(release, self._caches.batches_of(release))]
        receivers = [lane.receiver for lane in self._lanes.values()]
        names = chosen(receivers, release.spec.policy.notify, release.metadata.namespace)
        for lane in self._lanes.values():
            lane.withdraw(release.metadata.uid, present)
            for each in present if lane.receiver.name in names else ():
                if _wants(lane.receiver, each) and _entry(each, lane.receiver) not in known:
                    lane.offer(each)
        self._end_alerts(release, known, present)
        await self._store(release, {each.key for each in present})
        return None

    def _known(self, release: Release) -> set[str]:
        """The entries of the notifications that ended."""
        return set(release.status.notified) | self._ended.get(release.metadata.uid, set())

    def _images(self, release: Release) -> str:
        """The images of the version; empty if the workload has another template now."""
        workload = self._caches.workload(workload_key(release))
        is_its_own = workload is not None and is_of_template(release, workload.fingerprint)
        return named(workload.images) if workload is not None and is_its_own else ""

    def _end_alerts(self, release: Release, known: set[str], present: list[Occurrence]) -> None:
        """End the alerts of Alertmanager and PagerDuty whose state is over."""
        keys = {each.key for each in present}
        for lane in self._lanes.values():
            if not Type(lane.receiver.type).ends:
                continue
            for event, at, part in _lasting(known, lane.receiver):
                ended = replace(occurrence(release, event, at), resolved=True, part=part)
                if ended.key not in keys and _entry(ended, lane.receiver) not in known:
                    lane.offer(ended)

    async def _store(self, release: Release, present: set[str]) -> None:
        """Store the notifications that ended. `present`: the keys of the events that are true now. ConflictError: they
        are stored later."""
        stored, ended = release.status.notified, self._ended.get(release.metadata.uid, set())
        new = sorted(entry for entry in ended if entry not in stored and not entry.endswith(_RESOLVED))
        # the entry of an alert that is over is not needed any more: a later event has another time
        entries = [entry for entry in (*stored, *new) if entry + _RESOLVED not in ended]
        past = [entry for entry in entries if entry.rpartition("/")[0] not in present]
        # only past events: without its entry, an event that is true would be sent again
        dropped = past[: max(0, len(entries) - MAX_NOTIFIED)]
        notified = tuple(entry for entry in entries if entry not in dropped)[-MAX_NOTIFIED:]
        if notified != stored:
            status = msgspec.structs.replace(release.status, notified=notified)
            await self._writer.save_release(release, status, lists=False)

    def _on_end(self, receiver: Receiver, occurrence: Occurrence) -> None:
        ended = self._ended.setdefault(occurrence.uid, set())
        ended.add(_entry(occurrence, receiver))
        self._ended.move_to_end(occurrence.uid)
        if len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)
        self._enqueue((occurrence.namespace, occurrence.release))

    def _count(self, receiver: Receiver, result: NotificationResult) -> None:
        self._sent.labels(receiver.type, result).inc()


def _wants(receiver: Receiver, occurrence: Occurrence) -> bool:
    return receiver.wants(occurrence.event, occurrence.namespace, resolved=occurrence.resolved)


def _entry(occurrence: Occurrence, receiver: Receiver) -> str:
    """An entry of `status.notified`."""
    return f"{occurrence.key}/{receiver.name}{_RESOLVED if occurrence.resolved else ''}"


def _lasting(entries: set[str], receiver: Receiver) -> Iterator[tuple[Event, int, str]]:
    """The lasting events among these entries of this receiver, each with its time in Unix seconds and its part."""
    for entry in sorted(entries):
        event, _, rest = entry.partition("/")
        when, _, name = rest.partition("/")
        at, _, part = when.partition("-")
        known = event in tuple(Event) and name == receiver.name
        if known and lasts(Event(event), receiver) and at.isascii() and at.isdigit() and len(at) < 16:
            yield Event(event), int(at), part
