"""Deletes the pods of older versions for which a workload's controller would wait without end. `stuck_pods.py` decides
which pods these are."""

from collections.abc import Callable, Sequence

import msgspec

from altershield.budget_caches.disruption_budgets import DisruptionBudget
from altershield.budgets import pods as budget_pods
from altershield.workloads import pods as pod_projections
from altershield.workloads.blocking import blocking_pods
from altershield.workloads.pods import Pod
from altershield.workloads.start_budget import start_budget
from altershield.workloads.workload import Workload
from kube_base.access.bodies import decode, project
from kube_base.access.client import Client
from kube_base.access.errors import BadRequestError, ForbiddenError, InvalidError, NotFoundError
from kube_base.resources import DISRUPTION_BUDGETS, PODS
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import WorkloadKey
from reconciler.cluster.release import Release
from reconciler.cluster.writer import Writer
from reconciler.releases.decisions.stuck_pods import StuckPods, starts_until
from reconciler.releases.pods.health import Timing
from reconciler.releases.reads.live import LiveReader
from reconciler.releases.terms.rules import settings_of
from reconciler.releases.writes.events import ReleaseEvents

_RETRY_FIRST = 5.0  # seconds until a refused deletion is tried again; later, as long as the pod exists
_RETRY_LAST = 300.0


class _WithSpec(msgspec.Struct):
    spec: msgspec.Raw = msgspec.Raw()


class StuckPodsCheck:
    """`clock` returns Unix seconds by the API server's clock. All methods raise the errors of the client."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        writer: Writer,
        live: LiveReader,
        events: ReleaseEvents,
        timing: Timing,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._caches = caches
        self._writer = writer
        self._live = live
        self._events = events
        self._timing = timing
        self._clock = clock
        self._stuck: dict[WorkloadKey, StuckPods] = {}

    def discard(self, key: WorkloadKey) -> None:
        """Forget a workload that is deleted or not governed."""
        self._stuck.pop(key, None)

    def clear(self) -> None:
        """Forget all workloads: this process did not see what happened to their pods."""
        self._stuck.clear()

    async def free(
        self, key: WorkloadKey, workload: Workload, present: Release, others: Sequence[Release]
    ) -> float | None:
        """Delete the stuck pods of a workload. Returns the seconds after which it is to be checked again, or None.

        `present`: its current release, `others`: its other releases.
        """
        if not workload.waits_for_ready:
            self.discard(key)
            return None
        now = self._clock()
        stuck = self._stuck.pop(key, None) or StuckPods(self._caches)
        found = stuck.find(
            workload,
            self._caches.pods_of(workload),
            present,
            others,
            (batch for each in (present, *others) for batch in self._caches.batches_of(each)),
            self._timing,
            now,
            enabled=settings_of(self._caches.in_effect(), present.spec.policy).rollback,
        )
        if len(stuck):
            self._stuck[key] = stuck
        dues = [None if found.due is None else max(0.0, found.due - now)]
        if found.rolled_back or found.overdue:
            live = (await self._live.workload(workload)).workload
            if live.version == workload.version and live.generation == workload.generation:
                dues += [await self._delete(live, pod, None) for pod in found.rolled_back]
                dues += [await self._delete(live, pod, found.timing) for pod in found.overdue]
        return min((each for each in dues if each is not None), default=None)

    async def _delete(self, workload: Workload, known: Pod, timing: Timing | None) -> float | None:
        """Delete the pod if the API server has it as it is known. Returns the seconds after which this is to be tried
        again, or None. `timing`: the times in which the pod may start; None: its version was rolled back."""
        name, namespace, now = known.metadata.name, known.metadata.namespace, self._clock()
        retry = min(max(now - known.metadata.created, _RETRY_FIRST), _RETRY_LAST)
        try:
            raw = await self._client.get(PODS, name, namespace, as_=msgspec.Raw)
        except NotFoundError:
            return None
        pod = project(raw, pod_projections.read, PODS.plural)
        if pod.metadata.uid != known.metadata.uid or not blocking_pods(workload, [pod]):
            return None  # it is another pod, or the watch queues the workload when it brings the change
        if timing is not None:
            spec = decode(raw, _WithSpec).spec
            starts = starts_until(pod, start_budget(spec, workload.start.init), timing)
            if now < starts:
                return starts - now
        refusal = await self._budget_refusal(namespace, project(raw, budget_pods.read, PODS.plural))
        if not refusal:
            try:
                deleted = await self._writer.delete(PODS, pod.metadata, unchanged=True)
            except (BadRequestError, ForbiddenError, InvalidError) as error:
                refusal = str(error)  # of a PodUnavailableBudget, for example
            else:
                if deleted:
                    self._announce_deleted(workload, pod)
                return None
        controller = f"{workload.kind} {workload.metadata.name}"
        message = (
            f"pod {name} of an older version is not up, and {controller} waits for it; it is not deleted: {refusal}"
        )
        self._events.announce(workload, "StuckPodNotDeleted", message)
        return retry

    async def _budget_refusal(self, namespace: str, pod: budget_pods.Pod) -> str:
        """The PodDisruptionBudget that allows no disruption of the pod now; empty if there is none."""
        listed = await self._client.list(DISRUPTION_BUDGETS, namespace, as_=DisruptionBudget)
        names = [each.metadata.name for each in listed.items if each.blocks_unready(pod)]
        return f"PodDisruptionBudget {names[0]} allows no disruption" if names else ""

    def _announce_deleted(self, workload: Workload, pod: Pod) -> None:
        controller, words = f"{workload.kind} {workload.metadata.name}", pod.trouble or "not ready"
        message = f"pod {pod.metadata.name} of an older version was deleted: {words}; {controller} waited for it"
        self._events.announce(workload, "StuckPodDeleted", message, warning=False)
