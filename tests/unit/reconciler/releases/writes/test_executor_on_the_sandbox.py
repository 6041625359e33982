"""The executor on the sandbox does not overwrite concurrent changes."""

import time
from pathlib import Path

import msgspec
import pytest

from altershield.api import names
from altershield.api.change_workload import ChangeWorkload, ChangeWorkloadStatus, WorkloadState
from altershield.api.resources import CHANGE_WORKLOADS
from kube_base.access.errors import ConflictError
from kube_base.access.events import EventRecorder
from reconciler.cluster import release as projection
from reconciler.cluster.caches import Caches
from reconciler.cluster.writer import Writer
from reconciler.machinery.metrics import Metrics
from reconciler.releases.metrics import ReleaseMetrics
from reconciler.releases.reads.live import LiveReader
from reconciler.releases.terms.effects import Decision, SetThreshold
from reconciler.releases.writes.executor import Executor
from tests.fault.reconciler_cluster import running_cluster
from tests.unit.altershield.releases.builders import V1, release, workload


async def test_rollback_requested_concurrently_is_not_overwritten(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        client, metrics = cluster.admin, Metrics()
        caches = Caches(client, names.SYSTEM_NAMESPACE)
        recorder = EventRecorder(client, "altershield")
        executor = Executor(
            caches,
            Writer(client, caches, metrics),
            LiveReader(client),
            recorder,
            ReleaseMetrics(metrics.registry),
            time.time,
        )
        wanted = msgspec.to_builtins(release(V1))
        wanted["metadata"] = {"name": wanted["metadata"]["name"]}
        made = await client.create(CHANGE_WORKLOADS, wanted, "shop", as_=ChangeWorkload)
        seen = projection.read(msgspec.json.encode(made))
        asked = {"status": {"status": WorkloadState.ROLLBACK}}
        await client.patch(CHANGE_WORKLOADS, asked, made.metadata.name, "shop", subresource="status")

        decided = Decision(ChangeWorkloadStatus(status=WorkloadState.RUNNING), before=(SetThreshold(2),))
        with pytest.raises(ConflictError):
            await executor.carry_out(seen, workload(V1), decided)

        after = await client.get(CHANGE_WORKLOADS, made.metadata.name, "shop", as_=ChangeWorkload)
        assert after.status.status == WorkloadState.ROLLBACK
