"""What to do about a release, with commands that can be pasted, and what they need. Pure functions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from altershield import releases
from altershield.api import labels
from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.gates.overrides import GateName
from altershield.api.meta import find_condition, has_reason
from altershield.api.names import is_name
from altershield.api.released_by import MAX_USER
from altershield.api.resources import (
    CHANGE_WORKLOADS,
    RELEASE_FREEZES,
    RELEASE_LIMITS,
    RELEASE_OVERRIDES,
    RELEASE_WINDOWS,
)
from altershield.api.rights import APPROVE, OVERRIDE
from altershield.api.rollout import Phase, RolloutStatus, WaitingFor
from altershield.api.workload_requests import Verb
from altershield.gates.release import Closed
from altershield.releases import steps
from altershield.releases.duties import decided
from altershield.releases.release import OBSERVING
from altershield.views.access import Access
from altershield.views.why.model import Advice
from altershield.workloads import BY_KIND
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload
from kube_base.resources import DISRUPTION_BUDGETS, PODS, RESOURCE_QUOTAS, Resource

_REASON = '-m "REASON"'
_GATES = {
    RELEASE_WINDOWS.kind: GateName.WINDOW,
    RELEASE_FREEZES.kind: GateName.FREEZE,
    RELEASE_LIMITS.kind: GateName.LIMIT,
}
"""The names of gates in an override, by their kind."""
_CHECK_HELD = "CheckHeld"
_PAUSED = "paused"  # the field by which kubectl pauses a rollout
_VIEW, _EDIT = "view", "edit"
_VERDICTS, _APPROVALS, _BREAKGLASS = "altershield-verdicts", "altershield-approvals", "altershield-breakglass"


class Proposal(NamedTuple):
    """A command, and what it needs."""

    when: str
    command: str
    needs: tuple[Access, ...]
    role: str
    """The ClusterRole that allows it, in the namespace `where`."""
    where: str
    other_than: tuple[str, ...] = ()
    """The users who may not run it, whatever the roles."""
    instead: "Proposal | None" = None
    """The same with other permissions, for a user who may not run this one."""


def accesses(proposals: Sequence[Proposal]) -> list[Access]:
    """What is to be asked about the proposals."""
    found = [need for each in proposals for need in each.needs]
    return found + [need for each in proposals if each.instead is not None for need in each.instead.needs]


def advice(proposals: Sequence[Proposal], may: Mapping[Access, bool], user: str) -> tuple[Advice, ...]:
    """The proposals, with whether this user may run them. `may`: the answers of the API server."""
    return tuple(_advice(each, may, user) for each in proposals)


def _advice(proposal: Proposal, may: Mapping[Access, bool], user: str) -> Advice:
    allowed = _allowed(proposal, may, user)
    if allowed is False and proposal.instead is not None and _allowed(proposal.instead, may, user):
        proposal, allowed = proposal.instead, True
    return Advice(proposal.when, proposal.command, allowed, proposal.role, proposal.where, proposal.other_than)


def _allowed(proposal: Proposal, may: Mapping[Access, bool], user: str) -> bool | None:
    answers = [may.get(each) for each in proposal.needs]
    if False in answers or (user and user[:MAX_USER] in proposal.other_than):
        return False
    return None if None in answers else True


@dataclass(frozen=True, slots=True)
class _Commands:
    """Commands about a workload. `program`: the beginning of those of AlterShield. `change`: the ChangeWorkload of the
    present version. `denied`: the earlier versions that are denied."""

    workload: Workload
    program: str
    change: ChangeWorkload | None = None
    denied: Sequence[ChangeWorkload] = ()

    @property
    def namespace(self) -> str:
        return self.workload.metadata.namespace

    @property
    def resource(self) -> Resource:
        return BY_KIND[self.workload.group_kind].resource

    def text(self, verb: str, *more: str) -> str:
        name = f"{self.workload.kind.lower()}/{self.workload.metadata.name}"
        return " ".join((self.program, verb, name, "-n", self.namespace, *more))

    def request(self, verb: str, when: str, instead: Proposal | None = None) -> Proposal:
        """A request about the release, as `altershield approve`."""
        needs = (self._on_release("patch", "status"),)
        others = self._releasers(verb.capitalize())
        return Proposal(when, self.text(verb, _REASON), needs, _VERDICTS, self.namespace, others, instead)

    def repair(self, when: str) -> Proposal:
        """`altershield repair`, or the label that it sets."""
        name, kind = self.workload.metadata.name, self.workload.kind.lower()
        label = f"kubectl label --overwrite {kind} -n {self.namespace} {name} {labels.IGNORED_SUSPEND}=true"
        instead = Proposal(when, label, (self.patch,), _EDIT, self.namespace, self._releasers(Verb.REPAIR))
        return self.request("repair", when, instead)

    def promote(self, when: str, *, full: bool = False) -> Proposal:
        """A promotion. That of a step with `approval` needs another right, and may need another user."""
        proposal = self.request("promote", when)._replace(
            command=self.text("promote", *(("--full",) if full else ()), _REASON)
        )
        if self.change is None or not _needs_approval(self.change, full=full):
            return proposal
        rollout = self.change.spec.policy.rollout
        other = (self.change.spec.released_by,) if rollout is not None and rollout.other_approver else ()
        needs = (*proposal.needs, self._on_release(APPROVE))
        return proposal._replace(needs=needs, role=_APPROVALS, other_than=other)

    def wait(self, when: str) -> Proposal:
        needs = (Access("watch", CHANGE_WORKLOADS, self.namespace), Access("watch", self.resource, self.namespace))
        return Proposal(when, self.text("wait"), needs, _VIEW, self.namespace)

    def kubectl(self, when: str, command: str, need: Access, role: str) -> Proposal:
        return Proposal(when, f"kubectl {command}", (need,), role, self.namespace)

    def read(self, when: str, command: str, verb: str, resource: Resource, name: str = "") -> Proposal:
        return self.kubectl(when, command, Access(verb, resource, self.namespace, name), _VIEW)

    @property
    def patch(self) -> Access:
        """A change of the workload."""
        return Access("patch", self.resource, self.namespace, self.workload.metadata.name)

    def rollback(self, change: ChangeWorkload, when: str = "") -> Iterator[Proposal]:
        if change.status.previous.uid or change.status.rollback_target.uid:
            yield self.request("rollback", f"{when}go back to the last version that passed")

    def _releasers(self, verb: str) -> tuple[str, ...]:
        """With separation of duties: the users who released that about which a request decides."""
        found = decided(verb, self.change, self.denied)
        return tuple(dict.fromkeys(each.spec.not_decided_by for each in found if each.spec.not_decided_by))

    def _on_release(self, verb: str, subresource: str = "") -> Access:
        name = self.change.metadata.name if self.change is not None else ""
        return Access(verb, CHANGE_WORKLOADS, self.namespace, name, subresource)


def _needs_approval(change: ChangeWorkload, *, full: bool) -> bool:
    """Whether the admission policy for requests demands the right to approve. A request before the first step, and one
    to promote fully, may skip the approval of any step."""
    rollout, number = change.spec.policy.rollout, change.status.rollout.step
    approvals = [each.approval for each in rollout.steps] if rollout is not None else []
    return any(approvals) if full or number < 1 else number <= len(approvals) and approvals[number - 1]


def proposals(
    change: ChangeWorkload | None,
    workload: Workload,
    program: str,
    *,
    denied: Sequence[ChangeWorkload],
    blocking: Sequence[Pod],
    closed: Sequence[Closed],
) -> list[Proposal]:
    """What to do about the present version. `change`: its ChangeWorkload, or None if it has none yet. `program`: the
    beginning of AlterShield's commands. `denied`: the earlier versions that are denied. `blocking`: the pods of older
    versions for which the workload's controller waits. `closed`: the gates that are closed for the next release."""
    commands = _Commands(workload, program, change, denied)
    return [*_blocking(blocking, commands), *_gates(closed, commands), *_release(change, commands)]


def _blocking(pods: Sequence[Pod], commands: _Commands) -> Iterator[Proposal]:
    if pods:
        names = [pod.metadata.name for pod in pods]
        needs = tuple(Access("delete", PODS, commands.namespace, each) for each in names)
        command = f"kubectl delete pod -n {commands.namespace} {' '.join(names)}"
        when = "the rollout must not wait: delete what it waits for"
        yield Proposal(when, command, needs, _EDIT, commands.namespace)


def _gates(closed: Sequence[Closed], commands: _Commands) -> Iterator[Proposal]:
    """What to do about a release that closed gates keep back."""
    found = {(each.kind, each.namespace) for each in closed if each.enforced}
    if found:
        command = commands.text("wait", "--for=open")
        when = "a gate is closed: wait until a release may begin"
        yield Proposal(when, command, (commands.patch,), _EDIT, commands.namespace)
    found |= set(_holding(commands.change))
    if not found:
        return
    gates = ",".join(sorted({_GATES[kind] for kind, _ in found}))
    others = {namespace for _, namespace in found} - {commands.namespace}
    where = min(others, default=commands.namespace)  # there is one other: AlterShield's
    needs = [Access("create", RELEASE_OVERRIDES, where)]
    if others:
        needs.append(Access(OVERRIDE, RELEASE_OVERRIDES, where))
    command = commands.text("override", *(("-A",) if others else ()), "--gates", gates, _REASON)
    when = "it cannot wait: let one release pass the gates"
    yield Proposal(when, command, tuple(needs), _BREAKGLASS, where)


def _holding(change: ChangeWorkload | None) -> Iterator[tuple[str, str]]:
    """Kind and namespace of the gates that keep a release in steps from going on."""
    status = change.status.rollout if change is not None else RolloutStatus()
    for each in status.gates if steps.in_steps(status) else ():
        kind, _, place = each.partition(" ")
        if kind in _GATES:
            yield kind, place.partition("/")[0]


def _release(change: ChangeWorkload | None, commands: _Commands) -> Iterator[Proposal]:
    if change is None:
        yield _wait(commands)
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
                yield from _running(change, commands)
    if commands.denied and not commands.workload.suspended:
        yield commands.repair("the denied version is good now: let it pass, then release it")


def _running(change: ChangeWorkload, commands: _Commands) -> Iterator[Proposal]:
    stalled = releases.stalled(change)
    if stalled is not None and stalled.reason == _CHECK_HELD:
        yield commands.request("approve", "the pods are good: accept them")
        yield commands.request("retry", "the check has a result now: ask it again")
        yield from commands.rollback(change, "they are not: ")
        return
    yield from _paused(commands)
    yield from _in_steps(change.status.rollout, commands)
    yield _wait(commands)
    if stalled is not None:
        workload = commands.workload
        name = workload.metadata.name
        describe = f"describe {workload.kind.lower()} -n {commands.namespace} {name}"
        yield commands.read("see the Events", describe, "get", commands.resource, name)
    yield from commands.rollback(change, "the version is bad: ")
    if commands.workload.suspended:
        yield commands.repair("another fix is ready: let the next release pass, then release it")
        yield commands.request("resume", "further releases must not wait for it")


def _paused(commands: _Commands) -> Iterator[Proposal]:
    """How to end a pause by the user: AlterShield's own is no field of the projection."""
    workload, adapter = commands.workload, BY_KIND[commands.workload.group_kind]
    if not workload.paused:
        return
    name, kind = workload.metadata.name, workload.kind.lower()
    resume = f"rollout resume -n {commands.namespace} {kind}/{name}"
    if adapter.pause_field != _PAUSED:
        operations = json.dumps([{**each, "value": False} for each in adapter.pause()])
        resume = f"patch {kind} -n {commands.namespace} {name} --type=json -p '{operations}'"
    yield commands.kubectl("somebody paused the rollout: resume it", resume, commands.patch, _EDIT)


def _in_steps(status: RolloutStatus, commands: _Commands) -> Iterator[Proposal]:
    """How to let a release in steps go on, and how to hold it."""
    if not steps.in_steps(status):
        return
    if WaitingFor.CHECK in status.waiting_for:
        yield commands.request("approve", "the check does not matter: go on without it")
        yield commands.request("retry", "the cause is gone: run the check now")
    yield from _waiting(status, commands)
    verified = status.passed >= status.pods  # a promotion is refused before that, unless it ends a hold
    if steps.waits_for_person(status) and (verified or status.phase != Phase.WAITING_FOR_APPROVAL):
        yield commands.promote("the version is good: let the next step begin")
        yield commands.promote("no step has to soak any more", full=True)
        return
    if status.phase == Phase.SOAKING and verified:
        yield commands.promote("the rest of this soak is not needed")
    if status.phase not in (Phase.STOPPED, Phase.FINISHING, Phase.WAITING_FOR_APPROVAL):
        yield commands.request("hold", "no further step must begin for now")


def _waiting(status: RolloutStatus, commands: _Commands) -> Iterator[Proposal]:
    """The command of kubectl that ends the wait of a step, or shows its cause."""
    where = f"-n {commands.namespace}"
    if WaitingFor.QUOTA in status.waiting_for:
        when, command = "a ResourceQuota is full: see which one", f"describe resourcequota {where}"
        yield commands.read(when, command, "list", RESOURCE_QUOTAS)
    if WaitingFor.TERMINATION in status.waiting_for:
        when, command = "a pod does not end: see its finalizers and its node", f"get pods {where} -o yaml"
        yield commands.read(when, command, "list", PODS)
    if WaitingFor.EVICTION in status.waiting_for:
        when, command = "an eviction is refused: see by which budget", f"get poddisruptionbudget {where}"
        yield commands.read(when, command, "list", DISRUPTION_BUDGETS)


def _suspended(change: ChangeWorkload, commands: _Commands) -> Iterator[Proposal]:
    yield commands.request("approve", "the failure is a false alarm: accept this version")
    yield commands.request("retry", "the cause is gone: verify the failed pods again")
    if commands.workload.suspended:
        yield commands.repair("a fix is ready: let the next release pass, then release it")
        yield commands.request("resume", "further releases must not wait")
    yield from commands.rollback(change)
    pods = releases.failures(change)
    if pods and is_name(pods[0].pod):  # users write these names, and people paste the command
        delete = Access("delete", PODS, commands.namespace, pods[0].pod)
        command = f"delete pod -n {commands.namespace} {pods[0].pod}"
        yield commands.kubectl("only this pod is bad: its successor is verified", command, delete, _EDIT)


def _rolling_back(change: ChangeWorkload, commands: _Commands) -> Iterator[Proposal]:
    if not has_reason(change.status.conditions, ConditionType.ROLLED_BACK, "WriteRefused"):
        yield commands.wait("the rollback is in progress: wait for its end")
        return
    yield commands.repair("the old version is not admitted any more: let one release pass")
    apply = f"apply -n {commands.namespace} -f FIX.yaml"
    yield commands.kubectl("then release a fix that is admitted", apply, commands.patch, _EDIT)
    yield commands.request("retry", "the API server admits the write now: try it again")
    yield commands.request("approve", "keep this version: withdraw the rollback")
    if commands.workload.suspended:
        yield commands.request("resume", "further releases must not wait")


def _failed(change: ChangeWorkload, commands: _Commands) -> Iterator[Proposal]:
    reported = find_condition(change.status.conditions, ConditionType.REPORTED)
    if reported is not None and reported.status == "False":
        yield commands.request("retry", "the AlterShield server admits it now: report it again")
    yield from commands.rollback(change)


def _succeeded(change: ChangeWorkload, commands: _Commands) -> Iterator[Proposal]:
    if commands.workload.suspended:
        yield commands.wait("the suspension ends in a few seconds")
    settling = releases.unsettled(change)
    if settling is not None and settling.reason != OBSERVING:
        yield from _unsettled(change, commands)
        yield from commands.rollback(change, "the version is bad: ")


def _unsettled(change: ChangeWorkload, commands: _Commands) -> Iterator[Proposal]:
    """How to see why pods of a release that has not settled restart or are down."""
    restarting = [each.pod for each in change.status.settling.restarting if is_name(each.pod)]
    down = [each.pod for each in change.status.down_pods if is_name(each.pod)]
    where = f"-n {commands.namespace}"
    if restarting:
        logs = f"logs {where} {restarting[0]} --previous --all-containers"
        access = Access("get", PODS, commands.namespace, restarting[0], "log")
        yield commands.kubectl("containers restart: see what they said last", logs, access, _VIEW)
    elif down:
        yield commands.read("pods are down: see why", f"describe pod {where} {down[0]}", "get", PODS, down[0])


def _wait(commands: _Commands) -> Proposal:
    return commands.wait("the release is under way: wait for its end")
