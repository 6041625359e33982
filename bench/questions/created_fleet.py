"""What does AlterShield cost a real API server, with Deployments that are created and released through its webhooks?

Measured: a sandbox, or with KUBEBUILDER_ASSETS a kube-apiserver, with simulated nodes. The PriorityLevelConfiguration
and the FlowSchemas of the chart are installed. All Deployments are created; then nothing happens, then pods are
deleted, then Deployments are released too. The gatekeeper and the reconciler are processes of their own, with default
thresholds.

How to read it: on the sandbox, which is an API server in Python, only the writes and AlterShield's CPU mean something.
kube-controller-manager sends at most 20 requests a second by default, so it decides how fast releases go. The time to a
verdict begins when a pod is ready, and does not contain the observation time.
"""

import asyncio
import contextlib
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from altershield.api import labels
from altershield.api.resources import CHANGE_PODS, DEPLOYMENTS, NAMESPACES, PODS, REPLICA_SETS, Resource
from altershield.kube.client import Client
from altershield.kube.errors import KubernetesError
from altershield.kube.informer import Informer
from altershield.workloads.pods import Pod
from altershield.workloads.pods import read as read_pod
from bench.harness.answer import Answer, quantiles
from bench.harness.deployments import deployment
from bench.harness.metrics import labels_of, quantile, samples, scraped
from bench.harness.phases import Phase, Recorder, answer
from bench.harness.sandbox import namespace_of, sandbox
from bench.harness.verdicts import Verdicts
from bench.harness.waiting import unless_failed, until_judged
from bench.simulated.shape import REVISIONS
from command.installation import running_installation
from reconciler import thresholds
from reconciler.cluster.batch import Batch
from reconciler.cluster.batch import read as read_batch
from reconciler.thresholds import Thresholds

RUNS = ()  # it needs a real API server
_CHART = Path(__file__).parents[2] / "charts" / "altershield"
_NAMESPACES = 10
_ANNOTATION = 1000  # characters
_SCRAPED = (
    "apiserver_flowcontrol_",
    "apiserver_admission_webhook_admission_duration",
    "apiserver_resource_objects",
    "apiserver_resource_size_estimate_bytes",
)

Object = dict[str, Any]


async def ask(
    deployments: Annotated[int, typer.Option(min=1)] = 200,
    replicas: Annotated[int, typer.Option(min=1)] = 5,
    revisions: Annotated[int, typer.Option(min=1, help="ReplicaSets of a Deployment.")] = REVISIONS,
    nodes: Annotated[int, typer.Option(min=1)] = 20,
    minutes: Annotated[float, typer.Option(help="Duration, without the creation of the Deployments.")] = 30.0,
    churn: Annotated[float, typer.Option(help="Pods that are deleted in a second.")] = 2.0,
    releases: Annotated[int, typer.Option(help="Releases in the wave.")] = 100,
    rate: Annotated[float, typer.Option(help="Releases in a second, also when the Deployments are created.")] = 5.0,
) -> Answer:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        async with (
            sandbox("--nodes", str(nodes)) as (path, _),
            await Client.connect(str(path), max_in_flight=200) as client,
            running_installation(str(path), directory, Thresholds(), log=directory / "log"),
        ):
            await _prepare(client)
            fleet = _Fleet(client, deployments, replicas, revisions, churn, min(releases, deployments), rate)
            phases = await fleet.measure(minutes * 60)
    kind = "kube-apiserver" if "KUBEBUILDER_ASSETS" in os.environ else "sandbox"
    return answer(f"{deployments * replicas:,} pods in {deployments:,} Deployments, {nodes:,} nodes, {kind}", phases)


async def _prepare(client: Client) -> None:
    """Create the objects of flow control, and the namespaces."""
    for each in _flow_control():
        plural = "flowschemas" if each["kind"] == "FlowSchema" else "prioritylevelconfigurations"
        await client.create(Resource("flowcontrol.apiserver.k8s.io", "v1", plural, each["kind"]), each)
    for number in range(_NAMESPACES):
        await client.create(NAMESPACES, namespace_of(_namespace(number), governed=True))
    await asyncio.sleep(1)


class _Fleet:
    """A fleet in a cluster."""

    def __init__(
        self,
        client: Client,
        deployments: int,
        replicas: int,
        revisions: int,
        churn: float,
        releases: int,
        rate: float,
    ) -> None:
        self._client = client
        self._deployments, self._replicas, self._revisions = deployments, replicas, revisions
        self._churn, self._releases, self._rate = churn, releases, rate
        self._pods = Informer(client, PODS, Pod, read=read_pod)
        self._batches = Informer(client, CHANGE_PODS, Batch, read=read_batch)
        self._verdicts = Verdicts(self._pods, self._batches)
        self._recorder = Recorder()
        self._port = self._recorder.programs.port("reconciler")
        self._admissions: list[float] = []
        self._before: dict[str, float] = {}
        self._now: dict[str, float] = {}
        self._refused = 0

    async def measure(self, seconds: float) -> list[Phase]:
        """`seconds`: the duration, without the creation of the Deployments."""
        watching = [asyncio.create_task(each.run()) for each in (self._pods, self._batches)]
        self._now = await self._scrape()
        async with self._phase("create"):
            await self._create_all()
            await until_judged(lambda: len(self._verdicts.judged) >= self._deployments * self._replicas)
        async with self._phase("rest"):
            await asyncio.sleep(seconds * 0.1)
        churning = asyncio.create_task(self._delete_pods())
        async with self._phase("churn"):
            await unless_failed(asyncio.sleep(seconds * 0.3), [churning])
        async with self._phase("wave"):
            before = set(map(_replica_set_of, self._verdicts.ready))
            await unless_failed(self._release_all(), [churning])
            await until_judged(lambda: self._judged_outside(before) >= self._releases * self._replicas)
        left = seconds - sum(each.seconds for each in self._recorder.phases[1:])
        async with self._phase("after the wave"):
            await asyncio.sleep(max(1.0, left))
        for task in (churning, *watching):
            task.cancel()
        for key, value in self._now.items():
            if key.startswith(("altershield_releases[", "altershield_api_errors_total")) and value:
                print(key, int(value))
            if key.startswith("apiserver_resource_") and ("'change" in key or "'pods'" in key):
                print(key, int(value))
        print("failed requests of the benchmark", self._refused)
        return self._recorder.phases

    def _judged_outside(self, replica_sets: set[str]) -> int:
        """The number of pods with a verdict, without those of these ReplicaSets."""
        return sum(_replica_set_of(each) not in replica_sets for each in self._verdicts.judged)

    @contextlib.asynccontextmanager
    async def _phase(self, name: str) -> AsyncIterator[None]:
        self._admissions, self._before, began = [], self._now, time.monotonic()

        def finish(seconds: float) -> dict[str, Any]:
            return {
                "requests": self._writes(seconds),
                "admission": quantiles(self._admissions, 1000),
                "verdict": quantiles(each - thresholds.OBSERVE_SECONDS for each in self._verdicts.waits(began)),
                "more": self._flows(seconds),
            }

        async with self._recorder.phase(name, finish):
            yield
            self._now = await self._scrape()

    async def _scrape(self) -> dict[str, float]:
        """The metrics of the reconciler, and those of the API server if it has some."""
        found = await scraped(self._port)
        with contextlib.suppress(KubernetesError, ValueError):
            text = (await self._client.request("GET", "/metrics", accept="text/plain")).decode()
            found |= samples("\n".join(each for each in text.splitlines() if each.startswith(_SCRAPED)) + "\n")
        return found

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

    async def _create_all(self) -> None:
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(self._deployments):
                await asyncio.sleep(began + number / self._rate - time.monotonic())
                group.create_task(self._create(number))

    async def _create(self, number: int) -> None:
        made = deployment(f"app-{number}", replicas=self._replicas)
        made["metadata"]["annotations"] = {"example.com/config": "a" * _ANNOTATION}
        with self._admission():
            found: Object = await self._client.create(DEPLOYMENTS, made, _namespace(number))
        for old in range(1, self._revisions):
            await self._client.create(REPLICA_SETS, _old_replica_set(found, old), _namespace(number))

    async def _release_all(self) -> None:
        began, step = time.monotonic(), max(1, self._deployments // self._releases)
        async with asyncio.TaskGroup() as group:
            for each in range(self._releases):
                await asyncio.sleep(began + each / self._rate - time.monotonic())
                group.create_task(self._release(each * step))

    async def _release(self, number: int) -> None:
        patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "busybox:2"}]
        path = DEPLOYMENTS.path(_namespace(number), f"app-{number}")
        try:
            with self._admission():
                await self._client.request("PATCH", path, body=patch, content_type="application/json-patch+json")
        except KubernetesError as error:
            print(error)
            self._refused += 1

    @contextlib.contextmanager
    def _admission(self) -> Any:
        """Measure a request that is admitted."""
        at = time.perf_counter()
        try:
            yield
        finally:
            self._admissions.append(time.perf_counter() - at)

    async def _delete_pods(self) -> None:
        """Delete pods with a verdict until cancelled."""
        deleted: set[str] = set()
        while True:
            await asyncio.sleep(1 / self._churn)
            found = (each.metadata for each in self._pods.all() if each.metadata.name in self._verdicts.judged)
            pod = next((each for each in found if each.name not in deleted), None)
            if pod is not None:
                deleted.add(pod.name)
                with contextlib.suppress(KubernetesError):
                    await self._client.delete(PODS, pod.name, pod.namespace)


def _namespace(number: int) -> str:
    return f"fleet-{number % _NAMESPACES}"


def _replica_set_of(pod: str) -> str:
    return pod.rpartition("-")[0]


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
