"""The subject of open orders, with an AlterShield server. The record of an order is reconciled when it appears, and
when its release changes."""

from kube_base.access.queue import WorkQueue
from kube_base.resources import CONFIG_MAPS
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.open_orders import OpenOrder
from reconciler.cluster.release import Release
from reconciler.orders.order_reconciler import OrderReconciler
from reconciler.subject import Controller, Parts, Subject


class OrderRoutes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: Caches, queue: WorkQueue[Key]) -> None:
        self._caches = caches
        self._queue = queue
        caches.orders.add_handler(self._order)
        caches.releases.add_handler(self._release)

    def _order(self, old: OpenOrder | None, new: OpenOrder | None) -> None:
        if new is not None:
            self._queue.add(new.key)

    def _release(self, old: Release | None, new: Release | None) -> None:
        for release in (old, new):
            if release is not None:
                for order in self._caches.orders_of(release):
                    self._queue.add(order.key)


def start(parts: Parts[Key]) -> Controller[Key] | None:
    if parts.server is None:
        return None
    OrderRoutes(parts.caches, parts.queue)
    orders = OrderReconciler(parts.client, parts.caches, parts.writer, parts.server)
    return Controller(reconcile=orders.reconcile)


ORDERS = Subject("orders", start, writes=((CONFIG_MAPS, ("create", "delete")),))
