"""The kinds that AlterShield stores in the cluster, without DefensePolicy (see policy.py). The CRDs are generated from
these types.

The field names are those of the product's first release. Most follow from the Python names by camel case.
"""

import enum
from typing import Annotated

import msgspec

from altershield.api.meta import Condition, ObjectMeta
from altershield.api.policy import AppliedPolicy
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, GROUP, OPS_CONFIG_INFOS
from altershield.api.schema import doc

# `gc=False`: there are many of these objects, and none can be part of a reference cycle.
# `omit_defaults` omits values that equal a plain default. Values of a default factory are always written.

API_VERSION = f"{GROUP}/v1alpha1"

MAX_PODS = 10_000
"""The maximum number of pods in a list of a status."""

MAX_ACTIONS = 16
"""The maximum number of `actions` in a status."""

MAX_FAILED_RULES = 32
"""The maximum number of `rules` of a check."""

MAX_NOTIFIED = 64
"""The maximum number of entries in `notified` in a status."""

Name = Annotated[str, msgspec.Meta(max_length=253)]
Text = Annotated[str, msgspec.Meta(max_length=1024)]
Seconds = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Generation = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Conditions = Annotated[
    tuple[Condition, ...], msgspec.Meta(max_length=16, description="The state as Kubernetes conditions.")
]


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
    """`ChangePod.status.status`. `status.message` keeps the last state before `ExecuteDone`."""

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


class CheckState(enum.StrEnum):
    """`ChangePod.status.checks[].state`."""

    RUNNING = "Running"
    """The check was requested, or is about to be."""
    PASSED = "Passed"
    FAILED = "Failed"
    UNKNOWN = "Unknown"
    """The check ended without a result."""


class SkipState(enum.StrEnum):
    """`ChangePod.status.checks[].skip.state`."""

    REQUESTED = "Requested"
    """The call to the AlterShield server is not sent yet."""
    SENT = "Sent"
    """The call is sent, and its answer is awaited."""
    DONE = "Done"
    """The server accepted the call."""
    FAILED = "Failed"
    """The server refused the call, or its answer is not known."""


class Verdict(enum.StrEnum):
    """The verdict on a pod. A person may write any other word, which counts as `unpass`."""

    PASS = "pass"  # noqa: S105  (a verdict, not a password)
    UNPASS = "unpass"


class Verb(enum.StrEnum):
    """`ChangeWorkload.status.request.verb`: the action that a person requests."""

    APPROVE = "Approve"
    """The failure is a false alarm: the failed pods count as passed, and the suspension ends."""
    REPAIR = "Repair"
    """The next release passes the suspension, once."""
    RESUME = "Resume"
    """Further releases pass. The verdict on this release stays."""
    ROLLBACK = "Rollback"
    """An older version is released again."""
    RETRY = "Retry"
    """The failed pods, and those that wait for a person, are verified again. A refused order or rollback is tried
    again."""


BYPASS = "Bypass"
"""The verb of an action without a request: a release passed the suspension by the label `ignored-suspend`."""


class Result(enum.StrEnum):
    """`ChangeWorkload.status.actions[].result`."""

    DONE = "Done"
    UNCHANGED = "Unchanged"
    """The request did not apply in the state of the release, or its effect was there already."""
    REFUSED = "Refused"
    """The request cannot be carried out."""


class ConditionType(enum.StrEnum):
    """`status.conditions[].type` of all kinds."""

    VERIFIED = "Verified"
    """ChangeWorkload and ChangePod: True when every pod passed, False when one failed."""
    SETTLED = "Settled"
    """ChangeWorkload: True after the start timeout that follows Success. Until then, pods that fail still fail the
    release."""
    STALLED = "Stalled"
    """ChangeWorkload: True while the release does not proceed for a reason that is not its own fault."""
    NO_REPLICAS = "NoReplicas"
    """ChangeWorkload: True while the release reaches no pod, so that it cannot be verified."""
    ROLLED_BACK = "RolledBack"
    """ChangeWorkload: True after an older version was released again; False while the rollback is in progress or
    refused."""
    UNGATED = "Ungated"
    """ChangeWorkload: True if no gatekeeper reviewed the release."""
    REPORTED = "Reported"
    """ChangeWorkload, with an AlterShield server: True if the server has the order of the release, False if it refused
    it, Unknown while it cannot be reached."""
    CHECKED = "Checked"
    """ChangeWorkload in the state Success, with checks: False if pods count as passed without a
    verdict."""
    ACCEPTED = "Accepted"
    """OpsConfigInfo, DefensePolicy: False if the setting or the policy is invalid and has no effect."""
    SHADOWED = "Shadowed"
    """DefensePolicy: True if another policy of its namespace has precedence for every workload that it selects."""
    NEAR_LIMIT = "NearLimit"
    """PodDeletionFlowControl: True while the deletions reach `warnPercent` of a limit."""
    BREAKER_OPEN = "BreakerOpen"
    """PodDeletionFlowControl: True while the breaker refuses deletions, Unknown while it is half open."""


class Giver(enum.StrEnum):
    """Reasons of the condition Verified with the status False: the giver of the verdict."""

    PERSON = "FailedByPerson"
    SERVER = "FailedByServer"
    CHECK = "FailedByCheck"
    """A check of a DefensePolicy other than the AlterShield server."""
    HEALTH = "FailedByHealth"
    """The pod was not up for longer than the start timeout."""


class PodInfo(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A pod under verification. In results, also its verdict."""

    pod: Annotated[Name, doc("Its name.")]
    uid: Annotated[Name, doc("Its uid. A verdict is valid for the pod with this uid.")] = ""
    app: Annotated[Text, doc("The workload's name.")] = ""
    host_name: Annotated[Name, doc("The same as `pod`.")] = ""
    namespace: Annotated[Name, doc("Its namespace.")] = ""
    work_space: Annotated[Text, doc("Always `default`.")] = ""
    ip: Annotated[str, msgspec.Meta(max_length=45, description="Its IP address.")] = ""
    verdict: Annotated[
        str,
        msgspec.Meta(
            max_length=32, description="`pass`; any other value (`unpass`) is a failure; empty: no verdict yet."
        ),
    ] = ""
    message: Annotated[Text, doc("The reason for the verdict, as text.")] = ""
    by: Annotated[Text, doc("The user who gave the verdict, if a person gave it and said so.")] = ""


Pods = Annotated[tuple[PodInfo, ...], msgspec.Meta(max_length=MAX_PODS)]


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


class DownPod(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A pod that was up and is no longer up."""

    pod: Annotated[Name, doc("Its name.")] = ""
    uid: Annotated[Name, doc("Its uid.")] = ""
    since_unix: Annotated[Seconds, doc("When it went down, in Unix seconds.")] = 0
    message: Annotated[Text, doc("The reason, as the kubelet reports it.")] = ""


class Request(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """An action on this release that a person requests. AlterShield carries the request out, removes it, and adds it to
    `actions`."""

    verb: Annotated[Name, doc("The requested action.")]
    by: Annotated[Text, doc("The user who asks; the API server refuses the name of another user.")] = ""
    reason: Annotated[str, msgspec.Meta(max_length=512, description="The reason, for other people.")] = ""
    time: Annotated[Name, doc("When the person requested it, UTC.")] = ""
    to: Annotated[
        Name,
        doc("Of a `Rollback`: the version, or the name of the object that holds it; empty: the last that passed."),
    ] = ""
    begun: Annotated[bool, doc("Whether AlterShield has begun to carry it out.")] = False


class Action(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A request that was carried out, or the reason why it was not."""

    verb: Annotated[
        Name, doc("The verb of the request. `Bypass`: a release passed the suspension by the label `ignored-suspend`.")
    ] = ""
    by: Annotated[Text, doc("The user who asked.")] = ""
    reason: Annotated[Text, doc("The reason that the user gave.")] = ""
    time: Annotated[Name, doc("When AlterShield answered, UTC.")] = ""
    result: Annotated[Name, doc("`Done`, `Unchanged` (it did not apply) or `Refused` (it was not possible).")] = ""
    outcome: Annotated[Text, doc("What was done, or why nothing was done.")] = ""


class Resumption(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A person admitted further releases although this one failed. It ends when another pod fails."""

    since_unix: Annotated[Seconds, doc("Since when, in Unix seconds; 0: it was not resumed.")] = 0
    pods: Annotated[
        tuple[Name, ...], msgspec.Meta(max_length=MAX_PODS, description="The uids of the pods that had failed then.")
    ] = ()


class Pause(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """When the pause of the rollout ends by itself: the DefensePolicy has `onFailure: pause` and `pauseSeconds`."""

    end_time: Annotated[Text, doc("When it ends, UTC.")] = ""
    end_time_unix: Annotated[Seconds, doc("The same in Unix seconds; 0: it does not end by itself.")] = 0
    ended: Annotated[
        bool, doc("Whether this time is over, and `onPauseEnd` was carried out, or refused. It happens once.")
    ] = False


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
    policy: Annotated[
        AppliedPolicy, doc("The DefensePolicy that applies to this release, as it was when the release began.")
    ] = AppliedPolicy()


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
            "Until when, after Success, a pod that is not up fails the release, in Unix seconds. Such a pod extends it."
        ),
    ] = 0
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
    request: Annotated[Request | None, doc("An action on this release that a person requests.")] = None
    actions: Annotated[
        tuple[Action, ...],
        msgspec.Meta(max_length=MAX_ACTIONS, description="The answers to the last requests, the newest last."),
    ] = ()
    resumption: Annotated[Resumption, doc("Whether a person admitted further releases.")] = Resumption()
    pause: Annotated[Pause, doc("When the pause of the rollout ends by itself.")] = Pause()
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
    conditions: Conditions = ()
    observed_generation: Annotated[Generation, doc("The generation of the spec that this status describes.")] = 0


class ChangeWorkload(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One version of a workload, from its release to its verdict."""

    metadata: ObjectMeta
    spec: ChangeWorkloadSpec
    status: ChangeWorkloadStatus = ChangeWorkloadStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: CHANGE_WORKLOADS.kind)


class ChangePodSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The batch."""

    change_workload_id: Annotated[Name, doc("The name of the ChangeWorkload that this batch belongs to.")]
    create_time: Annotated[Text, doc("When the batch was taken, UTC.")]
    create_time_unix: Annotated[Seconds, doc("The same in Unix seconds.")]
    pod_infos: Annotated[
        tuple[PodInfo, ...], msgspec.Meta(min_length=1, max_length=MAX_PODS, description="The pods of the batch.")
    ]
    failed_by: Annotated[
        Name,
        doc("The giver of the verdicts in `podInfos`, as a reason of the condition Verified; empty: AlterShield."),
    ] = ""


class FailedRule(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A rule of an AlterShield server that did not pass."""

    id: Annotated[str, msgspec.Meta(max_length=256, description="The id of its execution on the server.")] = ""
    name: Annotated[str, msgspec.Meta(max_length=256, description="Its name.")] = ""
    ignorable: Annotated[bool, doc("Whether the server lets people ignore it.")] = False


class Skip(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A call that tells the AlterShield server to ignore the failed rules, because a person approved the batch."""

    state: Annotated[
        Name, doc("`Requested`, `Sent` (the answer is awaited), `Done`, or `Failed`, which changes no verdict.")
    ] = ""
    reason: Annotated[Text, doc("Why it failed.")] = ""
    time_unix: Annotated[Seconds, doc("When the batch was approved, in Unix seconds.")] = 0


class CheckResult(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A check of the batch. Its start is stored before the check is requested."""

    name: Annotated[
        Name, doc("Its name in the DefensePolicy; without a policy `server`, for the AlterShield server.")
    ] = ""
    phase: Annotated[Name, doc("`Pre` or `Post`: before or after the batch.")] = ""
    state: Annotated[Name, doc("`Running`, `Passed`, `Failed` or `Unknown` (it ended without a result).")] = ""
    reason: Annotated[Text, doc("The reason for the state, as text.")] = ""
    start_time: Annotated[Text, doc("When it began, UTC.")] = ""
    end_time: Annotated[Text, doc("When it ended, UTC.")] = ""
    start_time_unix: Annotated[Seconds, doc("When it began, in Unix seconds.")] = 0
    handle: Annotated[Text, doc("The id of the check in the system that runs it; empty before it is started.")] = ""
    rules: Annotated[
        tuple[FailedRule, ...],
        msgspec.Meta(
            max_length=MAX_FAILED_RULES,
            description="The rules of the AlterShield server that did not pass; first those that nobody may ignore.",
        ),
    ] = ()
    newest_rule: Annotated[
        Seconds, doc("When its newest failed rule began, in Unix milliseconds by the clock of the AlterShield server.")
    ] = 0
    repeated: Annotated[
        bool, doc("Whether it runs again on the AlterShield server, because a person requested `Retry`.")
    ] = False
    skip: Annotated[Skip | None, doc("Whether the AlterShield server knows that a person approved the batch.")] = None


_POD_STATUS_NAMES = {"post_timeout_threshold": "postTimeOutThreshold"}


class ChangePodStatus(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename=lambda name: _POD_STATUS_NAMES.get(name) or _camel(name),
):
    """The result of the verification. People may write `podResults`, too."""

    status: Annotated[Text, doc("The state of the verification; `ExecuteDone` is the last one.")] = ""
    message: Annotated[Text, doc("The last state before `ExecuteDone`: how the verification ended.")] = ""
    pod_results: Annotated[
        Pods, doc("The verdict on each pod. A person may write it at any time; AlterShield accepts it.")
    ] = ()
    checks: Annotated[
        tuple[CheckResult, ...], msgspec.Meta(max_length=32, description="The checks of this batch.")
    ] = ()
    change_pod_id: Annotated[Text, doc("The id of this batch on an AlterShield server.")] = ""
    pre_submit_time: Annotated[Text, doc("When the check before the batch was requested, UTC.")] = ""
    pre_submit_time_unix: Annotated[Seconds, doc("The same in Unix seconds.")] = 0
    post_submit_time: Annotated[Text, doc("When the check after the batch was requested, UTC.")] = ""
    post_submit_time_unix: Annotated[Seconds, doc("The same in Unix seconds.")] = 0
    pre_timeout_threshold: Annotated[Seconds, doc("Timeout of the check before the batch, in seconds.")] = 0
    post_timeout_threshold: Annotated[Seconds, doc("Timeout of the check after the batch, in seconds.")] = 0
    retry_time_unix: Annotated[
        Seconds, doc("When a person last had the check before the batch repeated, in Unix seconds.")
    ] = 0
    update_time: Annotated[Text, doc("When this status was written, UTC.")] = ""
    update_time_unix: Annotated[Seconds, doc("The same in Unix seconds.")] = 0
    conditions: Conditions = ()
    observed_generation: Annotated[Generation, doc("The generation of the spec that this status describes.")] = 0


class ChangePod(msgspec.Struct, frozen=True, rename="camel"):
    """One verified batch of pods of a version."""

    metadata: ObjectMeta
    spec: ChangePodSpec
    status: ChangePodStatus = ChangePodStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: CHANGE_PODS.kind)


class OpsConfigInfoSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The setting."""

    type: Annotated[Text, doc("`isBlockingUp` for `blocking`, `isBranch` for `branch`, `isRollback` for `rollback`.")]
    enable: Annotated[bool, doc("Whether it is on.")] = msgspec.field(default_factory=bool)
    content: Annotated[
        Text,
        doc(
            "For `branch`: pods in a batch, a number (`10`) or a share of the replicas (`10%`). "
            "For `rollback`: how many of a version's pods must be overdue, in the same form."
        ),
    ] = ""
    remark: Annotated[Text, doc("A remark for people.")] = ""


class OpsConfigInfoStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The values in effect: those that were accepted last."""

    enable: Annotated[bool | None, doc("Whether it is on.")] = None
    content: Annotated[Text, doc("The content in effect.")] = ""
    conditions: Conditions = ()
    observed_generation: Annotated[Generation, doc("The generation of the spec that this status describes.")] = 0


class OpsConfigInfo(msgspec.Struct, frozen=True, rename="camel"):
    """One setting of the operator."""

    metadata: ObjectMeta
    spec: OpsConfigInfoSpec
    status: OpsConfigInfoStatus = OpsConfigInfoStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: OPS_CONFIG_INFOS.kind)
