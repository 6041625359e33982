"""Do gatekeepers answer rightly in an outage of the API server, and what do the processes request after it?

Measured: three gatekeepers and three reconcilers are disconnected from the API server by a proxy; users still reach it.
Meanwhile releases are made, and the gatekeepers are asked questions with known responses. In a second outage, all
versions expire.

How to read it: after the first outage, watches must resume without lists; after the second one, each cache must list
once. A gatekeeper that starts in the outage must not be ready.
"""

import asyncio
import collections
import contextlib
import dataclasses
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import typer

from altershield.admission.webhooks import webhook_path
from altershield.api import labels
from altershield.api.pod_verdicts import Verdict
from altershield.api.resources import API_VERSION, CHANGE_PODS, POD_UNAVAILABLE_BUDGETS
from altershield.process.health import is_ready
from bench.availability.answering import Kubeconfig, answered
from bench.availability.gatekeepers import Gatekeepers, Pod
from bench.availability.history import History, wrong_with
from bench.availability.installation import installed
from bench.availability.proxy import ApiProxy, ReadRequest, WatchedResource, until_watched
from bench.availability.reconcilers import Reconcilers
from bench.harness.answer import Answer
from bench.harness.deployments import create, deployment, release
from bench.harness.metrics import of, scraped
from bench.harness.reviews import review
from bench.harness.waiting import until
from kube_base.access.client import Client
from kube_base.resources import DEPLOYMENTS, EVENTS
from reconciler.manager import COMPONENT

_WHY = "find error"
_MEANWHILE = 5  # how many Deployments are updated, and how many are created, during the outage
_REPLICAS = 2
_PAUSE_SECONDS = 0.2  # between two rounds of questions to all gatekeepers
_BUDGET = {
    "apiVersion": API_VERSION,
    "kind": "PodUnavailableBudget",
    "metadata": {"name": "known-0"},
    "spec": {"selector": {"matchLabels": {"app": "known-0"}}, "maxUnavailable": "100%"},
}
_AGE = "altershield_watch_age_seconds"


@dataclass(frozen=True)
class Result:
    """Times in seconds, and numbers of requests."""

    outage: float
    admissions: int
    """Reviews that were sent to the gatekeepers during the outage."""
    wrong: tuple[str, ...]
    """Messages about missing or wrong responses, gatekeepers that were not ready, and releases from the outage that did
    not succeed."""
    ages: tuple[float, float]
    """The least and the largest age of a gatekeeper's cache at the end of the outage, from its metrics."""
    newcomer: tuple[str, ...]
    """Why a gatekeeper that started during the outage was not ready."""
    caught_up: float
    """From the end of the outage until the releases made during it were verified."""
    watching: float
    """From the end of the outage until all resources were watched again."""
    followed: int
    """Number of resources that the six processes watch, in all."""
    watches: int
    """Watches that were opened after the outage."""
    relists: dict[str, int]
    """Lists of these resources after the outage."""
    reads: dict[str, int]
    """Other lists after the outage: reads for decisions on single releases, and a new leader's search for workloads
    that are held in namespaces which are not governed any more."""
    listed: int
    """Number of resources of seven processes that had to be listed after a second outage, when all versions had
    expired."""
    relists_expired: dict[str, int]
    """These lists."""
    most_relists: int
    """The largest number of these lists of one resource by one process."""
    worst_second: int
    """The largest number of these lists within one second."""


@dataclass(frozen=True)
class _Running:
    admin: Client
    namespace: str
    gatekeepers: Sequence[Pod]
    newcomer: Pod
    """A gatekeeper that is not started."""
    history: History
    session: aiohttp.ClientSession
    """For questions to the gatekeepers."""


@contextlib.asynccontextmanager
async def _running(kubeconfig: Path, directory: Path, proxy: ApiProxy) -> AsyncIterator[_Running]:
    """Run three gatekeepers and three reconcilers. Their requests to the API server pass the proxy."""
    async with installed(kubeconfig, directory) as direct, proxy.running():
        installation = dataclasses.replace(direct, url_for=proxy.url)
        admin, namespace = installation.admin, installation.name
        gatekeepers, history = Gatekeepers(installation, directory, 0), History(admin, namespace)
        newcomer = Pod(installation, directory, "newcomer", 0)
        # without a budget, no process watches the objects that budgets count
        await admin.create(POD_UNAVAILABLE_BUDGETS, _BUDGET, namespace)
        async with (
            gatekeepers.running(),
            history.watching(),
            Reconcilers(installation, directory).running(),
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session,
        ):
            yield _Running(admin, namespace, gatekeepers.pods, newcomer, history, session)


async def ask(
    kubeconfig: Kubeconfig = None,
    gone: Annotated[float, typer.Option(min=1, help="Seconds without the API server.")] = 60,
) -> Answer:
    return await answered("Outage of the API server", kubeconfig, measure, gone)


async def measure(
    kubeconfig: Path, directory: Path, seconds: float, report: Callable[[str], None] = lambda _: None
) -> Result:
    """Disconnect three gatekeepers and three reconcilers from the API server for `seconds`. Users still reach it, and
    the gatekeepers still review releases."""
    proxy = ApiProxy(str(kubeconfig))
    async with _running(kubeconfig, directory, proxy) as running, contextlib.AsyncExitStack() as stack:
        admin, namespace, history = running.admin, running.namespace, running.history
        questions = Questions(running.session, await _suspended(admin, namespace, history))
        released = await _created(admin, namespace, "known")
        await history.until_successful(released)
        await until(lambda: _all_right(questions, running.gatekeepers), "the gatekeepers to know of the suspension")
        before = _watched(proxy.reads)
        loop = asyncio.get_running_loop()

        report(f"outage of the API server for {seconds:.0f} s …")
        await proxy.go()
        gone = loop.time()
        await stack.enter_async_context(running.newcomer.running())
        async with questions.asked_repeatedly(running.gatekeepers):
            for name, versions in released.items():
                versions.append(await release(admin, namespace, name, "meanwhile"))
            released |= await _created(admin, namespace, "new")
            await asyncio.sleep(gone + seconds - loop.time())
            ages = [age for pod in running.gatekeepers for _, age in of(await scraped(pod.endpoint.health_port), _AGE)]
            missing = await _missing(running.session, running.newcomer)
        outage, mark = loop.time() - gone, len(proxy.reads)
        await proxy.come()
        watching, verified = await asyncio.gather(
            _time(until_watched(lambda: before - _watched(proxy.reads[mark:]))),
            _time(history.until_successful(released)),
        )
        wrong = await _wrong_with(history, admin, namespace, released)
        await running.newcomer.until_ready()
        reads = [each for each in proxy.reads[mark:] if each.resource.client != "newcomer"]
        lists = [each for each in reads if each.verb == "list"]

        report("a second outage, after which all versions have expired …")
        forgotten, expired = await _expired(proxy, seconds / 2)
    return Result(
        outage=round(outage, 1),
        admissions=questions.answered,
        wrong=(*questions.wrong, *wrong),
        ages=(round(min(ages), 1), round(max(ages), 1)),
        newcomer=missing,
        caught_up=round(verified, 1),
        watching=round(watching, 1),
        followed=len(before),
        watches=sum(each.verb == "watch" for each in reads),
        relists=_by_resource(each for each in lists if each.resource in before),
        reads=_by_resource(each for each in lists if each.resource not in before),
        listed=len(forgotten),
        relists_expired=_by_resource(expired),
        most_relists=max(Counter(each.resource for each in expired).values()),
        worst_second=max(sum(each.at <= other.at < each.at + 1 for other in expired) for each in expired),
    )


async def _created(admin: Client, namespace: str, prefix: str) -> dict[str, list[str]]:
    """Create Deployments. Returns their names with the released versions."""
    names = [f"{prefix}-{number}" for number in range(_MEANWHILE)]
    return {name: [await create(admin, namespace, name, _REPLICAS)] for name in names}


async def _time(work: Awaitable[None]) -> float:
    began = time.monotonic()
    await work
    return time.monotonic() - began


async def _expired(proxy: ApiProxy, seconds: float) -> tuple[set[WatchedResource], list[ReadRequest]]:
    """Disconnect all processes for `seconds`, in which all versions expire. Returns the watched resources, and
    the lists of them after the outage."""
    await proxy.go()
    proxy.forget()
    forgotten = set(proxy.forgotten)
    await asyncio.sleep(seconds)
    mark = len(proxy.reads)
    await proxy.come()
    await until(lambda: not proxy.forgotten, "all resources to be listed")
    return forgotten, [each for each in proxy.reads[mark:] if each.verb == "list" and each.resource in forgotten]


async def _wrong_with(
    history: History, admin: Client, namespace: str, released: Mapping[str, Sequence[str]]
) -> list[str]:
    """Messages about good releases: those of `wrong_with`, and one for each Event, because they should cause none."""
    deployments: list[dict[str, Any]] = (await admin.list(DEPLOYMENTS, namespace)).items
    ours = [each for each in deployments if each["metadata"]["name"] in released]
    events: list[dict[str, Any]] = (await admin.list(EVENTS, namespace)).items
    events_about_them = [
        f"Event on {event['involvedObject']['name']}: {event['reason']}: {event['message']}"
        for event in events
        if event.get("reportingComponent") == COMPONENT and event["involvedObject"]["name"] in released
    ]
    return wrong_with(history, ours, released, rolled_back=(), replicas=_REPLICAS) + events_about_them


class Questions:
    """Reviews with known responses, sent directly to the gatekeepers."""

    def __init__(self, session: aiohttp.ClientSession, suspended: dict[str, Any]) -> None:
        self.answered = 0
        self.wrong: list[str] = []
        self._session = session
        changed = json.loads(json.dumps(suspended))
        changed["spec"]["template"]["metadata"]["annotations"] = {"release": "next"}
        namespace = suspended["metadata"]["namespace"]
        self._denied = review(DEPLOYMENTS, "UPDATE", namespace, suspended["metadata"]["name"], changed, suspended)
        new = deployment("new", replicas=1)
        new["metadata"]["namespace"] = namespace
        self._stamped = review(DEPLOYMENTS, "CREATE", namespace, "new", new, None)

    @contextlib.asynccontextmanager
    async def asked_repeatedly(self, pods: Sequence[Pod]) -> AsyncIterator[None]:
        asking = asyncio.create_task(self._ask_on(pods))
        try:
            yield
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _ask_on(self, pods: Sequence[Pod]) -> None:
        while True:
            for pod in pods:
                self.wrong += await self.wrong_with(pod)
                self.answered += 2
            await asyncio.sleep(_PAUSE_SECONDS)

    async def wrong_with(self, pod: Pod) -> list[str]:
        """Errors of a gatekeeper at this moment. It must be ready, deny a suspended release, and set a version."""
        wrong = [] if await is_ready(self._session, pod.endpoint.health_port) else ["not ready"]
        try:
            denied = await self._ask(pod, webhook_path(DEPLOYMENTS, mutating=False), self._denied)
            stamped = await self._ask(pod, webhook_path(DEPLOYMENTS, mutating=True), self._stamped)
        except (aiohttp.ClientError, TimeoutError) as error:
            return [*wrong, f"no response: {error!r}"]
        if denied["allowed"] or not any(_WHY in warning for warning in denied.get("warnings", ())):
            wrong.append(f"the suspended release was not denied: {denied}")
        if not stamped["allowed"] or "patch" not in stamped:
            wrong.append(f"the release got no version: {stamped}")
        return wrong

    async def _ask(self, pod: Pod, path: str, review: dict[str, Any]) -> dict[str, Any]:
        url = f"https://127.0.0.1:{pod.endpoint.port}{path}"
        async with self._session.post(url, json=review, timeout=aiohttp.ClientTimeout(10)) as answer:
            response: dict[str, Any] = (await answer.json())["response"]
            return response


async def _all_right(questions: Questions, pods: Sequence[Pod]) -> bool:
    return not any([await questions.wrong_with(pod) for pod in pods])


async def _suspended(admin: Client, namespace: str, history: History) -> dict[str, Any]:
    """Create a Deployment, and suspend it. Returns the stored object."""
    name = "suspended"
    version = await create(admin, namespace, name, 1)
    await history.until_successful({name: [version]})
    change_pods: list[dict[str, Any]] = (await admin.list(CHANGE_PODS, namespace)).items
    (change_pod,) = change_pods
    failed = [{**pod, "verdict": Verdict.UNPASS, "message": _WHY} for pod in change_pod["spec"]["podInfos"]]
    status = {"podResults": failed, "message": "PostFinish"}
    await admin.patch(CHANGE_PODS, {"status": status}, change_pod["metadata"]["name"], namespace, subresource="status")
    stored: dict[str, Any] = {}

    async def labelled() -> bool:
        stored.update(await admin.get(DEPLOYMENTS, name, namespace))
        return labels.SUSPEND in stored["metadata"]["labels"]

    await until(labelled, "the Deployment to be suspended")
    return stored


async def _missing(session: aiohttp.ClientSession, pod: Pod) -> tuple[str, ...]:
    """The reasons why a gatekeeper that has just started is not ready. Waits until it answers."""
    reasons: list[str] = []

    async def answers() -> bool:
        with contextlib.suppress(aiohttp.ClientConnectorError):
            async with session.get(f"http://127.0.0.1:{pod.endpoint.health_port}/readyz") as answer:
                reasons.extend((await answer.text()).splitlines() if answer.status == 503 else ())
                return True
        return False

    await until(answers, "the new gatekeeper to answer")
    return tuple(reasons)


def _watched(reads: Iterable[ReadRequest]) -> set[WatchedResource]:
    return {each.resource for each in reads if each.verb == "watch"}


def _by_resource(reads: Iterable[ReadRequest]) -> dict[str, int]:
    return dict(collections.Counter(each.resource.path.rpartition("/")[2] for each in reads))
