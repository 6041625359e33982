"""The three kinds AlterShield keeps in the cluster. The CRDs are generated from these types (`crds`).

Field names on the wire are the product's since its first release; `rename` holds those that camel case
does not give.
"""

from typing import Annotated

import msgspec

from altershield.api.meta import Condition, ObjectMeta
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, GROUP, OPS_CONFIG_INFOS

# `omit_defaults` leaves out what equals a plain default; what a factory gives is always written.
API_VERSION = f"{GROUP}/v1alpha1"

MAX_PODS = 10_000
"""Pods one status may list."""

Name = Annotated[str, msgspec.Meta(max_length=253)]
Text = Annotated[str, msgspec.Meta(max_length=1024)]
Seconds = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Conditions = Annotated[tuple[Condition, ...], msgspec.Meta(max_length=16)]


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


class WorkloadState:
    """`ChangeWorkload.status.status`."""

    INIT = "Init"
    RUNNING = "Running"
    TIME_OUT_PRE_THRESHOLD = "TimeOutPreThreshold"
    SUCCESS = "Success"
    SUSPEND = "Suspend"
    FAILED = "Failed"
    ROLLBACK = "Rollback"

    ALL = (INIT, RUNNING, TIME_OUT_PRE_THRESHOLD, SUCCESS, SUSPEND, FAILED, ROLLBACK)


class PodState:
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

    ALL = (
        INIT, PRE_WAIT, PRE_SUBMITTED, PRE_FAILED, PRE_TIMEOUT,
        POST_WAIT, POST_SUBMITTED, POST_FAILED, POST_TIMEOUT, POST_FINISH, EXECUTE_DONE,
    )  # fmt: skip


PASS = "pass"  # noqa: S105  (a verdict, not a password)
UNPASS = "unpass"


class ConditionType:
    """`status.conditions[].type` of ChangeWorkloads, ChangePods and OpsConfigInfos."""

    VERIFIED = "Verified"
    """ChangeWorkload and ChangePod: True when every pod passed, False when one failed."""
    ROLLED_BACK = "RolledBack"
    """ChangeWorkload: True once an older version was released again; False while under way or refused."""
    ACCEPTED = "Accepted"
    """OpsConfigInfo: False when the setting is wrong and so changes nothing."""


class PodInfo(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A pod under verification, and (in results) what was found."""

    pod: Name
    app: Text = ""
    host_name: Name = ""
    namespace: Name = ""
    work_space: Text = ""
    ip: Annotated[str, msgspec.Meta(max_length=45)] = ""
    verdict: Annotated[str, msgspec.Meta(max_length=32)] = ""
    message: Text = ""


Pods = Annotated[tuple[PodInfo, ...], msgspec.Meta(max_length=MAX_PODS)]


class ChangeWorkloadSpec(msgspec.Struct, frozen=True, rename="camel"):
    change_workload_id: Name
    service_name: Name
    app_name: Name
    reversion: Text
    """The generation of the workload at which this version was released."""
    count_threshold: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    wait_time_threshold: Seconds
    create_time: Text
    create_time_unix: Seconds


class ChangeWorkloadStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    status: Text = ""
    defense_preparing_pods: Pods = ()
    """Came up, waiting for a batch."""
    defense_checking_pods: Pods = ()
    defense_check_pass_pods: Pods = ()
    defense_check_fail_pods: Pods = ()
    entry_time: Text = ""
    """When the present state was entered."""
    entry_time_unix: Seconds = 0
    update_time: Text = ""
    update_time_unix: Seconds = 0
    rollback_to: Text = ""
    """The version that is (or was) released again in place of this one."""
    conditions: Conditions = ()
    observed_generation: Seconds = 0


class ChangeWorkload(msgspec.Struct, frozen=True, rename="camel"):
    """One version of a workload, from its release to its verdict."""

    metadata: ObjectMeta
    spec: ChangeWorkloadSpec
    status: ChangeWorkloadStatus = ChangeWorkloadStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: CHANGE_WORKLOADS.kind)


class ChangePodSpec(msgspec.Struct, frozen=True, rename="camel"):
    change_workload_id: Name
    create_time: Text
    create_time_unix: Seconds
    pod_infos: Annotated[tuple[PodInfo, ...], msgspec.Meta(min_length=1, max_length=MAX_PODS)]


_POD_STATUS_NAMES = {"post_timeout_threshold": "postTimeOutThreshold"}


class ChangePodStatus(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename=lambda name: _POD_STATUS_NAMES.get(name) or _camel(name),
):
    status: Text = ""
    message: Text = ""
    pod_results: Pods = ()
    """A verdict per pod. A person may write it at any time, and is believed."""
    change_pod_id: Text = ""
    """The node that the AlterShield server issued for this batch."""
    pre_submit_time: Text = ""
    pre_submit_time_unix: Seconds = 0
    post_submit_time: Text = ""
    post_submit_time_unix: Seconds = 0
    pre_timeout_threshold: Seconds = 0
    post_timeout_threshold: Seconds = 0
    update_time: Text = ""
    update_time_unix: Seconds = 0
    conditions: Conditions = ()
    observed_generation: Seconds = 0


class ChangePod(msgspec.Struct, frozen=True, rename="camel"):
    """One verified batch of pods of a version."""

    metadata: ObjectMeta
    spec: ChangePodSpec
    status: ChangePodStatus = ChangePodStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: CHANGE_PODS.kind)


class OpsConfigInfoSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    type: Text
    enable: bool = msgspec.field(default_factory=bool)
    content: Text = ""
    remark: Text = ""


class OpsConfigInfoStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    enable: bool | None = None
    """What is in effect: the last accepted value."""
    content: Text = ""
    conditions: Conditions = ()
    observed_generation: Seconds = 0


class OpsConfigInfo(msgspec.Struct, frozen=True, rename="camel"):
    """One setting of the operator."""

    metadata: ObjectMeta
    spec: OpsConfigInfoSpec
    status: OpsConfigInfoStatus = OpsConfigInfoStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: OPS_CONFIG_INFOS.kind)
