"""The subject of notifications. A ChangeWorkload is reconciled after the events that receivers may have to learn of."""

from reconciler.cluster.caches import Key
from reconciler.notifications.metrics import notifications
from reconciler.notifications.notifier import Notifier
from reconciler.subject import Controller, Parts, Subject


def start(parts: Parts[Key]) -> Controller[Key] | None:
    sent = notifications(parts.registry)
    if parts.delivery is None:
        return None
    notifier = Notifier(parts.caches, parts.writer, sent, parts.clock, parts.delivery, parts.queue.add)
    parts.caches.releases.add_handler(notifier.on_release)
    parts.caches.batches.add_handler(notifier.on_batch)
    return Controller(reconcile=notifier.reconcile, task=notifier.run)


NOTIFICATIONS = Subject("notifications", start)
