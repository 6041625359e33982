"""What to do about a release, with commands that can be pasted. Pure functions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from altershield import releases
from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.gates.overrides import GateName
from altershield.api.meta import find_condition, has_reason
from altershield.api.names import is_name
from altershield.api.resources import RELEASE_FREEZES, RELEASE_WINDOWS
from altershield.api.rollout import Phase, RolloutStatus, WaitingFor
from altershield.gates.release import Closed
from altershield.releases import steps
from altershield.releases.release import OBSERVING
from altershield.workloads import BY_KIND
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload

_REASON = '-m "REASON"'
_GATES = {RELEASE_WINDOWS.kind: GateName.WINDOW, RELEASE_FREEZES.kind: GateName.FREEZE}
"""The names of gates in an override, by their kind."""
_CHECK_HELD = "CheckHeld"
_PAUSED = "paused"  # the field by which kubectl pauses a rollout


class Advice(NamedTuple):
    when: str
    command: str


@dataclass(frozen=True, slots=True)
class _Commands:
    """Commands about a workload. `program`: the beginning of those of AlterShield."""

    workload: Workload
    program: str

    @property
    def namespace(self) -> str:
        return self.workload.metadata.namespace

    def altershield(self, verb: str, *more: str) -> str:
        name = f"{self.workload.kind.lower()}/{self.workload.metadata.name}"
        return " ".join((self.program, verb, name, "-n", self.namespace, *more))

    def rollback(self, change: ChangeWorkload, when: str = "") -> Iterator[Advice]:
        if change.status.previous.uid or change.status.rollback_target.uid:
            command = self.altershield("rollback", _REASON)
            yield Advice(f"{when}go back to the last version that passed", command)


def about_blocking(pods: Sequence[Pod]) -> Iterator[Advice]:
    """What to do about pods of older versions for which the workload's controller waits."""
    if pods:
        names = " ".join(pod.metadata.name for pod in pods)
        yield Advice(
            "the rollout must not wait: delete what it waits for",
            f"kubectl delete pod -n {pods[0].metadata.namespace} {names}",
        )


def about_gates(closed: Sequence[Closed], workload: Workload, program: str) -> Iterator[Advice]:
    """What to do about a release that closed gates keep back. `program`: the beginning of AlterShield's commands."""
    enforced = [each for each in closed if each.enforced]
    if not enforced:
        return
    commands = _Commands(workload, program)
    yield Advice("a gate is closed: wait until a release may begin", commands.altershield("wait", "--for=open"))
    gates = ",".join(sorted({_GATES[each.kind] for each in enforced}))
    everywhere = ("-A",) if any(each.namespace != commands.namespace for each in enforced) else ()
    override = commands.altershield("override", *everywhere, "--gates", gates, _REASON)
    yield Advice("it cannot wait: somebody with the right lets one release pass", override)


def about_release(change: ChangeWorkload | None, workload: Workload, program: str, *, denied: bool) -> Iterator[Advice]:
    """What to do about the present version. `change`: its ChangeWorkload, or None if it has none yet. `program`: the
    beginning of AlterShield's commands. `denied`: whether an earlier version is denied."""
    commands = _Commands(workload, program)
    if change is None:
        yield from _under_way(commands)
    else:
        match releases.state(change):
            case WorkloadState.SUSPEND:
                yield from _suspended(change, commands)
            case WorkloadState.ROLLBACK:
                yield from _rolling_back(change, commands)
            case WorkloadState.FAILED:
                yield from _failed(change, commands)
            case WorkloadState.SUCCESS:
                yield from _succeeded(change, commands)
            case _:
                stalled = releases.stalled(change)
                if stalled is not None and stalled.reason == _CHECK_HELD:
                    yield from _held(change, commands)
                    return
                yield from _in_steps(change.status.rollout, commands)
                yield from _under_way(commands, change if stalled is not None else None)
                if steps.in_steps(change.status.rollout) and stalled is None:
                    yield from commands.rollback(change, "the version is bad: ")
    if denied and not workload.suspended:
        yield Advice(
            "the denied version is good now: let it pass, then release it", commands.altershield("repair", _REASON)
        )


def _in_steps(status: RolloutStatus, commands: _Commands) -> Iterator[Advice]:
    """How to let a release in steps go on, and how to hold it."""
    if not steps.in_steps(status):
        return
    if WaitingFor.CHECK in status.waiting_for:
        yield Advice("the check does not matter: go on without it", commands.altershield("approve", _REASON))
        yield Advice("the cause is gone: run the check now", commands.altershield("retry", _REASON))
    yield from _waiting(status, commands.workload)
    if steps.waits_for_person(status):
        yield Advice("the version is good: let the next step begin", commands.altershield("promote", _REASON))
        yield Advice("no step has to soak any more", commands.altershield("promote", "--full", _REASON))
        return
    if status.phase == Phase.SOAKING:
        yield Advice("the rest of this soak is not needed", commands.altershield("promote", _REASON))
    yield Advice("no further step must begin for now", commands.altershield("hold", _REASON))


def _waiting(status: RolloutStatus, workload: Workload) -> Iterator[Advice]:
    """The command of kubectl that ends the wait of a step, or shows its cause."""
    where = f"-n {workload.metadata.namespace}"
    if WaitingFor.PAUSED in status.waiting_for and BY_KIND[workload.group_kind].pause_field == _PAUSED:
        resume = f"kubectl rollout resume {where} {workload.kind.lower()}/{workload.metadata.name}"
        yield Advice("somebody paused the rollout: resume it", resume)
    if WaitingFor.QUOTA in status.waiting_for:
        yield Advice("a ResourceQuota is full: see which one", f"kubectl describe resourcequota {where}")
    if WaitingFor.TERMINATION in status.waiting_for:
        yield Advice("a pod does not end: see its finalizers and its node", f"kubectl get pods {where} -o yaml")
    if WaitingFor.EVICTION in status.waiting_for:
        yield Advice("an eviction is refused: see by which budget", f"kubectl get poddisruptionbudget {where}")


def _suspended(change: ChangeWorkload, commands: _Commands) -> Iterator[Advice]:
    yield Advice("the failure is a false alarm: accept this version", commands.altershield("approve", _REASON))
    yield Advice("the cause is gone: verify the failed pods again", commands.altershield("retry", _REASON))
    if commands.workload.suspended:
        repair = commands.altershield("repair", _REASON)
        yield Advice("a fix is ready: let the next release pass, then release it", repair)
        yield Advice("further releases must not wait", commands.altershield("resume", _REASON))
    yield from commands.rollback(change)
    pods = releases.failures(change)
    if pods and is_name(pods[0].pod):  # users write these names, and people paste the command
        yield Advice(
            "only this pod is bad: its successor is verified",
            f"kubectl delete pod -n {commands.namespace} {pods[0].pod}",
        )


def _rolling_back(change: ChangeWorkload, commands: _Commands) -> Iterator[Advice]:
    if not has_reason(change.status.conditions, ConditionType.ROLLED_BACK, "WriteRefused"):
        yield Advice("the rollback is in progress: wait for its end", commands.altershield("wait"))
        return
    repair = commands.altershield("repair", _REASON)
    yield Advice("the old version is not admitted any more: let one release pass", repair)
    yield Advice("then release a fix that is admitted", f"kubectl apply -n {commands.namespace} -f FIX.yaml")
    yield Advice("the API server admits the write now: try it again", commands.altershield("retry", _REASON))
    yield Advice("keep this version: withdraw the rollback", commands.altershield("approve", _REASON))


def _failed(change: ChangeWorkload, commands: _Commands) -> Iterator[Advice]:
    reported = find_condition(change.status.conditions, ConditionType.REPORTED)
    if reported is not None and reported.status == "False":
        retry = commands.altershield("retry", _REASON)
        yield Advice("the AlterShield server admits it now: report it again", retry)
    yield from commands.rollback(change)


def _succeeded(change: ChangeWorkload, commands: _Commands) -> Iterator[Advice]:
    if commands.workload.suspended:
        yield Advice("the suspension ends in a few seconds", commands.altershield("wait"))
    settling = releases.unsettled(change)
    if settling is not None and settling.reason != OBSERVING:
        yield from _unsettled(change, commands.namespace)
        yield from commands.rollback(change, "the version is bad: ")


def _unsettled(change: ChangeWorkload, namespace: str) -> Iterator[Advice]:
    """How to see why pods of a release that has not settled restart or are down."""
    restarting = [each.pod for each in change.status.settling.restarting if is_name(each.pod)]
    down = [each.pod for each in change.status.down_pods if is_name(each.pod)]
    if restarting:
        logs = f"kubectl logs -n {namespace} {restarting[0]} --previous --all-containers"
        yield Advice("containers restart: see what they said last", logs)
    elif down:
        yield Advice("pods are down: see why", f"kubectl describe pod -n {namespace} {down[0]}")


def _held(change: ChangeWorkload, commands: _Commands) -> Iterator[Advice]:
    yield Advice("the pods are good: accept them", commands.altershield("approve", _REASON))
    yield Advice("the check has a result now: ask it again", commands.altershield("retry", _REASON))
    yield from commands.rollback(change, "they are not: ")


def _under_way(commands: _Commands, stalled: ChangeWorkload | None = None) -> Iterator[Advice]:
    """`stalled`: the release, if it is stalled."""
    workload = commands.workload
    yield Advice("the release is under way: wait for its end", commands.altershield("wait"))
    if stalled is not None:
        describe = f"kubectl describe {workload.kind.lower()} -n {commands.namespace} {workload.metadata.name}"
        yield Advice("see the Events", describe)
        yield from commands.rollback(stalled)
    if workload.suspended:
        yield Advice("further releases must not wait for it", commands.altershield("resume", _REASON))
