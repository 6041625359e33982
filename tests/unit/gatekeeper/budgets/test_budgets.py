"""PodUnavailableBudgets: gatekeepers behind the sandbox's API server, without a reconciler."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from altershield.api import labels
from altershield.api.budgets import Operation, PodUnavailableBudget
from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from altershield.budget_caches.caches import BudgetCaches
from altershield.budgets.pods import Flag, Pod
from altershield.budgets.steps import Disruption, Passed, Refused
from altershield.workloads.meta import Owner
from command.install.crds import crds
from gatekeeper.budgets.judge import Busy, Judge, Verdict
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError, TooManyRequestsError
from kube_base.resources import CRDS, DEPLOYMENTS, NAMESPACES, PODS, REPLICA_SETS, RESTART_REQUESTS, Resource
from kube_sandbox.apiserver.server import ApiServer
from tests.support.polling import until
from tests.unit.gatekeeper.reviews import StaticListers
from tests.unit.gatekeeper.serving import install_webhooks, serving

SPACE = "shop"
APP = {"app": "web"}
READY = {"type": "Ready", "status": "True"}
TEMPLATE = {"metadata": {"labels": APP}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction"}


@dataclass
class Cluster:
    admin: Client
    kubeconfig: str
    judges: list[Judge] = field(default_factory=list)
    caches: list[BudgetCaches] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    """The paths of all PUT requests."""
    reads: list[str] = field(default_factory=list)
    """The paths of all GET requests for one pod."""

    async def application(self, name: str, replicas: int) -> list[str]:
        """A Deployment with its ReplicaSet and ready pods; the names of the pods."""
        own = {"app": name}
        template = {**TEMPLATE, "metadata": {"labels": own}}
        spec = {"replicas": replicas, "selector": {"matchLabels": own}, "template": template}
        above = await self.admin.create(DEPLOYMENTS, _obj(DEPLOYMENTS, name, spec=spec), SPACE)
        owned = _obj(REPLICA_SETS, f"{name}-1", DEPLOYMENTS, above, spec=spec)
        between = await self.admin.create(REPLICA_SETS, owned, SPACE)
        names = [f"{name}-1-{number}" for number in range(replicas)]
        for each in names:
            await self.pod(each, own, between)
        return names

    async def pod(self, name: str, own: dict[str, str], owner: Any = None) -> None:
        obj = _obj(PODS, name, REPLICA_SETS if owner else None, owner, spec=TEMPLATE["spec"])
        obj["metadata"]["labels"] = own
        await self.admin.create(PODS, obj, SPACE)
        status = {"phase": "Running", "conditions": [READY]}
        status["containerStatuses"] = [{"name": "web", "containerID": f"containerd://{name:f>64}", "image": "web:1"}]
        await self.admin.patch(PODS, {"status": status}, name, SPACE, subresource="status")

    async def budget(self, name: str, **spec: Any) -> None:
        spec = {
            key: value
            for key, value in {"selector": {"matchLabels": {"app": name}}, **spec}.items()
            if value is not None
        }
        await self.admin.create(POD_UNAVAILABLE_BUDGETS, _obj(POD_UNAVAILABLE_BUDGETS, name, spec=spec), SPACE)
        await self.synced()

    async def synced(self) -> None:
        """Wait until all gatekeepers know all pods and budgets."""
        stored = (await self.admin.list(POD_UNAVAILABLE_BUDGETS, SPACE)).items
        pods = (await self.admin.list(PODS, SPACE)).items
        versions = {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in pods}

        def known() -> bool:
            return all(
                len(caches.budgets(SPACE)) == len(stored)
                and all(
                    (found := caches.pod(SPACE, name)) is not None and found.resource_version == version
                    for name, version in versions.items()
                )
                for caches in self.caches
            )

        await until(known, "the gatekeepers to know everything")

    async def stored(self, name: str) -> PodUnavailableBudget:
        return await self.admin.get(POD_UNAVAILABLE_BUDGETS, name, SPACE, as_=PodUnavailableBudget)

    async def evict(self, name: str, **more: Any) -> None:
        eviction = {**EVICTION, "metadata": {"name": name, "namespace": SPACE}, **more}
        await self.admin.create(PODS, eviction, SPACE, name=name, subresource="eviction")


async def _pod(judge: Judge, name: str) -> Pod | None:
    return judge.cached_pod(SPACE, name) or await judge.read_pod(SPACE, name)


async def _judged(judge: Judge, disruption: Disruption) -> Verdict:
    return judge.decide(disruption) or await judge.judge(disruption)


def _obj(resource: Resource, name: str, kind: Resource | None = None, owner: Any = None, **more: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if kind is not None:
        metadata["ownerReferences"] = [{
            "apiVersion": kind.api_version, "kind": kind.kind, "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": True,
        }]  # fmt: skip
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **more}


@contextlib.asynccontextmanager
async def clusters(directory: Path, gatekeepers: int) -> AsyncIterator[Cluster]:
    writes: list[str] = []
    reads: list[str] = []

    @aiohttp.web.middleware
    async def counts(request: aiohttp.web.Request, handler: Any) -> Any:
        if request.method == "PUT":
            writes.append(request.path)
        if request.method == "GET" and "/pods/" in request.path:
            reads.append(request.path)
        return await handler(request)

    async with ApiServer(middlewares=[counts]) as api, contextlib.AsyncExitStack() as stack:
        (kubeconfig := directory / "kubeconfig").write_text(api.kubeconfig())
        admin = await stack.enter_async_context(await Client.connect(str(kubeconfig)))
        metadata = {"name": SPACE, "labels": {labels.GOVERNED: labels.GOVERNED_VALUE}}
        await admin.create(NAMESPACES, {"metadata": metadata})
        for crd in crds():
            await admin.create(CRDS, crd)
        cluster = Cluster(admin, str(kubeconfig), writes=writes, reads=reads)
        now = [0.0]
        async with asyncio.TaskGroup() as group:
            tasks = []
            for _ in range(gatekeepers):
                client = await stack.enter_async_context(await Client.connect(str(kubeconfig)))
                caches = BudgetCaches(client, lambda namespace: True, lambda namespace: False)
                tasks.append(group.create_task(caches.run()))
                cluster.caches.append(caches)
                cluster.judges.append(Judge(client, caches, lambda: 1_800_000_000.0 + now[0]))
            for caches in cluster.caches:
                for informer in caches.required:
                    await informer.wait_synced()
            yield cluster
            for task in tasks:
                task.cancel()


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with clusters(tmp_path, 3) as found:
        yield found


async def test_three_gatekeepers_admit_as_many_disruptions_as_the_budgets_allow(cluster: Cluster) -> None:
    wanted = {"a": 3, "b": 5, "c": 0}
    pods = {name: await cluster.application(name, 10) for name in wanted}
    for name, allowed in wanted.items():
        await cluster.budget(name, maxUnavailable=allowed)
    cluster.writes.clear()

    async def asked(judge: Judge, name: str, operation: Operation) -> bool:
        pod = await _pod(judge, name)
        assert pod is not None
        verdict = await _judged(judge, Disruption(operation, pod, "ann"))
        assert not isinstance(verdict, Busy), verdict
        return isinstance(verdict, Passed)

    async def everybody(name: str) -> int:
        """Each pod is asked about twice, at different gatekeepers; how many pods may go."""
        answers = await asyncio.gather(*(
            asked(cluster.judges[(number + turn) % 3], pod, operation)
            for number, pod in enumerate(pods[name])
            for turn, operation in enumerate((Operation.EVICT, Operation.EVICT))
        ))  # fmt: skip
        return sum(any(answers[index : index + 2]) for index in range(0, len(answers), 2))

    found = await asyncio.gather(*map(everybody, wanted))
    assert dict(zip(wanted, found, strict=True)) == wanted
    assert len(cluster.writes) <= 40
    for name, allowed in wanted.items():
        status = (await cluster.stored(name)).status
        assert len(status.disrupted_pods) == allowed
    assert (status.total_replicas, status.unavailable_allowed) == (0, 0), "nothing was written for a frozen budget"


async def test_requests_are_refused_and_recorded_as_the_budget_says(cluster: Cluster, tmp_path: Path) -> None:
    admin = cluster.admin
    pods = await cluster.application("web", 4)
    await cluster.budget("web", maxUnavailable="25%")
    await cluster.pod("free", {"app": "free"})
    async with serving(tmp_path, StaticListers(budgets=cluster.judges[0])) as served:
        await install_webhooks(admin, served.url(""))
        text = "PodUnavailableBudget web: 3 of 4 pods are available and 3 must be (maxUnavailable 25%)"

        await cluster.evict(pods[0], deleteOptions={"dryRun": ["All"]})
        assert (await cluster.stored("web")).status.disrupted_pods == {}, "a dry run leaves no trace"

        await cluster.evict(pods[0])
        status = (await cluster.stored("web")).status
        (record,) = status.disrupted_pods.values()
        assert (record.name, record.operation, record.time) == (pods[0], "EVICT", "2027-01-15T08:00:00Z")
        assert record.by
        assert (status.current_available, status.desired_available, status.unavailable_allowed) == (3, 3, 0)

        with pytest.raises(TooManyRequestsError) as evicted:
            await cluster.evict(pods[1])
        assert str(evicted.value).endswith(f"denied the request: {text}")
        assert evicted.value.details["causes"] == [{"reason": "DisruptionBudget", "message": text}]
        assert evicted.value.retry_after is None

        with pytest.raises(ForbiddenError, match="3 of 4 pods are available"):
            await admin.delete(PODS, pods[1], SPACE)
        image = {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}
        with pytest.raises(ForbiddenError, match="3 of 4 pods are available"):
            await admin.patch(PODS, image, pods[1], SPACE)
        for changed in ({"unavailable-pod.kruise.io/drain": "x"}, {"app": "other"}):
            with pytest.raises(ForbiddenError, match="3 of 4 pods are available"):
                await admin.patch(PODS, {"metadata": {"labels": changed}}, pods[1], SPACE)

        harmless = {"metadata": {"annotations": {"note": "x"}, "labels": {"tier": "x"}}}
        await admin.patch(PODS, harmless, pods[1], SPACE)
        await admin.delete(PODS, "free", SPACE)
        scaled = {"spec": {"replicas": 3}}
        await admin.patch(DEPLOYMENTS, scaled, "web", SPACE)
        await until(lambda: _replicas(cluster) == 3, "the gatekeeper to know the Deployment")
        await admin.delete(PODS, pods[1], SPACE)  # the total fell first, so a scale-down passes


def _replicas(cluster: Cluster) -> int:
    (found,) = cluster.caches[0]._scaled[DEPLOYMENTS].all()
    return found.replicas


async def test_restart_request_of_openkruise_is_recorded_with_the_containers(cluster: Cluster, tmp_path: Path) -> None:
    pods = await cluster.application("web", 3)
    await cluster.budget("web", minAvailable=2)
    await cluster.admin.create(CRDS, _crd(RESTART_REQUESTS))
    async with serving(tmp_path, StaticListers(budgets=cluster.judges[0])) as served:
        await install_webhooks(cluster.admin, served.url(""))

        async def restart(pod: str) -> None:
            spec = {"podName": pod, "containers": [{"name": "web"}]}
            await cluster.admin.create(RESTART_REQUESTS, _obj(RESTART_REQUESTS, f"restart-{pod}", spec=spec), SPACE)

        await restart(pods[0])
        (record,) = (await cluster.stored("web")).status.unavailable_pods.values()
        assert (record.operation, record.shows.partition("#")[0]) == ("RESTART", "restarted:web=ffffffffffff")
        with pytest.raises(ForbiddenError, match=r"2 of 3 pods are available and 2 must be \(minAvailable 2\)"):
            await restart(pods[1])


async def test_break_glass_and_mode_warn_pass_with_warnings(cluster: Cluster) -> None:
    names = await cluster.application("web", 2)
    await cluster.budget("web", maxUnavailable=0)
    judge = cluster.judges[0]
    pod = await _pod(judge, names[0])
    other = await _pod(judge, names[1])
    assert pod is not None
    assert other is not None
    verdict = await _judged(judge, Disruption(Operation.DELETE, pod, "ann", break_glass=True))
    assert isinstance(verdict, Passed)
    assert verdict.broken_glass
    assert verdict.warnings == (
        "passed by break glass, and recorded: PodUnavailableBudget web: 2 of 2 pods are available and 2 must be "
        "(maxUnavailable 0)",
    )
    assert [each.by for each in (await cluster.stored("web")).status.disrupted_pods.values()] == ["ann"]
    assert isinstance(await _judged(judge, Disruption(Operation.DELETE, other, "ann")), Refused)
    await cluster.admin.patch(POD_UNAVAILABLE_BUDGETS, {"spec": {"mode": "Warn"}}, "web", SPACE)
    await until(lambda: cluster.caches[0].budgets(SPACE)[0].spec.mode == "Warn", "the gatekeeper to know the mode")
    warned = await _judged(judge, Disruption(Operation.DELETE, other, "ann"))
    assert isinstance(warned, Passed)
    assert warned.only_warned
    assert "the budget has the mode Warn; with Enforce, this request would be refused" in warned.warnings[0]


@pytest.mark.parametrize("operation", [Operation.EVICT, Operation.RESTART])
@pytest.mark.parametrize("cached", ["terminating", "available"])
async def test_eviction_is_decided_about_the_pod_that_there_is_not_about_its_predecessor_in_an_old_cache(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, operation: Operation, cached: str
) -> None:
    names = await cluster.application("web", 3)
    await cluster.budget("web", maxUnavailable=1)
    judge, caches = cluster.judges[0], cluster.caches[0]
    there = caches.pod(SPACE, names[0])
    assert there is not None
    flags = Flag.TERMINATING if cached == "terminating" else there.flags
    owner = Owner("apps/v1", "StatefulSet", "web", "uid")
    predecessor = msgspec.structs.replace(there, packed_uid="predecessor", owner=owner, flags=int(flags))
    monkeypatch.setattr(caches, "pod", lambda namespace, name: predecessor)
    pod = await _pod(judge, names[0])
    assert pod is not None
    assert isinstance(await _judged(judge, Disruption(operation, pod, "ann")), Passed)
    status = (await cluster.stored("web")).status
    assert [*status.disrupted_pods, *status.unavailable_pods] == [there.uid]
    await cluster.admin.delete(PODS, names[0], SPACE)
    assert await _judged(judge, Disruption(operation, predecessor, "ann")) == Passed()


async def test_admitted_eviction_of_a_pod_with_a_random_name_costs_one_write_and_no_read(cluster: Cluster) -> None:
    names = await cluster.application("web", 3)
    await cluster.budget("web", maxUnavailable=1)
    cluster.writes.clear()
    cluster.reads.clear()
    pod = await _pod(cluster.judges[0], names[0])
    assert pod is not None
    assert isinstance(await _judged(cluster.judges[0], Disruption(Operation.EVICT, pod, "ann")), Passed)
    assert (len(cluster.writes), cluster.reads) == (1, [])


async def test_pods_are_listed_if_the_watch_is_behind_and_budgets_that_are_gone_refuse_nothing(
    cluster: Cluster,
) -> None:
    names = await cluster.application("web", 3)
    await cluster.budget("web", maxUnavailable=1)
    judge = cluster.judges[0]
    pod = await _pod(judge, names[0])
    assert pod is not None
    ahead = str(cluster.caches[0].seen + 1)
    await cluster.admin.patch(
        POD_UNAVAILABLE_BUDGETS, {"status": {"podsResourceVersion": ahead}}, "web", SPACE, subresource="status"
    )
    await until(
        lambda: cluster.caches[0].budgets(SPACE)[0].status.pods_resource_version == ahead, "the gatekeeper to know it"
    )
    assert isinstance(await _judged(judge, Disruption(Operation.DELETE, pod, "ann")), Passed)
    assert len((await cluster.stored("web")).status.disrupted_pods) == 1


async def test_refusal_says_so_while_the_pods_of_the_namespace_cannot_be_listed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cluster.application("web", 1)
    await cluster.pod("free", {"app": "free"})
    await cluster.budget("web", maxUnavailable=1)
    monkeypatch.setattr("gatekeeper.budgets.judge._SECONDS", 0.1)
    monkeypatch.setattr(cluster.caches[0].namespaces, "_filling", {SPACE: asyncio.Event()})
    free = await _pod(cluster.judges[0], "free")
    assert free is not None
    text = "PodUnavailableBudgets: the pods or workloads of the namespace could not be read in time: try again"
    assert await _judged(cluster.judges[0], Disruption(Operation.DELETE, free, "ann")) == Busy(text)


async def test_budget_that_overlaps_another_one_is_refused_unless_altershield_made_that(
    cluster: Cluster, tmp_path: Path
) -> None:
    await cluster.application("web", 1)
    made = {labels.MANAGED_BY: labels.MANAGED_BY_VALUE}
    generated = _obj(POD_UNAVAILABLE_BUDGETS, "own", spec={"selector": {"matchLabels": APP}, "maxUnavailable": 1})
    generated["metadata"]["labels"] = made
    await cluster.admin.create(POD_UNAVAILABLE_BUDGETS, generated, SPACE)
    async with serving(tmp_path, StaticListers(budgets=cluster.judges[0])) as served:
        await install_webhooks(cluster.admin, served.url(""))
        await cluster.budget("web", maxUnavailable=1)
        for target in ("Deployment", "ReplicaSet"):
            ref = {"apiVersion": "apps/v1", "kind": target, "name": "web" if target == "Deployment" else "web-1"}
            with pytest.raises(
                ForbiddenError,
                match="other is not created: PodUnavailableBudget web covers pod web-1-0 too; change that",
            ):
                await cluster.budget("other", selector=None, targetRef=ref, maxUnavailable=1)
        await cluster.budget("elsewhere", targetRef={**ref, "name": "no"}, selector=None, maxUnavailable=1)
        with pytest.raises(ForbiddenError, match="elsewhere has the same target"):
            await cluster.budget("twice", targetRef={**ref, "name": "no"}, selector=None, maxUnavailable=1)


def _crd(resource: Resource) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]}
    return _obj(CRDS, f"{resource.plural}.{resource.group}", spec=spec)
