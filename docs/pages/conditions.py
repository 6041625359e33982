"""The conditions and their reasons. Their names come from the code, and their meanings from this file."""

import ast
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from altershield.api.budgets import BudgetCondition
from altershield.api.condition_types import ConditionType, Giver
from altershield.api.rollout import Phase
from altershield.workloads.pods import Fault
from docs.pages.markdown import table
from reconciler.batches import release_checks
from reconciler.releases.findings.failure import STEP_DEADLINE
from reconciler.releases.findings.ungated import UngatedReason
from reconciler.releases.pods.words import Cause
from reconciler.releases.terms.snapshot import RollbackReason, StallReason
from reconciler.releases.writes.reports import ReportReason

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("altershield", "reconciler")

STALL_REASONS: dict[str, str] = {
    Fault.UNSCHEDULABLE: "The scheduler finds no node for the pods.",
    Fault.NODE_NOT_READY: "The node of the pods is not ready, or does not exist.",
    Fault.VOLUME: "A volume of the pods cannot be attached or mounted. A ConfigMap or Secret that does not exist "
    "is not such a volume: the release is the cause.",
    Fault.SANDBOX: "The node cannot set up the pods' network or sandbox.",
    StallReason.FAILED_CREATE: "The API server refuses the pods: a quota, a webhook, a missing service account. At "
    "first, only Deployments report this; for other kinds the reason is `PodsMissing`.",
    StallReason.PODS_MISSING: "Pods of this version are missing, no pod was created or came up during the start "
    "timeout, and the workload's status does not say why. The message names the pod that ended last, and "
    "a PodUnavailableBudget that admits no deletion of the workload's pods, if there is one.",
    StallReason.POD_TERMINATING: "Pods of this version are missing, because a StatefulSet or DaemonSet creates a pod "
    "only after the one in its place has ended, and that one stays terminating: a finalizer keeps it, or its node is "
    "away. The message names it.",
    StallReason.PODS_OVERDUE: "Pods are overdue or restart again and again, but fewer than the share in the "
    "setting `rollback`.",
    StallReason.CHECK_HELD: "A check has no result, and the DefensePolicy says `onUnknown: hold`: "
    "`altershield approve`, or a verdict on the pods, decides.",
    StallReason.PAUSED: "The rollout is paused, and pods of this version are still missing.",
    StallReason.NOT_ROLLED_OUT: "The workload's controller has not created a ReplicaSet or ControllerRevision of this "
    "version within the start timeout. A paused Deployment creates none.",
}

CONDITIONS: dict[ConditionType | BudgetCondition, tuple[str, dict[str, str]]] = {
    ConditionType.VERIFIED: (
        "ChangeWorkload, ChangePod. `True`: every pod passed. `False`: a pod failed. `Unknown`: not decided yet.",
        {
            "InProgress": "`Unknown`. Pods are coming up or being verified.",
            "PodsPassed": "`True`. Every pod passed.",
            "OrderRefused": "`Unknown`. The AlterShield server refused the release, so nothing is verified.",
            "NotChecked": "`True`, ChangePod only. Some of the pods have no verdict. They count as passed.",
            Giver.PERSON: "`False`. A person wrote the verdict.",
            Giver.SERVER: "`False`. The AlterShield server gave the verdict.",
            STEP_DEADLINE: "`False`. A step of a release in steps was not verified within `stepDeadlineSeconds`.",
            Giver.CHECK: "`False`. A check of the DefensePolicy failed, or has no result and the policy says `fail`.",
            "Held": "`Unknown`, ChangePod only. A check has no result, and the policy says `hold`: a person decides.",
            release_checks.TRIED_AGAIN: "`Unknown`, ChangePod only. A check before a step did not pass, and is tried "
            "again. The message has what it said.",
            release_checks.PASSED: "`True`, ChangePod only. The checks before a step or after the release passed.",
            release_checks.APPROVED: "`True`, ChangePod only. A person let the release go on without these checks.",
            release_checks.NOT_NEEDED: "`Unknown`, ChangePod only. The release did not wait for these checks any more.",
            Giver.HEALTH: "`False`. Pods were overdue or restarted too often, and the release was not rolled back. The "
            "condition `RolledBack` "
            "says why not.",
        },
    ),
    ConditionType.SETTLED: (
        "ChangeWorkload, in the state `Success`. `True`: pods that break no longer change the state. `False`: pods "
        "that break or restart still end the release. The release settles `settleSeconds` after its success, or after "
        "its pods are up again, but not before one pod has been up for that whole time.",
        {
            "Observing": "`False`. AlterShield still watches the pods.",
            "PodsDown": "`False`. Pods that were up are not up any more.",
            "PodsRestarted": "`False`. All pods are up, but containers restarted since the success.",
            "StayedUp": "`True`. The pods stayed up.",
        },
    ),
    ConditionType.STALLED: (
        "ChangeWorkload. `True`: the release makes no progress, and the cause is not the release itself. Such a "
        "release is neither rolled back nor suspended. `lastTransitionTime` says since when.",
        {**STALL_REASONS, "GoesOn": "`False`. The release was stalled and continues."},
    ),
    ConditionType.PODS_NOT_UP: (
        "ChangeWorkload under way. `True`: pods are not up, and their status, their node or their Events say why. The "
        "message has the number of these pods and the words about the first one. Other reasons than these are those of "
        "the kubelet and of Events, for example `CreateContainerConfigError`, `FailedMount`, `Unhealthy`.",
        {
            Cause.IMAGE: "The image of a container cannot be pulled.",
            Cause.CONTAINER: "A container ends or cannot be started. The message has its exit code.",
            Fault.NODE_NOT_READY: "The node of the pod is not ready, or does not exist.",
        },
    ),
    ConditionType.NO_REPLICAS: (
        "ChangeWorkload. `True`: the version has no pod, and none is wanted, so nothing can be verified. The release "
        "stays `Running`; a suspension stays. The condition is removed once pods of the version are wanted.",
        {"NoPods": "The workload has 0 replicas, or its strategy lets no pod have this version."},
    ),
    ConditionType.RESTORED_FIELDS: (
        "ChangeWorkload. `True`: the template still has fields that an earlier version had removed, and that the "
        "rollback of this version brought back. The message names them; see "
        "[GitOps](../gitops.md#after-a-rollback).",
        {"StillPresent": "The client that released the template did not remove the fields."},
    ),
    ConditionType.PROGRESSING: (
        "ChangeWorkload of a release in steps. `True`: its steps proceed. `False`: the release waits, failed, or is "
        "made without steps.",
        {
            Phase.HELD: "No further pod gets the version, until what the message names is over.",
            Phase.ROLLING: "Pods are replaced, as many as the step has.",
            Phase.VERIFYING: "The step has its pods. Not all of them are verified.",
            Phase.SOAKING: "All pods of the step are verified, and have to stay so. The message says until when.",
            Phase.WAITING_FOR_APPROVAL: "A person has to promote the release.",
            Phase.FINISHING: "The user's own values of the held fields return.",
            Phase.DONE: "`True`. The last step has passed.",
            Phase.STOPPED: "`False`. The release failed, and takes no further step.",
            "WriteRefused": "`False`. No gatekeeper answers, or the API server refuses to change the workload or to "
            "evict a pod. The message has the cause. AlterShield tries again.",
            "StepsNotPossible": "`False`. The policy has steps, but the release is made without. The message says why.",
        },
    ),
    ConditionType.STEPS_OBSERVED: (
        "ChangeWorkload that has ended, of a policy with `rollout` and the mode `observe` or `warn`. `True`: with "
        "`enforce`, the release would have passed its steps. `False`: it would not. See "
        "[Release in steps](../release-in-steps.md#observe-first).",
        {
            "WouldPass": "`True`. All pods passed. The message has the pods of the steps.",
            "WouldStop": "`False`. The release would have stopped at a step. The message says at which one, with how "
            "many pods, and how many pods had the version when it failed.",
            "WouldFailLast": "`False`. The failure came after the soaks of all steps, or in a pod that only the last "
            "step has.",
            "StepsNotPossible": "`False`. The release would have been made without steps. The message says why.",
        },
    ),
    ConditionType.ROLLED_BACK: (
        "ChangeWorkload. `True`: an older version was released again. `False`: a rollback is under way, or is not "
        "possible.",
        {
            RollbackReason.POD_NOT_UP: "Pods were overdue or restarted too often. `False` while the rollback is under "
            "way, then `True`.",
            RollbackReason.VERIFICATION_FAILED: "Pods failed verification, and the DefensePolicy has `onFailure: "
            "rollback`. `False` while the rollback is under way, then `True`.",
            RollbackReason.REQUESTED: "A person wrote `status.status: Rollback`. `False` while the rollback is under "
            "way, then `True`.",
            RollbackReason.NOT_UNDONE: "`False`. Pods were overdue or failed verification, but the release was not "
            "rolled back; it was suspended. The message says why.",
            RollbackReason.WRITE_REFUSED: "`False`. The API server refuses to change the workload: a policy, a quota, "
            "or AlterShield's own webhook. AlterShield tries again after 5 s, then less often, at least every 5 "
            "minutes.",
            RollbackReason.NO_TARGET: "`False`. A person asked for a rollback, but its target is not known. The "
            "message lists the values that `rollbackTo` accepts.",
            RollbackReason.WITHDRAWN: "`False`. The rollback was not carried out: the pods are up, the pods of the "
            "target are no longer ready, or the setting `rollback` was switched off.",
            RollbackReason.RELEASED_AGAIN: "`False`. The version was rolled back before and then released again on "
            "purpose. AlterShield does not roll it back a second time.",
            RollbackReason.SUPERSEDED: "`False`. Another version was released before the rollback was carried out.",
        },
    ),
    ConditionType.UNGATED: (
        "ChangeWorkload. `True`: no gatekeeper reviewed the release. It is verified like any other.",
        {
            UngatedReason.NO_VERSION: "The pod template has no version.",
            UngatedReason.VERSION_REUSED: "The pod template has the version of an earlier release.",
        },
    ),
    ConditionType.REPORTED: (
        "ChangeWorkload, with an AlterShield server. `True`: the server has the order of the release. `False`: it "
        "refused the order. `Unknown`: it could not be reached.",
        {
            ReportReason.CREATED: "`True`. The order exists on the server.",
            ReportReason.REFUSED: "`False`. The server refused the order. The release is `Failed`, and none of its "
            "pods is verified. The message gives the server's reason.",
            ReportReason.DENIED: "`Unknown`. The server does not accept the token or the platform. The release goes "
            "on, and is reported again every 10 s.",
            ReportReason.UNREACHABLE: "`Unknown`. The server gave no answer. The release goes on, and is reported "
            "again every 10 s.",
            ReportReason.CLOSED: "`True`. The release has ended, and its order is closed.",
        },
    ),
    ConditionType.CHECKED: (
        "ChangeWorkload in the state `Success`, with checks. `True`: every pod had a verdict when the "
        "release succeeded. `False`: some pods counted as passed without one.",
        {
            "AllChecked": "`True`. Every pod had a verdict.",
            "NotChecked": "`False`. A check gave no verdict on some pods: the server was down or refused the batch, "
            "or the check did not end in time. The field `message` of the ChangePods says which.",
        },
    ),
    ConditionType.USABLE: (
        "ReleaseOverride. `True` while a further version may pass closed gates.",
        {
            "Usable": "`True`. A use is left, and its time is not over.",
            "Used": "`False`. As many versions as `uses` says have passed.",
            "Expired": "`False`. `ttlSeconds` after its creation are over.",
        },
    ),
    ConditionType.ACCEPTED: (
        "OpsConfigInfo, DefensePolicy, PodDeletionFlowControl, ReleaseWindow, FieldGuard. `True`: the object is in "
        "effect. `False`: it is wrong and changes nothing; of a DefensePolicy, a ReleaseWindow or a FieldGuard, the "
        "spec in `status.accepted` stays in force.",
        {
            "Valid": "`True`. The setting, the policy, the window or the guard is in effect.",
            "UselessRule": "`True`, PodDeletionFlowControl. A rule has no effect: another rule allows no more "
            "deletions in a longer interval.",
            "InvalidRule": "`False`, PodDeletionFlowControl. No interval of its rules can be read, so nothing is "
            "counted.",
            "UnknownName": "`False`. No setting has this name.",
            "UnknownType": "`False`. `spec.type` is not the type of this setting.",
            "InvalidContent": "`False`. `spec.content` is neither a number of pods nor a share.",
            "InvalidSelector": "`False`. A key in `spec.selector.matchLabels` is not the key of a label.",
            "InvalidCheck": "`False`. A check contradicts itself.",
            "UnknownPlaceholder": "`False`. A text of a check has a placeholder `{{name}}` that does not exist.",
            "UnknownReceiver": "`True`. The policy is in effect, but receivers in `spec.notify` do not exist, or may "
            "not be told of this namespace. The message names them.",
            "NamespaceSelectorIgnored": "`True`, ReleaseFreeze, ReleaseLimit. It judges the releases of its own "
            "namespace only: `spec.namespaceSelector` has an effect in AlterShield's namespace.",
            "ScheduleInvalid": "`False`, ReleaseWindow. A schedule or the time zone cannot be read. The message names "
            "the schedule.",
            "CalendarInvalid": "`False`, ReleaseWindow. A calendar exceeds a bound, or has an event that cannot be "
            "worked out. The message names the schedule and the event.",
            "CalendarNotFound": "`False`, ReleaseWindow. There is no ConfigMap with the label of calendars and this "
            "key, or the window is not in AlterShield's namespace.",
            "TooManyIntervals": "`False`, ReleaseWindow. The schedules have more than 200 separate times in a week.",
            "PathInvalid": "`False`, FieldGuard. A path of a rule cannot be read. The message says what to write.",
            "NamespaceSelectorNotAllowed": "`False`, ReleaseWindow and FieldGuard. Only those in AlterShield's "
            "namespace have `spec.namespaceSelector`.",
            "UrlNotAllowed": "`False`. Checks may not request this URL.",
            "WrongNamespace": "`False`. The object is not in AlterShield's system namespace.",
        },
    ),
    ConditionType.NEAR_LIMIT: (
        "PodDeletionFlowControl. `True`: the deletions of pods have reached `warnPercent` of a limit.",
        {
            "LimitReached": "`True`. A limit is reached.",
            "WarnPercentReached": "`True`. The deletions are above `warnPercent` of a limit.",
            "BelowLimits": "`False`. No limit is near.",
        },
    ),
    ConditionType.BREAKER_OPEN: (
        "PodDeletionFlowControl. `True`: every deletion that the object counts is refused.",
        {
            "LimitExceeded": "`True`. A deletion was beyond a limit. The message says which one, and how the "
            "breaker closes.",
            "OpenedByPerson": "`True`. A person opened the breaker.",
            "HalfOpen": "`Unknown`. After the cooldown, a few deletions pass.",
            "Closed": "`False`. Deletions within the limits pass.",
        },
    ),
    ConditionType.SHADOWED: (
        "DefensePolicy. `True`: another policy of its namespace has precedence for every workload that this policy "
        "selects. The other policy has no requirement that this one lacks. Its priority is higher, or its priority is "
        "the same and its name comes first.",
        {
            "OtherHasPrecedence": "`True`. The message names the other policy.",
            "Selectable": "`False`. There is no such policy.",
            "NotInForce": "`False`. No spec of this policy is in force.",
        },
    ),
    BudgetCondition.ALLOWED: (
        "PodUnavailableBudget. `True`: a pod may be disrupted now.",
        {
            "SufficientPods": "`True`. More pods are available than have to be.",
            "InsufficientPods": "`False`. No more pods are available than have to be.",
            "NoDisruptionEver": "`False`. All pods have to be available, for example with `maxUnavailable: 0`.",
        },
    ),
    BudgetCondition.OVERLAPPING: (
        "PodUnavailableBudget. `True`: another budget covers pods of this one. Both have to admit a disruption.",
        {
            "CoversTheSamePods": "`True`. The message names the other budgets.",
            "NoOtherBudget": "`False`. No other budget covers these pods.",
        },
    ),
}
"""The meaning of each type, and of its reasons."""

_TYPES: dict[str, type[ConditionType] | type[BudgetCondition]] = {
    "ConditionType": ConditionType,
    "BudgetCondition": BudgetCondition,
}
"""The enumerations of types of conditions, by their names in the code."""

_ENUMS: dict[ConditionType | BudgetCondition, tuple[type[StrEnum], ...]] = {
    ConditionType.VERIFIED: (Giver,),
    ConditionType.STALLED: (Fault, StallReason),
    ConditionType.PODS_NOT_UP: (Cause,),
    ConditionType.ROLLED_BACK: (RollbackReason,),
    ConditionType.UNGATED: (UngatedReason,),
    ConditionType.REPORTED: (ReportReason,),
}


def section() -> str:
    """The section of the page. LookupError if the code has other types or reasons."""
    _compare()
    parts = [
        "## Conditions",
        "An entry of `status.conditions[]` has a `type`, a `status` (`True`, `False` or `Unknown`), a `reason` in one "
        "word, a `message` for people, `lastTransitionTime` (since when the status is this) and `observedGeneration`.",
        table(("type", "kind and meaning"), [(f"`{type_}`", text) for type_, (text, _) in CONDITIONS.items()]),
    ]
    for type_, (_, reasons) in CONDITIONS.items():
        rows = [(f"`{reason}`", text) for reason, text in reasons.items()]
        parts.append(f"### {type_}\n\n" + table(("reason", "meaning"), rows))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _compare() -> None:
    unlike: set[str] = {*({*ConditionType, *BudgetCondition} ^ CONDITIONS.keys())}
    written, constants = _in_code()
    for type_, (_, reasons) in CONDITIONS.items():
        known = {str(reason) for enum in _ENUMS.get(type_, ()) for reason in enum} | written.get(type_, set())
        unlike |= (known - reasons.keys()) | (reasons.keys() - known - constants)
    if unlike:
        raise LookupError(
            f"docs/pages/conditions.py and the code do not know the same conditions: {', '.join(sorted(unlike))}"
        )


def _in_code() -> tuple[dict[ConditionType | BudgetCondition, set[str]], set[str]]:
    """The reasons that are literals in the code, and all strings of the code."""
    written: dict[ConditionType | BudgetCondition, set[str]] = {}
    constants: set[str] = set()
    for package in _PACKAGES:
        for path in sorted((_ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    constants.add(node.value)
                for type_, reason in _given(node):
                    written.setdefault(type_, set()).add(reason)
    return written, constants


def _given(node: ast.AST) -> Iterator[tuple[ConditionType | BudgetCondition, str]]:
    """The type and the reason of a condition that this node creates, if both are in its arguments."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="condition") | ast.Name(id="Condition"),
            args=[ast.Attribute(value=ast.Name(id=type_), attr=name), _, ast.Constant(value=str(reason)), *_],
        ) if type_ in _TYPES:
            yield _TYPES[type_][name], reason
        case ast.Call(func=ast.Name(id="Problem"), args=[ast.Constant(value=str(reason)), *_]):
            yield ConditionType.ACCEPTED, reason
