"""Measures what AlterShield costs in a fleet: at rest, while pods are replaced, and in a wave of releases.

    python -m bench.fleet simulated --scale 1       # 20,000 Deployments of five pods in 10 namespaces, 5,000 nodes
    python -m bench.fleet cluster --deployments 200 # the sandbox, or with KUBEBUILDER_ASSETS a real API server

`simulated`: the API of `bench.cluster`, which takes little CPU and memory. So a fleet of the full size fits on a small
machine. A Deployment has 11 ReplicaSets and a ChangeWorkload, a pod has a ChangePod, an object has 1 KB of annotations.
Replaced pods, reports of nodes and releases are simulated (`bench.fleet_api`). The gatekeeper gets the reviews of all
releases.

`cluster`: an API server with simulated nodes. All Deployments are created and released through its webhooks. The
PriorityLevelConfiguration and the FlowSchemas of the chart are installed.

The gatekeeper and the reconciler are processes of their own, with default thresholds. The time to a verdict begins when
a pod is ready, and does not contain the observation time. It contains the wait for the other pods of the batch.
"""

import asyncio
import contextlib
import datetime
import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import msgspec
import typer
import uvloop
import yaml
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.table import Table

from altershield.api import labels
from altershield.api.change_pod import PodState
from altershield.api.resources import CHANGE_PODS, DEPLOYMENTS, NAMESPACES, PODS, REPLICA_SETS, Resource
from altershield.commands.installation import running_installation
from altershield.kube.client import Client
from altershield.kube.errors import KubernetesError
from altershield.process import options
from altershield.process.children import Process, free_ports
from altershield.process.health import until_ready
from altershield.process.thresholds import Thresholds
from bench.cluster import Shape, kubeconfig
from bench.fleet_api import Fleet, FleetApi, Traffic
from bench.memory import certificate_options
from bench.reconciler import deployment, namespace, sandbox_with

RESULTS = Path(__file__).parent / "results"
CHART = Path(__file__).parents[1] / "charts" / "altershield"

NAMES = 10
DEPLOYMENTS_PER_NAMESPACE = 2000
REPLICAS = 5
REVISIONS = 11
NODES = 5000
CHURN = 20.0
RELEASES = 1000
_ANNOTATION = 1000  # characters
_START_SECONDS = 600.0
_LAST_SECONDS = 300.0  # for the last verdicts after the end of a wave
_PROGRAMS = ("gatekeeper", "reconciler", "sandbox", "kube-apiserver", "etcd", "kube-controller-manager")

Object = dict[str, Any]

app = typer.Typer(help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Phase:
    """CPU in seconds and memory in MiB, by program. Rates are per second, times in milliseconds or seconds."""

    name: str
    seconds: float
    cpu: dict[str, float]
    memory: dict[str, int]
    requests: dict[str, float]
    """Requests per second, by verb and resource; `cluster`: successful writes of the reconciler."""
    admission: tuple[int, float, float] = (0, 0.0, 0.0)
    """Number, p50 and p99 in milliseconds."""
    verdict: tuple[int, float, float] = (0, 0.0, 0.0)
    """Number of pods, p50 and p99 in seconds."""
    more: dict[str, float] = field(default_factory=dict)


class Programs:
    """The CPU time and the memory of the child processes of this process, by program."""

    def __init__(self) -> None:
        self._parents = {
            int(each.name): int(_stat(each)[1])
            for each in Path("/proc").iterdir()
            if each.name.isdigit() and _stat(each)
        }
        self._programs = {pid: name for pid in self._parents if self._ours(pid) and (name := _program(pid))}

    def cpu(self) -> dict[str, float]:
        """Seconds so far."""
        used: dict[str, float] = {}
        for pid, name in self._programs.items():
            fields = _stat(Path(f"/proc/{pid}"))
            used[name] = used.get(name, 0.0) + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return used | {"this process": time.process_time()}

    def memory(self) -> dict[str, int]:
        """The largest resident size so far, MiB."""
        found: Counter[str] = Counter()
        for pid, name in self._programs.items():
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    found[name] += int(line.split()[1]) // 1024
        return dict(found)

    def port(self, program: str) -> int:
        """The port of a program's metrics."""
        (pid,) = (pid for pid, name in self._programs.items() if name == program)
        arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        return int(arguments[arguments.index("--metrics-port") + 1])

    def _ours(self, pid: int) -> bool:
        while pid > 1 and pid != os.getpid():
            pid = self._parents.get(pid, 0)
        return pid == os.getpid()


def _stat(process: Path) -> list[str]:
    """The fields of a process after its name; empty if it has ended."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _program(pid: int) -> str:
    with contextlib.suppress(OSError):
        arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        return next((name for name in _PROGRAMS for each in arguments[:4] if Path(each).name == name), "")
    return ""


class Recorder:
    """Measures one phase after the other."""

    def __init__(self) -> None:
        self.phases: list[Phase] = []
        self.programs = Programs()

    @contextlib.asynccontextmanager
    async def phase(self, name: str, finish: Callable[[float], Mapping[str, Any]]) -> AsyncIterator[None]:
        """Measure the block. `finish` gets the seconds, and returns the other fields of the phase."""
        before, began = self.programs.cpu(), time.monotonic()
        yield
        seconds = time.monotonic() - began
        cpu = {key: round(used - before.get(key, 0.0), 2) for key, used in self.programs.cpu().items()}
        self.phases.append(Phase(name, round(seconds, 1), cpu, self.programs.memory(), **finish(seconds)))
        print(self.phases[-1], flush=True)


def quantiles(values: Iterable[float], factor: float = 1.0) -> tuple[int, float, float]:
    """The number of values, their median and their 99th percentile."""
    found = sorted(values)
    if not found:
        return 0, 0.0, 0.0
    at = (found[int((len(found) - 1) * share)] * factor for share in (0.5, 0.99))
    return len(found), *(round(each, 2) for each in at)  # type: ignore[return-value]


async def scraped(port: int) -> dict[str, float]:
    """The metrics of a process, by name and labels."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        return _samples(await answer.text())


def _samples(text: str) -> dict[str, float]:
    return {
        f"{sample.name}{sorted(sample.labels.items())}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def summed(samples: Mapping[str, float], prefix: str) -> float:
    return sum(value for key, value in samples.items() if key.startswith(prefix))


@app.command()
def simulated(
    scale: Annotated[float, typer.Option(help="Factor for the fleet, the replaced pods and the releases.")] = 1.0,
    minutes: Annotated[float, typer.Option(help="Duration, without the start.")] = 30.0,
    churn: Annotated[float, typer.Option(help="Pods that are replaced in a second, at scale 1.")] = CHURN,
    releases: Annotated[int, typer.Option(help="Releases in the wave, at scale 1.")] = RELEASES,
    rate: Annotated[float, typer.Option(help="Releases of the wave in a second, at scale 1.")] = 10.0,
) -> None:
    """Measure a fleet whose API server is simulated."""
    deployments = max(NAMES, round(NAMES * DEPLOYMENTS_PER_NAMESPACE * scale))
    shape = Shape(deployments, REPLICAS, REVISIONS, fat=0, namespaces=NAMES, nodes=max(3, round(NODES * scale)))
    count = max(1, round(releases * scale))
    phases = uvloop.run(_simulated(shape, minutes * 60, churn * scale, count, rate * scale))
    title = f"{shape.pods:,} pods in {shape.deployments:,} Deployments, {shape.nodes:,} nodes, simulated API"
    sizes = {"pods": shape.pods, "deployments": deployments, "nodes": shape.nodes, "minutes": minutes}
    sizes |= {"churn": churn * scale, "releases": count, "rate": rate * scale}
    _report(f"fleet-simulated-{deployments}", title, sizes, phases)


async def _simulated(shape: Shape, seconds: float, churn: float, releases: int, rate: float) -> list[Phase]:
    api = FleetApi(shape)
    api.prepare()
    observed = options.OBSERVE_SECONDS

    def taken(seconds: float) -> dict[str, Any]:
        traffic: Traffic = api.take()
        return {
            "requests": {key: round(count / seconds, 2) for key, count in traffic.by_kind.most_common()},
            "admission": quantiles(traffic.admissions, 1000),
            "verdict": quantiles(each - observed for each in traffic.verdicts),
            "more": {"events per second": round(traffic.events / seconds, 1), "denied": traffic.denied},
        }

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        async with api.serving() as url, contextlib.AsyncExitStack() as stack:
            with kubeconfig(directory, url) as path:
                port, *metrics = free_ports(3)
                common = ("--kubeconfig", str(path), "--metrics-port")
                gate = (str(metrics[0]), "--host", "127.0.0.1", "--port", str(port), *certificate_options(directory))
                began = time.monotonic()
                for module, arguments in (("gatekeeper", gate), ("reconciler", (str(metrics[1]),))):
                    command = [sys.executable, "-m", module, *common, *arguments]
                    await stack.enter_async_context(Process(command, directory / f"{module}.log"))
                recorder = Recorder()
                async with recorder.phase("start", taken), asyncio.timeout(_START_SECONDS):
                    await until_ready(metrics)
                    await _idle(metrics[1])
                print(f"ready after {time.monotonic() - began:.1f} s")
                fleet = Fleet(api, f"https://127.0.0.1:{port}")
                keeping = [asyncio.create_task(api.bookmark())]
                async with recorder.phase("rest", taken):
                    await asyncio.sleep(seconds * 0.1)
                before = await scraped(metrics[1])
                keeping += [asyncio.create_task(fleet.churn(churn)), asyncio.create_task(fleet.report())]
                async with recorder.phase("churn", taken):
                    await _unless_failed(asyncio.sleep(seconds * 0.3), keeping)
                async with recorder.phase("wave", taken):
                    await _unless_failed(_wave(fleet, api, releases, rate), keeping)
                left = seconds - sum(each.seconds for each in recorder.phases[1:])
                async with recorder.phase("after the wave", taken):
                    await _unless_failed(asyncio.sleep(max(1.0, left)), keeping)
                after = await scraped(metrics[1])
                _state(before, after, len(api.ready))
                for task in keeping:
                    task.cancel()
    return recorder.phases


def _state(before: Mapping[str, float], after: Mapping[str, float], missing: int) -> None:
    for key, value in after.items():
        if key.startswith("altershield_releases[") and value:
            print(key, int(value))
    for what in ("altershield_api_errors_total", "altershield_watch_relists_total", "altershield_watch_skipped_total"):
        print(what, int(summed(after, what) - summed(before, what)))
    print("pods without a verdict", missing)


async def _wave(fleet: Fleet, api: FleetApi, releases: int, rate: float) -> None:
    await fleet.wave(releases, rate)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LAST_SECONDS):
            while api.ready:  # noqa: ASYNC110  (another process decides)
                await asyncio.sleep(0.2)


async def _idle(port: int) -> None:
    """Wait until the queues of the reconciler are empty."""
    quiet, last = 0, -1.0
    while quiet < 3:
        await asyncio.sleep(1)
        samples = await scraped(port)
        now = summed(samples, "altershield_reconciles_total")
        quiet = quiet + 1 if now == last and not summed(samples, "altershield_queue_depth") else 0
        last = now


async def _unless_failed(work: Any, tasks: Iterable[asyncio.Task[None]]) -> None:
    """Wait for the work. If one of the tasks fails, cancel the work and raise the error."""
    doing = asyncio.ensure_future(work)
    await asyncio.wait([doing, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        if task.done():
            doing.cancel()
            task.result()
    await doing


@app.command()
def cluster(
    deployments: Annotated[int, typer.Option(min=1)] = 200,
    replicas: Annotated[int, typer.Option(min=1)] = REPLICAS,
    revisions: Annotated[int, typer.Option(min=1, help="ReplicaSets of a Deployment.")] = REVISIONS,
    nodes: Annotated[int, typer.Option(min=1)] = 20,
    minutes: Annotated[float, typer.Option(help="Duration, without the creation of the Deployments.")] = 30.0,
    churn: Annotated[float, typer.Option(help="Pods that are deleted in a second.")] = 2.0,
    releases: Annotated[int, typer.Option(help="Releases in the wave.")] = 100,
    rate: Annotated[float, typer.Option(help="Releases in a second, also when the Deployments are created.")] = 5.0,
) -> None:
    """Measure the sandbox, or with KUBEBUILDER_ASSETS a real API server."""
    fleet = _Cluster(deployments, replicas, revisions, churn, min(releases, deployments), rate)
    phases = uvloop.run(fleet.measure(nodes, minutes * 60))
    kind = "kube-apiserver" if "KUBEBUILDER_ASSETS" in os.environ else "sandbox"
    title = f"{deployments * replicas:,} pods in {deployments:,} Deployments, {nodes:,} nodes, {kind}"
    sizes = {"pods": deployments * replicas, "deployments": deployments, "nodes": nodes, "minutes": minutes}
    sizes |= {"churn": churn, "releases": releases, "rate": rate}
    _report(f"fleet-{kind}-{deployments}", title, sizes, phases)


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


class _Cluster:
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
                for each in flow_control():
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
                    await _until(lambda: len(self._judged) >= self._deployments * self._replicas)
                async with self._phase(recorder, "rest", client, port):
                    await asyncio.sleep(seconds * 0.1)
                churning = asyncio.create_task(self._delete_pods(client))
                async with self._phase(recorder, "churn", client, port):
                    await _unless_failed(asyncio.sleep(seconds * 0.3), [churning])
                async with self._phase(recorder, "wave", client, port):
                    before = {each.rpartition("-")[0] for each in (*self._pods, *self._judged)}
                    await _unless_failed(self._release_all(client), [churning])
                    await _until(lambda: self._judged_outside(before) >= self._releases * self._replicas)
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
                "verdict": quantiles(each - options.OBSERVE_SECONDS for each in self._verdicts),
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
            self._now |= _samples("\n".join(each for each in text.splitlines() if each.startswith(wanted)) + "\n")

    def _grown(self, prefix: str) -> dict[str, float]:
        return {key: value - self._before.get(key, 0.0) for key, value in self._now.items() if key.startswith(prefix)}

    def _writes(self, seconds: float) -> dict[str, float]:
        found = {}
        for key, value in self._grown("altershield_api_writes_total").items():
            if value:
                own = dict(_labels(key))
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
                own = dict(_labels(key))
                if own.get("flow_schema", "").startswith("altershield") and value:
                    title = f"{what} {own['flow_schema']} ({own['priority_level']})"
                    found[title] = round(found.get(title, 0.0) + value / seconds, 4)
        for key, value in self._now.items():
            for what in ("nominal_limit_seats", "demand_seats_high_watermark"):
                if key.startswith(f"apiserver_flowcontrol_{what}") and "altershield" in key:
                    found[what] = value
        webhooks = self._grown("apiserver_admission_webhook_admission_duration_seconds_bucket")
        if webhooks:
            found |= {f"webhook p{share}, ms": _quantile(webhooks, share / 100) * 1000 for share in (50, 99)}
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


def _quantile(buckets: Mapping[str, float], share: float) -> float:
    """A quantile of a histogram: the upper bound of its bucket."""
    counts: Counter[float] = Counter()
    for key, value in buckets.items():
        own = dict(_labels(key))
        if "mdeployment" in own.get("name", "") or "vdeployment" in own.get("name", ""):
            counts[float(own["le"])] += int(value)
    total = max(counts.values(), default=0)
    return min((bound for bound, count in counts.items() if total and count >= share * total), default=0.0)


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


def flow_control() -> list[Object]:
    """The FlowSchemas and the PriorityLevelConfiguration of the chart."""
    import helm_python

    with helm_python.Chart.load(CHART) as chart:
        manifests = chart.render({}, name="altershield", namespace="altershieldoperator-system")
    return list(yaml.safe_load_all(manifests["altershield/templates/flowcontrol.yaml"]))


def _labels(key: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = json.loads(
        key[key.index("[") :].replace("(", "[").replace(")", "]").replace("'", '"')
    )
    return found


async def _until(met: Callable[[], bool]) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LAST_SECONDS):
            while not met():  # noqa: ASYNC110  (other processes decide)
                await asyncio.sleep(0.2)


def _report(name: str, title: str, sizes: Mapping[str, float], phases: list[Phase]) -> None:
    table = Table("", "duration", "CPU of a core", "memory, largest", "requests/s", "admission", "verdict", title=title)
    for each in phases:
        ours = [(key, each.cpu.get(key, 0.0) / each.seconds) for key in ("gatekeeper", "reconciler")]
        table.add_row(
            each.name,
            f"{each.seconds:.0f} s",
            "\n".join(f"{key} {share:.1%}" for key, share in ours),
            "\n".join(f"{key} {each.memory.get(key, 0)} MiB" for key, _ in ours),
            f"{sum(each.requests.values()):.1f}",
            "p50 {1:.1f} ms\np99 {2:.1f} ms".format(*each.admission) if each.admission[0] else "",
            "p50 {1:.2f} s\np99 {2:.2f} s".format(*each.verdict) if each.verdict[0] else "",
        )
    Console(width=140).print(table)
    for each in phases:
        print(each.name, {key: rate for key, rate in list(each.requests.items())[:14] if rate >= 0.01}, each.more)
    machine = {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "python": platform.python_version()}
    taken = {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), **machine, **sizes}
    RESULTS.mkdir(exist_ok=True)
    content = json.dumps(taken | {"phases": [asdict(each) for each in phases]}, indent=2)
    (RESULTS / f"{name}.json").write_text(content + "\n")


if __name__ == "__main__":
    app()
