"""Receives the callbacks of an AlterShield server, in each replica. The result is stored in the ChangePod, where the
leader finds it."""

import asyncio
import logging

from altershield.api.kinds import ChangePod
from altershield.api.policy import Phase
from altershield.api.resources import CHANGE_PODS
from altershield.kube.client import Client
from altershield.kube.errors import ConflictError, NotFoundError
from reconciler.batches.batch_reconciler import BatchReconciler
from reconciler.checks.check import Fail, Pass
from reconciler.endpoints.callback import Callback, CheckType
from reconciler.machinery.caches import Caches
from reconciler.server.messages import Stage

logger = logging.getLogger(__name__)

_PHASES = {Stage.PRE: Phase.PRE, Stage.POST: Phase.POST}
_ATTEMPTS = 5  # to store a result while somebody else writes the ChangePod
_WAIT_SECONDS = 1.0  # for the id of a batch: a fast server sends its callback before the id is stored
_LOOK_SECONDS = 0.05


class CallbackReceiver:
    """The results of the server's checks."""

    def __init__(self, client: Client, caches: Caches, batches: BatchReconciler) -> None:
        self._client = client
        self._caches = caches
        self._batches = batches

    async def receive(self, callback: Callback) -> None:
        """Store the verdict on the batch that has the id `callback.node` on the server.

        A verdict that is of no use any more, or on an unknown batch, is logged: the server sends some verdicts twice or
        late. The leader polls for those that are lost. KubernetesError if the API server does not take the write.
        """
        if callback.check_type is not CheckType.BATCH:
            return  # AlterShield starts batches only
        phase, node = _PHASES[callback.stage], callback.node
        said = callback.message or _reason(callback)
        result = Pass(said) if callback.verdict.passed else Fail(said)
        for _ in range(_ATTEMPTS):
            change_pod = await self._change_pod(node)
            if change_pod is None:
                logger.warning("callback for an unknown batch", extra={"node": node, "order": callback.order})
                return
            try:
                used = await self._batches.receive(change_pod, phase, result)
            except (ConflictError, NotFoundError):
                continue
            if not used:
                logger.info(
                    "callback for a check that is over", extra={"node": node, "state": change_pod.status.status}
                )
            return
        raise ConflictError(f"the ChangePod of the batch {node} changes all the time", code=409)

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


def _reason(callback: Callback) -> str:
    """The message of a verdict without the messages of rules."""
    if callback.verdict.passed:
        return "" if callback.rules else "the server ran no rule"
    return f"the AlterShield server's verdict is {callback.verdict}"
