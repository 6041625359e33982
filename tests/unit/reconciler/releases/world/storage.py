"""The ChangeWorkloads and ChangePods that are stored."""

from collections.abc import Callable
from typing import Any

import msgspec

from altershield.api import names
from altershield.api.change_pod import ChangePod, ChangePodStatus
from altershield.api.change_workload import ChangeWorkload, ChangeWorkloadStatus, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition, find_condition
from altershield.api.pod_verdicts import PodInfo
from altershield.api.workload_requests import Request
from reconciler.cluster import batch as batch_projections
from reconciler.cluster import release as projection
from reconciler.cluster.release import Release

from .cluster import Cluster, fingerprint
from .pods import SimPod


class Storage(Cluster):
    def __init__(self, kind: str, *, replicas: int, observe: float, start_timeout: float) -> None:
        super().__init__(kind, replicas=replicas, observe=observe, start_timeout=start_timeout)
        self.releases: dict[str, ChangeWorkload] = {}
        self.batches: dict[str, ChangePod] = {}
        self.writes = 0
        self.write_hook: Callable[[str], None] = lambda what: None

    def stored(self, image: str = "") -> ChangeWorkload:
        return self.releases[fingerprint(image or self.image)]

    def status(self, image: str = "") -> ChangeWorkloadStatus:
        return self.stored(image).status

    def state(self, image: str = "") -> str:
        return self.status(image).status

    def condition(self, type_: ConditionType, image: str = "") -> Condition | None:
        return find_condition(self.status(image).conditions, type_)

    def said(self, type_: ConditionType, image: str = "") -> tuple[str, str]:
        """Status and reason of a condition."""
        found = self.condition(type_, image)
        return ("", "") if found is None else (found.status, found.reason)

    def message(self, type_: ConditionType, image: str = "") -> str:
        """The message of a condition, which the release has to have."""
        found = self.condition(type_, image)
        assert found is not None
        return found.message

    def edit_status(self, image: str = "", **fields: Any) -> None:
        """Change a status as a person does."""
        release = self.stored(image)
        self._store(msgspec.structs.replace(release, status=msgspec.structs.replace(release.status, **fields)))

    def released_by(self, user: str, image: str = "") -> None:
        """Separation of duties: this user released the version."""
        release = self.stored(image)
        self._store(msgspec.structs.replace(release, spec=msgspec.structs.replace(release.spec, not_decided_by=user)))

    def ask_rollback(self, to: str = "") -> None:
        self.edit_status(status=WorkloadState.ROLLBACK, rollback_to=to)

    def request(self, verb: str, *, to: str = "", image: str = "") -> None:
        """Ask for something as a person does."""
        self.edit_status(image, request=Request(verb, "alice", "seen", "", to))

    def judge(self, pod: SimPod, verdict: str, message: str = "find error") -> bool:
        """Write a person's verdict into the newest batch of the pod and its version. Return whether there is one."""
        version = names.version_in
        own = [
            each
            for each in self.batches.values()
            if version(each.spec.change_workload_id) == fingerprint(pod.image)
            and any(info.uid == pod.uid for info in each.spec.pod_infos)
        ]
        if not own:
            return False
        newest = max(own, key=lambda each: names.change_pod_number(each.metadata.name))
        others = tuple(each for each in newest.status.pod_results if each.pod != pod.name)
        results = (*others, PodInfo(pod=pod.name, verdict=verdict, message=message))
        self._store_batch(newest, msgspec.structs.replace(newest.status, pod_results=results))
        return True

    def _write(self, what: str) -> None:
        self.write_hook(what)
        self.writes += 1

    def _projected(self, release: ChangeWorkload) -> Release:
        return projection.read(msgspec.json.encode(release))

    def store_batch(self, name: str, status: ChangePodStatus) -> None:
        """Store the status of a ChangePod."""
        self._store_batch(self.batches[name], status)

    def _store_batch(self, release: ChangePod, status: ChangePodStatus) -> None:
        release = msgspec.structs.replace(release, status=status)
        self.batches[release.metadata.name] = release
        if self.groups is not None and self.groups.release_uid == release.metadata.owner_references[0].uid:
            self.groups.update_batch(batch_projections.project(release))

    def _store(self, release: ChangeWorkload) -> None:
        self.releases[names.version_in(release.metadata.name)] = release
