"""The Events, read from the calls in the code that raise them."""

import ast
from collections.abc import Iterator
from pathlib import Path

from docs.pages.markdown import GENERATED, table

_NORMAL = (("warning", False), ("normal", True))

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("altershield", "gatekeeper", "reconciler", "certgen")

MEANINGS = {
    "ReleaseSuspended": "A pod failed. The message says which pod and why, and whether further releases are denied.",
    "ReleaseResumed": "The workload was suspended, and its present version succeeded. Further releases pass.",
    "ReleaseStalled": "The release makes no progress, and the cause is not the release itself. The message begins with "
    "the reason of the condition [`Stalled`](kinds.md#stalled).",
    "ReleaseRefused": "The AlterShield server refused the order of the release. The release is `Failed`, and none of "
    "its pods is verified. The message gives the server's reason.",
    "RolloutPaused": "A pod failed verification, and the DefensePolicy has `onFailure: pause`. The message says when "
    "the rollout continues.",
    "RolloutPauseEnded": "The rollout was paused for `pauseSeconds` of the DefensePolicy. The message says whether the "
    "version is rolled back, or why not, or that the rollout continues.",
    "RolloutContinued": "AlterShield had paused the rollout, and the release is not suspended any more.",
    "RollbackStarted": "Pods were overdue or failed verification, or a person asked for a rollback. The message says "
    "why, and which version is released again.",
    "RolledBack": "The older version was released again. The failed version is denied until a newer one is a "
    "`Success`.",
    "ManagersNotRestored": "A rollback released an older version again, but the API server refused to give its pod "
    "template back to the field managers that owned it. The next server-side apply may report conflicts with "
    "`altershield`. The message contains the API server's answer.",
    "RestoredFieldsLeft": "A release after a rollback still has fields that the failed version had removed. The "
    "message names them; see [GitOps](../gitops.md#after-a-rollback).",
    "RollbackWithdrawn": "A rollback was not carried out: the pods are up, the pods of the target are no longer ready, "
    "or the setting `rollback` was switched off.",
    "RollbackRefused": "The API server refused to change the workload. AlterShield tries again. The message contains "
    "the API server's answer.",
    "StuckPodDeleted": "A pod of an older version never came up, and the workload's controller waited for it. "
    "AlterShield deleted the pod.",
    "StuckPodNotDeleted": "As `StuckPodDeleted`, but a budget or a policy refuses the deletion. The message says "
    "which. AlterShield tries again.",
    "RollbackImpossible": "A person asked for a rollback, but its target is not known. The message lists the values "
    "that `rollbackTo` accepts.",
    "RequestCarriedOut": "A person's request was carried out. The message says who asked for what, why, and what was "
    "done. `status.actions` of the ChangeWorkload keeps it.",
    "RequestNotCarriedOut": "A person's request changed nothing: it does not apply in the state of the release, or it "
    "is not possible. The message says why.",
    "SuspensionBypassed": "A release passed the suspension of its workload by the label `ignored-suspend`. The message "
    "says which version, and who released it.",
    "StepStarted": "A release in steps begins a step. The message says how many pods get the version.",
    "StepPassed": "The pods of a step were verified, and stayed so for its soak, or a person promoted the release.",
    "StepHeld": "A release in steps waits: for a person, a check, a quota, a PodDisruptionBudget, a gatekeeper, the "
    "end of the user's own pause, or because the API server refuses to change the workload. The message says for what.",
    "StepsFinished": "All steps of a release have passed.",
    "StepsNotPossible": "The DefensePolicy has steps, but the release is made without. The message says why.",
    "StepsObserved": "A release of a policy with steps and the mode `observe` or `warn` has succeeded or failed. The "
    "message says what its steps would have done.",
    "StepsEscaped": "The version of a release in steps is no longer held at its step, for example because the workload "
    "was scaled to 0 and back. Its pods are verified all the same.",
    "UngatedRelease": "No gatekeeper reviewed the release: none answered, the webhooks were missing, or the namespace "
    "was not governed at that time.",
    "AnnotationIgnored": "The value of the annotation `start-timeout-seconds` is not a number of seconds, so it has no "
    "effect.",
    "PolicyRejected": "The object is a DefensePolicy. The policy is wrong. The message says what to correct, and which "
    "spec is in force instead.",
    "UnknownReceiver": "The object is a DefensePolicy. Receivers of notifications in `spec.notify` do not exist, or "
    "may not be told of this namespace. The policy is in force.",
    "UngatedDeletion": "The object is a PodUnavailableBudget or PodDeletionFlowControl. Pods were lost although no "
    "gatekeeper was asked: none answered, or API servers do not ask about such a loss, for example an eviction by a "
    "kubelet or the end of a node.",
    "BudgetInvalid": "The annotations `generate-pub` or `generate-pdb` of the workload or of its Namespace are wrong, "
    "so no budget is generated. The message says what to correct.",
    "BudgetSkipped": "An annotation asks for a budget, but a budget of a user covers the pods already. None is "
    "generated.",
    "RuleWithoutEffect": "The object is a PodDeletionFlowControl. One of its rules has no effect, or none of them can "
    "be read. The message says why.",
    "DeletionLimitNear": "The object is a PodDeletionFlowControl. The deletions of pods have reached `warnPercent` of "
    "a limit.",
    "DeletionLimitReached": "The object is a PodDeletionFlowControl. A limit is reached. Further deletions of pods are "
    "refused until the interval has moved on, or the next one opens the breaker.",
    "DeletionBreakerOpened": "The object is a PodDeletionFlowControl. Every deletion that the object counts is "
    "refused. The message says which rule or person opened the breaker, and how it closes.",
    "DeletionBreakerHalfOpen": "The object is a PodDeletionFlowControl. After the cooldown, a few deletions pass.",
    "DeletionBreakerClosed": "The object is a PodDeletionFlowControl. Deletions within the limits pass again.",
    "BreakGlassUsed": "The object is a PodDeletionFlowControl or a PodUnavailableBudget. A user in the group "
    "`altershield:break-glass` passed its limits. The message names the user and the pod. The Event is raised when the "
    "pod is gone or changed, or when the record of the request has run out.",
    "WindowRejected": "The object is a ReleaseWindow. The window or one of its calendars is wrong. The message says "
    "what to correct, and whether an earlier spec stays in force.",
    "WindowAccepted": "The object is a ReleaseWindow that was rejected before. It is in force.",
    "FuseTripped": "The object is a ReleaseLimit. Its fuse tripped. The message names the ReleaseFreeze, and the "
    "workloads whose releases failed.",
    "OverrideUsed": "The object is a ReleaseOverride. A release passed closed gates. The message names the version, "
    "the user who released it, and the gates.",
    "GuardRejected": "The object is a FieldGuard. A path or the selector is wrong. The message says what to correct, "
    "and whether an earlier spec stays in force.",
    "GuardAccepted": "The object is a FieldGuard that was rejected before. It is in force.",
    "SettingRejected": "The object is an OpsConfigInfo. The setting is wrong and changes nothing. The message says "
    "what to correct.",
}
"""The meaning of each reason."""

_HEAD = f"""\
# Events

{GENERATED}

The reconciler writes these Events. `kubectl describe` shows them, and so does this command:

```sh
kubectl get events -A --field-selector source=altershield
```

The object of an Event is the workload, unless the table names another one. A release that succeeds raises no Event.

An Event about a release, a policy, a window, a guard or a setting is stored in `status.announcements` with the change
that it is about, before it is written. So a crash or a change of the leader does not lose it, and it is written once.
AlterShield tries for half an hour to write it. The Events `DeletionLimitNear`, `DeletionLimitReached`,
`StuckPodDeleted` and `StuckPodNotDeleted` are not stored: a crash can lose them, and one that is repeated within ten
minutes increases the count of the existing Event.

"""


def page() -> str:
    types = reasons()
    if unlike := types.keys() ^ MEANINGS.keys():
        raise LookupError(f"docs/pages/events.py and the code do not know the same Events: {', '.join(sorted(unlike))}")
    rows = [(f"`{reason}`", types[reason], meaning) for reason, meaning in MEANINGS.items()]
    return _HEAD + table(("reason", "type", "means"), rows)


def reasons() -> dict[str, str]:
    """Each reason, and the type of its Events."""
    found: dict[str, str] = {}
    for package in _PACKAGES:
        for path in sorted((_ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    found.update(_raised(node))
    return found


def _raised(call: ast.Call) -> Iterator[tuple[str, str]]:
    match call:
        case ast.Call(func=ast.Name(id="Announce" | "announcement"), args=[ast.Constant(value=str(reason)), *_]):
            yield reason, _type(call)
        case ast.Call(
            func=ast.Attribute(attr="event" | "announce"),
            args=[_, ast.Name(id=type_), ast.Constant(value=str(reason)), *_],
        ):
            yield reason, type_.capitalize()
        case ast.Call(func=ast.Attribute(attr="say"), args=[ast.Constant(value=str(reason)), *_]):
            yield reason, "Warning" if call.keywords else "Normal"
        case ast.Call(func=ast.Attribute(attr="announce"), args=[_, ast.Constant(value=str(reason)), *_]):
            yield reason, _type(call)


def _type(call: ast.Call) -> str:
    """The type of the Events of this call."""
    normal = any(
        isinstance(keyword.value, ast.Constant) and (keyword.arg, keyword.value.value) in _NORMAL
        for keyword in call.keywords
    )
    return "Normal" if normal else "Warning"
