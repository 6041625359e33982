"""Controller: a release that slipped past the gate is noticed, and verified as if it had not.

Caches only say where to look; what is decided on is read anew, so that no order of events leads to a false alarm.
The record comes first, then the labels: ReplicaSet, pods, and the Deployment's last, which lets verification begin.
So who restarts in between finds the rest still to be done, and what was recorded is not recorded twice.
"""

from collections.abc import Callable

import msgspec

from altershield.api import labels
from altershield.api.fingerprint import Template, of_replica_set
from altershield.api.kinds import ConditionType
from altershield.api.meta import Condition, find_condition, rfc3339
from altershield.api.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from altershield.api.views import Deployment, ManagedDeployment, Pod, ReplicaSet
from altershield.kube.client import Client
from altershield.kube.errors import ConflictError
from altershield.kube.events import WARNING, EventRecorder, ObjectRef
from reconciler.caches import Caches, Key
from reconciler.decisions.slipped import Slip, SlipReason, behind, doubtful, judge, namesakes, present, relabelled
from reconciler.metrics import Metrics
from reconciler.records import Records, processed, reversion
from reconciler.writer import Operation, Writer, label_path

_VERSION = label_path(labels.VERSION)

_METRIC_REASONS = {SlipReason.NO_VERSION: "no-version", SlipReason.VERSION_REUSED: "version-reused"}


class _Spec(msgspec.Struct, frozen=True):
    template: Template


class _Released(msgspec.Struct, frozen=True):
    """A ReplicaSet's pod template."""

    spec: _Spec


class SlippedController:
    """Keys are those of Deployments."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        writer: Writer,
        records: Records,
        recorder: EventRecorder,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._caches = caches
        self._writer = writer
        self._records = records
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock

    async def reconcile(self, key: Key) -> float | None:
        if not self._caches.governed(key[0]):
            return None
        cached = self._caches.deployments.get(*key)
        if cached is not None and not self._is_doubtful(cached):
            await self._label_pods(present(cached, self._caches.all_replica_sets_of(cached)))
            return None
        deployment = await self._read(key)
        if deployment is None or deployment.metadata.deletion_timestamp is not None:
            return None
        replica_sets = self._caches.all_replica_sets_of(deployment)
        replica_set = present(deployment, replica_sets)
        if replica_set is None:
            if cached is None and behind(deployment, replica_sets):
                # no watch tells of a Deployment without a version
                raise ConflictError(f"the deployment controller is about to change {key[0]}/{key[1]}", code=409)
            return None
        if not doubtful(deployment, replica_set, replica_sets) or labels.VERSION in deployment.spec.selector.keys:
            return None  # with another version, the last one's ReplicaSet and pods would no longer be selected
        own = await self._fingerprint(replica_set)
        others = [] if own == replica_set.version else namesakes(replica_set, replica_sets)
        slip = judge(
            deployment,
            replica_set,
            own,
            [await self._fingerprint(other) for other in others],
            self._caches.gated_since(key[0]),
        )
        if slip is not None:
            await self._record(deployment, slip)
            label: Operation = {"op": "add", "path": _VERSION, "value": slip.version}
            if replica_set.version != slip.version:
                await self._writer.patch(self._caches.replica_sets, replica_set, [label])  # which leads here again
            else:
                await self._label_pods(replica_set)
                await self._label(deployment, label)
        return None

    def _is_doubtful(self, deployment: Deployment) -> bool:
        replica_sets = self._caches.all_replica_sets_of(deployment)
        replica_set = present(deployment, replica_sets)
        return replica_set is not None and doubtful(deployment, replica_set, replica_sets)

    async def _read(self, key: Key) -> ManagedDeployment | None:
        namespace, name = key
        found = await self._client.list(
            DEPLOYMENTS, namespace, as_=ManagedDeployment, field_selector=f"metadata.name={name}"
        )
        return found.items[0] if found.items else None

    async def _fingerprint(self, replica_set: ReplicaSet) -> str:
        metadata = replica_set.metadata
        released = await self._client.get(REPLICA_SETS, metadata.name, metadata.namespace, as_=_Released)
        return of_replica_set(released.spec.template)

    async def _record(self, deployment: ManagedDeployment, slip: Slip) -> None:
        """Start the version's record with the condition, and tell. Its message names the ReplicaSet and its revision,
        so what has the same one was recorded before."""
        record = await self._records.existing(deployment, slip.version)
        known = find_condition(record.status.conditions, ConditionType.SLIPPED) if record is not None else None
        recorded = known is not None and known.message == slip.message
        if record is None:
            record = await self._records.create(deployment, slip.version)
        interrupted = deployment.version != slip.version and record.spec.reversion != reversion(deployment)
        if not recorded or interrupted:
            condition = Condition(
                ConditionType.SLIPPED,
                "True",
                slip.reason,
                slip.message,
                last_transition_time=rfc3339(self._clock()),
                observed_generation=record.metadata.generation,
            )
            record = await self._records.reset(record, condition)
            if not recorded:
                regarding = ObjectRef.of(DEPLOYMENTS, deployment.metadata)
                self._recorder.event(regarding, WARNING, "ReleaseSlipped", slip.message)
                self._metrics.slipped_releases.labels(_METRIC_REASONS[slip.reason]).inc()
            await self._records.began(deployment, record)

    async def _label(self, deployment: ManagedDeployment, label: Operation) -> None:
        operations: list[Operation] = [
            # a release that came meanwhile has another version
            {"op": "test", "path": "/metadata/resourceVersion", "value": deployment.metadata.resource_version}
        ]
        if not deployment.metadata.labels:
            operations.append({"op": "add", "path": "/metadata/labels", "value": {}})
        await self._writer.patch(self._caches.deployments, deployment, [*operations, label, *processed(deployment)])

    async def _label_pods(self, replica_set: ReplicaSet | None) -> None:
        """Pods come with the template's labels. Every new one changes its ReplicaSet's status, which leads here."""
        if replica_set is None or not relabelled(replica_set):
            return
        metadata = replica_set.metadata
        selector = (
            f"{labels.POD_TEMPLATE_HASH}={metadata.labels.get(labels.POD_TEMPLATE_HASH, '')},"
            f"{labels.VERSION}!={replica_set.version}"
        )
        found = await self._client.list(PODS, metadata.namespace, as_=Pod, label_selector=selector)
        for pod in found.items:
            owner = pod.metadata.controller
            if owner is not None and owner.uid == metadata.uid and pod.metadata.deletion_timestamp is None:
                label = {"op": "add", "path": _VERSION, "value": replica_set.version}
                await self._writer.patch(self._caches.pods, pod, [label])
