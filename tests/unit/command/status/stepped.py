"""A release in steps on the API server of the sandbox, with its status written by the test in place of a
reconciler."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from altershield.api import labels
from altershield.api.change_workload import ChangeWorkload
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.api.rollout import Phase, RolloutStatus
from command import main
from kube_base.resources import DEPLOYMENTS
from kube_base.times import rfc3339
from tests.fault.reconciler_cluster import Cluster
from tests.support import workloads
from tests.support.processes import Done, call
from tests.unit.altershield.releases.steps import ROLLOUT
from tests.unit.altershield.views.builders import V1, in_steps

STEP_1 = RolloutStatus(phase=Phase.VERIFYING, step=1, steps=4, pods=1, updated=1)


class World:
    """A Deployment `web` with ten replicas and its release in steps."""

    def __init__(self, cluster: Cluster, kubeconfig: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.cluster = cluster
        self._kubeconfig = kubeconfig
        self._capture = capture
        self._answers = 0
        self.name = f"web--x--{V1}"

    async def run(self, *arguments: str, code: int = 0, namespaced: bool = True) -> Done:
        where = (*(("-n", "shop") if namespaced else ()), "--kubeconfig", str(self._kubeconfig))
        done = await asyncio.to_thread(call, main, "altershield", *arguments, *where, capture=self._capture)
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}{done.stderr}"
        return done

    async def release(self) -> None:
        own = {labels.VERSION: V1, labels.DEFENSE_STATUS: labels.PROCESSED}
        made = workloads.manifest("Deployment", "web", "busybox", labels=own, replicas=10, paused=True)
        created = await self.cluster.admin.create(DEPLOYMENTS, made, "shop")
        workload = workloads.BY_NAME["Deployment"].read(msgspec.json.encode(created))
        release = in_steps(ROLLOUT, STEP_1)
        spec = msgspec.to_builtins(release.spec)
        spec["workloadRef"]["uid"] = workload.metadata.uid
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": workload.metadata.uid}
        metadata = {
            "name": self.name,
            "labels": {"app.kubernetes.io/deployment-name": "web", labels.VERSION: V1},
            "ownerReferences": [{**owner, "controller": True}],
        }
        obj = {
            "apiVersion": CHANGE_WORKLOADS.api_version,
            "kind": CHANGE_WORKLOADS.kind,
            "metadata": metadata,
            "spec": spec,
        }
        await self.cluster.admin.create(CHANGE_WORKLOADS, obj, "shop")
        self.fingerprint = workload.fingerprint
        await self.move(STEP_1)

    async def move(self, status: RolloutStatus, state: str = "Running") -> None:
        whole = {"status": state, "source": {"fingerprint": self.fingerprint}, "rollout": msgspec.to_builtins(status)}
        await self.cluster.set_status(CHANGE_WORKLOADS, self.name, {"rollout": None})
        await self.cluster.set_status(CHANGE_WORKLOADS, self.name, whole)

    async def request(self) -> dict[str, Any]:
        """Wait for a request, answer it in place of the reconciler, and return it."""

        async def asked() -> ChangeWorkload | None:
            found = await self.cluster.admin.get(CHANGE_WORKLOADS, self.name, "shop", as_=ChangeWorkload)
            return found if found.status.request is not None else None

        found = await self.cluster.until(asked, "a request")
        assert found is not None
        assert found.status.request is not None
        request = msgspec.to_builtins(found.status.request)
        action = {key: request[key] for key in ("verb", "by", "reason") if key in request}
        self._answers += 1
        answer = {**action, "time": rfc3339(self._answers), "result": "Done", "outcome": "step 2 begins"}
        await self.cluster.set_status(CHANGE_WORKLOADS, self.name, {"request": None, "actions": [answer]})
        return dict(request)
