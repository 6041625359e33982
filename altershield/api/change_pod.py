"""The kind ChangePod: one verified batch of pods of a version. The CRD is generated from these types.

The field names are those of the product's first release. Most follow from the Python names by camel case.
"""

import enum
from typing import Annotated

import msgspec

from altershield.api.check_results import CheckResult
from altershield.api.fields import Conditions, Generation, Name, Seconds, Text
from altershield.api.kinds import Column, Kind
from altershield.api.pod_verdicts import MAX_PODS, PodInfo, Pods
from altershield.api.resources import API_VERSION, CHANGE_PODS
from altershield.api.schema import doc, rules
from kube_base.meta import ObjectMeta


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


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


class ChangePodSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The batch."""

    change_workload_id: Annotated[Name, doc("The name of the ChangeWorkload that this batch belongs to.")]
    create_time: Annotated[Text, doc("When the batch was taken, UTC.")]
    create_time_unix: Annotated[Seconds, doc("The same in Unix seconds.")]
    pod_infos: Annotated[
        tuple[PodInfo, ...],
        msgspec.Meta(max_length=MAX_PODS, description="The pods of the batch; none if `phase` is set."),
    ]
    failed_by: Annotated[
        Name,
        doc("The giver of the verdicts in `podInfos`, as a reason of the condition Verified; empty: AlterShield."),
    ] = ""
    phase: Annotated[
        Name,
        doc(
            "`PreRelease`, `PreBatch` or `PostRelease`: the ChangePod has the checks of this phase of the release, and "
            "no pods. Empty: it is a batch of pods."
        ),
    ] = ""
    step: Annotated[Seconds, doc("With `PreRelease` and `PreBatch`: the number of the step that waits for it.")] = 0
    workload_generation: Annotated[
        Generation, doc("With `phase`: `spec.workloadGeneration` of the release, which tells releases of a version.")
    ] = 0
    not_decided_by: Annotated[
        Text, doc("With separation of duties: the user who may not give its pods the verdict `pass`; empty: nobody.")
    ] = ""


_POD_STATUS_NAMES = {"post_timeout_threshold": "postTimeOutThreshold"}


class ChangePodStatus(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename=lambda name: _POD_STATUS_NAMES.get(name) or _camel(name),
):
    """The result of the verification. People may write `podResults`, too."""

    status: Annotated[Text, doc("The state of the verification; `ExecuteDone` is the last one.")] = ""
    message: Annotated[
        Text, doc("The last state before `ExecuteDone`: how the verification ended. `Init` until then.")
    ] = ""
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
    spec: Annotated[
        ChangePodSpec,
        rules(
            ("has(self.phase) || self.podInfos.size() > 0", "a batch has pods: podInfos may be empty with phase only")
        ),
    ]
    status: ChangePodStatus = ChangePodStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: CHANGE_PODS.kind)


KIND = Kind(
    resource=CHANGE_PODS,
    type=ChangePod,
    short_name="cp",
    title="Change of pods",
    summary="One verified batch of pods of a version",
    columns=(
        Column("STATUS", "string", ".status.status"),
        Column("MESSAGE", "string", ".status.message"),
        Column("CREATETIME", "string", ".spec.createTime"),
        Column("PODS", "string", ".spec.podInfos[*].pod", wide=True),
        Column("VERIFIED", "string", '.status.conditions[?(@.type=="Verified")].status', wide=True),
        Column("REASON", "string", '.status.conditions[?(@.type=="Verified")].reason', wide=True),
        Column("UPDATETIME", "string", ".status.updateTime", wide=True),
    ),
    status={"status": PodState.INIT.value, "message": PodState.INIT.value},
    states=tuple(PodState),
)
