"""The history of ChangeWorkloads, ChangePods and Deployments in a namespace, and the errors in it."""

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from altershield.api import labels, names
from altershield.api.change_pod import ChangePod
from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition, find_condition
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS
from altershield.workloads import BY_KIND, change_workload_name
from altershield.workloads.workload import Workload
from kube_base.access.client import Client
from kube_base.access.informer import Informer
from kube_base.resources import DEPLOYMENTS

Object = dict[str, Any]
Released = Mapping[str, Sequence[str]]
"""The released versions of each Deployment, in order."""

_SECONDS = 90.0
_GOOD = WorkloadState.SUCCESS
_UNDONE = [WorkloadState.ROLLBACK, WorkloadState.FAILED]
_ENDS = (WorkloadState.SUCCESS, WorkloadState.SUSPEND, WorkloadState.ROLLBACK, WorkloadState.FAILED)


class History:
    """Events of watches while `watching` is active."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.changes = 0
        """Number of writes to ChangeWorkloads and ChangePods."""
        self.rollbacks = 0
        """Number of rollbacks that have begun."""
        self.states: dict[str, list[str]] = collections.defaultdict(list)
        """The states of each ChangeWorkload, in order."""
        self.uids: dict[str, set[str]] = collections.defaultdict(set)
        """The uids of each ChangeWorkload. There are several if it was deleted and created again."""
        self.batches: dict[str, set[str]] = collections.defaultdict(set)
        """The ChangePods that contain each pod."""
        self.versions: dict[str, list[str]] = collections.defaultdict(list)
        """The versions of each Deployment, in order."""
        self._namespace = namespace
        self._change_workloads = Informer(client, CHANGE_WORKLOADS, ChangeWorkload, namespace=namespace)
        self._change_pods = Informer(client, CHANGE_PODS, ChangePod, namespace=namespace)
        self._deployments = Informer(
            client, DEPLOYMENTS, Workload, read=BY_KIND[DEPLOYMENTS.group_kind].read, namespace=namespace
        )
        self._change_workloads.add_handler(self._change_workload)
        self._change_pods.add_handler(self._change_pod)
        self._deployments.add_handler(self._deployment)
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        following = [
            asyncio.create_task(informer.run())
            for informer in (self._change_workloads, self._change_pods, self._deployments)
        ]
        try:
            yield
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)

    async def until(self, met: Callable[[], bool]) -> None:
        async with asyncio.timeout(_SECONDS):
            while not met():
                self._changed.clear()
                await self._changed.wait()

    async def until_successful(self, released: Released) -> None:
        await self.until(lambda: self.successful(released))

    def successful(self, released: Released) -> bool:
        """Whether the last versions have reached Success."""
        return all(self._state(name, versions[-1]) == WorkloadState.SUCCESS for name, versions in released.items())

    def successes(self, deployment: str, version: str) -> int:
        """How often a version reached Success: twice after a rollback to it."""
        return self._states(deployment, version).count(WorkloadState.SUCCESS)

    @property
    def rolling_back(self) -> bool:
        """Whether a rollback is under way."""
        return any(release.status.status == WorkloadState.ROLLBACK for release in self._change_workloads.all())

    def is_rolled_back(self, deployment: str, version: str) -> bool:
        condition = self.condition(deployment, version, ConditionType.ROLLED_BACK)
        return condition is not None and condition.is_true

    def condition(self, deployment: str, version: str, type_: ConditionType) -> Condition | None:
        """A condition of the version's ChangeWorkload at this moment."""
        release = self._release(deployment, version)
        return find_condition(release.status.conditions, type_) if release else None

    def ends(self, deployment: str, version: str) -> list[str]:
        """The states that end a release, in the order in which the version reached them."""
        return [state for state in self._states(deployment, version) if state in _ENDS]

    def _states(self, deployment: str, version: str) -> list[str]:
        return self.states[change_workload_name(DEPLOYMENTS.group_kind, deployment, version)]

    def _state(self, deployment: str, version: str) -> str:
        release = self._release(deployment, version)
        return release.status.status if release else ""

    def _release(self, deployment: str, version: str) -> ChangeWorkload | None:
        return self._change_workloads.get(
            self._namespace, change_workload_name(DEPLOYMENTS.group_kind, deployment, version)
        )

    def _change_workload(self, _: ChangeWorkload | None, new: ChangeWorkload | None) -> None:
        if new is not None:
            self.uids[new.metadata.name].add(new.metadata.uid)
            begun = _append(self.states[new.metadata.name], new.status.status or WorkloadState.INIT)
            self.rollbacks += begun and new.status.status == WorkloadState.ROLLBACK
        self._note()

    def _change_pod(self, _: ChangePod | None, new: ChangePod | None) -> None:
        if new is not None:
            for pod in new.spec.pod_infos:
                self.batches[pod.pod].add(new.metadata.name)
        self._note()

    def _deployment(self, _: Workload | None, new: Workload | None) -> None:
        if new is not None:
            _append(self.versions[new.metadata.name], new.version)

    def _note(self) -> None:
        self.changes += 1
        self._changed.set()


def _append(seen: list[str], value: str) -> bool:
    """Append a value if it differs from the last one. Returns whether it does."""
    if seen[-1:] == [value]:
        return False
    seen.append(value)
    return True


def wrong_with(
    history: History, deployments: Iterable[Object], released: Released, *, rolled_back: Sequence[str], replicas: int
) -> list[str]:
    """Error messages. Every version must have had one ChangeWorkload and one verdict, and each of its pods must have
    been verified once. The last version of each Deployment in `rolled_back` must have been rolled back once, and no
    other version."""
    wrong = [f"pod {pod} is in {sorted(batches)}" for pod, batches in history.batches.items() if len(batches) != 1]
    verified = collections.Counter(
        names.change_workload_of(batch) for batches in history.batches.values() for batch in batches
    )
    for name, versions in released.items():
        again = versions[:1] if name in rolled_back else []
        if history.versions[name] != [*versions, *again]:
            wrong.append(
                f"Deployment {name} had the versions {history.versions[name]} instead of {[*versions, *again]}"
            )
        for version in versions:
            release = change_workload_name(DEPLOYMENTS.group_kind, name, version)
            ends = [_GOOD, _GOOD] if version in again else _UNDONE if again else [_GOOD]
            if [state for state in history.states[release] if state in _ENDS] != ends:
                wrong.append(f"ChangeWorkload {release} had the states {history.states[release]}")
            if len(history.uids[release]) != 1:
                wrong.append(f"ChangeWorkload {release} was created {len(history.uids[release])} times")
            # the rollout of a broken version deletes a pod; the rollback replaces it, and the new pod is verified too
            counts = {replicas, replicas + 1} if version in again else {0} if again else {replicas}
            if verified[release] not in counts:
                wrong.append(f"{verified[release]} pods of {release} were verified")
    for each in deployments:
        metadata = each["metadata"]
        changes = len(released[metadata["name"]]) + (metadata["name"] in rolled_back)
        if metadata["generation"] != changes:
            wrong.append(f"Deployment {metadata['name']} has generation {metadata['generation']} instead of {changes}")
        if labels.SUSPEND in metadata["labels"]:
            wrong.append(f"Deployment {metadata['name']} is suspended")
    return wrong
