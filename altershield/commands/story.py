"""The release story: what the walkthrough promises, step by step, checked against a live cluster.

Each step does one thing a user would do and waits, on watches, for what must come of it.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from altershield.admission.webhooks import webhook_name
from altershield.api import labels
from altershield.api.kinds import ChangePod, ChangeWorkload, PodState, Verdict, WorkloadState
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, NAMESPACES, PODS
from altershield.errors import AlterShieldError
from altershield.kube.client import Client, ObjectList, PatchType
from altershield.kube.errors import ApiError, ForbiddenError, NotFoundError
from altershield.kube.informer import Informer
from altershield.workloads import BY_KIND, change_workload_name, pods
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload

NAMESPACE = "altershield-demo"
NAME = "sleep"
REPLICAS = 5
_ADAPTER = BY_KIND["Deployment"]
_RESOURCE = _ADAPTER.resource
_FIELD_MANAGER = "altershield-demo"
_STEP_SECONDS = 90.0


class StepFailedError(AlterShieldError):
    """A step of the story did not come true."""


@dataclass(frozen=True)
class Step:
    """One line of the story. `command` is what a user would type."""

    title: str
    command: str
    expected: str
    run: Callable[["Story"], Awaitable[str]]


def manifest(*, labels_: dict[str, str], template_labels: dict[str, str], image: str = "busybox") -> dict[str, Any]:
    """The walkthrough's `sleep`."""
    return {
        "apiVersion": _RESOURCE.api_version,
        "kind": _RESOURCE.kind,
        "metadata": {"name": NAME, "labels": {"app": NAME, **labels_}},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": {"app": NAME}},
            "template": {
                "metadata": {"labels": {"app": NAME, **template_labels}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [
                        {
                            "name": NAME,
                            "image": image,
                            "command": ["/bin/sleep", "infinity"],
                            "imagePullPolicy": "IfNotPresent",
                        }
                    ],
                },
            },
        },
    }


class Story:
    """What the steps share: the client, and everything seen in the namespace since the story began."""

    def __init__(self, client: Client, start_timeout: float) -> None:
        self.client = client
        self.start_timeout = start_timeout
        self.states: dict[str, list[str]] = {}
        """States each ChangeWorkload was seen in, in order."""
        self.most_records = 0
        """The most ChangeWorkloads seen at one time since it was last set."""
        self._changed = asyncio.Event()
        self.workloads = Informer(client, _RESOURCE, Workload, read=_ADAPTER.read, namespace=NAMESPACE)
        self.pods = Informer(client, PODS, Pod, read=pods.read, namespace=NAMESPACE)
        self.records = Informer(client, CHANGE_WORKLOADS, ChangeWorkload, namespace=NAMESPACE)
        self.change_pods = Informer(client, CHANGE_PODS, ChangePod, namespace=NAMESPACE)
        self._informers = (self.workloads, self.pods, self.records, self.change_pods)
        for informer in self._informers:
            informer.add_handler(lambda _old, _new: self._changed.set())
        self.records.add_handler(self._record)

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(informer.run()) for informer in self._informers]
        try:
            for informer in self._informers:
                await informer.wait_synced()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _record(self, _old: ChangeWorkload | None, new: ChangeWorkload | None) -> None:
        if new is not None:
            seen = self.states.setdefault(new.metadata.name, [])
            state = new.status.status or WorkloadState.INIT
            if not seen or seen[-1] != state:
                seen.append(state)
        self.most_records = max(self.most_records, len(self.records))

    async def until(self, met: Callable[[], str], waiting_for: str, seconds: float = _STEP_SECONDS) -> str:
        """Wait until `met` says (in words) what was seen; empty words mean not yet."""
        deadline = time.monotonic() + seconds
        while not (seen := met()):
            self._changed.clear()
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    await self._changed.wait()
            except TimeoutError:
                raise StepFailedError(f"waited {seconds:.0f} s for {waiting_for}; seen: {self.summary()}") from None
        return seen

    def summary(self) -> str:
        """What there is right now, for a person who wonders why a step failed."""
        found = self.workloads.get(NAMESPACE, NAME)
        since = f", suspended since {found.suspended}" if found and found.suspended else ""
        parts = [f"version {found.version or 'none'}{since}" if found else f"no {_RESOURCE.kind}"]
        parts += [f"{record.metadata.name}: {record.status.status or 'Init'}" for record in self.records.all()]
        parts += [f"{len(list(self.pods.all()))} pods, {len(self.up())} up"]
        return "; ".join(parts)

    # -- what the steps look at ----------------------------------------------------------------------------

    @property
    def workload(self) -> Workload:
        found = self.workloads.get(NAMESPACE, NAME)
        if found is None:
            raise StepFailedError(f"{_RESOURCE.kind} {NAMESPACE}/{NAME} is gone")
        return found

    def record(self, version: str) -> ChangeWorkload | None:
        return self.records.get(NAMESPACE, _record(version))

    def state(self, version: str) -> str:
        found = self.record(version)
        return found.status.status if found else ""

    def up(self, version: str = "") -> list[Pod]:
        return [pod for pod in self.pods.all() if (not version or pod.version == version) and pod.exists and pod.ready]

    # -- what the steps do ---------------------------------------------------------------------------------

    async def apply(self, obj: dict[str, Any]) -> None:
        await self.client.patch(
            _RESOURCE,
            obj,
            NAME,
            NAMESPACE,
            type_=PatchType.APPLY,
            field_manager=_FIELD_MANAGER,
            force=True,
        )

    async def patch(self, patch: dict[str, Any], *, subresource: str = "") -> None:
        type_ = PatchType.MERGE if subresource else PatchType.STRATEGIC
        await self.client.patch(_RESOURCE, patch, NAME, NAMESPACE, type_=type_, subresource=subresource)

    async def denied(self, change: Callable[[], Awaitable[None]]) -> ApiError:
        """Expect the API server to refuse a change."""
        try:
            await change()
        except ForbiddenError as error:
            return error
        raise StepFailedError("the change was allowed")

    async def succeeded(self, version: str, *, alone: bool = False) -> str:
        """Wait for the version's Success (and, if `alone`, for older records to be gone)."""

        def met() -> str:
            if self.state(version) != WorkloadState.SUCCESS or (alone and len(self.records) != 1):
                return ""
            return f"{version[:8]}… {' → '.join(self.states[_record(version)])}"

        return await self.until(met, f"ChangeWorkload {_record(version)} to succeed")

    async def next_version(self, old: str) -> str:
        def met() -> str:
            found = self.workloads.get(NAMESPACE, NAME)
            return found.version if found is not None and found.version != old else ""

        return await self.until(met, f"a new version on the {_RESOURCE.kind}")


def template_patch(value: str) -> dict[str, Any]:
    return {"spec": {"template": {"metadata": {"labels": {"test": value}}}}}


def image_patch(image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": NAME, "image": image}]}}}}


async def govern(story: Story) -> str:
    await _delete_namespace(story.client)
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {labels.GOVERNED: labels.GOVERNED_VALUE}},
    }
    await story.client.create(NAMESPACES, namespace)
    # a new webhook configuration, and a new namespace's labels, take the API server a moment
    probe = manifest(labels_={}, template_labels={})
    seen = "nothing"
    try:
        async with asyncio.timeout(_STEP_SECONDS):
            while True:
                try:
                    answer = await story.client.request(
                        "POST", _RESOURCE.path(NAMESPACE), query={"dryRun": "All"}, body=probe
                    )
                except ApiError as error:
                    seen = str(error)
                else:
                    if labels.VERSION.encode() in answer:
                        return f"a dry run of the {_RESOURCE.kind} comes back with a version"
                    seen = f"a {_RESOURCE.kind} without a version"
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise StepFailedError(
            f"the gate did not see the namespace within {_STEP_SECONDS:.0f} s; seen: {seen}"
        ) from None


async def release(story: Story) -> str:
    await story.apply(manifest(labels_={}, template_labels={}))
    version = await story.next_version("")
    if story.workload.template_version != version:
        raise StepFailedError(f"the pod template does not carry the {_RESOURCE.kind}'s version")
    seen = await story.succeeded(version)
    states = story.states[_record(version)]
    if WorkloadState.RUNNING not in states:
        raise StepFailedError(f"the ChangeWorkload went {states}, without Running")
    ended = f"{PodState.EXECUTE_DONE}/{PodState.PRE_FAILED}"

    def met() -> str:  # their watch may be behind the ChangeWorkload's
        states = [f"{each.status.status}/{each.status.message}" for each in story.change_pods.all()]
        return f"{seen}; {REPLICAS} ChangePods {ended}" if states == [ended] * REPLICAS else ""

    return await story.until(met, f"{REPLICAS} ChangePods in the state {ended}")


async def fail_a_pod(story: Story) -> str:
    version = story.workload.version
    target = min(story.change_pods.all(), key=lambda change_pod: change_pod.metadata.name)
    result = {**_plain(target.spec.pod_infos[0]), "verdict": Verdict.UNPASS, "message": "find error"}
    patch = {"status": {"podResults": [result], "message": PodState.POST_FINISH}}
    await story.client.patch(CHANGE_PODS, patch, target.metadata.name, NAMESPACE, subresource="status")

    def met() -> str:
        record = story.record(version)
        since = story.workload.suspended
        if record is None or record.status.status != WorkloadState.SUSPEND or not since.isdigit():
            return ""
        failed = [f"{pod.pod}: {pod.message}" for pod in record.status.defense_check_fail_pods]
        return f"Suspend since {since}, failed {failed}" if failed else ""

    return await story.until(met, "the release to be suspended")


async def next_release_denied(story: Story) -> str:
    error = await story.denied(lambda: story.patch(template_patch("test")))
    text = f"{_KIND} {NAME} is suspended"
    full = f'admission webhook "{webhook_name(_RESOURCE, mutating=False)}" denied the request: {text}'
    if (error.reason, str(error)) != (text, full):
        raise StepFailedError(f"denied with reason {error.reason!r}: {error}")
    return f"Error from server ({error.reason}): {error}"


async def scale(story: Story) -> str:
    await story.patch({"spec": {"replicas": REPLICAS + 1}}, subresource="scale")
    await story.until(lambda: "up" if len(story.up()) == REPLICAS + 1 else "", f"{REPLICAS + 1} pods")
    return f"{REPLICAS + 1} pods are up"


async def repair(story: Story) -> str:
    old = story.workload.version
    story.most_records = 0
    await story.apply(manifest(labels_={labels.IGNORED_SUSPEND: "true"}, template_labels={"test": "1234"}))
    version = await story.next_version(old)
    seen = await story.succeeded(version, alone=True)
    if story.most_records != 2:
        raise StepFailedError(f"{story.most_records} ChangeWorkloads were seen at one time instead of 2")

    def met() -> str:
        kept = story.workload.suspended or story.workload.ignores_suspension
        return "" if kept else f"two ChangeWorkloads, then only {seen}; the suspend label is off"

    return await story.until(met, "suspend and ignored-suspend to be taken off")


async def release_again(story: Story) -> str:
    old = story.workload.version
    await story.patch(template_patch("test"))
    return await story.succeeded(await story.next_version(old), alone=True)


async def bad_image(story: Story) -> str:
    good = story.workload.version
    await story.patch(image_patch("busybo"))
    bad = await story.next_version(good)

    def stuck() -> str:
        waiting = [pod.trouble.reason for pod in story.pods.all() if pod.version == bad and pod.trouble is not None]
        return f"{waiting}" if {"ImagePullBackOff"} & set(waiting) else ""

    seen = await story.until(stuck, "a pod in ImagePullBackOff")
    still_up = len(story.up(good))
    if still_up < REPLICAS - REPLICAS // 4:
        raise StepFailedError(f"only {still_up} of the old pods were still up")

    def back() -> str:
        record = story.record(bad)
        done = (
            story.workload.version == good
            and len(story.up(good)) == REPLICAS == len(list(story.pods.all()))
            and record is not None
            and record.status.status == WorkloadState.FAILED
        )
        return (
            f"{seen}, {still_up} old pods up; then {good[:8]}… is back, {REPLICAS} up, {bad[:8]}… Failed"
            if done
            else ""
        )

    return await story.until(back, "the old template to be back", story.start_timeout + _STEP_SECONDS)


async def bad_image_again(story: Story) -> str:
    error = await story.denied(lambda: story.patch(image_patch("busybo")))
    if "was rolled back" not in str(error) or labels.IGNORED_SUSPEND not in str(error):
        raise StepFailedError(f"denied without its reason or the way out: {error}")
    return str(error)


async def clean_up(story: Story) -> str:
    await _delete_namespace(story.client)
    return f"namespace {NAMESPACE} is gone"


async def _delete_namespace(client: Client) -> None:
    """Delete the demo's namespace and wait, watching it, until it is gone."""
    selector = f"metadata.name={NAMESPACE}"
    with contextlib.suppress(NotFoundError):
        await client.delete(NAMESPACES, NAMESPACE)
    try:
        async with asyncio.timeout(_STEP_SECONDS):
            while True:
                listed: ObjectList[dict[str, Any]] = await client.list(NAMESPACES, field_selector=selector)
                if not listed.items:
                    return
                version = listed.metadata.resource_version
                watch = client.watch(NAMESPACES, resource_version=version, field_selector=selector)
                async with contextlib.aclosing(watch) as events:
                    async for event in events:
                        if event.type == "DELETED":
                            return
    except TimeoutError:
        raise StepFailedError(
            f"namespace {NAMESPACE} was still there {_STEP_SECONDS:.0f} s after its deletion"
        ) from None


def _plain(info: Any) -> dict[str, str]:
    return {
        "app": info.app,
        "hostName": info.host_name,
        "ip": info.ip,
        "namespace": info.namespace,
        "pod": info.pod,
        "workSpace": info.work_space,
    }


def _record(version: str) -> str:
    return change_workload_name(_RESOURCE.kind, NAME, version)


_KIND = _RESOURCE.kind.lower()
_BUSYBO = f"kubectl set image {_KIND} {NAME} {NAME}=busybo"

STEPS = (
    Step("Govern a namespace", f"kubectl label namespace {NAMESPACE} {labels.GOVERNED}=enabled",
         "the gate sees its workloads", govern),
    Step("Release", "kubectl apply -f sleep.yaml",
         f"version stamped; ChangeWorkload Running, {REPLICAS} ChangePods, Success", release),
    Step("Fail a pod", "kubectl patch changepod --subresource=status … verdict: unpass",
         "Suspend, defenseCheckFailPods, suspend label", fail_a_pod),
    Step("Release on top", f"kubectl patch {_KIND} {NAME} …", "denied: it is suspended", next_release_denied),
    Step("Scale", f"kubectl scale {_KIND} {NAME} --replicas={REPLICAS + 1}", "allowed", scale),
    Step("Repair", f"kubectl apply -f sleep.yaml   # with {labels.IGNORED_SUSPEND}",
         "two ChangeWorkloads, then only the new one, Success", repair),
    Step("Release", f"kubectl patch {_KIND} {NAME} …", "allowed, Success", release_again),
    Step("Release what never comes up", _BUSYBO,
         "ImagePullBackOff, old pods up; then the old template is back, Running", bad_image),
    Step("Release it again", _BUSYBO, "denied with its reason and the way out", bad_image_again),
    Step("Clean up", f"kubectl delete namespace {NAMESPACE}", "nothing is left", clean_up),
)  # fmt: skip
