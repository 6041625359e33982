"""Receives the callbacks about `http` checks, in each replica. The result is stored in the ChangePod, where the leader
finds it."""

from altershield.api.change_pod import ChangePod
from altershield.api.resources import CHANGE_PODS
from altershield.kube.client import Client
from altershield.kube.errors import ConflictError, NotFoundError
from reconciler.batches.batch_reconciler import BatchReconciler
from reconciler.endpoints.check_callback import CheckCallback

_ATTEMPTS = 5  # to store a result while somebody else writes the ChangePod


class CheckCallbackReceiver:
    """The results of checks whose receivers answer later."""

    def __init__(self, client: Client, batches: BatchReconciler) -> None:
        self._client = client
        self._batches = batches

    async def receive(self, callback: CheckCallback) -> bool:
        """Store the result. Returns False if the result changes nothing: the check has passed or failed before, the
        check has not begun, or the ChangePod does not exist any more. The first result counts.

        KubernetesError if the API server does not take the write.
        """
        run = callback.run
        for _ in range(_ATTEMPTS):
            try:
                change_pod = await self._client.get(CHANGE_PODS, run.change_pod, run.namespace, as_=ChangePod)
            except NotFoundError:
                return False
            if change_pod.metadata.uid != run.uid:
                return False
            try:
                return await self._batches.receive_result(change_pod, run, callback.result)
            except (ConflictError, NotFoundError):
                continue
        where = f"{run.namespace}/{run.change_pod}"
        raise ConflictError(f"the ChangePod {where} changed during {_ATTEMPTS} attempts to write", code=409)
