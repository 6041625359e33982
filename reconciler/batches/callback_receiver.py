"""Receives the callbacks of an AlterShield server, in each replica. The result is stored in the ChangePod, where the
leader finds it."""

import asyncio
import logging

from altershield.api.kinds import ChangePod, Phase
from altershield.api.resources import CHANGE_PODS
from altershield.kube.client import Client
from altershield.kube.errors import ConflictError, NotFoundError
from reconciler.batches.batch_reconciler import BatchReconciler
from reconciler.batches.transitions import Checked, awaits
from reconciler.machinery.caches import Caches

logger = logging.getLogger(__name__)

_ATTEMPTS = 5  # to store a result while somebody else writes the ChangePod
_WAIT_SECONDS = 1.0  # for the id of a batch: a fast server sends its callback before the id is stored
_LOOK_SECONDS = 0.05


class CallbackReceiver:
    """The results of the server's checks."""

    def __init__(self, client: Client, caches: Caches, batches: BatchReconciler) -> None:
        self._client = client
        self._caches = caches
        self._batches = batches

    async def receive(self, node: str, phase: Phase, result: Checked) -> None:
        """Store the result of the check of a phase on the batch that has the id `node` on the server.

        A result that is of no use any more, or for an unknown batch, is logged: the server sends some results twice or
        late. The leader polls for results that are lost. KubernetesError if the API server does not take the write.
        """
        fields = {"node": node[:64], "phase": phase, "passed": result.passed}
        for _ in range(_ATTEMPTS):
            change_pod = await self._change_pod(node)
            if change_pod is None:
                logger.warning("callback for an unknown batch", extra=fields)
                return
            if not awaits(change_pod.status, phase):
                logger.info("callback for a check that is over", extra=fields | {"state": change_pod.status.status})
                return
            try:
                await self._batches.receive(change_pod, result)
            except (ConflictError, NotFoundError):
                continue
            return
        raise ConflictError(f"the ChangePod of the batch {node[:64]} changes all the time", code=409)

    async def _change_pod(self, node: str) -> ChangePod | None:
        """The ChangePod as the API server has it now, or None."""
        deadline = asyncio.get_running_loop().time() + _WAIT_SECONDS
        while (batch := self._caches.batch_of_node(node)) is None:
            if asyncio.get_running_loop().time() > deadline:
                return None
            await asyncio.sleep(_LOOK_SECONDS)
        try:
            return await self._client.get(CHANGE_PODS, batch.metadata.name, batch.metadata.namespace, as_=ChangePod)
        except NotFoundError:
            return None
