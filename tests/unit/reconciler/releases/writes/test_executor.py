"""The executor carries out a decision in order, and only on the objects that the decision is about."""

import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from altershield.api import labels
from altershield.api.annotations import ROLLOUT
from altershield.api.announcements import MAX_LATE
from altershield.api.change_workload import ChangeWorkloadStatus, SourceRef, WorkloadState
from altershield.api.json_patch import label_path, without_label
from altershield.api.meta import Condition, plain_time
from altershield.api.pod_verdicts import PodInfo
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS
from altershield.workloads.applied import LAST_APPLIED, Applied, Manager
from altershield.workloads.workload import Workload
from kube_base.access.errors import (
    ApiError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NamespaceTerminatingError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
    from_status,
)
from kube_base.access.events import NORMAL, RETRY, WARNING, ObjectRef
from kube_base.resources import REPLICA_SETS
from kube_base.times import rfc3339
from reconciler.cluster.caches import Caches
from reconciler.cluster.writer import owner
from reconciler.releases.metrics import ReleaseMetrics
from reconciler.releases.reads.live import LiveWorkload
from reconciler.releases.terms.effects import (
    Announce,
    CreateBatch,
    Decision,
    Mark,
    Pause,
    ReleaseAgain,
    Remove,
    RestoreLabel,
    RestoreManagers,
    Resume,
    SetThreshold,
    Suspend,
    Unpause,
)
from reconciler.releases.writes.events import ReleaseEvents
from reconciler.releases.writes.executor import Executor
from reconciler.releases.writes.rollback import Refused
from tests.support.workloads import GROUP_KINDS
from tests.unit.altershield.releases import builders
from tests.unit.altershield.releases.builders import NOW, V1, V2
from tests.unit.reconciler.filled import change_pod, empty_caches, newer, pod, release, replica_set

VERSION, SUSPEND = label_path(labels.VERSION), label_path(labels.SUSPEND)
SAME_VERSION = {"op": "test", "path": VERSION, "value": V1}
TEMPLATE = {"metadata": {"labels": {"app": "sleep"}}, "spec": {"containers": []}}


class Writer:
    """Records each write and returns a newer object. `errors`: what the next patches raise."""

    def __init__(self) -> None:
        self.writes: list[tuple[Any, ...]] = []
        self.errors: list[Exception] = []

    async def patch(self, informer: Any, obj: Any, operations: Any) -> Any:
        self.writes.append(("patch", informer, obj, list(operations)))
        if self.errors:
            raise self.errors.pop(0)
        return newer(obj, 7)

    async def create(self, informer: Any, obj: Any, namespace: str) -> Any:
        self.writes.append(("create", informer, obj, namespace))

    async def delete(self, resource: Any, metadata: Any) -> None:
        self.writes.append(("delete", resource, metadata))

    async def save_release(self, stored: Any, status: Any, *, lists: bool) -> Any:
        self.writes.append(("save", stored, status, lists))
        return msgspec.structs.replace(newer(stored, 8), status=status)


class LiveReader:
    """Returns the workload `present`, the template TEMPLATE, and what clients stored about it (`stored`), as if read
    from the API server. `whole`: the workload in JSON."""

    def __init__(self) -> None:
        self.present: Workload | None = None
        self.asked: list[Workload] = []
        self.stored: Applied | None = None
        self.whole: dict[str, Any] = {"metadata": {}}

    async def applied(self, workload: Workload, target: SourceRef) -> Applied | None:
        return self.stored

    async def raw(self, workload: Workload) -> dict[str, Any]:
        return self.whole

    async def workload(self, seen: Workload) -> LiveWorkload:
        self.asked.append(seen)
        annotations = self.whole["metadata"].get("annotations", {})
        return LiveWorkload(self.present or seen, None, annotations, msgspec.Raw(msgspec.json.encode(self.whole)))

    async def template(self, workload: Workload, source: SourceRef) -> dict[str, Any]:
        return TEMPLATE


class Recorder:
    """Records the Events, each of which counts as written at once unless it is `refused`."""

    def __init__(self) -> None:
        self.events: list[tuple[ObjectRef, str, str, str]] = []
        self.times: list[float] = []
        self.refused = False
        self.identities: set[str] = set()

    def announce(
        self, regarding: ObjectRef, type_: str, reason: str, message: str, *, identity: str, at: float
    ) -> None:
        self.events.append((regarding, type_, reason, message))
        self.times.append(at)
        if not self.refused:
            self.identities.add(identity)

    def is_announced(self, identity: str) -> bool:
        return identity in self.identities


class World:
    def __init__(self, caches: Caches) -> None:
        self.caches = caches
        self.writer, self.reader, self.recorder = Writer(), LiveReader(), Recorder()
        self.metrics = ReleaseMetrics(CollectorRegistry())
        self.now = NOW + 42.5
        self.release = release()
        self.workload = builders.workload(V1)
        self.executor = Executor(
            caches,
            self.writer,  # type: ignore[arg-type]
            self.reader,  # type: ignore[arg-type]
            self.recorder,  # type: ignore[arg-type]
            self.metrics,
            lambda: self.now,
        )

    async def do(self, *before: Any, status: Any = None, after: tuple[Any, ...] = (), lists: bool = False) -> Any:
        decision = Decision(status, before=before, after=after, lists=lists)
        return await self.executor.carry_out(self.release, self.workload, decision)

    @property
    def events(self) -> ReleaseEvents:
        return ReleaseEvents(self.recorder, lambda: self.now)  # type: ignore[arg-type]

    @property
    def only_write(self) -> tuple[Any, ...]:
        (write,) = self.writer.writes
        return write

    def durations(self, result: str) -> tuple[float, float]:
        """The number of counted releases, and the sum of their durations in seconds."""
        found = {
            sample.name.rpartition("_")[2]: sample.value
            for metric in self.metrics._release_duration.collect()
            for sample in metric.samples
            if sample.labels.get("result") == result and "le" not in sample.labels
        }
        return found["count"], found["sum"]

    def rollbacks(self, reason: str) -> float:
        """The counted rollbacks of this reason, in all namespaces."""
        return sum(
            sample.value
            for metric in self.metrics._rollbacks.collect()
            for sample in metric.samples
            if sample.name.endswith("_total") and sample.labels["reason"] == reason
        )


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with empty_caches() as caches:
        yield World(caches)


def status(state: str = WorkloadState.SUCCESS, *conditions: Condition) -> ChangeWorkloadStatus:
    return ChangeWorkloadStatus(status=state, conditions=conditions)


# order of the writes


async def test_status_is_written_after_the_effects_before_it_and_before_the_effects_after_it(world: World) -> None:
    after = (Remove(change_pod()), Suspend(5))
    await world.do(Resume(), SetThreshold(2), status=status(), after=after)
    verbs = [write[0] for write in world.writer.writes]
    assert verbs == ["patch", "patch", "save", "delete", "patch"]


async def test_status_is_written_on_the_release_with_the_new_threshold(world: World) -> None:
    done = await world.do(SetThreshold(2), status=status(), lists=True)
    assert world.writer.writes[-1] == ("save", newer(world.release, 7), status(), True)
    assert done.metadata.resource_version == "8"


async def test_decision_without_a_status_writes_nothing(world: World) -> None:
    assert await world.do() == world.release
    assert world.writer.writes == []


async def test_pod_lists_are_written_only_if_they_were_decided(world: World) -> None:
    await world.do(status=status())
    assert world.only_write == ("save", world.release, status(), False)


async def test_status_is_not_written_if_an_effect_before_it_fails(world: World) -> None:
    world.writer.errors = [ConflictError("changed"), ServerError("internal error")]
    with pytest.raises(ConflictError):
        await world.do(SetThreshold(2), status=status())
    assert len(world.writer.writes) == 1


async def test_error_is_raised_instead_of_a_conflict(world: World) -> None:
    """After a conflict the reconciler retries immediately, after an error later."""

    errors = [ConflictError("changed"), ServerError("internal error"), ConflictError("changed")]

    async def refused(*_: Any) -> None:
        raise errors.pop(0)

    world.writer.create = refused  # type: ignore[method-assign]
    with pytest.raises(ServerError):
        await world.do(CreateBatch(1, ()), CreateBatch(2, ()), SetThreshold(2), status=status())
    assert world.writer.writes == []
    with pytest.raises(ConflictError):
        await world.do(CreateBatch(1, ()), SetThreshold(2), status=status())
    assert world.writer.writes == []


# effects before the status


async def test_threshold_is_not_written_if_the_release_changed_since_it_was_read(world: World) -> None:
    await world.do(SetThreshold(3))
    operations = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "1"},
        {"op": "replace", "path": "/spec/countThreshold", "value": 3},
    ]
    assert world.only_write == ("patch", world.caches.releases, world.release, operations)


async def test_pod_that_came_up_gets_the_operate_finished_label_in_unix_seconds(world: World) -> None:
    await world.do(Mark(pod(), NOW))
    mark = {"op": "add", "path": label_path(labels.OPERATE_FINISHED), "value": str(NOW)}
    assert world.only_write == ("patch", world.caches.pods, pod(), [mark])


async def test_version_label_of_pods_and_replica_sets_is_restored(world: World) -> None:
    await world.do(RestoreLabel(pod()), RestoreLabel(replica_set()))
    label = {"op": "add", "path": VERSION, "value": V1}
    assert world.writer.writes == [
        ("patch", world.caches.pods, pod(), [label]),
        ("patch", world.caches.sets[REPLICA_SETS.group_kind], replica_set(), [label]),
    ]


@pytest.mark.parametrize("effect", [Mark(pod(), NOW), RestoreLabel(pod())])
@pytest.mark.parametrize("error", [ConflictError, NotFoundError, BadRequestError, ForbiddenError, InvalidError])
async def test_pod_label_that_cannot_be_written_does_not_stop_the_decision(
    world: World, effect: Any, error: type[ApiError], caplog: pytest.LogCaptureFixture
) -> None:
    world.writer.errors = [error("not now")]
    await world.do(effect, status=status())
    assert len(world.writer.writes) == 2
    logged = "could not write a label; the release is verified nevertheless" in caplog.messages
    assert logged == (error not in (ConflictError, NotFoundError))


@pytest.mark.parametrize("effect", [Mark(pod(), NOW), RestoreLabel(pod())])
async def test_server_error_on_a_pod_label_is_raised(world: World, effect: Any) -> None:
    world.writer.errors = [ServerError("internal error")]
    with pytest.raises(ServerError):
        await world.do(effect, status=status())


async def test_created_batch_names_its_pods_its_change_workload_and_who_failed_it(world: World) -> None:
    pods = (PodInfo(pod="a", uid="a-uid", verdict="unpass"),)
    world.release = release(name="w" * 70)
    await world.do(CreateBatch(3, pods, failed_by="Person"))
    verb, informer, made, namespace = world.only_write
    assert (verb, informer, namespace) == ("create", world.caches.batches, "default")
    assert made.metadata.name == f"{world.release.metadata.name}--x--3"
    assert made.metadata.namespace == "default"
    assert made.metadata.owner_references == (owner(CHANGE_WORKLOADS, world.release.metadata),)
    assert made.metadata.labels[labels.VERSION] == V1
    assert len(made.metadata.labels[labels.WORKLOAD_NAME]) == 63
    assert (made.spec.pod_infos, made.spec.failed_by) == (pods, "Person")
    assert made.spec.change_workload_id == world.release.metadata.name
    assert (made.spec.create_time, made.spec.create_time_unix) == (plain_time(NOW + 42), NOW + 42)


async def test_suspend_label_is_removed_only_if_the_version_is_unchanged(world: World) -> None:
    await world.do(Resume())
    operations = [SAME_VERSION, {"op": "remove", "path": SUSPEND}]
    assert world.only_write == ("patch", world.caches.workloads[GROUP_KINDS["Deployment"]], world.workload, operations)


# effects after the status


async def test_suspend_label_is_added_only_if_the_version_is_unchanged(world: World) -> None:
    await world.do(after=(Suspend(1234),))
    operations = [SAME_VERSION, {"op": "add", "path": SUSPEND, "value": "1234"}]
    *found, written = world.only_write
    assert found == ["patch", world.caches.workloads[GROUP_KINDS["Deployment"]], world.workload]
    assert written[:2] == operations


async def test_ignored_suspend_label_is_removed_when_the_workload_is_suspended_also_if_the_cache_lacks_it(
    world: World,
) -> None:
    assert not world.workload.ignores_suspension
    await world.do(after=(Suspend(1234),))
    assert world.only_write[3][2:] == [*without_label(labels.IGNORED_SUSPEND)]


async def test_change_workloads_and_change_pods_are_deleted_through_their_own_resources(world: World) -> None:
    await world.do(after=(Remove(release()), Remove(change_pod())))
    assert world.writer.writes == [
        ("delete", CHANGE_WORKLOADS, release().metadata),
        ("delete", CHANGE_PODS, change_pod().metadata),
    ]


@pytest.mark.parametrize(("warning", "type_"), [(True, WARNING), (False, NORMAL)])
async def test_event_regards_the_workload(world: World, warning: bool, type_: str) -> None:
    await world.do(after=(Announce("Verified", "all pods passed", warning=warning),))
    regarding = ObjectRef("apps/v1", "Deployment", "sleep", "default", "sleep")
    assert world.recorder.events == [(regarding, type_, "Verified", "all pods passed")]
    assert world.recorder.times == [int(world.now)]


async def test_event_is_stored_with_the_status_before_it_is_written(world: World) -> None:
    stored = await world.do(status=status(), after=(Announce("Verified", "all pods passed"), Suspend(1234)))
    saved, label = world.writer.writes
    assert saved[0] == "save"
    assert [each.reason for each in saved[2].announcements] == ["Verified"]
    assert label[0] == "patch"
    assert stored.status.announcements == saved[2].announcements


async def test_event_is_written_although_a_later_effect_fails(world: World) -> None:
    world.writer.errors = [ConflictError("changed", code=409)]
    with pytest.raises(ConflictError):
        await world.do(status=status(), after=(Suspend(1234), Announce("ReleaseSuspended", "a pod failed")))
    assert [each[2] for each in world.recorder.events] == ["ReleaseSuspended"]


async def test_status_that_cannot_be_stored_has_no_event(world: World) -> None:
    async def refuse(*_: Any, **__: Any) -> Any:
        raise ConflictError("changed", code=409)

    world.writer.save_release = refuse  # type: ignore[method-assign]
    with pytest.raises(ConflictError):
        await world.do(status=status(), after=(Announce("Verified", "all pods passed"),))
    assert world.recorder.events == []


async def test_stored_event_is_written_by_the_next_reconciler_once(world: World) -> None:
    stored = await world.do(status=status(), after=(Announce("Verified", "all pods passed"),))
    world.recorder = Recorder()
    assert world.events.write(stored, world.workload) == RETRY
    assert world.events.write(stored, world.workload) is None
    assert len(world.recorder.events) == 1


async def test_refused_event_is_tried_again_until_it_is_too_old(world: World) -> None:
    world.recorder.refused = True
    stored = await world.do(status=status(), after=(Announce("Verified", "all pods passed"),))
    for seconds, expected in ((60, RETRY), (MAX_LATE - 61, RETRY), (1, None)):
        world.now += seconds
        assert world.events.write(stored, world.workload) == expected
    assert len(world.recorder.events) == 3


async def test_wrong_annotation_is_announced_while_the_current_release_is_young(world: World) -> None:
    wrong = msgspec.structs.replace(world.workload, start_timeout="soon")
    began = msgspec.structs.replace(world.release.spec, create_time_unix=int(world.now))
    current = msgspec.structs.replace(world.release, spec=began)
    assert world.events.write(current, world.workload) is None
    assert world.events.write(current, msgspec.structs.replace(wrong, version=V2)) is None
    assert world.events.write(current, wrong) == RETRY
    assert [each[2] for each in world.recorder.events] == ["AnnotationIgnored"]
    world.now += MAX_LATE + 1
    world.recorder.identities.clear()
    assert world.events.write(current, wrong) is None


async def test_written_event_leaves_the_status_with_its_next_change(world: World) -> None:
    world.release = await world.do(status=status(), after=(Announce("Verified", "all pods passed"),))
    assert world.release.status.announcements
    await world.do()
    assert len(world.writer.writes) == 1, "it alone causes no write"
    world.release = await world.do(status=world.release.status)
    assert not world.release.status.announcements


# release of an older template


TARGET = SourceRef("ReplicaSet", "sleep-0", "uid", V2, "f" * 32)


async def test_older_template_is_released_on_the_present_workload(world: World) -> None:
    world.reader.present = newer(world.workload, 5)
    await world.do(after=(ReleaseAgain(TARGET),))
    operations = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "5"},
        {"op": "replace", "path": "/spec/template", "value": TEMPLATE},
        {"op": "add", "path": VERSION, "value": V2},
        {"op": "remove", "path": label_path(labels.DEFENSE_STATUS)},
    ]
    assert world.only_write == ("patch", world.caches.workloads[GROUP_KINDS["Deployment"]], world.workload, operations)


async def test_released_template_without_a_version_gets_its_fingerprint_as_version(world: World) -> None:
    await world.do(after=(ReleaseAgain(msgspec.structs.replace(TARGET, version="")),))
    assert {"op": "add", "path": VERSION, "value": "f" * 32} in world.only_write[3]


async def test_released_template_brings_its_part_of_the_last_applied_manifest_back(world: World) -> None:
    world.reader.stored = Applied(template={"spec": {"containers": ["old"]}})
    manifest = '{"spec":{"replicas":3,"template":{"spec":{"containers":["new"]}}}}'
    world.reader.whole = {"metadata": {"annotations": {LAST_APPLIED: manifest}}}
    await world.do(after=(ReleaseAgain(TARGET),))
    value = '{"spec":{"replicas":3,"template":{"spec":{"containers":["old"]}}}}\n'
    assert {"op": "add", "path": label_path(LAST_APPLIED, "/metadata/annotations"), "value": value} in (
        world.only_write[3]
    )


OWNED = {"f:spec": {"f:template": {"f:spec": {}}}}
CLIENT = Manager("kubectl", "Apply", "apps/v1", {"f:spec": {"f:containers": {}}})


def entry(manager: str, operation: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


async def test_field_managers_of_a_released_template_get_it_back_guarded_by_the_resource_version(world: World) -> None:
    world.reader.stored = Applied(managers=(CLIENT,))
    world.reader.whole["metadata"] |= {"resourceVersion": "5", "managedFields": [entry("altershield", "Update", OWNED)]}
    await world.do(RestoreManagers(TARGET))
    assert world.only_write[3] == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "5"},
        {
            "op": "replace",
            "path": "/metadata/managedFields",
            "value": [entry("kubectl", "Apply", {"f:spec": {"f:template": CLIENT.template}})],
        },
    ]


async def test_field_managers_are_written_once(world: World) -> None:
    world.reader.whole["metadata"]["managedFields"] = [entry("kubectl", "Apply", OWNED)]
    await world.do(RestoreManagers(TARGET))
    assert world.writer.writes == []


async def test_refused_write_of_the_field_managers_is_announced(world: World) -> None:
    world.reader.whole["metadata"] |= {"resourceVersion": "5", "managedFields": [entry("altershield", "Update", OWNED)]}
    world.writer.errors = [ForbiddenError("a policy says no")]
    await world.do(RestoreManagers(TARGET))
    ((_, _, reason, message),) = world.recorder.events
    assert reason == "ManagersNotRestored"
    assert "a policy says no" in message


@pytest.mark.parametrize("processed", [True, False])
async def test_defense_status_is_removed_if_the_workload_has_it_now(world: World, processed: bool) -> None:
    world.workload = msgspec.structs.replace(world.workload, processed=not processed)
    world.reader.present = msgspec.structs.replace(world.workload, processed=processed)
    await world.do(after=(ReleaseAgain(TARGET),))
    removal = {"op": "remove", "path": label_path(labels.DEFENSE_STATUS)}
    assert (removal in world.only_write[3]) == processed


async def test_release_after_a_suspension_starts_from_the_written_workload(world: World) -> None:
    await world.do(after=(Suspend(5), ReleaseAgain(TARGET)))
    assert world.reader.asked == [newer(world.workload, 7)]


@pytest.mark.parametrize("changes", [{"version": V2}, {"fingerprint": V2}])
async def test_older_template_is_not_released_if_the_workload_has_a_newer_release(
    world: World, changes: dict[str, str]
) -> None:
    world.reader.present = msgspec.structs.replace(world.workload, **changes)
    with pytest.raises(ConflictError, match="another version was released since it was read"):
        await world.do(after=(ReleaseAgain(TARGET),))
    assert world.writer.writes == []


@pytest.mark.parametrize(
    "error",
    [
        ConflictError("the object has been modified"),
        NotFoundError("gone"),
        TooManyRequestsError("slow down"),
        NamespaceTerminatingError("being deleted"),
        UnauthorizedError("expired"),
    ],
)
async def test_retriable_error_of_releasing_a_template_is_raised(world: World, error: ApiError) -> None:
    world.writer.errors = [error]
    with pytest.raises(type(error)):
        await world.do(after=(ReleaseAgain(TARGET),))


@pytest.mark.parametrize(
    "error",
    [
        from_status(409, {"message": 'admission webhook "policy.example.com" denied the request: no'}),
        ForbiddenError("a quota"),
        InvalidError("spec.template is invalid"),
        ServerError("a webhook failed"),
    ],
)
async def test_refused_write_of_an_older_template_raises_refused(world: World, error: ApiError) -> None:
    world.writer.errors = [error]
    with pytest.raises(Refused) as raised:
        await world.do(after=(ReleaseAgain(TARGET),))
    assert raised.value.cause is error


# metrics


def rolled_back(is_true: bool) -> Condition:
    return Condition("RolledBack", str(is_true), "PodNotUp")


@pytest.mark.parametrize(
    ("state", "result"), [(WorkloadState.SUCCESS, "success"), (WorkloadState.SUSPEND, "suspended")]
)
async def test_end_of_a_release_is_counted_with_its_duration(world: World, state: str, result: str) -> None:
    await world.do(status=status(state))
    assert world.durations(result) == (1, 42.5)


async def test_rollback_is_counted_with_its_reason(world: World) -> None:
    await world.do(status=status(WorkloadState.FAILED, rolled_back(True)))
    assert world.durations("rolled-back") == (1, 42.5)
    assert world.rollbacks("PodNotUp") == 1


@pytest.mark.parametrize("conditions", [(), (rolled_back(False),)])
async def test_superseded_rollback_is_not_counted(world: World, conditions: tuple[Condition, ...]) -> None:
    await world.do(status=status(WorkloadState.FAILED, *conditions))
    assert world.durations("rolled-back") == (0, 0)
    assert world.rollbacks("PodNotUp") == 0


@pytest.mark.parametrize("state", [WorkloadState.RUNNING, WorkloadState.ROLLBACK])
async def test_state_that_does_not_end_a_release_is_not_counted(world: World, state: str) -> None:
    world.release = release(status=WorkloadState.SUCCESS)
    await world.do(status=status(state, rolled_back(True)))
    assert [world.durations(each) for each in ("success", "suspended", "rolled-back")] == [(0, 0)] * 3
    assert world.rollbacks("PodNotUp") == 0


async def test_end_of_a_release_is_counted_once(world: World) -> None:
    world.release = release(status=WorkloadState.SUCCESS)
    await world.do(status=status())
    assert world.durations("success") == (0, 0)


async def test_clock_that_is_behind_counts_a_duration_of_zero(world: World) -> None:
    world.now = NOW - 10
    await world.do(status=status())
    assert world.durations("success") == (1, 0)


# a pause


RESOURCE_VERSION = {"op": "test", "path": "/metadata/resourceVersion", "value": "5"}
PAUSED_AT = rfc3339(NOW + 42)


def whole(spec: dict[str, Any], hold: dict[str, Any] | None = None) -> dict[str, Any]:
    annotations = {"annotations": {ROLLOUT: json.dumps(hold)}} if hold is not None else {}
    return {"metadata": {"resourceVersion": "5", **annotations}, "spec": spec}


async def test_pause_stores_the_hold_in_the_annotation(world: World) -> None:
    world.reader.whole = whole({"replicas": 3})
    await world.do(after=(Pause(V1, "a pod failed", NOW + 100),))
    *_, operations = world.only_write
    same, pause, annotations, stored = operations
    assert (same, pause) == (RESOURCE_VERSION, {"op": "add", "path": "/spec/paused", "value": True})
    assert annotations == {"op": "add", "path": "/metadata/annotations", "value": {}}
    assert stored["path"] == "/metadata/annotations/altershield.defense.antgroup.com~1rollout"
    cause = {"by": "pause", "reason": "a pod failed", "time": PAUSED_AT, "until": rfc3339(NOW + 100)}
    assert json.loads(stored["value"]) == {"version": V1, "causes": [cause], "fields": {"/spec/paused": None}}


async def test_workload_that_is_paused_already_is_not_written(world: World) -> None:
    world.reader.whole = whole({"paused": True})
    await world.do(after=(Pause(V1, "a pod failed"),))
    assert world.writer.writes == []


def held(before: Any) -> dict[str, Any]:
    hold = {"version": V1, "causes": [{"by": "pause"}], "fields": {"/spec/paused": before}}
    return whole({"paused": True}, hold)


FORGET = {"op": "remove", "path": "/metadata/annotations/altershield.defense.antgroup.com~1rollout"}


async def test_end_of_a_pause_restores_the_field(world: World) -> None:
    world.reader.whole = held(None)
    await world.do(after=(Unpause(),))
    assert world.only_write[-1] == [RESOURCE_VERSION, {"op": "remove", "path": "/spec/paused"}, FORGET]


async def test_value_that_the_api_server_does_not_accept_stays_out_of_the_field(world: World) -> None:
    """Anybody who may change the workload may have written the annotation. Its reconciles go on."""
    world.reader.whole = held("yes")
    world.writer.errors = [InvalidError("invalid", details={"causes": [{"field": "spec.paused"}]})]
    await world.do(after=(Unpause(),))
    first, second = (write[-1] for write in world.writer.writes)
    assert first == [RESOURCE_VERSION, {"op": "replace", "path": "/spec/paused", "value": "yes"}, FORGET]
    assert second == [RESOURCE_VERSION, FORGET]
