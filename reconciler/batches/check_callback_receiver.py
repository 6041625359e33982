"""Receives the callbacks about `http` checks, in each replica. The result is stored in the ChangePod, where the leader
finds it."""

from altershield.api.change_pod import ChangePod
from altershield.api.resources import CHANGE_PODS
from altershield.kube.backoff import retry_conflicts
from altershield.kube.client import Client
from altershield.kube.errors import NotFoundError
from reconciler.batches.batch_reconciler import BatchReconciler
from reconciler.endpoints.check_callback import CheckCallback


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
        return await retry_conflicts(lambda: self._store(callback))

    async def _store(self, callback: CheckCallback) -> bool:
        run = callback.run
        try:
            change_pod = await self._client.get(CHANGE_PODS, run.change_pod, run.namespace, as_=ChangePod)
        except NotFoundError:
            return False
        if change_pod.metadata.uid != run.uid:
            return False
        return await self._batches.receive_result(change_pod, run, callback.result)
