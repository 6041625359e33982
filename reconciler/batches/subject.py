"""The subject of batches. A ChangePod is reconciled while it is unfinished, and when the policy of its release
changes."""

from dataclasses import dataclass

from altershield.api.change_pod import KIND
from altershield.api.resources import CHANGE_PODS
from altershield.api.rights import Right
from kube_base.access.queue import WorkQueue
from reconciler.batches.batch_reconciler import BatchReconciler
from reconciler.batches.callback_receiver import CallbackReceiver
from reconciler.batches.check_callback_receiver import CheckCallbackReceiver
from reconciler.batches.metrics import BatchMetrics
from reconciler.batches.runners import runners
from reconciler.batches.skipping import Skipper
from reconciler.cluster.batch import Batch
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.release import Release
from reconciler.cluster.release_checks import may_end_checks
from reconciler.cluster.soaks import repeats
from reconciler.endpoints.callback_endpoint import Receive
from reconciler.endpoints.check_callback_endpoint import ReceiveResult
from reconciler.server.server_options import callback_url
from reconciler.subject import CHECKING_WORKERS, Controller, Parts, Subject


class BatchRoutes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: Caches, queue: WorkQueue[Key]) -> None:
        self._caches = caches
        self._queue = queue
        caches.releases.add_handler(self._release)
        caches.batches.add_handler(self._batch)

    def _release(self, old: Release | None, new: Release | None) -> None:
        if new is None:
            return
        has_other_checks = old is not None and old.spec.policy != new.spec.policy  # they may wait for a person
        soaks = repeats(new) and not (old is not None and repeats(old))
        goes_on = old is not None and bool(new.spec.policy.checks) and may_end_checks(old, new)
        if has_other_checks or soaks or goes_on:
            for batch in self._caches.batches_of(new):
                if soaks or batch.unfinished is not None:
                    self._queue.add(batch.metadata.key)

    def _batch(self, old: Batch | None, new: Batch | None) -> None:
        if new is None:
            return
        release = self._caches.releases.get(*new.release) if old is None else None
        if new.unfinished is not None or (release is not None and repeats(release)):
            self._queue.add(new.metadata.key)


@dataclass(frozen=True, kw_only=True)
class BatchController(Controller[Key]):
    """Every replica also receives the results of checks, because a callback arrives at any replica."""

    receive: Receive
    """Takes the callbacks of an AlterShield server."""
    receive_result: ReceiveResult
    """Takes the callbacks about `http` checks."""


def start(parts: Parts[Key]) -> BatchController:
    BatchRoutes(parts.caches, parts.queue)
    options, metrics = parts.options, BatchMetrics(parts.registry)
    batches = BatchReconciler(
        parts.caches,
        parts.writer,
        metrics,
        parts.clock,
        checks=runners(
            parts.client,
            parts.outbound,
            parts.server,
            parts.clock,
            system_namespace=options.system_namespace,
            observe=options.observe_seconds,
            callback_url=callback_url(options) if options.callback_port else None,
        ),
        pre_timeout=options.pre_timeout,
        post_timeout=options.post_timeout,
        skipper=Skipper(parts.server, parts.writer, metrics, parts.clock),
    )
    return BatchController(
        reconcile=batches.reconcile,
        receive=CallbackReceiver(parts.client, parts.caches, batches, parts.clock).receive,
        receive_result=CheckCallbackReceiver(parts.client, batches).receive,
    )


BATCHES = Subject(
    "batches",
    start,
    kinds=(KIND,),
    rights=(
        Right((CHANGE_PODS,), "get list watch create delete", why="`get` after a creation without an answer."),
        Right((CHANGE_PODS,), "patch", "status"),
    ),
    writes=((CHANGE_PODS, ("create", "patch status", "delete")),),
    workers=CHECKING_WORKERS,
)
