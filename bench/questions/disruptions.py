"""Are admissions and verdicts right while API servers are replaced, a zone is lost, and nodes evict pods?

Measured: under a constant load of releases, with three gatekeepers and three reconcilers, one of each per zone. First,
the API servers are replaced. Then the zone of the leader is lost and comes back. At last, the pod of the leader is
evicted, as by a node that lacks memory. Other releases are under way during each disruption.

How to read it: as for `admissions`; calls to the gatekeeper in the lost zone may fail until it is no endpoint any more.
The replaced API servers must cause no lists.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from altershield.api import labels, names
from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from bench.availability.answering import Kubeconfig, answered
from bench.availability.gatekeepers import REPLICAS, Gatekeepers, Pod
from bench.availability.history import History, wrong_with
from bench.availability.installation import Installation, installed
from bench.availability.kubelet import READINESS, Probe, is_ready
from bench.availability.load import Load
from bench.availability.phases import Measurement, Phase
from bench.availability.proxy import ApiProxy, until_watched
from bench.availability.reconcilers import Reconcilers
from bench.harness.answer import Answer
from bench.harness.deployments import create, deployment, release, version
from bench.harness.waiting import until
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import ConflictError, NotFoundError
from kube_base.resources import DEPLOYMENTS, LEASES, NODES, PODS

UPGRADED, LOST, MARKED, EVICTED = "API servers replaced", "zone lost", "endpoint removed", "evicted"

_KUBELET = "sandbox.altershield.io/kubelet"
_PROXIED = 3  # API servers
_RELEASED = 3  # Deployments; they are released while the API servers are replaced
_IN_ZONES = 6  # pods of the Deployment whose pods are in all zones
_SECONDS = 120.0
_SLOW_SECONDS = 3
_SLOWLY: dict[str, Any] = {"readinessProbe": {"exec": {"command": ["true"]}, "initialDelaySeconds": _SLOW_SECONDS}}
"""Pods become ready only after this delay. So the release is under way when its zone is lost or its pods are
evicted."""


@dataclass(frozen=True)
class Plan:
    """Seconds, and releases per second."""

    marked: float = 50.0
    """From the loss of the zone until its gatekeeper is no endpoint any more. Kubernetes' default."""
    after: float = 30.0
    """How long the load continues after each disruption."""
    rate: float = 5.0
    """Less than in the other measurements, because the reconcilers verify these releases too."""
    readiness: Probe = READINESS
    webhook_seconds: int | None = None
    """The timeout of the webhooks. None: the chart's."""


@dataclass(frozen=True)
class Result:
    """Times in seconds."""

    phases: tuple[Phase, ...]
    wrong: tuple[str, ...]
    """Messages about admissions, verdicts, or gatekeepers that were not ready."""
    watching: float
    """From the replacement of the last API server until all resources were watched again."""
    relists: int
    """Lists of watched resources because of the upgrade."""
    lease_transitions: int
    """How often the Lease got another holder during the upgrade."""
    verified: float
    """From the beginning of the upgrade until the releases under way were verified."""
    takeover_lost: float
    """From the loss of the leader's zone until another reconciler led."""
    takeover_evicted: float
    """The same, after the eviction of the leader's pod."""
    stalled: tuple[str, str]
    """The reasons of the condition Stalled: of the release in the lost zone, and of the one whose pods are evicted."""
    evictions: int
    """How many pods of that release were evicted."""


async def ask(
    kubeconfig: Kubeconfig = None,
    after: Annotated[float, typer.Option(min=1, help="Seconds of load after each disruption.")] = 30,
    marked: Annotated[
        float, typer.Option(min=1, help="Seconds until the gatekeeper of the lost zone is no endpoint any more.")
    ] = 50,
) -> Answer:
    title = "Releases while the infrastructure is disrupted"
    return await answered(title, kubeconfig, measure, Plan(after=after, marked=marked))


async def measure(
    kubeconfig: Path, directory: Path, plan: Plan, report: Callable[[str], None] = lambda _: None
) -> Result:
    """Three gatekeepers and three reconcilers, one of each per zone. First, the API servers are replaced. Then the zone
    of the leader is lost and comes back. At last, the pod of the leader is evicted."""
    proxy = ApiProxy(str(kubeconfig), servers=_PROXIED)
    async with installed(kubeconfig, directory) as direct, proxy.running(), _zones(direct) as zones:
        installation = dataclasses.replace(direct, url_for=proxy.url)
        gatekeepers = Gatekeepers(installation, directory, 0, plan.readiness)
        history, reconcilers = (History(installation.admin, installation.name), Reconcilers(installation, directory))
        async with (
            gatekeepers.running(webhook_seconds=plan.webhook_seconds),
            history.watching(),
            reconcilers.running(),
            Load.connected(installation.admin, installation.name, plan.rate) as load,
        ):
            scene = _Scene(installation, proxy, gatekeepers, reconcilers, history, zones, plan)
            await scene.prepare()
            await load.prepare()
            measurement = Measurement(load, gatekeepers.service)
            async with measurement.under_load(), asyncio.TaskGroup() as group:
                report("replacing the API servers …")
                await measurement.phase(UPGRADED, scene.upgrade())
                group.create_task(scene.evict_pods_of_a_release())
                report("losing a zone …")
                await measurement.phase(LOST, scene.lose_zone())
                await measurement.phase(MARKED, scene.wait_for_the_verdict())
                report("evicting the leader …")
                await measurement.phase(EVICTED, scene.evict_leader())
            return await scene.result(measurement)


@contextlib.asynccontextmanager
async def _zones(installation: Installation) -> AsyncIterator[list[str]]:
    """A simulated node in each zone, for the pods that tolerate its taint."""
    admin, group = installation.admin, installation.name
    zones = [f"{group}-{number}" for number in range(1, REPLICAS + 1)]
    async with contextlib.AsyncExitStack() as stack:
        for zone in zones:
            metadata = {
                "name": zone,
                "labels": {"availability": group, "topology.kubernetes.io/zone": zone},
                "annotations": {_KUBELET: "up"},
            }
            spec = {"taints": [{"key": "availability", "effect": "NoSchedule"}]}
            await admin.create(NODES, {"metadata": metadata, "spec": spec})
            stack.push_async_callback(admin.delete, NODES, zone)
        for zone in zones:
            await _until_node(admin, zone, "True")
        yield zones


async def _until_node(admin: Client, name: str, ready: str) -> None:
    async def is_it() -> bool:
        node: dict[str, Any] = await admin.get(NODES, name)
        conditions = node.get("status", {}).get("conditions", ())
        return any(each["type"] == "Ready" and each["status"] == ready for each in conditions)

    await until(is_it, f"the node {name} to be Ready={ready}", _SECONDS)


class _Scene:
    """The disruptions, and the releases that are under way during each of them."""

    def __init__(
        self,
        installation: Installation,
        proxy: ApiProxy,
        gatekeepers: Gatekeepers,
        reconcilers: Reconcilers,
        history: History,
        zones: list[str],
        plan: Plan,
    ) -> None:
        self._admin, self._namespace = installation.admin, installation.name
        self._proxy, self._gatekeepers, self._reconcilers = proxy, gatekeepers, reconcilers
        self._history, self._zones, self._plan = history, zones, plan
        self._upgraded: dict[str, list[str]] = {f"upgraded-{number}": [] for number in range(_RELEASED)}
        self._zoned, self._evicted = {"zoned": [""]}, {"evicted": [""]}
        self._wrong: list[str] = []
        self._figures: dict[str, Any] = {}
        self._stalled = ["", ""]

    async def prepare(self) -> None:
        """Create all Deployments, and wait until they are verified."""
        for name, versions in (*self._upgraded.items(), *self._evicted.items()):
            versions[:] = [await create(self._admin, self._namespace, name, 2)]
        zoned = deployment(
            "zoned", replicas=_IN_ZONES, strategy={"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}
        )
        zoned["spec"]["template"]["spec"] |= {
            "nodeSelector": {"availability": self._namespace},
            "tolerations": [{"key": "availability", "operator": "Exists"}],
        }
        self._zoned["zoned"] = [version(await self._admin.create(DEPLOYMENTS, zoned, self._namespace))]
        await self._history.until_successful({**self._upgraded, **self._zoned, **self._evicted})

    async def upgrade(self) -> str:
        loop = asyncio.get_running_loop()
        began, transitions = loop.time(), await self._transitions()
        watched = {each.resource for each in self._proxy.reads if each.verb == "watch"}
        mark = len(self._proxy.reads)
        for name, versions in self._upgraded.items():
            versions.append(await release(self._admin, self._namespace, name, "meanwhile"))
        await self._proxy.replace()
        replaced = loop.time()

        def asked(verb: str) -> list[Any]:
            reads = (each for each in self._proxy.reads[mark:] if each.verb == verb)
            return [each.resource for each in reads if each.resource in watched]

        await until_watched(lambda: watched - {*asked("watch")})
        self._figures["watching"] = round(loop.time() - replaced, 1)
        await self._history.until_successful(self._upgraded)
        self._figures["verified"] = round(loop.time() - began, 1)
        self._figures["relists"] = len(asked("list"))
        self._figures["lease_transitions"] = await self._transitions() - transitions
        for pod in self._gatekeepers.pods:
            if not await is_ready(pod.endpoint.health_port):
                self._wrong.append("a gatekeeper is not ready after the API servers were replaced")
        return f"{_PROXIED} API servers replaced"

    async def _transitions(self) -> int:
        lease: dict[str, Any] = await self._admin.get(LEASES, names.LEASE, names.SYSTEM_NAMESPACE)
        return int(lease["spec"].get("leaseTransitions") or 0)

    async def lose_zone(self) -> str:
        """Stop the leader, a gatekeeper and a node at the same time, while pods of a release start on the node."""
        loop = asyncio.get_running_loop()
        self._leader = await self._reconcilers.leader()
        number = int(self._leader.rpartition("-")[2]) - 1
        self._zone = self._zones[number]
        self._zoned["zoned"].append(await release(self._admin, self._namespace, "zoned", "meanwhile", **_SLOWLY))

        async def bound() -> bool:
            return bool(await self._on_lost_node())

        await until(bound, "pods of the release on each node")
        began, self._pod = loop.time(), self._in_use()
        self._pod.lose_node()
        self._reconcilers.lose_node(self._leader)
        await self._annotate("down")
        await self._mark()
        await self._reconcilers.until_another_leads(self._leader)
        self._figures["takeover_lost"] = round(loop.time() - began, 1)
        await asyncio.sleep(began + self._plan.marked - loop.time())
        self._pod.endpoint.ready = False
        return "the leader, a gatekeeper and a node stopped"

    def _in_use(self) -> Pod:
        """The gatekeeper that got the last request: connections to it are in use."""
        return max(self._gatekeepers.pods, key=lambda pod: pod.endpoint.asked_at)

    async def _on_lost_node(self) -> list[dict[str, Any]]:
        pods = await self._pods("zoned", self._zoned["zoned"][-1])
        return [pod for pod in pods if pod["spec"].get("nodeName") == self._zone]

    async def wait_for_the_verdict(self) -> str:
        """Check that the release waits for the pods on the lost node. Then delete these pods, as Kubernetes does, and
        wait until the release succeeds. Then bring the zone back."""
        await _until_node(self._admin, self._zone, "Unknown")
        self._stalled[0] = await self._until_stalled("zoned", self._zoned["zoned"][-1])
        lost = await self._on_lost_node()
        for pod in await self._pods("zoned"):
            if pod["spec"].get("nodeName") == self._zone:
                await self._admin.delete(PODS, pod["metadata"]["name"], self._namespace)
        await self._history.until_successful(self._zoned)
        self._check("zoned", self._zoned["zoned"][-1], {pod["metadata"]["name"] for pod in lost})
        await asyncio.sleep(self._plan.after)
        await self._annotate("up")
        self._pod.return_node()
        self._reconcilers.return_node(self._leader)
        await self._pod.until_ready()
        await _until_node(self._admin, self._zone, "True")
        return "the zone came back"

    async def _annotate(self, kubelet: str) -> None:
        await self._admin.patch(NODES, {"metadata": {"annotations": {_KUBELET: kubelet}}}, self._zone)

    async def _mark(self) -> None:
        """Write the condition that the node controller writes 50 s after the last report of a kubelet, because the
        start timeout of the measurement is shorter."""
        condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        status = {"conditions": [condition]}
        await self._admin.patch(NODES, {"status": status}, self._zone, subresource="status", type_=PatchType.STRATEGIC)

    async def evict_leader(self) -> str:
        """Evict the pod of the leader as a kubelet does: its gatekeeper and its reconciler end at once."""
        leader, pod = await self._reconcilers.leader(), self._in_use()
        _, takeover = await asyncio.gather(self._gatekeepers.evict(pod), self._reconcilers.kill(leader))
        self._figures["takeover_evicted"] = round(takeover, 1)
        await asyncio.sleep(self._plan.after)
        return "a pod evicted"

    async def evict_pods_of_a_release(self) -> None:
        """Evict each pod of a release as a kubelet does, before the pod is ready. Stop when the release is stalled."""
        value = await release(self._admin, self._namespace, "evicted", "meanwhile", **_SLOWLY)
        self._evicted["evicted"].append(value)
        stalled = asyncio.create_task(self._until_stalled("evicted", value))
        gone: set[str] = set()
        while not stalled.done():
            for pod in await self._pods("evicted", value):
                if pod["spec"].get("nodeName") and pod["status"].get("phase") != "Failed":
                    gone |= await self._evict(pod)
            await asyncio.sleep(_SLOW_SECONDS / 3)
        self._stalled[1] = await stalled
        self._figures["evictions"] = len(gone)
        await self._history.until_successful(self._evicted)
        self._check("evicted", value, gone)

    async def _evict(self, pod: dict[str, Any]) -> set[str]:
        """Write the status that a kubelet writes when it evicts a pod (pkg/kubelet/eviction). Returns the name of the
        pod if it was evicted before it was ready: on a busy machine, it may be ready."""
        message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 88Mi."
        disruption = {
            **{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"},
            **{"message": message, "lastTransitionTime": pod["metadata"]["creationTimestamp"]},
        }
        conditions = [*pod["status"].get("conditions", ()), disruption]
        status = {"phase": "Failed", "reason": "Evicted", "message": message, "conditions": conditions}
        name = pod["metadata"]["name"]
        patch = {"metadata": {"resourceVersion": pod["metadata"]["resourceVersion"]}, "status": status}
        try:
            await self._admin.patch(PODS, patch, name, self._namespace, subresource="status")
        except (NotFoundError, ConflictError):
            return set()
        ready = any(
            each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ())
        )
        return set() if ready else {name}

    async def _pods(self, app: str, of: str = "") -> list[dict[str, Any]]:
        """The pods of a Deployment, or of one of its versions."""
        pods: list[dict[str, Any]] = (await self._admin.list(PODS, self._namespace)).items
        found = [(pod, pod["metadata"].get("labels", {})) for pod in pods]
        return [pod for pod, its in found if its.get("app") == app and of in ("", its.get(labels.VERSION))]

    async def _until_stalled(self, name: str, value: str) -> str:
        """Wait for the condition Stalled. Returns its reason."""
        reasons: list[str] = []

        def stalled() -> bool:
            condition = self._history.condition(name, value, ConditionType.STALLED)
            if condition is not None and condition.is_true:
                reasons.append(condition.reason)
            return bool(reasons or self._history.ends(name, value))

        await self._history.until(stalled)
        if not reasons:
            self._wrong.append(f"{name} did not wait for its pods: {self._history.ends(name, value)}")
        return "".join(reasons)

    def _check(self, name: str, value: str, gone: Collection[str]) -> None:
        """Check that the release passed once, without the pods that are gone."""
        if (ends := self._history.ends(name, value)) != [WorkloadState.SUCCESS]:
            self._wrong.append(f"{name} had the states {ends}")
        if verified := sorted(gone & self._history.batches.keys()):
            self._wrong.append(f"pods of {name} were verified although they were never up: {verified}")

    async def result(self, measurement: Measurement) -> Result:
        deployments: list[dict[str, Any]] = (await self._admin.list(DEPLOYMENTS, self._namespace)).items
        upgraded = [each for each in deployments if each["metadata"]["name"] in self._upgraded]
        self._wrong += wrong_with(self._history, upgraded, self._upgraded, rolled_back=(), replicas=2)
        for each in deployments:
            if each["metadata"]["name"] in ("zoned", "evicted") and each["metadata"]["generation"] != 2:
                self._wrong.append(f"{each['metadata']['name']} was changed by somebody else than its user")
        admitted = measurement.result(kills=1)
        stalled = (self._stalled[0], self._stalled[1])
        return Result(admitted.phases, (*admitted.wrong, *self._wrong), stalled=stalled, **self._figures)
