"""What is read of a workload in each state of its release."""

from typing import Any

import msgspec

from altershield.api import labels
from altershield.api.change_pod import ChangePod, ChangePodSpec, ChangePodStatus
from altershield.api.change_workload import (
    ChangeWorkload,
    ChangeWorkloadStatus,
    DownPod,
    PauseEnd,
    RestartingPod,
    Settling,
    SourceRef,
    WorkloadState,
)
from altershield.api.check_results import CheckResult
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.pod_verdicts import PodInfo
from altershield.api.policy import AppliedPolicy, Mode
from altershield.api.rollout import Phase, WaitingFor
from altershield.api.workload_requests import Action, Request
from altershield.gates import freezes, windows
from altershield.views.releases.model import Release
from altershield.views.why.explanation import Facts
from altershield.workloads.workload import Held, Workload
from kube_base.meta import ObjectMeta
from kube_base.times import rfc3339
from tests.unit.altershield.gates.placed import freeze, window
from tests.unit.altershield.gates.placed import release as judged
from tests.unit.altershield.releases.steps import NOW, ROLLOUT, SOAKING
from tests.unit.altershield.views.builders import ROLLED_BACK, V1, V2, in_steps, release, scaled, stored, workload
from tests.unit.altershield.workloads.objects import pod

PREVIOUS = SourceRef(name="web-1", uid="1")
SUSPENDED = {labels.SUSPEND: str(NOW - 300)}
FAILED_PODS = (PodInfo(pod="web-1", verdict="unpass", message="find error"),)
PERSON = Condition(ConditionType.VERIFIED, "False", "FailedByPerson", "1 of 3 pods failed")
STALLED = Condition(ConditionType.STALLED, "True", "FailedCreate", "3 pods cannot be created: quota")
CHECK_HELD = Condition(ConditionType.STALLED, "True", "CheckHeld", "the check errors has no result")
REFUSED = Condition(ConditionType.REPORTED, "False", "OrderRefused", "no")
WRITE_REFUSED = Condition(ConditionType.ROLLED_BACK, "False", "WriteRefused", "a policy")
UNSETTLED = Condition(ConditionType.SETTLED, "False", "PodsRestarted", "the pods say so")
ACTION = Action("Resume", "alice", "night shift", rfc3339(NOW - 60), "Done", "further releases are admitted")
FROZEN = next(freezes.closed([freeze(name="incident-7", reason="incident 7", namespace="shop")], judged(), 9))
WEEKEND = next(windows.closed([window("Deny", (0, 48), name="weekend")], judged(), 9))


def _facts(
    of: ChangeWorkload | ChangeWorkloadStatus | None, own: Workload | None = None, *earlier: Release, **more: Any
) -> Facts:
    made = release(of, created=NOW - 900) if isinstance(of, ChangeWorkloadStatus) else of
    present = Release(own or workload(), stored(made) if made is not None else None)
    return Facts([*earlier, present], more.get("batches", ()), more.get("blocking", ()), more.get("closed", ()), NOW)


def _status(state: WorkloadState, *conditions: Condition, **more: Any) -> ChangeWorkloadStatus:
    return ChangeWorkloadStatus(
        status=state, entry_time_unix=NOW - 600, conditions=conditions, previous=PREVIOUS, **more
    )


def _steps(**changes: Any) -> Facts:
    made = in_steps(ROLLOUT, msgspec.structs.replace(SOAKING, **changes))
    status = msgspec.structs.replace(made.status, previous=PREVIOUS)
    spec = msgspec.structs.replace(made.spec, released_by="ann")
    rollout = msgspec.structs.replace(ROLLOUT, other_approver=True)
    spec = msgspec.structs.replace(spec, policy=msgspec.structs.replace(spec.policy, rollout=rollout))
    return _facts(msgspec.structs.replace(made, status=status, spec=spec), scaled(10))


def _observed() -> Facts:
    made = release(_status(WorkloadState.RUNNING), created=NOW - 900)
    policy = AppliedPolicy(namespace="shop", name="web", mode=Mode.OBSERVE, rollout=ROLLOUT)
    return _facts(msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, policy=policy)), scaled(10))


def _batch(state: str) -> ChangePod:
    check = CheckResult("errors", "Post", state, "7 % of requests failed", handle="h")
    spec = ChangePodSpec("w", "", NOW - 20, (PodInfo(pod="p"),))
    return ChangePod(ObjectMeta(name=f"web--x--{V1}--x--1"), spec, ChangePodStatus(checks=(check,)))


_FAILED = _status(
    WorkloadState.SUSPEND, PERSON, defense_check_fail_pods=FAILED_PODS, request=Request("Approve", "bob"),
    actions=(ACTION,), down_pods=(DownPod("web-2", "u", 1, "CrashLoopBackOff"),), pause=PauseEnd("", NOW + 2100),
)  # fmt: skip
_PAUSED = msgspec.structs.replace(workload(**SUSPENDED), hold=Held("", True))
_DENIED = Release(workload(), stored(release(ROLLED_BACK, version=V2)))

STATES = {
    "not processed": _facts(None),
    "running": _facts(_status(WorkloadState.RUNNING), None, batches=(_batch("Running"),)),
    "repair under way": _facts(_status(WorkloadState.RUNNING), workload(**SUSPENDED)),
    "paused by a person": _facts(_status(WorkloadState.RUNNING), msgspec.structs.replace(workload(), paused=True)),
    "stalled": _facts(_status(WorkloadState.RUNNING, STALLED)),
    "waits for a verdict": _facts(_status(WorkloadState.RUNNING, CHECK_HELD)),
    "waits for an old pod": _facts(_status(WorkloadState.RUNNING), None, blocking=(pod(name="web-2"),)),
    "success": _facts(_status(WorkloadState.SUCCESS)),
    "restarts": _facts(
        _status(WorkloadState.SUCCESS, UNSETTLED, settling=Settling(1, restarting=(RestartingPod("web-1", "1", 2),)))
    ),
    "after a rollback": _facts(_status(WorkloadState.SUCCESS), None, _DENIED),
    "suspended": _facts(_FAILED, _PAUSED, batches=(_batch("Failed"),)),
    "failed without a suspension": _facts(_FAILED),
    "rolling back": _facts(_status(WorkloadState.ROLLBACK)),
    "rollback refused": _facts(_status(WorkloadState.ROLLBACK, WRITE_REFUSED), workload(**SUSPENDED)),
    "report refused": _facts(_status(WorkloadState.FAILED, REFUSED)),
    "gates closed": _facts(None, None, closed=(FROZEN, WEEKEND)),
    "own gate closed": _facts(None, None, closed=(FROZEN,)),
    "steps observed": _observed(),
    "soaks": _steps(),
    "waits for approval": _steps(phase=Phase.WAITING_FOR_APPROVAL),
    "held by a person": _steps(step=2, held_by="bob", waiting_for=(WaitingFor.PERSON,)),
    "waits for a check": _steps(phase=Phase.HELD, waiting_for=(WaitingFor.CHECK,)),
    "waits for a limit": _steps(
        phase=Phase.HELD, waiting_for=(WaitingFor.LIMIT,), gates=(f"ReleaseLimit {SYSTEM_NAMESPACE}/l",)
    ),
    "waits for others": _steps(
        waiting_for=(WaitingFor.PAUSED, WaitingFor.QUOTA, WaitingFor.TERMINATION, WaitingFor.EVICTION)
    ),
    "last step": _steps(phase=Phase.FINISHING, step=4),
}
"""By the name of the state."""
