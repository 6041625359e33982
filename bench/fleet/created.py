"""Measures a fleet in a cluster: its Deployments are created and released through the webhooks."""

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from altershield.api import labels
from altershield.api.change_pod import PodState
from altershield.api.resources import CHANGE_PODS
from bench.fleet.metrics import labels_of, quantile, samples, scraped
from bench.fleet.phases import Phase, Recorder, quantiles
from bench.fleet.waits import unless_failed, until
from bench.reconciler import deployment, namespace, sandbox_with
from command.installation import running_installation
from kube_base.access.client import Client
from kube_base.access.errors import KubernetesError
from kube_base.resources import DEPLOYMENTS, NAMESPACES, PODS, REPLICA_SETS, Resource
from reconciler import thresholds
from reconciler.thresholds import Thresholds

_CHART = Path(__file__).parents[2] / "charts" / "altershield"
NAMES = 10
"""Namespaces of a fleet."""
_ANNOTATION = 1000  # characters

Object = dict[str, Any]


class _Pod(msgspec.Struct):
    class _Metadata(msgspec.Struct):
        name: str
        namespace: str = ""

    class _Status(msgspec.Struct):
        class _Condition(msgspec.Struct):
            type: str
            status: str

        conditions: tuple[_Condition, ...] = ()

    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)


class _Batch(msgspec.Struct):
    class _Spec(msgspec.Struct):
        class _Info(msgspec.Struct):
            pod: str

        pod_infos: tuple[_Info, ...] = msgspec.field(default=(), name="podInfos")

    class _Status(msgspec.Struct):
        status: str = ""

    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class CreatedFleet:
    """A fleet in a cluster."""

    def __init__(
        self, deployments: int, replicas: int, revisions: int, churn: float, releases: int, rate: float
    ) -> None:
        self._deployments, self._replicas, self._revisions = deployments, replicas, revisions
        self._churn, self._releases, self._rate = churn, releases, rate
        self._admissions: list[float] = []
        self._verdicts: list[float] = []
        self._ready: dict[str, float] = {}
        self._judged: set[str] = set()
        self._pods: dict[str, str] = {}
        self._before: dict[str, float] = {}
        self._now: dict[str, float] = {}
        self._refused = 0

    async def measure(self, nodes: int, seconds: float) -> list[Phase]:
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            async with (
                sandbox_with("--nodes", str(nodes)) as (path, _),
                await Client.connect(str(path), max_in_flight=200) as client,
                running_installation(str(path), directory, Thresholds(), log=directory / "log"),
            ):
                for each in _flow_control():
                    plural = "flowschemas" if each["kind"] == "FlowSchema" else "prioritylevelconfigurations"
                    await client.create(Resource("flowcontrol.apiserver.k8s.io", "v1", plural, each["kind"]), each)
                for number in range(NAMES):
                    governed = {labels.GOVERNED: labels.GOVERNED_VALUE}
                    await client.create(NAMESPACES, namespace(self._namespace(number), **governed))
                await asyncio.sleep(1)
                recorder = Recorder()
                port = recorder.programs.port("reconciler")
                watching = [
                    asyncio.create_task(self._watch(client, PODS, _Pod, self._see_pod)),
                    asyncio.create_task(self._watch(client, CHANGE_PODS, _Batch, self._see_batch)),
                ]
                await self._scrape(client, port)
                async with self._phase(recorder, "create", client, port):
                    await self._create(client)
                    await until(lambda: len(self._judged) >= self._deployments * self._replicas)
                async with self._phase(recorder, "rest", client, port):
                    await asyncio.sleep(seconds * 0.1)
                churning = asyncio.create_task(self._delete_pods(client))
                async with self._phase(recorder, "churn", client, port):
                    await unless_failed(asyncio.sleep(seconds * 0.3), [churning])
                async with self._phase(recorder, "wave", client, port):
                    before = {each.rpartition("-")[0] for each in (*self._pods, *self._judged)}
                    await unless_failed(self._release_all(client), [churning])
                    await until(lambda: self._judged_outside(before) >= self._releases * self._replicas)
                left = seconds - sum(each.seconds for each in recorder.phases[1:])
                async with self._phase(recorder, "after the wave", client, port):
                    await asyncio.sleep(max(1.0, left))
                for task in (churning, *watching):
                    task.cancel()
                for key, value in self._now.items():
                    if key.startswith(("altershield_releases[", "altershield_api_errors_total")) and value:
                        print(key, int(value))
                    if key.startswith("apiserver_resource_") and ("'change" in key or "'pods'" in key):
                        print(key, int(value))
                print("failed requests of the benchmark", self._refused)
        return recorder.phases

    def _judged_outside(self, replica_sets: set[str]) -> int:
        """The number of pods with a verdict, without those of these ReplicaSets."""
        return sum(each.rpartition("-")[0] not in replica_sets for each in self._judged)

    @contextlib.asynccontextmanager
    async def _phase(self, recorder: Recorder, name: str, client: Client, port: int) -> AsyncIterator[None]:
        self._admissions, self._verdicts, self._before = [], [], self._now

        def finish(seconds: float) -> dict[str, Any]:
            return {
                "requests": self._writes(seconds),
                "admission": quantiles(self._admissions, 1000),
                "verdict": quantiles(each - thresholds.OBSERVE_SECONDS for each in self._verdicts),
                "more": self._flows(seconds),
            }

        async with recorder.phase(name, finish):
            yield
            await self._scrape(client, port)

    async def _scrape(self, client: Client, port: int) -> None:
        self._now = await scraped(port)
        with contextlib.suppress(KubernetesError, ValueError):
            text = (await client.request("GET", "/metrics", accept="text/plain")).decode()
            wanted = (
                "apiserver_flowcontrol_",
                "apiserver_admission_webhook_admission_duration",
                "apiserver_resource_objects",
                "apiserver_resource_size_estimate_bytes",
            )
            self._now |= samples("\n".join(each for each in text.splitlines() if each.startswith(wanted)) + "\n")

    def _grown(self, prefix: str) -> dict[str, float]:
        return {key: value - self._before.get(key, 0.0) for key, value in self._now.items() if key.startswith(prefix)}

    def _writes(self, seconds: float) -> dict[str, float]:
        found = {}
        for key, value in self._grown("altershield_api_writes_total").items():
            if value:
                own = dict(labels_of(key))
                found[f"{own['verb']} {own['kind']}"] = round(value / seconds, 2)
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def _flows(self, seconds: float) -> dict[str, float]:
        """Requests per second of the chart's flow schemas, and their waits, if the API server has such metrics."""
        found: dict[str, float] = {}
        for what, prefix in (
            ("dispatched", "apiserver_flowcontrol_dispatched_requests_total"),
            ("rejected", "apiserver_flowcontrol_rejected_requests_total"),
            ("waited seconds", "apiserver_flowcontrol_request_wait_duration_seconds_sum"),
            ("executed seconds", "apiserver_flowcontrol_request_execution_seconds_sum"),
        ):
            for key, value in self._grown(prefix).items():
                own = dict(labels_of(key))
                if own.get("flow_schema", "").startswith("altershield") and value:
                    title = f"{what} {own['flow_schema']} ({own['priority_level']})"
                    found[title] = round(found.get(title, 0.0) + value / seconds, 4)
        for key, value in self._now.items():
            for what in ("nominal_limit_seats", "demand_seats_high_watermark"):
                if key.startswith(f"apiserver_flowcontrol_{what}") and "altershield" in key:
                    found[what] = value
        webhooks = self._grown("apiserver_admission_webhook_admission_duration_seconds_bucket")
        if webhooks:
            found |= {f"webhook p{share}, ms": quantile(webhooks, share / 100) * 1000 for share in (50, 99)}
        return found

    def _namespace(self, number: int) -> str:
        return f"fleet-{number % NAMES}"

    async def _watch(
        self, client: Client, resource: Resource, type_: type[Any], see: Callable[[str, Any], None]
    ) -> None:
        version = (await client.list(resource)).metadata.resource_version

        class _Version(msgspec.Struct):
            class _Metadata(msgspec.Struct):
                resource_version: str = msgspec.field(name="resourceVersion")

            metadata: _Metadata

        while True:
            async for event in client.watch(resource, resource_version=version):
                version = msgspec.json.decode(event.object, type=_Version).metadata.resource_version
                if event.type != "BOOKMARK":
                    see(event.type, msgspec.json.decode(event.object, type=type_))

    def _see_pod(self, type_: str, pod: _Pod) -> None:
        name = pod.metadata.name
        if type_ == "DELETED":
            self._pods.pop(name, None)
            self._ready.pop(name, None)
            return
        self._pods[name] = pod.metadata.namespace
        if any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions):
            self._ready.setdefault(name, time.monotonic())

    def _see_batch(self, type_: str, batch: _Batch) -> None:
        if type_ == "DELETED" or batch.status.status != PodState.EXECUTE_DONE:
            return
        for info in batch.spec.pod_infos:
            if info.pod in self._ready and info.pod not in self._judged:
                self._judged.add(info.pod)
                self._verdicts.append(time.monotonic() - self._ready[info.pod])

    async def _create(self, client: Client) -> None:
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(self._deployments):
                await asyncio.sleep(began + number / self._rate - time.monotonic())
                group.create_task(self._create_one(client, number))

    async def _create_one(self, client: Client, number: int) -> None:
        made = deployment(f"app-{number}", self._replicas)
        made["metadata"]["annotations"] = {"example.com/config": "a" * _ANNOTATION}
        at = time.perf_counter()
        found: Object = await client.create(DEPLOYMENTS, made, self._namespace(number))
        self._admissions.append(time.perf_counter() - at)
        for old in range(1, self._revisions):
            await client.create(REPLICA_SETS, _old_replica_set(found, old), self._namespace(number))

    async def _release_all(self, client: Client) -> None:
        began, step = time.monotonic(), max(1, self._deployments // self._releases)
        async with asyncio.TaskGroup() as group:
            for each in range(self._releases):
                await asyncio.sleep(began + each / self._rate - time.monotonic())
                group.create_task(self._release(client, each * step))

    async def _release(self, client: Client, number: int) -> None:
        patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "busybox:2"}]
        path = DEPLOYMENTS.path(self._namespace(number), f"app-{number}")
        at = time.perf_counter()
        try:
            await client.request("PATCH", path, body=patch, content_type="application/json-patch+json")
        except KubernetesError as error:
            print(error)
            self._refused += 1
        self._admissions.append(time.perf_counter() - at)

    async def _delete_pods(self, client: Client) -> None:
        while True:
            await asyncio.sleep(1 / self._churn)
            name = next((each for each in self._pods if each in self._judged and each in self._ready), "")
            if name:
                where = self._pods.pop(name)
                with contextlib.suppress(KubernetesError):
                    await client.delete(PODS, name, where)


def _old_replica_set(found: Object, number: int) -> Object:
    """An old ReplicaSet of a Deployment, without pods."""
    metadata, hashed = found["metadata"], f"old{number:07d}"
    template = json.loads(json.dumps(found["spec"]["template"]))
    template["metadata"]["labels"] |= {"pod-template-hash": hashed, labels.VERSION: f"{number:032x}"}
    own = {"app": metadata["name"], "pod-template-hash": hashed}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{hashed}",
            "labels": own | {labels.VERSION: f"{number:032x}"},
            "annotations": {"example.com/config": "a" * _ANNOTATION, "deployment.kubernetes.io/revision": "0"},
            "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {"replicas": 0, "selector": {"matchLabels": own}, "template": template},
    }


def _flow_control() -> list[Object]:
    """The FlowSchemas and the PriorityLevelConfiguration of the chart."""
    import helm_python

    with helm_python.Chart.load(_CHART) as chart:
        manifests = chart.render({}, name="altershield", namespace="altershieldoperator-system")
    return list(yaml.safe_load_all(manifests["altershield/templates/flowcontrol.yaml"]))
