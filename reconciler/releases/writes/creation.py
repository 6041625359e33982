"""Creates, adopts or starts again the ChangeWorkload of a release."""

from collections.abc import Callable, Sequence

import msgspec

from altershield.api import labels, names, released_by
from altershield.api.announcements import Announcement, added, announcement
from altershield.api.change_workload import (
    ChangeWorkload,
    ChangeWorkloadSpec,
    ChangeWorkloadStatus,
    SourceRef,
    WorkloadRef,
    WorkloadState,
)
from altershield.api.condition_types import ConditionType
from altershield.api.json_patch import Operation, at_version, label_path, without_label
from altershield.api.meta import Condition, find_condition, plain_time
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.api.workload_requests import MAX_ACTIONS, Action, Result
from altershield.releases import passed, rolled_back, state
from altershield.releases.release import version_of
from altershield.rollout.steps import of_kind
from altershield.workloads import BY_KIND, change_workload_name
from altershield.workloads.workload import Workload
from kube_base.meta import ObjectMeta
from kube_base.times import rfc3339
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import is_controlled_by
from reconciler.cluster.release import Release
from reconciler.cluster.writer import Writer, owner
from reconciler.policies.applied import AppliedPolicies
from reconciler.releases.decisions.answers import text
from reconciler.releases.findings.restarts import restarts_before
from reconciler.releases.pods.health import Timing
from reconciler.releases.terms.rules import settings_of, settle_of, timing_of
from reconciler.releases.terms.snapshot import RollbackReason
from reconciler.releases.writes.written import WrittenReader


class ReleaseCreator:
    """`clock` returns Unix seconds. `batch_wait`: seconds after which an incomplete batch is verified. `policies` finds
    the DefensePolicy of a release that begins. `timing`: the times of releases whose policy has no times of its own.
    `separation_of_duties`: whether the user who releases a version may not decide about it."""

    def __init__(
        self,
        caches: Caches,
        writer: Writer,
        policies: AppliedPolicies,
        clock: Callable[[], float],
        batch_wait: int,
        timing: Timing,
        written: WrittenReader,
        *,
        separation_of_duties: bool,
    ) -> None:
        self._caches = caches
        self._writer = writer
        self._policies = policies
        self._clock = clock
        self._batch_wait = batch_wait
        self._timing = timing
        self._written = written
        self._separation_of_duties = separation_of_duties

    async def existing(self, workload: Workload, version: str) -> Release | None:
        """The ChangeWorkload of a version of exactly this workload, or None.

        A ChangeWorkload without an owner belongs to a workload that was deleted with `--cascade=orphan`. The new
        workload of that name has taken over the pods. So it adopts the ChangeWorkload too, as a release that begins
        again. A ChangeWorkload with another owner is deleted.
        """
        name = change_workload_name(workload.group_kind, workload.metadata.name, version)
        release = self._caches.releases.get(workload.metadata.namespace, name)
        if release is None or is_controlled_by(release, workload):
            return release
        if release.metadata.controller is None:
            return await self._adopt(release, workload)
        await self._writer.delete(CHANGE_WORKLOADS, release.metadata)
        return None

    async def create(self, workload: Workload, version: str) -> Release:
        """Create the ChangeWorkload of a version."""
        resource, metadata = BY_KIND[workload.group_kind].resource, workload.metadata
        release = ChangeWorkload(
            metadata=ObjectMeta(
                name=change_workload_name(workload.group_kind, metadata.name, version),
                namespace=metadata.namespace,
                labels={labels.VERSION: version, labels.WORKLOAD_NAME: names.label_value(metadata.name)},
                owner_references=(owner(resource, metadata),),
            ),
            spec=await self._spec(workload, version),
        )
        return await self._writer.create(self._caches.releases, release, metadata.namespace)

    async def start_anew(
        self,
        workload: Workload,
        release: Release,
        others: Sequence[Release],
        *more: Condition,
        announcements: Sequence[Announcement] = (),
    ) -> Release:
        """Start the ChangeWorkload of a version that is released again.

        The status is written first: the state Init, the conditions that have to stay, the conditions `more`, and the
        new `announcements`. The spec is written second: its `workloadGeneration` says that the start is complete.

        A pending request is refused. It is about the earlier release, because the person did not know this one.
        """
        now = self._clock()
        actions = actions_with_refusal(release, now)
        if actions != release.status.actions:
            refusal = announcement("RequestNotCarriedOut", text(actions[-1]), now)
            announcements = (refusal, *announcements)
        status = ChangeWorkloadStatus(
            status=WorkloadState.INIT,
            entry_time=plain_time(now),
            entry_time_unix=int(now),
            update_time=plain_time(now),
            update_time_unix=int(now),
            source=release.status.source,
            previous=previous(release, others),
            conditions=(*_kept_conditions(release, now), *more),
            actions=actions,
            notified=release.status.notified,
            announcements=added(release.status.announcements, announcements),
            observed_generation=release.metadata.generation,
        )
        release = await self._writer.save_release(release, status, lists=True)
        spec = msgspec.to_builtins(await self._spec(workload, version_of(release)))
        replace: Operation = {"op": "replace", "path": "/spec", "value": spec}
        return await self._writer.patch(self._caches.releases, release, [replace])

    async def _adopt(self, release: Release, workload: Workload) -> Release:
        resource, metadata = BY_KIND[workload.group_kind].resource, workload.metadata
        operations: list[Operation] = [
            at_version(release.metadata.resource_version),
            {
                "op": "add",
                "path": "/metadata/ownerReferences",
                "value": [msgspec.to_builtins(owner(resource, metadata))],
            },
            {"op": "add", "path": "/spec/workloadRef", "value": msgspec.to_builtins(_reference(workload))},
            # generation 0 belongs to no release, so the release begins again
            {"op": "add", "path": "/spec/workloadGeneration", "value": 0},
        ]
        return await self._writer.patch(self._caches.releases, release, operations)

    async def _spec(self, workload: Workload, version: str) -> ChangeWorkloadSpec:
        policy = await self._policies.of(workload)
        if workload.steps is not None:  # the policy may have been edited since the gatekeeper held the release
            policy = msgspec.structs.replace(policy, rollout=workload.steps.rollout)
        elif policy.rollout is not None:
            own = of_kind(policy.rollout, evicts=BY_KIND[workload.group_kind].evicts)
            policy = msgspec.structs.replace(policy, rollout=own or policy.rollout)
        now = self._clock()
        name = workload.metadata.name
        by = released_by.decode(workload.released_by, version)
        settings = settings_of(self._caches.in_effect(), policy)
        settle = settle_of(timing_of(self._timing, policy), policy)
        pods = self._caches.pods_of(workload)
        releases = [each for each in self._caches.releases_of(workload) if is_controlled_by(each, workload)]
        return ChangeWorkloadSpec(
            change_workload_id=change_workload_name(workload.group_kind, name, version),
            service_name=name,
            app_name=name,
            reversion=version,
            count_threshold=settings.batch_size(workload.replicas),
            wait_time_threshold=self._batch_wait,
            create_time=plain_time(now),
            create_time_unix=int(now),
            workload_ref=_reference(workload),
            workload_generation=workload.generation,
            released_by=by.user if by is not None else "",
            not_decided_by=by.user if by is not None and self._separation_of_duties else "",
            release_time=by.time if by is not None else "",
            field_manager=by.manager if by is not None else "",
            policy=policy,
            restarts_before=restarts_before(pods, releases, version, settle, settings, now),
            written=await self._written.read(workload, version, by, releases),
        )


def processed(*, keep_pass: bool = False) -> list[Operation]:
    """The patch operations that let verification begin.

    They also remove `ignored-suspend`, which has admitted this release and is valid once. `keep_pass`: it has not
    admitted this release, and stays.
    """
    operations: list[Operation] = [{"op": "add", "path": label_path(labels.DEFENSE_STATUS), "value": labels.PROCESSED}]
    return operations if keep_pass else [*operations, *without_label(labels.IGNORED_SUSPEND)]


def previous(release: Release, others: Sequence[Release]) -> SourceRef:
    """The object of the last version that passed before this one; empty if no such version is known.

    If the release before this one passed, this is its version. Otherwise, it is the version that the release before
    this one had found (its `previous`). A version does not count if it was rolled back or suspended since. It is `left`
    if this release goes back from it. A version that was left and is released again does not go back.
    """
    failed = {version_of(each) for each in others if rolled_back(each) or state(each) is WorkloadState.SUSPEND}
    failed.add(version_of(release))
    previous_uids = {each.status.previous.uid for each in others} - {""}
    before = sorted(others, key=lambda each: (each.spec.workload_generation, each.spec.create_time_unix), reverse=True)
    for other in before:
        # the version passed before and was released again, and has not passed a second time yet
        passed_before = other.status.source.uid in previous_uids and version_of(other) not in failed
        if other.status.source.uid and (passed(other) or passed_before):
            found = other.status.previous
            goes_back = found.version == version_of(release) and not found.left
            return msgspec.structs.replace(other.status.source, left=goes_back)
        if other.status.previous.uid and other.status.previous.version not in failed:
            return other.status.previous
    return release.status.previous if release.status.previous.version not in failed else SourceRef()


def _reference(workload: Workload) -> WorkloadRef:
    metadata = workload.metadata
    return WorkloadRef(BY_KIND[workload.group_kind].resource.api_version, workload.kind, metadata.name, metadata.uid)


def actions_with_refusal(release: Release, now: float) -> tuple[Action, ...]:
    """The actions of a release that is started again, with the refusal of its pending request."""
    request, known = release.status.request, release.status.actions
    if request is None:
        return known
    outcome = f"version {version_of(release)} was released again since this request was made; nothing was changed"
    refused = Action(request.verb, request.by, request.reason, rfc3339(now), Result.REFUSED, outcome)
    return (*known, refused)[-MAX_ACTIONS:]


def _kept_conditions(release: Release, now: float) -> tuple[Condition, ...]:
    """The condition RolledBack, which a release that is started again keeps: the version was rolled back once, and is
    not rolled back automatically a second time."""
    known = find_condition(release.status.conditions, ConditionType.ROLLED_BACK)
    if known is None or not (known.is_true or known.reason == RollbackReason.RELEASED_AGAIN):
        return ()
    return (
        Condition(
            ConditionType.ROLLED_BACK,
            "False",
            RollbackReason.RELEASED_AGAIN,
            "this version was rolled back and then released again; it is not rolled back automatically a second time",
            last_transition_time=rfc3339(now),
            observed_generation=release.metadata.generation,
        ),
    )
