"""All that happened to the records of a namespace, and what of it is wrong."""

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from altershield.api import labels, names
from altershield.api.kinds import ChangePod, ChangeWorkload, ConditionType, WorkloadState
from altershield.api.meta import find_condition
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, DEPLOYMENTS
from altershield.kube.client import Client
from altershield.kube.informer import Informer
from altershield.workloads import BY_KIND, change_workload_name
from altershield.workloads.workload import Workload

Object = dict[str, Any]
Released = Mapping[str, Sequence[str]]
"""By Deployment: the versions that were released, in order."""

_SECONDS = 90.0
_GOOD = WorkloadState.SUCCESS
_UNDONE = [WorkloadState.ROLLBACK, WorkloadState.FAILED]
_ENDS = (WorkloadState.SUCCESS, WorkloadState.SUSPEND, WorkloadState.ROLLBACK, WorkloadState.FAILED)


class History:
    """What a watch saw, while `watching`."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.changes = 0
        """Writes to records."""
        self.rollbacks = 0
        """That were begun."""
        self.states: dict[str, list[str]] = collections.defaultdict(list)
        """By ChangeWorkload: the states that it went through."""
        self.uids: dict[str, set[str]] = collections.defaultdict(set)
        """By ChangeWorkload: more than one where it was deleted and made again."""
        self.batches: dict[str, set[str]] = collections.defaultdict(set)
        """By pod: the ChangePods that it was in."""
        self.versions: dict[str, list[str]] = collections.defaultdict(list)
        """By Deployment: the versions that it had."""
        self._namespace = namespace
        self._change_workloads = Informer(client, CHANGE_WORKLOADS, ChangeWorkload, namespace=namespace)
        self._change_pods = Informer(client, CHANGE_PODS, ChangePod, namespace=namespace)
        self._deployments = Informer(
            client, DEPLOYMENTS, Workload, read=BY_KIND[DEPLOYMENTS.kind].read, namespace=namespace
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
        """Whether the last versions have been found good."""
        return all(self._state(name, versions[-1]) == WorkloadState.SUCCESS for name, versions in released.items())

    def successes(self, deployment: str, version: str) -> int:
        """How often a version was found good: twice where another one was rolled back to it."""
        return self.states[change_workload_name(DEPLOYMENTS.kind, deployment, version)].count(WorkloadState.SUCCESS)

    @property
    def rolling_back(self) -> bool:
        """Whether a rollback has begun and not ended."""
        return any(release.status.status == WorkloadState.ROLLBACK for release in self._change_workloads.all())

    def is_rolled_back(self, deployment: str, version: str) -> bool:
        release = self._release(deployment, version)
        condition = find_condition(release.status.conditions, ConditionType.ROLLED_BACK) if release else None
        return condition is not None and condition.is_true

    def _state(self, deployment: str, version: str) -> str:
        release = self._release(deployment, version)
        return release.status.status if release else ""

    def _release(self, deployment: str, version: str) -> ChangeWorkload | None:
        return self._change_workloads.get(self._namespace, change_workload_name(DEPLOYMENTS.kind, deployment, version))

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
    """Whether it is another one than before."""
    if seen[-1:] == [value]:
        return False
    seen.append(value)
    return True


def wrong_with(
    history: History, deployments: Iterable[Object], released: Released, *, rolled_back: Sequence[str], replicas: int
) -> list[str]:
    """In sentences. Every version has had one record, one verdict, and each of its pods was verified once; what was to
    be rolled back (its last version) was so once, and nothing else was."""
    wrong = [f"pod {pod} is in {sorted(batches)}" for pod, batches in history.batches.items() if len(batches) != 1]
    verified = collections.Counter(
        names.change_workload_of(batch) for batches in history.batches.values() for batch in batches
    )
    for name, versions in released.items():
        again = versions[:1] if name in rolled_back else []
        if history.versions[name] != [*versions, *again]:
            wrong.append(f"{name} had the versions {history.versions[name]} instead of {[*versions, *again]}")
        for version in versions:
            release = change_workload_name(DEPLOYMENTS.kind, name, version)
            ends = [_GOOD, _GOOD] if version in again else _UNDONE if again else [_GOOD]
            if [state for state in history.states[release] if state in _ENDS] != ends:
                wrong.append(f"{release} went through {history.states[release]}")
            if len(history.uids[release]) != 1:
                wrong.append(f"{release} was made {len(history.uids[release])} times")
            # the pod that made room for one that never came up is replaced, and its successor verified
            counts = {replicas, replicas + 1} if version in again else {0} if again else {replicas}
            if verified[release] not in counts:
                wrong.append(f"of {release} {verified[release]} pods were verified")
    for each in deployments:
        metadata = each["metadata"]
        changes = len(released[metadata["name"]]) + (metadata["name"] in rolled_back)
        if metadata["generation"] != changes:
            wrong.append(f"{metadata['name']} was changed {metadata['generation']} times instead of {changes}")
        if labels.SUSPEND in metadata["labels"]:
            wrong.append(f"{metadata['name']} is suspended")
    return wrong
