"""The subject of PodDeletionFlowControls. One is reconciled when it changes, and all of them when a pod is lost."""

from altershield.api.flow_control import KIND, PodDeletionFlowControl
from altershield.api.resources import POD_DELETION_FLOW_CONTROLS
from altershield.api.rights import Right
from altershield.workloads.pods import Pod
from kube_base.access.objects import key_of
from kube_base.access.queue import WorkQueue
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.gauges import Gauges
from reconciler.flow_control.flow_control_reconciler import WATCH, FlowControlReconciler
from reconciler.flow_control.metrics import families
from reconciler.subject import Controller, Parts, Subject


class FlowControlRoutes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: Caches, queue: WorkQueue[Key]) -> None:
        self._caches = caches
        self._queue = queue
        caches[WATCH].add_handler(self._flow_control)
        caches.pods.add_handler(self._pod)

    def _flow_control(self, old: PodDeletionFlowControl | None, new: PodDeletionFlowControl | None) -> None:
        policy = new or old
        if policy is not None:
            self._queue.add(key_of(policy.metadata))

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.lost and (old is None or not old.lost):
            for policy in self._caches[WATCH].all():  # they count the loss
                self._queue.add(key_of(policy.metadata))


def start(parts: Parts[Key]) -> Controller[Key]:
    FlowControlRoutes(parts.caches, parts.queue)
    informer = parts.caches[WATCH]
    parts.acceptance.count(POD_DELETION_FLOW_CONTROLS.kind, informer.all)
    parts.registry.register(Gauges(lambda: families(informer.all(), parts.clock())))
    flow_controls = FlowControlReconciler(
        parts.client, parts.caches, parts.writer, parts.recorder, parts.disruptions, parts.clock
    )
    return Controller(reconcile=flow_controls.reconcile)


FLOW_CONTROLS = Subject(
    "flow-controls",
    start,
    kinds=(KIND,),
    rights=(
        Right((POD_DELETION_FLOW_CONTROLS,), "get list watch", why="`get` after a conflict of two writers."),
        Right((POD_DELETION_FLOW_CONTROLS,), "update", "status"),
    ),
    watches=(WATCH,),
    writes=((POD_DELETION_FLOW_CONTROLS, ("update status",)),),
)
