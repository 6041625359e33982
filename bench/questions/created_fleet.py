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
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from altershield.api import labels
from altershield.api.resources import CHANGE_PODS
from altershield.workloads.pods import Pod
from altershield.workloads.pods import read as read_pod
from bench.harness.answer import Answer, quantiles
from bench.harness.deployments import deployment
from bench.harness.metrics import Samples, grown, of, quantile, samples, scraped
from bench.harness.phases import Phase, Recorder, answer, course
from bench.harness.sandbox import namespace_of, sandbox
from bench.harness.verdicts import Verdicts
from bench.harness.waiting import paced, until_judged
from bench.simulated.shape import REVISIONS
from command.installation import running_installation
from kube_base.access.client import Client
from kube_base.access.errors import KubernetesError
from kube_base.access.informer import Informer
from kube_base.resources import DEPLOYMENTS, NAMESPACES, PODS, REPLICA_SETS, Resource
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
_FLOWS = {
    "dispatched": "dispatched_requests_total",
    "rejected": "rejected_requests_total",
    "waited seconds": "request_wait_duration_seconds_sum",
    "executed seconds": "request_execution_seconds_sum",
}

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
        self, client: Client, deployments: int, replicas: int, revisions: int, churn: float, releases: int, rate: float
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
        self._before: Samples = {}
        self._now: Samples = {}
        self._refused = 0

    async def measure(self, seconds: float) -> list[Phase]:
        """`seconds`: the duration, without the creation of the Deployments."""
        watching = [asyncio.create_task(each.run()) for each in (self._pods, self._batches)]
        self._now = await self._scrape()
        async with self._phase("create"):
            await self._create_all()
            await until_judged(lambda: len(self._verdicts.judged) >= self._deployments * self._replicas)
        await course(self._phase, seconds, lambda: [asyncio.create_task(self._delete_pods())], self._wave)
        for task in watching:
            task.cancel()
        for name in ("altershield_releases", "altershield_api_errors_total"):
            print(name, {tuple(own.values()): int(value) for own, value in of(self._now, name) if value})
        for name in ("apiserver_resource_objects", "apiserver_resource_size_estimate_bytes"):
            print(name, {tuple(own.values()): int(value) for own, value in of(self._now, name) if _is_ours(own)})
        print("failed requests of the benchmark", self._refused)
        return self._recorder.phases

    async def _wave(self) -> None:
        """Release, and wait for the verdicts of the new ReplicaSets' pods."""
        before = set(map(_replica_set_of, self._verdicts.ready))
        await self._release_all()

        def are_judged() -> bool:
            judged = sum(_replica_set_of(each) not in before for each in self._verdicts.judged)
            return judged >= self._releases * self._replicas

        await until_judged(are_judged)

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

    async def _scrape(self) -> Samples:
        """The metrics of the reconciler, and those of the API server if it has some."""
        found = await scraped(self._port)
        with contextlib.suppress(KubernetesError, ValueError):
            text = (await self._client.request("GET", "/metrics", accept="text/plain")).decode()
            found |= samples("\n".join(each for each in text.splitlines() if each.startswith(_SCRAPED)) + "\n")
        return found

    def _writes(self, seconds: float) -> dict[str, float]:
        writes = of(grown(self._before, self._now), "altershield_api_writes_total")
        found = {f"{own['verb']} {own['kind']}": round(value / seconds, 2) for own, value in writes if value}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def _flows(self, seconds: float) -> dict[str, float]:
        """Requests per second of the chart's flow schemas, and their waits, if the API server has such metrics."""
        found: Counter[str] = Counter()
        since = grown(self._before, self._now)
        for what, name in _FLOWS.items():
            for own, value in of(since, f"apiserver_flowcontrol_{name}"):
                if own.get("flow_schema", "").startswith("altershield") and value:
                    found[f"{what} {own['flow_schema']} ({own['priority_level']})"] += value / seconds  # type: ignore[assignment]  # a Counter of rates
        more = {
            what: value
            for what in ("nominal_limit_seats", "demand_seats_high_watermark")
            for own, value in of(self._now, f"apiserver_flowcontrol_{what}")
            if "altershield" in own.get("priority_level", "")
        }
        webhooks = "apiserver_admission_webhook_admission_duration_seconds"
        if of(since, f"{webhooks}_bucket"):
            more |= {f"webhook p{share}, ms": quantile(since, webhooks, share / 100) * 1000 for share in (50, 99)}
        return {what: round(rate, 4) for what, rate in found.items()} | more

    async def _create_all(self) -> None:
        async with asyncio.TaskGroup() as group:
            async for number in paced(self._rate, range(self._deployments)):
                group.create_task(self._create(number))

    async def _create(self, number: int) -> None:
        made = deployment(f"app-{number}", replicas=self._replicas)
        made["metadata"]["annotations"] = {"example.com/config": "a" * _ANNOTATION}
        with self._admission():
            found: Object = await self._client.create(DEPLOYMENTS, made, _namespace(number))
        for old in range(1, self._revisions):
            await self._client.create(REPLICA_SETS, _old_replica_set(found, old), _namespace(number))

    async def _release_all(self) -> None:
        step = max(1, self._deployments // self._releases)
        async with asyncio.TaskGroup() as group:
            async for each in paced(self._rate, range(self._releases)):
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


def _is_ours(own: Mapping[str, str]) -> bool:
    resource = own.get("resource", "")
    return resource.startswith("change") or resource == "pods"


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
