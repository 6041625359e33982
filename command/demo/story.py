"""The connection to the cluster, and the objects of the demo's namespace, which the steps share."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from altershield.api.change_pod import ChangePod
from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS
from altershield.workloads import change_workload_name, pods
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload
from command.demo.sample import ADAPTER, NAME, NAMESPACE, RESOURCE
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import ApiError, ForbiddenError
from kube_base.access.informer import Informer
from kube_base.errors import ReportedError
from kube_base.resources import PODS

STEP_SECONDS = 90.0
"""How long a step waits for its outcome."""

_FIELD_MANAGER = "altershield-demo"


class StepFailedError(ReportedError):
    """A step of the demo had another outcome than the expected one."""


class Story:
    """What the steps share: a client, and informers on the namespace of the demo.

    `start_timeout` is AlterShield's option, in seconds: a rollback begins after it.
    """

    def __init__(self, client: Client, start_timeout: float) -> None:
        self.client = client
        self.start_timeout = start_timeout
        self.states: dict[str, list[str]] = {}
        """The states of each ChangeWorkload since the demo began, in order."""
        self.most_change_workloads = 0
        """The largest number of ChangeWorkloads at one time since a step last set it to 0."""
        self._changed = asyncio.Event()
        self.workloads = Informer(client, RESOURCE, Workload, read=ADAPTER.read, namespace=NAMESPACE)
        self.pods = Informer(client, PODS, Pod, read=pods.read, namespace=NAMESPACE)
        self.change_workloads = Informer(client, CHANGE_WORKLOADS, ChangeWorkload, namespace=NAMESPACE)
        self.change_pods = Informer(client, CHANGE_PODS, ChangePod, namespace=NAMESPACE)
        self._informers = (self.workloads, self.pods, self.change_workloads, self.change_pods)
        for informer in self._informers:
            informer.add_handler(lambda _old, _new: self._changed.set())
        self.change_workloads.add_handler(self._note_state)

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Run the informers. The block begins when all of them are in sync."""
        tasks = [asyncio.create_task(informer.run()) for informer in self._informers]
        try:
            for informer in self._informers:
                await informer.wait_synced()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _note_state(self, _old: ChangeWorkload | None, new: ChangeWorkload | None) -> None:
        if new is not None:
            states = self.states.setdefault(new.metadata.name, [])
            state = new.status.status or WorkloadState.INIT
            if not states or states[-1] != state:
                states.append(state)
        self.most_change_workloads = max(self.most_change_workloads, len(self.change_workloads))

    async def until(self, outcome: Callable[[], str], waiting_for: str, seconds: float = STEP_SECONDS) -> str:
        """Wait until `outcome` returns a text, and return that text. Empty means not yet.

        StepFailedError after `seconds`; it names `waiting_for` and the present state of the namespace.
        """
        deadline = time.monotonic() + seconds
        while not (text := outcome()):
            self._changed.clear()
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    await self._changed.wait()
            except TimeoutError:
                raise StepFailedError(f"waited {seconds:.0f} s for {waiting_for}; seen: {self.summary()}") from None
        return text

    def summary(self) -> str:
        """The present state of the namespace, for the message of a step that failed."""
        workload = self.workloads.get(NAMESPACE, NAME)
        suspended = ", suspended" if workload and workload.suspended else ""
        parts = [f"version {workload.version or 'none'}{suspended}" if workload else f"no {RESOURCE.kind}"]
        parts += [f"{each.metadata.name}: {each.status.status or 'Init'}" for each in self.change_workloads.all()]
        parts += [f"{len(list(self.pods.all()))} pods, {len(self.up())} ready"]
        return "; ".join(parts)

    @property
    def workload(self) -> Workload:
        """The Deployment; StepFailedError where it is gone."""
        found = self.workloads.get(NAMESPACE, NAME)
        if found is None:
            raise StepFailedError(f"{RESOURCE.kind} {NAMESPACE}/{NAME} is gone")
        return found

    def change_workload(self, version: str) -> ChangeWorkload | None:
        return self.change_workloads.get(NAMESPACE, change_workload(version))

    def state(self, version: str) -> str:
        """The state of the version's ChangeWorkload; empty where there is none."""
        found = self.change_workload(version)
        return found.status.status if found else ""

    def path(self, version: str) -> str:
        """The states that the version's ChangeWorkload had, in order: `Init → Running → Success`."""
        return " → ".join(self.states[change_workload(version)])

    def up(self, version: str = "") -> list[Pod]:
        """The pods that are ready, of all versions or of one."""
        return [pod for pod in self.pods.all() if (not version or pod.version == version) and pod.exists and pod.ready]

    async def apply(self, obj: dict[str, Any]) -> None:
        """Apply the Deployment, server-side."""
        await self.client.patch(
            RESOURCE,
            obj,
            NAME,
            NAMESPACE,
            type_=PatchType.APPLY,
            field_manager=_FIELD_MANAGER,
            force=True,
        )

    async def patch(self, patch: dict[str, Any], *, subresource: str = "") -> None:
        """Patch the Deployment."""
        type_ = PatchType.MERGE if subresource else PatchType.STRATEGIC
        await self.client.patch(
            RESOURCE, patch, NAME, NAMESPACE, type_=type_, subresource=subresource, field_manager="kubectl-patch"
        )

    async def denied(self, change: Callable[[], Awaitable[None]]) -> ApiError:
        """Make a change that the API server denies, and return its error. StepFailedError where it is allowed."""
        try:
            await change()
        except ForbiddenError as error:
            return error
        raise StepFailedError("the change was allowed")

    async def succeeded(self, version: str, *, alone: bool = False) -> str:
        """Wait for the version's Success, with `alone` also until the older ChangeWorkloads are deleted."""

        def outcome() -> str:
            if self.state(version) != WorkloadState.SUCCESS or (alone and len(self.change_workloads) != 1):
                return ""
            return f"{named(version)}: {self.path(version)}."

        return await self.until(outcome, f"ChangeWorkload {change_workload(version)} to succeed")

    async def next_version(self, old: str) -> str:
        """Wait until the Deployment has another version than `old`, and return it."""

        def outcome() -> str:
            found = self.workloads.get(NAMESPACE, NAME)
            return found.version if found is not None and found.version != old else ""

        return await self.until(outcome, f"a new version on the {RESOURCE.kind}")


def change_workload(version: str) -> str:
    """The name of the version's ChangeWorkload."""
    return change_workload_name(RESOURCE.group_kind, NAME, version)


def named(version: str) -> str:
    """The version as the demo prints it: its first digits are enough to tell versions apart."""
    return f"Version {version[:8]}"
