"""The three kinds AlterShield keeps in the cluster. The CRDs are generated from these types (`crds`).

Field names on the wire are the product's since its first release; `rename` holds those that camel case
does not give.
"""

import enum
from typing import Annotated

import msgspec

from altershield.api.meta import Condition, ObjectMeta
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, GROUP, OPS_CONFIG_INFOS

# `gc=False`: there are many, and none can be part of a cycle.
# `omit_defaults` leaves out what equals a plain default; what a factory gives is always written.
API_VERSION = f"{GROUP}/v1alpha1"

MAX_PODS = 10_000
"""Pods one status may list."""

Name = Annotated[str, msgspec.Meta(max_length=253)]
Text = Annotated[str, msgspec.Meta(max_length=1024)]
Seconds = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Generation = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Conditions = Annotated[
    tuple[Condition, ...], msgspec.Meta(max_length=16, description="The state in the form of Kubernetes.")
]


def _says(text: str) -> msgspec.Meta:
    """What `kubectl explain` and the reference say of a field."""
    return msgspec.Meta(description=text)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


class WorkloadState(enum.StrEnum):
    """`ChangeWorkload.status.status`."""

    INIT = "Init"
    RUNNING = "Running"
    TIME_OUT_PRE_THRESHOLD = "TimeOutPreThreshold"
    SUCCESS = "Success"
    SUSPEND = "Suspend"
    FAILED = "Failed"
    ROLLBACK = "Rollback"


class PodState(enum.StrEnum):
    """`ChangePod.status.status`; `message` keeps the last one before `ExecuteDone`."""

    INIT = "Init"
    PRE_WAIT = "PreWait"
    PRE_SUBMITTED = "PreSubmitted"
    PRE_FAILED = "PreFailed"
    PRE_TIMEOUT = "PreTimeout"
    POST_WAIT = "PostWait"
    POST_SUBMITTED = "PostSubmitted"
    POST_FAILED = "PostFailed"
    POST_TIMEOUT = "PostTimeout"
    POST_FINISH = "PostFinish"
    EXECUTE_DONE = "ExecuteDone"


class Verdict(enum.StrEnum):
    """What is said of a pod. A person may write any other word, which counts as `unpass`."""

    PASS = "pass"  # noqa: S105  (a verdict, not a password)
    UNPASS = "unpass"


class ConditionType(enum.StrEnum):
    """`status.conditions[].type` of ChangeWorkloads, ChangePods and OpsConfigInfos."""

    VERIFIED = "Verified"
    """ChangeWorkload and ChangePod: True when every pod passed, False when one failed."""
    SETTLED = "Settled"
    """ChangeWorkload: True once the start timeout after Success is over; until then what breaks ends the release."""
    STALLED = "Stalled"
    """ChangeWorkload: True while the release does not go on for a reason that is not its own fault."""
    NO_REPLICAS = "NoReplicas"
    """ChangeWorkload: True while the release reaches no pod, so that nothing can be said of it."""
    ROLLED_BACK = "RolledBack"
    """ChangeWorkload: True once an older version was released again; False while under way or refused."""
    UNGATED = "Ungated"
    """ChangeWorkload: True where the gate did not see the release."""
    ACCEPTED = "Accepted"
    """OpsConfigInfo: False when the setting is wrong and so changes nothing."""


class Giver(enum.StrEnum):
    """Reasons of the condition Verified where it is False: whose verdict it was."""

    PERSON = "FailedByPerson"
    SERVER = "FailedByServer"
    HEALTH = "FailedByHealth"
    """The pod was not up for longer than the start timeout."""


class PodInfo(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A pod under verification, and (in results) what was found."""

    pod: Annotated[Name, _says("Its name.")]
    uid: Annotated[Name, _says("Its uid: a verdict is about this very pod.")] = ""
    app: Annotated[Text, _says("The workload's name.")] = ""
    host_name: Annotated[Name, _says("Its name again.")] = ""
    namespace: Annotated[Name, _says("Its namespace.")] = ""
    work_space: Annotated[Text, _says("Always `default`.")] = ""
    ip: Annotated[str, msgspec.Meta(max_length=45, description="Its address.")] = ""
    verdict: Annotated[
        str,
        msgspec.Meta(max_length=32, description="`pass`, or anything else (`unpass`) for a failure; empty: none yet."),
    ] = ""
    message: Annotated[Text, _says("Why, in words that people will read.")] = ""


Pods = Annotated[tuple[PodInfo, ...], msgspec.Meta(max_length=MAX_PODS)]


class WorkloadRef(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A workload, this very one."""

    api_version: Annotated[Name, _says("Its API version.")] = ""
    kind: Annotated[Name, _says("Its kind.")] = ""
    name: Annotated[Name, _says("Its name.")] = ""
    uid: Annotated[Name, _says("Its uid.")] = ""


class SourceRef(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """An object that holds a released pod template, and which version that is."""

    kind: Annotated[Name, _says("Its kind.")] = ""
    name: Annotated[Name, _says("Its name.")] = ""
    uid: Annotated[Name, _says("Its uid.")] = ""
    version: Annotated[Text, _says("The version; empty for one from before AlterShield.")] = ""
    fingerprint: Annotated[
        Text, _says("The fingerprint of its template, as the API server shows it: new defaults may change it.")
    ] = ""


class DownPod(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A pod that was up and is not any more."""

    pod: Annotated[Name, _says("Its name.")] = ""
    uid: Annotated[Name, _says("Its uid.")] = ""
    since_unix: Annotated[Seconds, _says("Since when, in Unix seconds.")] = 0
    message: Annotated[Text, _says("Why, in the kubelet's words.")] = ""


class ChangeWorkloadSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """What was released."""

    change_workload_id: Annotated[Name, _says("The ChangeWorkload's own name.")]
    service_name: Annotated[Name, _says("The workload's name.")]
    app_name: Annotated[Name, _says("The workload's name.")]
    reversion: Annotated[Text, _says("The version: the value of the workload's version label.")]
    count_threshold: Annotated[
        int, msgspec.Meta(ge=1, le=2**31 - 1, description="Pods in one batch: verified once so many have come up.")
    ]
    wait_time_threshold: Annotated[Seconds, _says("Seconds after which a batch is verified although it is not full.")]
    create_time: Annotated[Text, _says("When this version was released, UTC.")]
    create_time_unix: Annotated[Seconds, _says("The same in Unix seconds.")]
    workload_ref: Annotated[WorkloadRef, _says("The workload.")] = WorkloadRef()
    workload_generation: Annotated[
        Generation, _says("The workload's generation at which this version was released: it orders releases.")
    ] = 0


class ChangeWorkloadStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """What became of it. Only `status: Rollback` (with `rollbackTo`, if need be) is for people to write."""

    status: Annotated[
        Text, _says("The state. `Rollback`, written by a person, has an older version released again.")
    ] = ""
    defense_preparing_pods: Annotated[Pods, _says("Pods that came up and wait for a batch.")] = ()
    defense_checking_pods: Annotated[Pods, _says("Pods that are being verified.")] = ()
    defense_check_pass_pods: Annotated[Pods, _says("Pods that passed.")] = ()
    defense_check_fail_pods: Annotated[Pods, _says("Pods that failed, and why.")] = ()
    down_pods: Annotated[
        tuple[DownPod, ...],
        msgspec.Meta(max_length=MAX_PODS, description="Pods that were up and are not any more, the first ones."),
    ] = ()
    entry_time: Annotated[Text, _says("When the present state was entered, UTC.")] = ""
    entry_time_unix: Annotated[Seconds, _says("The same in Unix seconds.")] = 0
    update_time: Annotated[Text, _says("When this status was written, UTC.")] = ""
    update_time_unix: Annotated[Seconds, _says("The same in Unix seconds.")] = 0
    settle_time_unix: Annotated[
        Seconds, _says("Until when health counts against a Success, in Unix seconds; a pod that breaks puts it off.")
    ] = 0
    reached: Annotated[
        Seconds, _says("Pods that the workload's strategy let this version reach when it succeeded.")
    ] = 0
    replicas: Annotated[Seconds, _says("Pods that the workload was to have then.")] = 0
    source: Annotated[SourceRef, _says("The object that holds this version's template.")] = SourceRef()
    previous: Annotated[SourceRef, _says("The last version that passed before this one: where a rollback goes.")] = (
        SourceRef()
    )
    rollback_to: Annotated[
        Text, _says("The version, or the name of the object that holds it, to be released again in place of this one.")
    ] = ""
    rollback_target: Annotated[SourceRef, _says("What a rollback that is under way (or done) releases again.")] = (
        SourceRef()
    )
    conditions: Conditions = ()
    observed_generation: Annotated[Generation, _says("The generation of the spec that this status is about.")] = 0


class ChangeWorkload(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One version of a workload, from its release to its verdict."""

    metadata: ObjectMeta
    spec: ChangeWorkloadSpec
    status: ChangeWorkloadStatus = ChangeWorkloadStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: CHANGE_WORKLOADS.kind)


class ChangePodSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What is verified."""

    change_workload_id: Annotated[Name, _says("The ChangeWorkload that this batch belongs to.")]
    create_time: Annotated[Text, _says("When the batch was taken, UTC.")]
    create_time_unix: Annotated[Seconds, _says("The same in Unix seconds.")]
    pod_infos: Annotated[
        tuple[PodInfo, ...], msgspec.Meta(min_length=1, max_length=MAX_PODS, description="The pods of the batch.")
    ]
    failed_by: Annotated[
        Name, _says("Whose verdict `podInfos` hold, where it is not AlterShield's own: the reason of Verified.")
    ] = ""


_POD_STATUS_NAMES = {"post_timeout_threshold": "postTimeOutThreshold"}


class ChangePodStatus(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename=lambda name: _POD_STATUS_NAMES.get(name) or _camel(name),
):
    """What was found. `podResults` is for people to write as well."""

    status: Annotated[Text, _says("The step of the verification; `ExecuteDone` is the last one.")] = ""
    message: Annotated[Text, _says("The last step before `ExecuteDone`: how the verification ended.")] = ""
    pod_results: Annotated[Pods, _says("A verdict per pod. A person may write it at any time, and is believed.")] = ()
    change_pod_id: Annotated[Text, _says("What an AlterShield server calls this batch.")] = ""
    pre_submit_time: Annotated[Text, _says("When the check before the batch was asked for, UTC.")] = ""
    pre_submit_time_unix: Annotated[Seconds, _says("The same in Unix seconds.")] = 0
    post_submit_time: Annotated[Text, _says("When the check after the batch was asked for, UTC.")] = ""
    post_submit_time_unix: Annotated[Seconds, _says("The same in Unix seconds.")] = 0
    pre_timeout_threshold: Annotated[Seconds, _says("Seconds that the check before the batch may take.")] = 0
    post_timeout_threshold: Annotated[Seconds, _says("Seconds that the check after the batch may take.")] = 0
    update_time: Annotated[Text, _says("When this status was written, UTC.")] = ""
    update_time_unix: Annotated[Seconds, _says("The same in Unix seconds.")] = 0
    conditions: Conditions = ()
    observed_generation: Annotated[Generation, _says("The generation of the spec that this status is about.")] = 0


class ChangePod(msgspec.Struct, frozen=True, rename="camel"):
    """One verified batch of pods of a version."""

    metadata: ObjectMeta
    spec: ChangePodSpec
    status: ChangePodStatus = ChangePodStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: CHANGE_PODS.kind)


class OpsConfigInfoSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What is wanted."""

    type: Annotated[Text, _says("`isBlockingUp` for `blocking`, `isBranch` for `branch`, `isRollback` for `rollback`.")]
    enable: Annotated[bool, _says("Whether it is on.")] = msgspec.field(default_factory=bool)
    content: Annotated[
        Text,
        _says(
            "Of `branch`: pods in a batch, a number (`10`) or a share of the replicas (`10%`). "
            "Of `rollback`: the share of a version's pods that has to be overdue, likewise."
        ),
    ] = ""
    remark: Annotated[Text, _says("For people.")] = ""


class OpsConfigInfoStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What is in effect: the last accepted values."""

    enable: Annotated[bool | None, _says("Whether it is on.")] = None
    content: Annotated[Text, _says("The content in effect.")] = ""
    conditions: Conditions = ()
    observed_generation: Annotated[Generation, _says("The generation of the spec that this status is about.")] = 0


class OpsConfigInfo(msgspec.Struct, frozen=True, rename="camel"):
    """One setting of the operator."""

    metadata: ObjectMeta
    spec: OpsConfigInfoSpec
    status: OpsConfigInfoStatus = OpsConfigInfoStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: OPS_CONFIG_INFOS.kind)
