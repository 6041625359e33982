"""What was decided is carried out on what was seen, or not at all."""

import time
from pathlib import Path

import pytest

from altershield.api import names
from altershield.api.kinds import ChangeWorkload, ChangeWorkloadSpec, ChangeWorkloadStatus, WorkloadState
from altershield.api.meta import ObjectMeta
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.kube.errors import ConflictError
from altershield.kube.events import EventRecorder
from reconciler.caches import Caches
from reconciler.decisions.effects import SetThreshold
from reconciler.executor import Executor
from reconciler.metrics import Metrics
from reconciler.writer import Writer
from tests.fault.reconciler_cluster import running_cluster, version


async def test_a_rollback_asked_for_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        client, metrics = cluster.admin, Metrics()
        caches = Caches(client, names.SYSTEM_NAMESPACE)
        recorder = EventRecorder(client, "altershield")
        executor = Executor(client, caches, Writer(client, metrics), recorder, metrics, time.time)
        name = names.change_workload_name("sleep", version("v1"))
        spec = ChangeWorkloadSpec(name, "sleep", "sleep", "1", 1, 60, "", 0)
        seen = await client.create(
            CHANGE_WORKLOADS,
            ChangeWorkload(ObjectMeta(name=name, namespace="shop"), spec),
            "shop",
            as_=ChangeWorkload,
        )
        asked = {"status": {"status": WorkloadState.ROLLBACK}}
        await client.patch(CHANGE_WORKLOADS, asked, name, "shop", subresource="status")

        decided = ChangeWorkloadStatus(status=WorkloadState.RUNNING)
        with pytest.raises(ConflictError):
            await executor.carry_out(seen, None, decided, (SetThreshold(2),))

        after = await client.get(CHANGE_WORKLOADS, name, "shop", as_=ChangeWorkload)
        assert after.status.status == WorkloadState.ROLLBACK
