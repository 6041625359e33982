"""What `altershield why` prints."""

import msgspec
import pytest

from altershield.api import labels
from altershield.api.change_pod import ChangePod, ChangePodSpec, ChangePodStatus
from altershield.api.change_workload import (
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
from altershield.api.gates.rules import GateMode
from altershield.api.meta import Condition
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.pod_verdicts import PodInfo
from altershield.api.policy import AppliedPolicy, Mode, OnPauseEnd
from altershield.api.rollout import Phase, WaitingFor
from altershield.api.workload_requests import Action, Request
from altershield.gates import freezes, windows
from altershield.views.releases.model import Release
from altershield.workloads.workload import Held
from kube_base.meta import ObjectMeta
from kube_base.times import rfc3339
from tests.unit.altershield.gates.placed import freeze, window
from tests.unit.altershield.gates.placed import release as judged
from tests.unit.altershield.releases.steps import ROLLOUT, SOAKING
from tests.unit.altershield.views.builders import (
    DONE,
    ROLLED_BACK,
    V1,
    V2,
    in_steps,
    release,
    scaled,
    stored,
    workload,
)  # fmt: skip
from tests.unit.altershield.views.why.explained import explain
from tests.unit.altershield.workloads.objects import pod

NOW = 1_700_000_000
UPDATE = judged()
SUSPENDED = {labels.SUSPEND: str(NOW - 300)}


def status(state: WorkloadState, *conditions: Condition, **more: object) -> ChangeWorkloadStatus:
    return ChangeWorkloadStatus(status=state, entry_time_unix=NOW - 600, conditions=conditions, **more)  # type: ignore[arg-type]


def lines(
    of: ChangeWorkloadStatus | None, *others: Release, batches: tuple[ChangePod, ...] = (), **own: str
) -> list[str]:
    web = workload(**own)
    made = None if of is None else stored(release(of, created=NOW - 900))
    return explain([*others, Release(web, made)], batches, NOW)


def commands(shown: list[str]) -> list[str]:
    """The verbs of the commands."""
    return [line.split()[1] for line in shown if line.startswith("  altershield ")]


FAILED = status(
    WorkloadState.SUSPEND,
    Condition(ConditionType.VERIFIED, "False", "FailedByPerson", "1 of 3 pods failed"),
    defense_check_fail_pods=(PodInfo(pod="web-1", verdict="unpass", message="find error"),),
)
STALLED = Condition(ConditionType.STALLED, "True", "FailedCreate", "3 pods cannot be created: quota")
PAUSED = Condition(ConditionType.STALLED, "True", "Paused", "the rollout is paused, and 3 pods are missing")
RUNNING_STALLED = status(WorkloadState.RUNNING, PAUSED)
REFUSED = Condition(ConditionType.REPORTED, "False", "OrderRefused", "no")
PREVIOUS = SourceRef(name="web-1", uid="1")
WRITE_REFUSED = Condition(ConditionType.ROLLED_BACK, "False", "WriteRefused", "a policy")


@pytest.mark.parametrize(
    ("of", "own", "wanted"),
    [
        (DONE, {}, []),
        (DONE, SUSPENDED, ["wait"]),
        (None, {}, ["wait"]),
        (status(WorkloadState.RUNNING), {}, ["wait"]),
        (status(WorkloadState.RUNNING), SUSPENDED, ["wait", "repair", "resume"]),
        (status(WorkloadState.RUNNING, STALLED), {}, ["wait"]),
        (status(WorkloadState.RUNNING, STALLED, previous=PREVIOUS), {}, ["wait", "rollback"]),
        (FAILED, {}, ["approve", "retry"]),
        (msgspec.structs.replace(FAILED, previous=PREVIOUS), {}, ["approve", "retry", "rollback"]),
        (FAILED, SUSPENDED, ["approve", "retry", "repair", "resume"]),
        (status(WorkloadState.ROLLBACK), {}, ["wait"]),
        (status(WorkloadState.ROLLBACK, WRITE_REFUSED), {}, ["repair", "retry", "approve"]),
        (status(WorkloadState.FAILED, REFUSED), {}, ["retry"]),
        (status(WorkloadState.FAILED, REFUSED, rollback_target=PREVIOUS), {}, ["retry", "rollback"]),
    ],
)
def test_advice_fits_the_state(of: ChangeWorkloadStatus | None, own: dict[str, str], wanted: list[str]) -> None:
    shown = lines(of, **own)
    assert commands(shown) == wanted
    assert ("What to do: nothing" in shown) == (not wanted)


def test_rollback_that_the_api_server_refuses_is_followed_by_a_repair_and_a_fix() -> None:
    shown = lines(status(WorkloadState.ROLLBACK, WRITE_REFUSED), **SUSPENDED)
    at = shown.index("What to do:")
    assert shown[at + 1 : at + 5] == [
        "  # the old version is not admitted any more: let one release pass",
        '  altershield repair deployment/web -n shop -m "REASON"',
        "  # then release a fix that is admitted",
        "  kubectl apply -n shop -f FIX.yaml",
    ]


@pytest.mark.parametrize("of", [DONE, FAILED, status(WorkloadState.FAILED), status(WorkloadState.RUNNING), None])
def test_pod_that_blocks_the_rollout_is_named_in_every_state(of: ChangeWorkloadStatus | None) -> None:
    waiting = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "busybo"}}}
    blocking = pod(name="web-2", status={"phase": "Pending", "containerStatuses": [waiting]})
    made = None if of is None else stored(release(of, created=NOW - 900))
    shown = explain([Release(workload(), made)], (), blocking.metadata.created + 900, blocking=[blocking])
    (at,) = [number for number, line in enumerate(shown) if line.startswith("Waits for: ")]
    assert shown[at] == (
        "Waits for: pod web-2 of an older version, which is not ready (container main: ImagePullBackOff: busybo); "
        "it blocks the rollout since 2026-08-21T07:29:49Z (15m ago)"
    )
    at = shown.index("What to do:")
    assert shown[at + 2] == "  kubectl delete pod -n shop web-2"


def test_pod_blocks_the_rollout_since_the_release_of_the_present_version() -> None:
    blocking = pod(name="web-2")
    made = stored(release(DONE, created=blocking.metadata.created + 600))
    shown = explain([Release(workload(), made)], (), blocking.metadata.created + 900, blocking=[blocking])
    assert any(line.endswith("it blocks the rollout since 2026-08-21T07:39:49Z (5m ago)") for line in shown)


def test_suspension_is_shown_with_time_reason_judge_and_pods() -> None:
    shown = lines(FAILED, **SUSPENDED)
    assert shown[:9] == [
        "deployment.apps/web in namespace shop",
        f"State:     Suspend since {rfc3339(NOW - 600)} (10m ago)",
        f"Version:   {V1} (busybox), released {rfc3339(NOW - 900)} (15m ago)",
        f"Releases:  suspended since {rfc3339(NOW - 300)} (5m ago): further releases are denied, except a repair",
        "Reason:    failed: web-1 (find error)",
        "Failed by: a person",
        "Failed pods:",
        "  web-1   find error",
        "What to do:",
    ]
    assert shown[-1] == "  kubectl delete pod -n shop web-1"


def test_release_with_a_repair_label_says_that_the_next_release_passes() -> None:
    shown = lines(FAILED, **SUSPENDED, **{labels.IGNORED_SUSPEND: "true"})
    assert any("the next release passes" in line for line in shown)


def test_failed_checks_come_first_and_are_counted() -> None:
    def batch(number: int, state: str) -> ChangePod:
        check = CheckResult("errors", "Post", state, "7 % of requests failed", handle="h")
        name = f"web--x--{V1}--x--{number}"
        return ChangePod(
            ObjectMeta(name=name), ChangePodSpec("w", "", 0, (PodInfo(pod="p"),)), ChangePodStatus(checks=(check,))
        )

    batches = (batch(1, "Running"), batch(2, "Passed"), *(batch(number, "Failed") for number in range(3, 10)))
    shown = lines(FAILED, batches=batches)
    first = next(index for index, line in enumerate(shown) if line.startswith("Checks:"))
    assert shown[first] == f"Checks:    errors (Post) of web--x--{V1}--x--3: Failed: 7 % of requests failed"
    assert shown[first + 6].strip() == "and 2 more; kubectl get changepods -o yaml shows them"


def test_actions_and_the_pending_request_are_shown() -> None:
    action = Action("Resume", "alice", "night shift", rfc3339(NOW - 60), "Done", "further releases are admitted")
    of = status(WorkloadState.SUSPEND, request=Request("Approve", "bob"), actions=(action,))
    shown = lines(of)
    assert "  pending: Approve by bob; a reconciler has not answered it yet" in shown
    assert "  60s ago: Resume by alice (night shift): Done: further releases are admitted" in shown


def test_pods_that_are_down_and_long_lists_are_cut() -> None:
    down = tuple(DownPod(f"web-{number}", "u", 1, "CrashLoopBackOff") for number in range(12))
    shown = lines(status(WorkloadState.RUNNING, down_pods=down))
    assert shown[shown.index("Pods that are down:") + 1] == "  web-0   CrashLoopBackOff"
    assert "  and 4 more" in shown


def test_earlier_versions_that_are_denied_are_named() -> None:
    old = Release(workload(), stored(release(ROLLED_BACK, version=V2)))
    shown = lines(DONE, old)
    assert any(line.startswith(f"Version {V2} is denied") for line in shown)
    assert commands(shown) == ["repair"]


def test_earlier_version_that_failed_is_named_with_its_time_and_its_failed_pods() -> None:
    pods = (PodInfo(pod="web-1", verdict="unpass", message="find error"),)
    failed = status(WorkloadState.SUSPEND, defense_check_fail_pods=pods)
    shown = lines(DONE, Release(workload(), stored(release(failed, version=V2))))
    (line,) = (line for line in shown if line.startswith(f"Version {V2}"))
    assert line == f"Version {V2} failed at {rfc3339(NOW - 600)} (10m ago): web-1 (find error)"


def test_texts_of_users_reach_neither_the_terminal_nor_a_command() -> None:
    pods = (PodInfo(pod="web; rm -rf /", verdict="unpass", message="\x1b[31mred"),)
    shown = lines(status(WorkloadState.SUSPEND, defense_check_fail_pods=pods))
    assert not any("\x1b" in line for line in shown)
    assert not any(line.startswith("  kubectl delete") for line in shown)


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (Mode.ENFORCE, "shop/web"),
        (Mode.OBSERVE, "the DefensePolicy shop/web only observes, so nothing is suspended, paused or rolled back"),
    ],
)
def test_policy_of_the_release_is_named_with_what_it_leaves_out(mode: Mode, text: str) -> None:
    made = release(FAILED, created=NOW - 900)
    policy = AppliedPolicy(namespace="shop", name="web", mode=mode)
    made = msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, policy=policy))
    shown = explain([Release(workload(), stored(made))], (), NOW)
    assert [line.split(None, 1)[1] for line in shown if line.strip().startswith("Policy")] == [text]


@pytest.mark.parametrize(
    ("pause", "on_pause_end", "text"),
    [
        (
            PauseEnd(),
            OnPauseEnd.ROLLBACK,
            "paused by AlterShield until a person decides, or another version is released",
        ),
        (
            PauseEnd("", NOW + 2100),
            OnPauseEnd.ROLLBACK,
            f"paused by AlterShield until {rfc3339(NOW + 2100)} (in 35m), when the last version that passed is "
            "released again",
        ),
        (
            PauseEnd("", NOW - 1),
            OnPauseEnd.CONTINUE,
            f"paused by AlterShield until {rfc3339(NOW - 1)} (now), when it continues with this version",
        ),
        (
            PauseEnd("", NOW - 1, ended=True),
            OnPauseEnd.ROLLBACK,
            "paused by AlterShield until a person decides, or another version is released",
        ),
    ],
)
def test_pause_of_the_rollout_is_shown_with_its_end_and_what_follows(
    pause: PauseEnd, on_pause_end: OnPauseEnd, text: str
) -> None:
    made = release(msgspec.structs.replace(FAILED, pause=pause), created=NOW - 900)
    policy = AppliedPolicy(namespace="shop", name="web", on_pause_end=on_pause_end)
    made = msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, policy=policy))
    web = msgspec.structs.replace(workload(**SUSPENDED), hold=Held("", True))
    shown = explain([Release(web, stored(made))], (), NOW)
    assert [line.split(None, 1)[1] for line in shown if line.startswith("Rollout:")] == [text]
    (not_paused,) = [Release(workload(**SUSPENDED), stored(made))]
    assert not any(line.startswith("Rollout:") for line in explain([not_paused], (), NOW))


@pytest.mark.parametrize(
    ("reason", "fields", "wanted"),
    [
        ("Observing", {}, ["What to do: nothing"]),
        ("PodsDown", {}, ["What to do: nothing"]),
        (
            "PodsDown",
            {"down_pods": (DownPod("web-2", message="not ready"),), "previous": PREVIOUS},
            [
                "Pods that are down:",
                "  web-2   not ready",
                "What to do:",
                "  # pods are down: see why",
                "  kubectl describe pod -n shop web-2",
                "  # the version is bad: go back to the last version that passed",
                '  altershield rollback deployment/web -n shop -m "REASON"',
            ],
        ),
        (
            "PodsRestarted",
            {"settling": Settling(NOW - 600, restarting=(RestartingPod("web-1", "1", 2, "container app restarted"),))},
            [
                "Pods that restarted:",
                "  web-1   container app restarted",
                "What to do:",
                "  # containers restart: see what they said last",
                "  kubectl logs -n shop web-1 --previous --all-containers",
            ],
        ),
    ],
)
def test_success_that_has_not_settled_says_so_and_what_to_do(
    reason: str, fields: dict[str, object], wanted: list[str]
) -> None:
    verified = Condition(ConditionType.VERIFIED, "True", "PodsPassed", "3 of 3 pods passed")
    settled = Condition(ConditionType.SETTLED, "False", reason, "the pods say so")
    shown = lines(status(WorkloadState.SUCCESS, verified, settled, **fields))
    assert shown[3:] == [
        "Reason:    3 of 3 pods passed" + ("" if reason == "Observing" else "; not settled: the pods say so"),
        "Settled:   no: the pods say so",
        *wanted,
    ]


def test_commands_to_paste_begin_as_the_user_called_the_command() -> None:
    """A user who installed the plugin by krew has no `altershield` in the PATH."""
    shown = explain([Release(workload(**SUSPENDED), stored(release(FAILED)))], (), NOW, "kubectl altershield")
    offered = [line.strip() for line in shown if "altershield approve" in line or "altershield repair" in line]
    assert [line.partition(" deployment/")[0] for line in offered] == [
        "kubectl altershield approve",
        "kubectl altershield repair",
    ]


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, ["promote", "hold", "wait"]),
        ({"phase": Phase.VERIFYING}, ["hold", "wait"]),
        ({"phase": Phase.WAITING_FOR_APPROVAL}, ["promote", "promote", "wait"]),
        ({"waiting_for": (WaitingFor.PERSON,)}, ["promote", "promote", "wait"]),
        ({"passed": 2}, ["hold", "wait"]),
        ({"phase": Phase.WAITING_FOR_APPROVAL, "passed": 2}, ["wait"]),
        ({"phase": Phase.FINISHING}, ["wait"]),
        ({"phase": Phase.DONE}, ["wait"]),
    ],
)
def test_release_in_steps_has_its_steps_and_the_commands_that_promote_and_hold(
    changes: dict[str, object], wanted: list[str]
) -> None:
    of = in_steps(ROLLOUT, msgspec.structs.replace(SOAKING, **changes))
    found = explain([Release(scaled(10), stored(of))], [], NOW)
    assert commands(found) == wanted
    assert f"Steps of deployment.apps/web, version {V1[:12]}:" in found


@pytest.mark.parametrize(
    ("what", "command"),
    [
        (WaitingFor.QUOTA, "kubectl describe resourcequota -n shop"),
        (WaitingFor.EVICTION, "kubectl get poddisruptionbudget -n shop"),
    ],
)
def test_release_in_steps_that_waits_has_the_command_that_ends_the_wait_or_shows_why(
    what: WaitingFor, command: str
) -> None:
    of = in_steps(ROLLOUT, msgspec.structs.replace(SOAKING, waiting_for=(what,)))
    assert f"  {command}" in explain([Release(scaled(10), stored(of))], [], NOW)


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("Deployment", "kubectl rollout resume -n shop deployment/web"),
        (
            "CloneSet",
            "kubectl patch cloneset -n shop web --type=json "
            '-p \'[{"op": "add", "path": "/spec/updateStrategy/paused", "value": false}]\'',
        ),
    ],
)
def test_rollout_that_somebody_paused_has_the_command_that_resumes_it(kind: str, command: str) -> None:
    own = msgspec.structs.replace(workload(kind), paused=True)
    for status in (ChangeWorkloadStatus(status=WorkloadState.RUNNING), RUNNING_STALLED):
        assert f"  {command}" in explain([Release(own, stored(release(status, kind)))], [], NOW)
    found = explain([Release(workload(kind), stored(release(RUNNING_STALLED, kind)))], [], NOW)
    assert f"  {command}" not in found, "AlterShield's own pause is not the user's"


def test_release_that_a_limit_keeps_back_may_pass_it_by_an_override() -> None:
    waits = {"phase": Phase.HELD, "waiting_for": (WaitingFor.LIMIT,), "gates": (f"ReleaseLimit {SYSTEM_NAMESPACE}/l",)}
    of = in_steps(ROLLOUT, msgspec.structs.replace(SOAKING, **waits))
    found = explain([Release(scaled(10), stored(of))], [], NOW)
    assert '  altershield override deployment/web -n shop -A --gates Limit -m "REASON"' in found


def test_closed_gates_are_named_with_their_reason_and_what_to_do() -> None:
    frozen = next(freezes.closed([freeze(name="incident-7", reason="incident 7", namespace="shop")], UPDATE, 9))
    weekend = next(windows.closed([window("Deny", (0, 48), name="weekend")], UPDATE, 9))
    shown = explain([Release(workload(), None)], (), NOW, closed=(frozen, weekend))
    assert "Gates:     ReleaseFreeze shop/incident-7: no release may begin: incident 7; since 1970-01-01" in "\n".join(
        shown
    )
    named = f"ReleaseWindow {SYSTEM_NAMESPACE}/weekend: no release may begin in these times"
    assert any(line.startswith(f"           {named}") for line in shown)
    assert "  altershield wait deployment/web -n shop --for=open" in shown
    assert '  altershield override deployment/web -n shop -A --gates Freeze,Window -m "REASON"' in shown


def test_gates_that_only_warn_need_no_action() -> None:
    warns = next(freezes.closed([freeze(namespace="shop", mode=GateMode.WARN)], UPDATE, 9))
    shown = explain([Release(workload(), None)], (), NOW, closed=(warns,))
    assert any(line.startswith("Gates:     only warns: ReleaseFreeze shop/f") for line in shown)
    assert not any("override" in line or "--for=open" in line for line in shown)
    many = explain([Release(workload(), None)], (), NOW, closed=(warns,) * 20)
    assert sum("ReleaseFreeze" in line for line in many) == 8
    assert "           and 12 more" in many


def test_override_of_the_gates_of_the_own_namespace_needs_no_right_elsewhere() -> None:
    frozen = next(freezes.closed([freeze(namespace="shop")], UPDATE, 9))
    shown = explain([Release(workload(), None)], (), NOW, closed=(frozen,))
    assert '  altershield override deployment/web -n shop --gates Freeze -m "REASON"' in shown
