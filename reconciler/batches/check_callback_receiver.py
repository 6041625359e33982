"""Receives the callbacks about `http` checks, in each replica. The result is stored in the ChangePod, where the leader
finds it."""

from altershield.api.change_pod import ChangePod
from altershield.api.resources import CHANGE_PODS
from kube_base.access.backoff import retry_conflicts
from kube_base.access.client import Client
from kube_base.access.errors import NotFoundError
from reconciler.batches.batch_reconciler import BatchReconciler
from reconciler.batches.nodes import Reception
from reconciler.endpoints.check_callback import CheckCallback
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.outcome import CallbackOutcome


class CheckCallbackReceiver:
    """The results of checks whose receivers answer later."""

    def __init__(self, client: Client, reconciler: BatchReconciler) -> None:
        self._client = client
        self._reconciler = reconciler

    async def receive(self, callback: CheckCallback) -> bool:
        """Store the result. Returns False if the result changes nothing, because the check has a result. The first
        result counts.

        EndpointError (409): the check has not begun with this run, or its ChangePod does not exist any more.
        KubernetesError if the API server does not take the write.
        """
        return await retry_conflicts(lambda: self._store(callback))

    async def _store(self, callback: CheckCallback) -> bool:
        run = callback.run
        try:
            change_pod = await self._client.get(CHANGE_PODS, run.change_pod, run.namespace, as_=ChangePod)
        except NotFoundError:
            raise _unknown() from None
        if change_pod.metadata.uid != run.uid:
            raise _unknown()
        reception = await self._reconciler.receive_result(change_pod, run, callback.result)
        if reception is Reception.UNKNOWN:
            raise _unknown()
        return reception is Reception.STORED


def _unknown() -> EndpointError:
    return EndpointError("no check has begun with this run: nothing has changed", 409, CallbackOutcome.UNKNOWN)
