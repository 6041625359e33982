"""A node and its states, without time or I/O. The comments name the behaviour that surprises clients."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from kube_sandbox.altershield_server.binding import Body
from kube_sandbox.altershield_server.errors import RefusedError
from kube_sandbox.altershield_server.orders import Order
from kube_sandbox.altershield_server.rules import Execution
from kube_sandbox.altershield_server.vocabulary import Code, NodeKind, NodeState, Stage

_SUBMIT = {Stage.PRE: NodeState.PRE_AOP_SUBMIT, Stage.POST: NodeState.POST_AOP_SUBMIT}
_RUN = {Stage.PRE: NodeState.PRE_AOP, Stage.POST: NodeState.POST_AOP}
_FINISHED = {Stage.PRE: NodeState.PRE_AOP_FINISH, Stage.POST: NodeState.POST_AOP_FINISH}
_TIMED_OUT = {Stage.PRE: NodeState.PRE_AOP_TIMEOUT, Stage.POST: NodeState.POST_AOP_TIMEOUT}
_CRASHED = {Stage.PRE: NodeState.PRE_AOP_FAIL, Stage.POST: NodeState.POST_AOP_FAIL}
_IGNORED = {Stage.PRE: NodeState.PRE_AOP_IGNORE, Stage.POST: NodeState.POST_AOP_IGNORE}
_MAX_EXECUTIONS = 1000
_AFTER_PRE = (NodeState.PRE_AOP_FINISH, NodeState.PRE_AOP_TIMEOUT, NodeState.PRE_AOP_FAIL)
_AFTER_POST = (NodeState.POST_AOP_FINISH, NodeState.POST_AOP_TIMEOUT, NodeState.POST_AOP_FAIL)


@dataclass(slots=True)
class Check:
    """The check of one stage."""

    passed: bool | None = None
    """The stored flag, which polls report. It is None while the check runs, and after a timeout."""

    verdict: str = ""
    """The text for the callback."""

    executions: list[Execution] = field(default_factory=list)
    """Of all runs, also those before a resubmit: the newest 1,000."""

    run: int = 0
    """Counts the runs. A result of an earlier run is dropped."""

    def add(self, running: Sequence[Execution]) -> None:
        self.executions = [*self.executions, *running][-_MAX_EXECUTIONS:]


@dataclass(slots=True, kw_only=True)
class Node:
    id: str
    kind: NodeKind
    order: Order
    scene: str
    emergency: bool
    start: Body
    """The request that created the node."""

    batch: int | None = None
    finishes: list[Body] = field(default_factory=list)
    """The accepted finish requests, the newest last (at most 10)."""

    state: NodeState = NodeState.PRE_AOP_SUBMIT
    checks: dict[Stage, Check] = field(default_factory=lambda: {stage: Check() for stage in Stage})

    @property
    def pre(self) -> Check:
        return self.checks[Stage.PRE]

    @property
    def post(self) -> Check:
        return self.checks[Stage.POST]

    def finish(self, request: Body) -> bool:
        """The change of the node was executed. Returns whether the POST check starts.

        After the end of a POST check, the call succeeds, but starts no check and the state stays POST_AOP_SUBMIT. The
        PRE verdict is not enforced.
        """
        self._not_ignored()
        if self.state not in (*_AFTER_PRE, *_AFTER_POST):
            raise self._unsupported()
        starts = self.state in _AFTER_PRE
        self.finishes = [*self.finishes[-9:], request]
        self.state = NodeState.POST_AOP_SUBMIT
        return starts

    def resubmit(self) -> None:
        """The PRE check starts again. There is no such call for POST."""
        self._not_ignored()
        if self.state not in _AFTER_PRE:
            raise self._unsupported()
        self.state = NodeState.PRE_AOP_SUBMIT
        self.pre.passed = self.post.passed = None

    def poll(self, stage: Stage) -> bool | None:
        """The stored flag of the stage; None if it has no result."""
        self._not_ignored()
        return self.checks[stage].passed

    def skip(self, stage: Stage, execution_ids: Collection[str]) -> str:
        """Ignore rules. Returns the reason if the call does not succeed: rules are marked nevertheless.

        After a success, no call on the node is possible any more.
        """
        self._not_ignored()
        known = {each.id: each for each in self.checks[stage].executions}
        for each in execution_ids:
            if each in known:
                known[each].ignored = True
        if self.runs(stage):
            return "rules of the node are not finished"
        if not all(each in known for each in execution_ids):
            return "the rules could not be updated"
        self.state = _IGNORED[stage]
        return ""

    def runs(self, stage: Stage) -> bool:
        return self.state in (_SUBMIT[stage], _RUN[stage])

    def begin(self, stage: Stage) -> bool:
        """The rules start. Returns False if the node is in another state."""
        if self.state != _SUBMIT[stage]:
            return False
        self.state = _RUN[stage]
        return True

    def time_out(self, stage: Stage) -> bool:
        """The step timeout expires. Returns whether a callback is due. The flag stays empty: polls say `fail`."""
        return self._end(stage, _TIMED_OUT[stage])

    def crash(self, stage: Stage) -> bool:
        """The check crashes. Returns whether a callback is due."""
        return self._end(stage, _CRASHED[stage])

    def complete(self, stage: Stage, *, passed: bool, verdict: str) -> Stage | None:
        """The rules have a result. Returns the stage of the callback that is due."""
        if self.state == NodeState.POST_AOP:
            # A late PRE result is stored as the result of POST: the server ignores its stage.
            return self._store(Stage.POST, passed, verdict)
        if self.runs(stage):
            return self._store(stage, passed, verdict)
        check = self.checks[stage]
        if stage == Stage.PRE and self.state in (NodeState.PRE_AOP_TIMEOUT, NodeState.POST_AOP_SUBMIT):
            check.passed, check.verdict = passed, verdict  # late: visible by polls, without a callback
        elif stage == Stage.POST and self.state == NodeState.POST_AOP_TIMEOUT:
            self._store(stage, passed, verdict)
        return None

    def reported(self, stage: Stage) -> tuple[str, list[Execution]]:
        """The verdict and the rules of a callback that is sent now.

        If the node has left the state in which the check finished, the callback says `pass` without rules.
        """
        if self.state != _FINISHED[stage]:
            return "pass", []
        return self.checks[stage].verdict, self.checks[stage].executions

    def _store(self, stage: Stage, passed: bool, verdict: str) -> Stage:
        check = self.checks[stage]
        check.passed, check.verdict = passed, verdict
        self.state = _FINISHED[stage]
        return stage

    def _end(self, stage: Stage, state: NodeState) -> bool:
        if not self.runs(stage):
            return False
        self.state = state
        return True

    def _not_ignored(self) -> None:
        if self.state in _IGNORED.values():
            raise RefusedError(Code.ILLEGAL_ARGUMENT, f"exeNodeStateMachine is null by state:{self.state}")

    def _unsupported(self) -> RefusedError:
        return RefusedError(Code.NOT_SUPPORTED, f"402:unsupported operation in {self.state}, nodeId={self.id}")
