"""Do PodUnavailableBudgets hold while all their pods are disrupted at once, and gatekeepers and leaders are killed?

Measured: all pods of several budgets are evicted, deleted and changed at once, again and again. Each gatekeeper is
killed when a write of a budget is stored, before it can answer, and the leader three times. An observer, which shares
no code with the gatekeeper, replays the watch of the pods.

How to read it: no budget may be overdrawn by admitted disruptions, and all slots must come back.
"""

import asyncio
import contextlib
import dataclasses
import enum
import functools
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import msgspec
import typer

from altershield.api.budgets import PodUnavailableBudget
from altershield.api.resources import API_VERSION, POD_UNAVAILABLE_BUDGETS
from bench.availability.answering import Kubeconfig, answered
from bench.availability.gatekeepers import Gatekeepers
from bench.availability.installation import installed
from bench.availability.losses import CALL_FAILED
from bench.availability.observer import Budget, Replay, replay
from bench.availability.pods_watch import PodsWatch
from bench.availability.proxy import ApiProxy
from bench.availability.reconcilers import Reconcilers
from bench.harness.answer import Answer
from bench.harness.deployments import deployment
from bench.harness.waiting import until
from kube_base.access.backoff import retry_while_unavailable
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import ApiError, ConflictError, KubernetesError, NotFoundError
from kube_base.resources import DEPLOYMENTS, PODS, Resource

_REFUSED = "PodUnavailableBudget"
_SHORT = "pods are available and"  # a refusal because too few pods would be left
_HELD_BACK = 0.5  # seconds for which the answer of a write waits, so that its process is dead before the answer comes
_SETTLED = 150.0  # seconds: records of disruptions that did not happen run out after 35
_PAUSE = 0.2
_LEADER = "the leader"
_LEADERS = 3  # are killed
_RESTARTED_SLOWLY = {"exec": {"command": ["true"]}, "initialDelaySeconds": 1}


@dataclass(frozen=True)
class Plan:
    budgets: int = 20
    pods: int = 25
    """Pods of each budget. One in five may be unavailable."""
    seconds: float = 30.0
    """The minimum duration of the disruptions. They last until all kills have happened."""


@dataclass(frozen=True)
class Result:
    """Times in seconds."""

    concurrent: int
    """How many requests were sent at once, one for each pod. This was repeated."""
    admitted: int
    refused: int
    """Requests that a budget refused."""
    lost: int
    """Requests without an answer of a gatekeeper, because it was killed. They may have taken effect."""
    unsent: int
    """Requests for which the API server accepted no connection in time."""
    killed: tuple[str, ...]
    """The names of the killed processes, in order."""
    replay: Replay
    seconds: float
    settled: float
    """From the last request until all pods were ready and all records of deletions and evictions were gone."""
    wrong: tuple[str, ...]


async def ask(
    kubeconfig: Kubeconfig = None,
    budgets: Annotated[int, typer.Option(min=1)] = 20,
    pods: Annotated[int, typer.Option(min=5, help="Pods of each budget.")] = 25,
    seconds: Annotated[float, typer.Option(min=1, help="Minimum duration of the disruptions.")] = 30,
) -> Answer:
    title = "Disruptions of all pods of PodUnavailableBudgets"
    return await answered(title, kubeconfig, measure, Plan(budgets, pods, seconds))


async def measure(
    kubeconfig: Path, directory: Path, plan: Plan, report: Callable[[str], None] = lambda _: None
) -> Result:
    """Three gatekeepers and three reconcilers. Each gatekeeper is killed when a write of a budget is stored, before it
    can answer, and one is killed at any time. The leader is killed three times when a write of a budget is stored."""
    proxy = ApiProxy(str(kubeconfig))
    async with installed(kubeconfig, directory) as direct, proxy.running():
        installation = dataclasses.replace(direct, url_for=proxy.url)
        admin, namespace = installation.admin, installation.name
        gatekeepers, reconcilers = Gatekeepers(installation, directory, 0), Reconcilers(installation, directory)
        async with gatekeepers.running(), reconcilers.running(), PodsWatch.following(admin, namespace) as watch:
            report("starting the pods …")
            budgets = await _prepare(admin, namespace, plan)
            async with admin.with_own_connections(max_in_flight=plan.budgets * plan.pods) as users:
                load, loop = _Load(users, namespace), asyncio.get_running_loop()
                began = loop.time()
                report("disrupting all pods …")
                async with load.running():
                    kills = _Kills(proxy, gatekeepers, reconcilers)
                    await kills.happen()
                    await asyncio.sleep(began + plan.seconds - loop.time())
                ended = loop.time()
            report("waiting for the slots …")
            wrong = [*load.wrong, *await _settled(admin, namespace, budgets, load.unanswered_changes)]
            settled = loop.time() - ended
            await watch.until_now()
    found = replay(watch.events, budgets, load.admitted)
    wrong += [f"overdrawn: {each}" for each in found.overdrafts]
    return Result(
        concurrent=plan.budgets * plan.pods,
        admitted=load.counts[_Answer.ADMITTED],
        refused=load.counts[_Answer.REFUSED],
        lost=load.counts[_Answer.LOST],
        unsent=load.counts[_Answer.UNSENT],
        killed=tuple(kills.killed),
        replay=found,
        seconds=round(ended - began, 1),
        settled=round(settled, 1),
        wrong=tuple(wrong),
    )


async def _prepare(admin: Client, namespace: str, plan: Plan) -> list[Budget]:
    """Create the Deployments, wait for their pods, then create the budgets: each second one with minAvailable."""
    desired = plan.pods - -(-plan.pods // 5)
    budgets = [Budget(f"app-{number}", plan.pods, desired) for number in range(plan.budgets)]
    for each in budgets:
        made = deployment(each.name, replicas=each.total)
        made["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = _RESTARTED_SLOWLY
        await admin.create(DEPLOYMENTS, made, namespace)
    await _until_ready(admin, namespace, budgets)
    for number, each in enumerate(budgets):
        amount = {"minAvailable": desired} if number % 2 else {"maxUnavailable": "20%"}
        spec = {"selector": {"matchLabels": {"app": each.name}}, **amount}
        obj = {"apiVersion": API_VERSION, "kind": "PodUnavailableBudget", "metadata": {"name": each.name}, "spec": spec}
        await admin.create(POD_UNAVAILABLE_BUDGETS, obj, namespace)
    return budgets


async def _until_ready(admin: Client, namespace: str, budgets: list[Budget]) -> None:
    async def are_ready() -> bool:
        found = await _list(admin, DEPLOYMENTS, namespace)
        ready = {each["metadata"]["name"]: each.get("status", {}).get("readyReplicas", 0) for each in found}
        return all(ready[each.name] == each.total for each in budgets)

    await until(are_ready, "all pods to be ready", _SETTLED)


async def _settled(admin: Client, namespace: str, budgets: list[Budget], unanswered: set[str]) -> list[str]:
    """Wait until all pods are ready and no disruption is recorded. Returns an error message, if this does not happen in
    time. The record of a change whose request got no answer may stay, because the pod may still show the change later.
    """
    found: list[PodUnavailableBudget] = []

    async def are_settled() -> bool:
        found[:] = msgspec.convert(await _list(admin, POD_UNAVAILABLE_BUDGETS, namespace), list[PodUnavailableBudget])
        return all(
            not each.status.disrupted_pods
            and each.status.unavailable_pods.keys() <= unanswered
            and each.status.unavailable_allowed + len(each.status.unavailable_pods)
            >= budgets[0].total - budgets[0].desired
            for each in found
        )

    try:
        await _until_ready(admin, namespace, budgets)
        await until(are_settled, "the slots to come back", _SETTLED)
    except TimeoutError as error:
        left = {each.metadata.name: msgspec.to_builtins(each.status) for each in found}
        return [f"{error}: {left}"]
    return []


async def _list(client: Client, resource: Resource, namespace: str) -> list[dict[str, Any]]:
    """All objects, although a busy machine may take long to accept a connection."""
    return (await retry_while_unavailable(functools.partial(client.list, resource, namespace))).items


class _Operation(enum.Enum):
    EVICT = "evict"
    DELETE = "delete"
    CHANGE = "change"


class _Answer(enum.Enum):
    ADMITTED = "admitted"
    REFUSED = "refused"
    UNDECIDED = "refused, because the budget could not be written in time; perhaps it was written"
    LATE = "the pod had changed or was gone"
    LOST = "lost"
    UNSENT = "not sent, because the API server on this machine did not accept the connection in time"


class _Load:
    """Sends one request for each pod, all at the same time, repeatedly."""

    def __init__(self, users: Client, namespace: str) -> None:
        self.counts: Counter[_Answer] = Counter()
        self.admitted: set[str] = set()
        """The uids of the pods with an admitted disruption, or one that may have been admitted."""
        self.unanswered_changes: set[str] = set()
        self.wrong: list[str] = []
        self._changed: dict[str, list[str]] = {}
        """The ids of a pod's containers when it was changed last, by uid."""
        self._users, self._namespace = users, namespace
        self._images = (f"busybox:{number}" for number in itertools.count(1))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Returns when the last requests are answered."""
        over = asyncio.Event()
        sending = asyncio.create_task(self._send(over))
        try:
            yield
        finally:
            over.set()
            await sending

    async def _send(self, over: asyncio.Event) -> None:
        for turn in itertools.count():
            pods = await _list(self._users, PODS, self._namespace)
            operations = itertools.islice(itertools.cycle(_Operation), turn, None)
            await asyncio.gather(
                *(
                    self._disrupt(pod, operation)
                    for pod, operation in zip(pods, operations, strict=False)
                    if "deletionTimestamp" not in pod["metadata"]
                )
            )
            if over.is_set():
                return
            await asyncio.sleep(_PAUSE)

    async def _disrupt(self, pod: dict[str, Any], operation: _Operation) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        ids = [each.get("containerID") for each in pod["status"].get("containerStatuses", ())]
        if operation is _Operation.CHANGE:
            if not all(ids) or not ids or self._changed.get(uid) == ids:
                return  # the record of a second change would stay for ten minutes, because the pod would not show it
            self._changed[uid] = ids
        answer = await self._answer(name, uid, operation)
        self.counts[answer] += 1
        if answer in (_Answer.ADMITTED, _Answer.LOST):
            self.admitted.add(uid)
        if answer in (_Answer.LOST, _Answer.UNDECIDED) and operation is _Operation.CHANGE:
            self.unanswered_changes.add(uid)
        if answer in (_Answer.REFUSED, _Answer.UNSENT) and operation is _Operation.CHANGE:
            del self._changed[uid]

    async def _answer(self, name: str, uid: str, operation: _Operation) -> _Answer:
        try:
            await self._request(name, uid, operation)
        except (NotFoundError, ConflictError):
            return _Answer.LATE
        except ApiError as error:
            if error.code in (403, 429) and _REFUSED in str(error):
                return _Answer.REFUSED if _SHORT in str(error) else _Answer.UNDECIDED
            if CALL_FAILED not in str(error):
                self.wrong.append(f"{operation.value} {name}: {error}")
            return _Answer.LOST
        except KubernetesError as error:
            if isinstance(error.__cause__, aiohttp.ConnectionTimeoutError):
                return _Answer.UNSENT
            self.wrong.append(f"{operation.value} {name}: {error}")
            return _Answer.LOST
        return _Answer.ADMITTED

    def _request(self, name: str, uid: str, operation: _Operation) -> Awaitable[object]:
        users, namespace = self._users, self._namespace
        if operation is _Operation.DELETE:
            return users.delete(PODS, name, namespace, uid=uid)
        if operation is _Operation.EVICT:
            options = {"preconditions": {"uid": uid}}
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options}
            return users.create(PODS, body, namespace, name=name, subresource="eviction")
        spec = {"containers": [{"name": "app", "image": next(self._images)}]}
        return users.patch(PODS, {"metadata": {"uid": uid}, "spec": spec}, name, namespace, type_=PatchType.STRATEGIC)


_Kill = Callable[[str], Awaitable[object]]
"""Kills the process of this name."""


class _Kills:
    def __init__(self, proxy: ApiProxy, gatekeepers: Gatekeepers, reconcilers: Reconcilers) -> None:
        self.killed: list[str] = []
        self._gatekeepers, self._reconcilers = gatekeepers, reconcilers
        self._due: dict[str, _Kill] = {}
        """How to kill a process once its next write of a budget is stored, by its name or _LEADER."""
        self._under_way: dict[str, tuple[str, asyncio.Task[object]]] = {}
        proxy.stored = self._stored

    async def happen(self) -> None:
        await asyncio.gather(self._kill_gatekeepers(), self._kill_leaders())

    async def _kill_gatekeepers(self) -> None:
        pods = {pod.name: pod for pod in self._gatekeepers.pods}
        for name in pods:
            await self._after_write(name, lambda name: pods[name].kill())
        pod = self._gatekeepers.pods[0]
        await pod.kill()
        self.killed.append(pod.name)

    async def _kill_leaders(self) -> None:
        for _ in range(_LEADERS):
            await self._after_write(_LEADER, self._reconcilers.kill)

    async def _after_write(self, process: str, kill: _Kill) -> None:
        self._due[process] = kill
        await until(lambda: process in self._under_way, f"a write by {process}")
        name, killing = self._under_way.pop(process)
        await killing
        self.killed.append(f"{name} between write and answer")

    async def _stored(self, client: str, path: str) -> None:
        # of the reconcilers, only the leader writes; which one leads may change at any time
        process = _LEADER if client.startswith("reconciler-") else client
        if process in self._due and f"/{POD_UNAVAILABLE_BUDGETS.plural}/" in path:
            self._under_way[process] = client, asyncio.create_task(_as_task(self._due.pop(process)(client)))
            await asyncio.sleep(_HELD_BACK)


async def _as_task(killing: Awaitable[object]) -> object:
    return await killing
