"""The kind ChangeWorkload: one version of a workload, from its release to its verdict. The CRD is generated from these
types.

The field names are those of the product's first release. Most follow from the Python names by camel case.
"""

import enum
from typing import Annotated

import msgspec

from altershield.api.announcements import Announcements
from altershield.api.fields import Conditions, Generation, Name, Seconds, Text
from altershield.api.kinds import Column, Kind
from altershield.api.pod_verdicts import MAX_PODS, Pods
from altershield.api.policy import AppliedPolicy
from altershield.api.resources import API_VERSION, CHANGE_WORKLOADS
from altershield.api.rollout import RolloutStatus
from altershield.api.schema import doc, extra
from altershield.api.workload_requests import MAX_ACTIONS, Action, Request
from kube_base.meta import ObjectMeta

MAX_RESTARTED = 200
"""The maximum number of pods in `settling` in a status."""

MAX_NOTIFIED = 64
"""The maximum number of entries in `notified` in a status."""

MAX_RESTORED = 20
"""The maximum number of entries in `restoredPaths` in a status."""


MAX_WRITTEN = 4
"""The maximum number of entries in `written` in a spec."""

MAX_WRITTEN_VALUES = 64
"""The maximum number of paths, and of values, of an entry in `written`."""


class WorkloadState(enum.StrEnum):
    """`ChangeWorkload.status.status`."""

    INIT = "Init"
    RUNNING = "Running"
    TIME_OUT_PRE_THRESHOLD = "TimeOutPreThreshold"
    SUCCESS = "Success"
    SUSPEND = "Suspend"
    FAILED = "Failed"
    ROLLBACK = "Rollback"


class WorkloadRef(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A workload, identified by its uid."""

    api_version: Annotated[Name, doc("Its API version.")] = ""
    kind: Annotated[Name, doc("Its kind.")] = ""
    name: Annotated[Name, doc("Its name.")] = ""
    uid: Annotated[Name, doc("Its uid.")] = ""


class SourceRef(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """An object that holds a released pod template, and the version of this template."""

    kind: Annotated[Name, doc("Its kind.")] = ""
    name: Annotated[Name, doc("Its name.")] = ""
    uid: Annotated[Name, doc("Its uid.")] = ""
    version: Annotated[Text, doc("The version; empty if it was released before AlterShield governed the workload.")] = (
        ""
    )
    fingerprint: Annotated[
        Text, doc("The fingerprint of its template as the API server returns it. New defaults can change it.")
    ] = ""
    left: Annotated[bool, doc("In `previous`: somebody went back from this version, so that gates judge it again.")] = (
        False
    )


class DownPod(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A pod that was up and is no longer up."""

    pod: Annotated[Name, doc("Its name.")] = ""
    uid: Annotated[Name, doc("Its uid.")] = ""
    since_unix: Annotated[Seconds, doc("When it went down, in Unix seconds.")] = 0
    message: Annotated[Text, doc("The reason, as the kubelet reports it.")] = ""


class PodRestarts(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The restarts of the containers of a pod that do not count against the release."""

    pod: Annotated[Name, doc("Its name.")] = ""
    uid: Annotated[Name, doc("Its uid.")] = ""
    uncounted: Annotated[
        Seconds, doc("The restarts that do not count: those before its verification, and those by its node.")
    ] = 0
    seen: Annotated[Seconds, doc("The restarts of which `uncounted` is a part.")] = 0


class RestartingPod(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A pod whose containers restarted since the release succeeded."""

    pod: Annotated[Name, doc("Its name.")] = ""
    uid: Annotated[Name, doc("Its uid.")] = ""
    restarts: Annotated[Seconds, doc("The restarts that count.")] = 0
    message: Annotated[Text, doc("The restarts in words, and how the last run ended.")] = ""


class Settling(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Which restarts of containers count against a release in Success, until it has settled."""

    since_unix: Annotated[Seconds, doc("Since when restarts count, in Unix seconds; 0: they do not count.")] = 0
    pods: Annotated[
        tuple[PodRestarts, ...],
        msgspec.Meta(max_length=MAX_RESTARTED, description="The pods of which restarts do not count."),
    ] = ()
    others: Annotated[
        Seconds, doc("The restarts of each other pod that do not count: the list has only the pods with the most.")
    ] = 0
    restarting: Annotated[
        tuple[RestartingPod, ...],
        msgspec.Meta(max_length=MAX_RESTARTED, description="The pods whose restarts count; those with the most."),
    ] = ()


class Resumption(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A person admitted further releases although this one failed. It ends when another pod fails."""

    since_unix: Annotated[Seconds, doc("Since when, in Unix seconds; 0: it was not resumed.")] = 0
    pods: Annotated[
        tuple[Name, ...], msgspec.Meta(max_length=MAX_PODS, description="The uids of the pods that had failed then.")
    ] = ()


class PauseEnd(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """When the pause of the rollout ends by itself: the DefensePolicy has `onFailure: pause` and `pauseSeconds`."""

    end_time: Annotated[Text, doc("When it ends, UTC.")] = ""
    end_time_unix: Annotated[Seconds, doc("The same in Unix seconds; 0: it does not end by itself.")] = 0
    ended: Annotated[
        bool, doc("Whether this time is over, and `onPauseEnd` was carried out, or refused. It happens once.")
    ] = False


class Written(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The values of guarded fields in the last release of a field manager or user."""

    user: Annotated[Name, doc("The user.")] = ""
    manager: Annotated[Name, doc("The field manager; empty if the client named none.")] = ""
    time: Annotated[Name, doc("When the gatekeeper admitted that release, UTC, in the format of Kubernetes.")] = ""
    paths: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=256)], ...],
        msgspec.Meta(max_length=MAX_WRITTEN_VALUES, description="The paths of FieldGuards whose values are known."),
    ] = ()
    values: Annotated[
        dict[str, Annotated[str, msgspec.Meta(max_length=256)]],
        doc(
            "The fields of these paths that were set, by their path in the template: the value in JSON, or a digest of "
            "a value that is long or may be a secret."
        ),
        extra(maxProperties=MAX_WRITTEN_VALUES),
    ] = {}

    @property
    def releaser(self) -> tuple[str, str]:
        """Who made the release, to compare; see `releaser`."""
        return releaser(self.user, self.manager)


def releaser(user: str, manager: str) -> tuple[str, str]:
    """Field manager and user, by which a later release is known to be by the same one. The user is empty, if the field
    manager is enough: many people share the managers of kubectl, and some clients name none."""
    return manager, "" if manager and not manager.startswith("kubectl") else user


class ChangeWorkloadSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The release."""

    change_workload_id: Annotated[Name, doc("The ChangeWorkload's own name.")]
    service_name: Annotated[Name, doc("The workload's name.")]
    app_name: Annotated[Name, doc("The workload's name.")]
    reversion: Annotated[Text, doc("The version: the value of the workload's version label.")]
    count_threshold: Annotated[
        int,
        msgspec.Meta(
            ge=1, le=2**31 - 1, description="Pods in one batch. A batch is verified when so many pods have come up."
        ),
    ]
    wait_time_threshold: Annotated[Seconds, doc("Seconds after which an incomplete batch is verified.")]
    create_time: Annotated[Text, doc("When this version was released, UTC.")]
    create_time_unix: Annotated[Seconds, doc("The same in Unix seconds.")]
    workload_ref: Annotated[WorkloadRef, doc("The workload.")] = WorkloadRef()
    workload_generation: Annotated[
        Generation, doc("The workload's generation when this version was released. It orders releases.")
    ] = 0
    released_by: Annotated[
        Text, doc("The user who released it, as the gatekeeper saw the request; empty if no gatekeeper did.")
    ] = ""
    not_decided_by: Annotated[
        Text,
        doc(
            "With separation of duties: the user who released it, and who therefore may not approve, repair, resume or "
            "retry it; empty: nobody."
        ),
    ] = ""
    release_time: Annotated[Name, doc("When the gatekeeper admitted it, UTC, in the format of Kubernetes.")] = ""
    field_manager: Annotated[
        Name, doc("The field manager that the client named for its request; empty if it named none.")
    ] = ""
    policy: Annotated[
        AppliedPolicy, doc("The DefensePolicy that applies to this release, as it was when the release began.")
    ] = AppliedPolicy()
    restarts_before: Annotated[
        Seconds,
        doc(
            "How often a pod of the version before restarted, in the time in which restarts fail this release: "
            "`settleRestarts` times `settleSeconds`."
        ),
    ] = 0
    written: Annotated[
        tuple[Written, ...],
        msgspec.Meta(
            max_length=MAX_WRITTEN,
            description="For FieldGuards with `Reverted`: the values of guarded fields in the last releases of "
            "different field managers or users, the newest first.",
        ),
    ] = ()


class ChangeWorkloadStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The state of the release. People may write `request`, or `status: Rollback` with or without `rollbackTo`."""

    status: Annotated[
        Text, doc("The state. If a person writes `Rollback`, AlterShield releases an older version again.")
    ] = ""
    defense_preparing_pods: Annotated[Pods, doc("Pods that are up and wait for a batch.")] = ()
    defense_checking_pods: Annotated[Pods, doc("Pods that are being verified.")] = ()
    defense_check_pass_pods: Annotated[Pods, doc("Pods that passed.")] = ()
    defense_check_fail_pods: Annotated[Pods, doc("Pods that failed, with the reason.")] = ()
    down_pods: Annotated[
        tuple[DownPod, ...],
        msgspec.Meta(max_length=MAX_PODS, description="Pods that were up and are no longer up; only the first ones."),
    ] = ()
    entry_time: Annotated[Text, doc("When the present state began, UTC.")] = ""
    entry_time_unix: Annotated[Seconds, doc("The same in Unix seconds.")] = 0
    update_time: Annotated[Text, doc("When this status was written, UTC.")] = ""
    update_time_unix: Annotated[Seconds, doc("The same in Unix seconds.")] = 0
    settle_time_unix: Annotated[
        Seconds,
        doc(
            "Until when, after Success, pods that break or restart fail the release, in Unix seconds. Such pods extend "
            "it."
        ),
    ] = 0
    settling: Annotated[Settling, doc("Which restarts count until it has settled.")] = Settling()
    reached: Annotated[
        Seconds, doc("How many pods the workload's strategy allowed this version to have when it succeeded.")
    ] = 0
    replicas: Annotated[Seconds, doc("The replicas of the workload at that time.")] = 0
    source: Annotated[SourceRef, doc("The object that holds this version's template.")] = SourceRef()
    previous: Annotated[
        SourceRef, doc("The last version before this one that succeeded: the target of a rollback.")
    ] = SourceRef()
    rollback_to: Annotated[
        Text, doc("The version to release again in place of this one, or the name of the object that holds it.")
    ] = ""
    rollback_target: Annotated[SourceRef, doc("The version that a rollback releases again.")] = SourceRef()
    rollback_requested: Annotated[bool, doc("Whether a person requested this rollback.")] = False
    rollback_reason: Annotated[Text, doc("The reason of this rollback: a reason of the condition RolledBack.")] = ""
    restored_paths: Annotated[
        tuple[Text, ...],
        msgspec.Meta(
            max_length=MAX_RESTORED,
            description="The fields of the pod template that this version had removed, and that a rollback brought "
            "back; only the first ones.",
        ),
    ] = ()
    applied: Annotated[
        Text, doc("The digest of what clients stored about the template, as the history keeps it with the version.")
    ] = ""
    request: Annotated[Request | None, doc("An action on this release that a person requests.")] = None
    actions: Annotated[
        tuple[Action, ...],
        msgspec.Meta(max_length=MAX_ACTIONS, description="The answers to the last requests, the newest last."),
    ] = ()
    resumption: Annotated[Resumption, doc("Whether a person admitted further releases.")] = Resumption()
    pause: Annotated[PauseEnd, doc("When the pause of the rollout ends by itself.")] = PauseEnd()
    rollout: Annotated[RolloutStatus, doc("How far a release in steps has come.")] = RolloutStatus()
    retry_time_unix: Annotated[
        Seconds, doc("When a person last asked to verify the failed pods again, in Unix seconds.")
    ] = 0
    retried_batches: Annotated[
        Seconds, doc("The highest number of a ChangePod then. Later ChangePods have higher numbers.")
    ] = 0
    notified: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=128)], ...],
        msgspec.Meta(
            max_length=MAX_NOTIFIED,
            description="The notifications that were sent or refused: event, its time in Unix seconds, receiver.",
        ),
    ] = ()
    announcements: Announcements = ()
    conditions: Conditions = ()
    observed_generation: Annotated[Generation, doc("The generation of the spec that this status describes.")] = 0


class ChangeWorkload(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One version of a workload, from its release to its verdict."""

    metadata: ObjectMeta
    spec: ChangeWorkloadSpec
    status: ChangeWorkloadStatus = ChangeWorkloadStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: CHANGE_WORKLOADS.kind)


KIND = Kind(
    resource=CHANGE_WORKLOADS,
    type=ChangeWorkload,
    short_name="cw",
    title="Change of a workload",
    summary="One version of a workload, and the state of its release",
    columns=(
        Column("STATUS", "string", ".status.status"),
        Column("CREATETIME", "string", ".spec.createTime"),
        Column("KIND", "string", ".spec.workloadRef.kind", wide=True),
        Column("WORKLOAD", "string", ".spec.serviceName", wide=True),
        Column("POLICY", "string", ".spec.policy.name", wide=True),
        Column("VERIFIED", "string", '.status.conditions[?(@.type=="Verified")].status', wide=True),
        Column("REASON", "string", '.status.conditions[?(@.type=="Verified")].reason', wide=True),
        Column("ROLLEDBACK", "string", '.status.conditions[?(@.type=="RolledBack")].status', wide=True),
        Column("UPDATETIME", "string", ".status.updateTime", wide=True),
    ),
    selectable=(".status.status", ".status.rollout.phase"),
    status={"status": WorkloadState.INIT.value},
    states=tuple(WorkloadState),
)
