"""When the controller looks at the clock."""

from typing import TypeVar

import msgspec
from kubernetes_asyncio.client import Configuration

from altershield.api import labels
from altershield.api.kinds import ChangePod, ChangeWorkload
from altershield.api.managed_fields import ManagedMeta
from altershield.api.meta import OwnerReference
from altershield.api.views import Deployment, Namespace, Pod, ReplicaSet
from altershield.kube.client import Client
from altershield.kube.events import EventRecorder
from reconciler.caches import Caches
from reconciler.executor import Executor
from reconciler.metrics import Metrics
from reconciler.rollback import RollbackController
from reconciler.writer import Writer
from tests.unit.reconciler.builders import DEPLOYMENT_UID, NOW, V1, change_workload, deployment, pod, replica_set

TIMEOUT = 120

T = TypeVar("T", Deployment, ReplicaSet, Pod, ChangeWorkload, ChangePod, Namespace)


async def test_a_pod_that_is_late_only_while_this_is_decided_is_seen_to_the_next_time() -> None:
    """Timers fire a little early: the first look must not say that nothing is late, and the second one that it is."""
    times = iter([NOW + TIMEOUT - 0.0001])
    async with Client(Configuration(host="http://127.0.0.1:1")) as client:  # nothing is to be asked of it
        metrics = Metrics()
        caches = Caches(client, "system")
        governed = ManagedMeta(name="default", labels={labels.GOVERNED: labels.GOVERNED_VALUE})
        caches.namespaces.observe(seen(Namespace(governed)))
        caches.deployments.observe(seen(deployment()))
        of_version = seen(replica_set(V1, ready=0), OwnerReference("Deployment", "sleep", DEPLOYMENT_UID))
        caches.replica_sets.observe(of_version)
        caches.pods.observe(
            seen(pod("late"), OwnerReference("ReplicaSet", of_version.metadata.name, of_version.metadata.uid))
        )
        record = seen(change_workload())
        caches.change_workloads.observe(record)

        def clock() -> float:
            return next(times, NOW + TIMEOUT + 0.0001)

        executor = Executor(client, caches, Writer(client, metrics), EventRecorder(client, "it"), metrics, clock)
        controller = RollbackController(client, caches, executor, clock, TIMEOUT)

        again = await controller.reconcile(("default", record.metadata.name))

        assert again is not None
        assert 0 < again < 0.001


def seen(obj: T, owner: OwnerReference | None = None) -> T:
    """As a watch tells of it."""
    metadata = msgspec.structs.replace(obj.metadata, resource_version="7")
    if owner is not None:
        owner = msgspec.structs.replace(owner, controller=True)
        metadata = msgspec.structs.replace(metadata, owner_references=(owner,))
    return msgspec.structs.replace(obj, metadata=metadata)
