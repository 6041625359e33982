"""Controller: closes the orders of releases that AlterShield does not follow any more, and deletes the records of
closed orders. `Reporter` closes the orders of all other releases."""

import logging
from enum import Enum, auto

from altershield.api.change_workload import ChangeWorkload
from altershield.api.resources import CHANGE_WORKLOADS
from kube_base.access.client import Client
from kube_base.access.errors import NotFoundError
from kube_base.resources import CONFIG_MAPS
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.open_orders import OpenOrder
from reconciler.cluster.orders import is_closed, order_id
from reconciler.cluster.writer import Writer
from reconciler.releases.writes.reports import RETRY_SECONDS, OrderServer
from reconciler.server.answers import DENIED
from reconciler.server.messages import FinishState
from reconciler.server.server_errors import AlterShieldServerError, RejectedError, UnavailableError

logger = logging.getLogger(__name__)

_FILLING = 1.0  # seconds until the next attempt, while the caches are behind


class Fate(Enum):
    """What is to happen to an order."""

    FOLLOWED = auto()
    """Its release goes on."""
    CLOSED = auto()
    DELETED = auto()
    """Its ChangeWorkload does not exist any more."""
    SUPERSEDED = auto()
    """Its ChangeWorkload is about a later release of the version."""


def fate(order: OpenOrder, release: ChangeWorkload | None) -> Fate:
    """`release`: the ChangeWorkload of this name, or None."""
    if release is None or release.metadata.uid != order.release_uid:
        return Fate.DELETED
    if order_id(release) != order.order:
        return Fate.SUPERSEDED
    return Fate.CLOSED if is_closed(release) else Fate.FOLLOWED


class OrderReconciler:
    """Its keys are the namespace and name of the record of an open order."""

    def __init__(self, client: Client, caches: Caches, writer: Writer, server: OrderServer) -> None:
        self._client = client
        self._caches = caches
        self._writer = writer
        self._server = server

    async def reconcile(self, key: Key) -> float | None:
        """Close the order if its release is not followed any more. Returns the seconds until the next attempt if the
        server cannot be reached, or the caches are behind.

        The decision to close is made on the live ChangeWorkload, because the caches of a new leader may be behind.
        """
        order = self._caches.orders.get(*key)
        if order is None:
            return None
        namespace, _ = order.release
        if self._caches.filling(namespace) is not None:
            return _FILLING
        found = fate(order, self._caches.releases.get(*order.release))
        if found is Fate.FOLLOWED:
            return None
        if found is not Fate.CLOSED:
            found = fate(order, await self._live(order))
            governed = self._caches.governed(namespace)
            if found is Fate.FOLLOWED and governed:
                return _FILLING
            if found is not Fate.CLOSED and not await self._close(order, found):
                return RETRY_SECONDS
        await self._writer.delete(CONFIG_MAPS, order)
        return None

    async def _live(self, order: OpenOrder) -> ChangeWorkload | None:
        namespace, name = order.release
        try:
            return await self._client.get(CHANGE_WORKLOADS, name, namespace, as_=ChangeWorkload)
        except NotFoundError:
            return None

    async def _close(self, order: OpenOrder, found: Fate) -> bool:
        """Cancel the order. Returns False if this has to be repeated. A refusal is not
        repeated, except if the token is wrong, because somebody may be replacing it."""
        why = _REASONS[found]
        extra = {"order": order.order, "release": "/".join(order.release), "reason": why}
        try:
            await self._server.close_order(order.order, FinishState.CANCEL, why)
        except UnavailableError:
            return False
        except AlterShieldServerError as error:
            if isinstance(error, RejectedError) and error.code == DENIED:
                return False
            logger.warning("the server did not close an order", extra={**extra, "cause": str(error)})
            return True
        logger.info("closed the order of a release that is not followed any more", extra=extra)
        return True


_REASONS = {
    Fate.DELETED: "the workload or its ChangeWorkload was deleted",
    Fate.SUPERSEDED: "the version was released again",
    Fate.FOLLOWED: "AlterShield does not govern the namespace any more",
}
