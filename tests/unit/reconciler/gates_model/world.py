"""Workloads and their releases. A simple reconciler of releases writes their ChangeWorkloads."""

import asyncio
import copy
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import msgspec

from altershield.api import labels
from altershield.api.change_workload import (
    ChangeWorkload,
    ChangeWorkloadSpec,
    ChangeWorkloadStatus,
    SourceRef,
    WorkloadRef,
    WorkloadState,
)
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.namespace import Namespace
from altershield.api.policy import AppliedPolicy, Mode
from altershield.api.resources import (
    CHANGE_WORKLOADS,
    RELEASE_FREEZES,
    RELEASE_LIMITS,
    RELEASE_OVERRIDES,
    RELEASE_WINDOWS,
)
from altershield.api.selectors import Selector
from altershield.workloads import change_workload_name
from gatekeeper.response import Answer
from kube_base.access.client import Client
from kube_base.access.configuration import Configuration
from kube_base.meta import ObjectMeta, OwnerReference
from kube_base.resources import DEPLOYMENTS, NAMESPACES
from kube_base.times import unix
from reconciler.releases.writes.creation import previous
from tests.support import workloads

from .api import Api
from .gatekeeper import Gatekeeper, request
from .oracle import Asked, Labels, View, selects
from .reconcilers import Reconcilers

Object = dict[str, Any]
NAMESPACES_OF_TENANTS = {"shop": {"stage": "prod"}, "bank": {"stage": "test"}}
KINDS = (RELEASE_WINDOWS, RELEASE_FREEZES, RELEASE_LIMITS, RELEASE_OVERRIDES, CHANGE_WORKLOADS)


@dataclass(eq=False)
class Workload:
    """What is true of a workload, beside its stored object."""

    namespace: str
    name: str
    mode: Mode = Mode.ENFORCE
    created: bool = True
    """Whether its release that is not processed yet, or its last one, created it."""
    last_labels: Labels = field(default_factory=dict)
    """At its last release, if there were gates; else empty."""
    passed: list[str] = field(default_factory=list)
    """The versions that succeeded, in their order, the present one included."""
    left: set[str] = field(default_factory=set)
    """The versions that failed, or from which somebody went back, since they succeeded last."""
    present: str = ""
    templates: dict[str, Object] = field(default_factory=dict)
    """The templates of its versions, as the user sent them."""
    before: str | None = ""
    """The last version that had succeeded before the present one; None: the oracle does not know it."""
    uid: str = ""

    @property
    def named(self) -> NamedWorkload:
        return NamedWorkload(self.namespace, DEPLOYMENTS.api_version, DEPLOYMENTS.kind, self.name)


@dataclass(frozen=True)
class Begun:
    """A release that began. `labels`: those of the workload when it was counted first, by limit."""

    workload: Workload
    version: str
    at: float
    created: bool
    labels: Labels
    away: bool
    """Whether no reconciler ran then."""


class World:
    def __init__(self, start: int, errors: tuple[float, float]) -> None:
        self.start, self.now = start, float(start)
        self.loop = asyncio.new_event_loop()
        self.loop.time = lambda: self.now  # type: ignore[method-assign]
        self.api = Api(lambda: self.now)
        self._client = self.run(_client())  # it sends nothing
        for name, own in NAMESPACES_OF_TENANTS.items():
            body = {"metadata": {"name": name, "labels": {**own, labels.GOVERNED: labels.GOVERNED_VALUE}}}
            self.api.put(NAMESPACES, msgspec.convert(body, Namespace))
        self.gatekeepers = [Gatekeeper(self.api, self._client, lambda: self.now, error) for error in errors]
        self.reconcilers = Reconcilers(self.api, self._client, lambda: self.now, self.run)
        self.workloads: dict[tuple[str, str], Workload] = {}
        self.begun: list[Begun] = []
        self.failures: list[tuple[float, NamedWorkload, Labels, str]] = []
        """When the first failure of a release was, of which workload, with which labels, and which release it was."""
        self.away = False
        """Whether no reconciler of gates runs."""
        self.labels_changed = False
        """Whether the labels of a workload have ever changed."""
        self.number = 0
        self.follow()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(coroutine)

    def close(self) -> None:
        self.run(self._client.__aexit__(None, None, None))
        self.loop.close()

    # time

    def follow(self) -> None:
        """All caches become up to date."""
        for each in self.gatekeepers:
            each.watching.follow()

    def settle(self) -> None:
        """The reconcilers of gates do what is due, and the caches follow. Time passes a little: the counts of a limit
        are written once in a second."""
        while not self.away:
            self.reconcilers.settle()
            due = self.reconcilers.next()
            if due is None or due > self.now + 1.0:
                break
            self.now = max(self.now, due)
        self.follow()

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        self.process_all()
        while True:
            if not self.away:
                self.settle()
            due = self.reconcilers.next() if not self.away else None
            if due is None or due >= end:
                break
            self.now = max(due, self.now)
        self.now = max(self.now, end)
        self.settle()

    # releases

    def stored(self, workload: Workload) -> Object | None:
        found: Object | None = self.api.found(DEPLOYMENTS, workload.namespace, workload.name)
        return found

    def manifest(self, workload: Workload, template: Object, own: Labels) -> Object:
        """What a user sends: the labels of AlterShield stay as they are stored."""
        metadata: Object = {"namespace": workload.namespace, "uid": workload.uid}
        new = workloads.manifest("Deployment", workload.name, "", replicas=1, metadata=metadata, template=template)
        new["metadata"]["labels"] = dict(own)
        old = self.stored(workload)
        if old is not None:
            new["metadata"] = {**copy.deepcopy(old["metadata"]), "labels": new["metadata"]["labels"]}
            kept = {key: value for key, value in old["metadata"]["labels"].items() if key in labels.OWNED}
            new["metadata"]["labels"] |= kept
        return copy.deepcopy(new)

    def send(self, gatekeeper: Gatekeeper, new: Object, old: Object | None, *, dry_run: bool) -> tuple[Object, Answer]:
        """The object after the mutating webhook, and the answer of the validating one."""
        stamped = gatekeeper.mutate(request(new, old, dry_run=dry_run))
        return stamped, self.run(gatekeeper.validate(request(stamped, old, dry_run=dry_run)))

    def store(self, workload: Workload, stamped: Object) -> None:
        """A request was admitted."""
        old = self.stored(workload)
        self.labels_changed |= old is not None and own_labels(old) != own_labels(stamped)
        if self.stored(workload) is None:
            self.number += 1
            workload.uid = stamped["metadata"]["uid"] = f"{workload.name}-{self.number}"
        self.api.put(DEPLOYMENTS, stamped)

    def delete(self, workload: Workload) -> None:
        for each in self.releases(workload):
            self.api.delete(CHANGE_WORKLOADS, workload.namespace, each.metadata.name)
        self.api.delete(DEPLOYMENTS, workload.namespace, workload.name)

    def process_all(self) -> None:
        """All releases get their ChangeWorkloads, unless no reconciler runs."""
        for each in self.workloads.values() if not self.away else ():
            self.process(each)

    def process(self, workload: Workload) -> None:
        """The release gets its ChangeWorkload."""
        obj = self.stored(workload)
        if obj is None or obj["metadata"]["labels"].get(labels.DEFENSE_STATUS) == labels.PROCESSED:
            return
        version = obj["metadata"]["labels"][labels.VERSION]
        name = change_workload_name(DEPLOYMENTS.group_kind, workload.name, version)
        own = {key: value for key, value in obj["metadata"]["labels"].items() if key != labels.IGNORED_SUSPEND}
        own[labels.DEFENSE_STATUS] = labels.PROCESSED
        obj = self.api.put(DEPLOYMENTS, {**obj, "metadata": {**obj["metadata"], "labels": own}})
        known = self.api.found(CHANGE_WORKLOADS, workload.namespace, name)
        while any((each.workload, each.version, each.at) == (workload, version, int(self.now)) for each in self.begun):
            self.now += 1.0  # a release and its repetition are a second apart
        generation, at = obj["metadata"]["generation"], int(self.now)
        owner = OwnerReference("Deployment", workload.name, workload.uid, "apps/v1", controller=True)
        spec = ChangeWorkloadSpec(
            name, workload.name, workload.name, version, 1, 60, "", at,
            workload_ref=WorkloadRef("apps/v1", "Deployment", workload.name, workload.uid),
            workload_generation=1 if workload.created else generation + 1,
            policy=AppliedPolicy(mode=workload.mode),
        )  # fmt: skip
        others = [each for each in self.releases(workload) if each.metadata.name != name]
        made = ChangeWorkload(ObjectMeta(name, workload.namespace, owner_references=(owner,)), spec)
        source = SourceRef("ReplicaSet", name, f"{workload.uid}-{version}", version, version)
        status = ChangeWorkloadStatus(
            status=WorkloadState.RUNNING, source=source, previous=previous(known or made, others), entry_time_unix=at
        )
        if known is not None:
            self.api.delete(CHANGE_WORKLOADS, workload.namespace, name)
        made = self.api.put(CHANGE_WORKLOADS, made)
        self._save(made, status)
        self.begun.append(Begun(workload, version, float(at), workload.created, own_labels(obj), self.away))
        workload.created = False

    def releases(self, workload: Workload) -> list[Any]:
        found = self.api.of(CHANGE_WORKLOADS)
        return [
            each
            for each in found
            if each.metadata.namespace == workload.namespace and each.spec.workload_ref.uid == workload.uid
        ]

    def present(self, workload: Workload) -> Any:
        """The ChangeWorkload of the present release; None if it is not processed."""
        obj = self.stored(workload)
        if obj is None or obj["metadata"]["labels"].get(labels.DEFENSE_STATUS) != labels.PROCESSED:
            return None
        name = change_workload_name(DEPLOYMENTS.group_kind, workload.name, obj["metadata"]["labels"][labels.VERSION])
        return self.api.found(CHANGE_WORKLOADS, workload.namespace, name)

    def _save(self, release: Any, status: ChangeWorkloadStatus) -> None:
        place = self.api.place(CHANGE_WORKLOADS, release)
        self.api.store(place, msgspec.structs.replace(self.api.objects[place], status=status))

    def succeed(self, workload: Workload) -> None:
        """The present release succeeds: a suspension ends, and older versions lose their ChangeWorkloads."""
        release, obj = self.present(workload), self.stored(workload)
        if release is None or obj is None or release.status.status != WorkloadState.RUNNING:
            return
        status = msgspec.structs.replace(
            release.status, status=WorkloadState.SUCCESS, entry_time_unix=int(self.now), reached=1
        )
        self._save(release, status)
        for each in self.releases(workload):
            if each.metadata.name != release.metadata.name:
                self.api.delete(CHANGE_WORKLOADS, workload.namespace, each.metadata.name)
        own = {key: value for key, value in obj["metadata"]["labels"].items() if key != labels.SUSPEND}
        self.api.put(DEPLOYMENTS, {**obj, "metadata": {**obj["metadata"], "labels": own}})
        version = obj["metadata"]["labels"][labels.VERSION]
        workload.passed.append(version)
        workload.left.discard(version)

    def fail(self, workload: Workload) -> None:
        """A pod of the present release fails, before its success or after it."""
        release, obj = self.present(workload), self.stored(workload)
        running = (WorkloadState.RUNNING, WorkloadState.SUCCESS)
        if release is None or obj is None or release.status.status not in running:
            return
        status = msgspec.structs.replace(release.status, status=WorkloadState.SUSPEND, entry_time_unix=int(self.now))
        self._save(release, status)
        workload.left.add(obj["metadata"]["labels"][labels.VERSION])
        if workload.mode is Mode.ENFORCE:
            own = {**obj["metadata"]["labels"], labels.SUSPEND: str(int(self.now))}
            self.api.put(DEPLOYMENTS, {**obj, "metadata": {**obj["metadata"], "labels": own}})
            if not release.status.reached:
                self.failures.append((float(int(self.now)), workload.named, own_labels(obj), release.metadata.uid))

    # what the oracle is told

    @property
    def is_late(self) -> bool:
        """Whether something is on its way: a cache, a reconcile, or the ChangeWorkload of a release."""
        unprocessed = any(self.present(each) is None for each in self.workloads.values() if self.stored(each))
        watching = [self.reconcilers.watching, *(each.watching for each in self.gatekeepers)]
        return self.away or unprocessed or any(each.is_late for each in watching)

    def view(self, gatekeeper: Gatekeeper) -> View:
        """What a gatekeeper has in its caches, and what counts for limits."""
        windows, freezes, limits = (gatekeeper.watching.of(each) for each in KINDS[:3])
        view = View(self.start, windows, freezes, limits, gatekeeper.overrides.all())
        late = self.is_late
        for limit in limits:
            own = limit.metadata
            name = ("ReleaseLimit", own.namespace, own.name)
            counting = [each for each in self.begun if self._counts(limit, each)]
            view.begun[name] = [(each.at, self._is_sure(limit, each)) for each in counting]
            view.under_way[name] = {each.workload.named for each in counting if self._is_under_way(each)}
            recent = gatekeeper.listers.admissions.recent(gatekeeper.now).get((own.namespace, own.name), ())
            view.recent[name] = {(each.workload, each.version) for each in recent}
            least = gatekeeper.now - min(110.0, limit.spec.rate.period_seconds - 1 if limit.spec.rate else 0.0)
            admitted = gatekeeper.admitted.get(own.uid, [])
            view.admitted[name] = {(workload, version) for at, workload, version in admitted if at > least}
            labelled = limit.spec.selector != Selector()
            if late or (labelled and self.labels_changed):  # labels count as they are when a release is counted first
                view.unsure.add(name)
        return view

    @staticmethod
    def _is_sure(limit: Any, each: Begun) -> bool:
        """A limit counts earlier releases, too, as far as their ChangeWorkloads exist."""
        return unix(limit.metadata.creation_timestamp) < each.at and not each.away

    def _is_under_way(self, each: Begun) -> bool:
        release = self.present(each.workload)
        return (
            release is not None
            and release.status.status == WorkloadState.RUNNING
            and (release.spec.create_time_unix, release.spec.reversion) == (each.at, each.version)
        )

    def _counts(self, limit: Any, each: Begun) -> bool:
        kinds = ["Create"] if each.created else ["Update", "Restart"]
        labels_ = NAMESPACES_OF_TENANTS[each.workload.namespace]
        return any(
            selects(limit, Asked(each.workload.named, labels_, (each.labels,), kind, "", "", False, 0.0))
            for kind in kinds
        )


async def _client() -> Client:
    return Client(Configuration(host="http://127.0.0.1"))


def own_labels(obj: Object) -> Labels:
    return {key: value for key, value in obj["metadata"]["labels"].items() if key not in labels.OWNED}
