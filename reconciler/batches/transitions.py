"""The state machine of a ChangePod: one batch of pods under verification. Pure functions.

Without an AlterShield server, one step leads from Init to ExecuteDone. With a server, each state names the last step
that was done, and the next step follows from it. Every wait has a deadline, which follows from the object.

The batch is submitted to the server at most once, because each submission starts another check there. So PreWait is
stored before the submission. If its outcome is unknown (no answer, or a restart in between), it is not repeated: the
server's callback may still tell the id of the batch. All other requests may be repeated.
"""

from dataclasses import dataclass
from enum import Enum, auto

import msgspec

from altershield.api.kinds import (
    ChangePod,
    ChangePodStatus,
    CheckState,
    ConditionType,
    Giver,
    PodInfo,
    PodState,
    Verdict,
)
from altershield.api.meta import Condition, find_condition, plain_time, set_condition
from altershield.api.policy import Phase
from reconciler.batches.checks import SERVER_CHECK, begun, ended

POLL_INTERVAL = 3.0
"""Seconds before the first poll for a result, and before a request without an answer is repeated. The later polls come
at longer intervals, because the server sends the result by itself."""

_POLL_SHARE = 0.25  # of the time since the check began
_LONGEST_INTERVAL = 30.0

_NAMED = 3  # pods that a message names


class Call(Enum):
    """The requests to an AlterShield server about a batch."""

    SUBMIT_PRE = auto()
    POLL_PRE = auto()
    END_PRE = auto()
    """The last poll, at the deadline."""
    SUBMIT_POST = auto()
    POLL_POST = auto()
    END_POST = auto()


@dataclass(frozen=True, slots=True)
class Ask:
    """Send this request to the AlterShield server, and decide again with its answer."""

    call: Call


@dataclass(frozen=True, slots=True)
class Later:
    """Decide again after this many seconds."""

    seconds: float


Next = Ask | Later | None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The server accepted the batch. `node` is the server's id for it."""

    node: str


@dataclass(frozen=True, slots=True)
class NotSent:
    """The request did not reach the server."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The server rejects the batch. A retry is of no use."""

    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The server's verdict on the batch."""

    passed: bool
    message: str

    @property
    def outcome(self) -> CheckState:
        return CheckState.PASSED if self.passed else CheckState.FAILED


@dataclass(frozen=True, slots=True)
class NoResult:
    """The server has no result yet, or did not answer."""


Answer = Accepted | NotSent | Refused | Checked | NoResult


class Availability(Enum):
    """Whether an AlterShield server takes requests."""

    NOT_CONFIGURED = auto()
    UNREACHABLE = auto()
    """The last requests got no answer, so that no request is sent for a while."""
    SWITCHED_OFF = auto()
    """The server says that releases are not to be checked (its kill switch)."""
    AVAILABLE = auto()


@dataclass(frozen=True, slots=True)
class BatchSnapshot:
    """The input of a decision."""

    change_pod: ChangePod
    server: Availability
    answer: Answer | None
    """The server's answer to the `Ask` of the last decision, or its callback; None for the first decision."""
    pre_timeout: int
    """Seconds; so is `post_timeout`."""
    post_timeout: int


def decide(state: ChangePodStatus, snapshot: BatchSnapshot, now: float) -> tuple[ChangePodStatus, Next]:
    """Returns the status to store (`state` itself if nothing changes), and what to do after it is stored.

    `now` is in Unix seconds.
    """
    wanted, following = _step(state, snapshot, now)
    generation = snapshot.change_pod.metadata.generation
    by = _failed_by(state, snapshot.change_pod, by_server=wanted.pod_results != state.pod_results)
    wanted = msgspec.structs.replace(
        wanted,
        conditions=set_condition(wanted.conditions, _verified(wanted, snapshot.change_pod, by), now),
        observed_generation=generation,
    )
    if wanted == state:
        return state, following
    return msgspec.structs.replace(wanted, update_time=plain_time(now), update_time_unix=int(now)), following


def _step(state: ChangePodStatus, snapshot: BatchSnapshot, now: float) -> tuple[ChangePodStatus, Next]:
    if state.status == PodState.EXECUTE_DONE:
        return _with_late_result(state, snapshot, now), None
    state = _with_initial_verdicts(state, snapshot.change_pod)
    if not _undecided(state, snapshot.change_pod):
        return _done(state, PodState.POST_FINISH, now, "every pod has a verdict already"), None
    if snapshot.server is Availability.NOT_CONFIGURED:
        posting = state.status in (PodState.POST_WAIT, PodState.POST_SUBMITTED)
        return _done(state, PodState.POST_FAILED if posting else PodState.PRE_FAILED, now), None
    match state.status:
        case "" | PodState.INIT:
            return _submit(state, snapshot, now)
        case PodState.PRE_WAIT | PodState.PRE_SUBMITTED:
            return _before(state, snapshot, now)
        case PodState.POST_WAIT | PodState.POST_SUBMITTED:
            return _after(state, snapshot, now)
        case last:  # a state that the controller never stores: a person wrote it
            return _done(state, last, now), None


def _submit(state: ChangePodStatus, snapshot: BatchSnapshot, now: float) -> tuple[ChangePodStatus, Next]:
    left = snapshot.change_pod.spec.create_time_unix + snapshot.pre_timeout - now
    if snapshot.server is Availability.SWITCHED_OFF or left <= 0:
        return _done(state, PodState.PRE_FAILED, now), None
    if snapshot.server is Availability.UNREACHABLE:
        return state, Later(min(POLL_INTERVAL, left))
    state = msgspec.structs.replace(
        state,
        status=PodState.PRE_WAIT,
        checks=begun(state.checks, SERVER_CHECK, Phase.PRE, now),
        pre_submit_time=plain_time(now),
        pre_submit_time_unix=int(now),
        pre_timeout_threshold=snapshot.pre_timeout,
        post_timeout_threshold=snapshot.post_timeout,
    )
    return state, Ask(Call.SUBMIT_PRE)


def _before(state: ChangePodStatus, snapshot: BatchSnapshot, now: float) -> tuple[ChangePodStatus, Next]:
    """The check before the batch."""
    passed_time = now - state.pre_submit_time_unix
    left = state.pre_timeout_threshold - passed_time
    match state.status, snapshot.answer:
        case PodState.PRE_WAIT, Accepted(node):
            state = msgspec.structs.replace(state, status=PodState.PRE_SUBMITTED, change_pod_id=node)
            return state, _next_poll(0, left)
        case PodState.PRE_WAIT, NotSent():
            return msgspec.structs.replace(state, status=PodState.INIT, checks=()), Later(POLL_INTERVAL)
        case PodState.PRE_WAIT, Refused(reason):
            return _done(state, PodState.PRE_FAILED, now, reason), None
        case _, Checked(passed=False) as result:
            state = _with_results(state, snapshot.change_pod, result)
            return _done(state, PodState.PRE_FAILED, now, result.message, result.outcome), None
        case _, Checked(message=message):
            checks = ended(state.checks, SERVER_CHECK, Phase.PRE, CheckState.PASSED, message, now)
            state = msgspec.structs.replace(
                state,
                status=PodState.POST_WAIT,
                checks=begun(checks, SERVER_CHECK, Phase.POST, now),
                post_submit_time=plain_time(now),
                post_submit_time_unix=int(now),
            )
            return state, Ask(Call.SUBMIT_POST)
        case PodState.PRE_WAIT, _:
            return (state, Later(left)) if left > 0 else (_done(state, PodState.PRE_FAILED, now), None)
        case _, answer:
            return _polled(state, answer, (Call.POLL_PRE, Call.END_PRE), PodState.PRE_TIMEOUT, passed_time, left, now)


def _after(state: ChangePodStatus, snapshot: BatchSnapshot, now: float) -> tuple[ChangePodStatus, Next]:
    """The check after the batch."""
    passed_time = now - state.post_submit_time_unix
    left = state.post_timeout_threshold - passed_time
    match state.status, snapshot.answer:
        case _, Checked() as result:
            state = _with_results(state, snapshot.change_pod, result)
            return _done(state, PodState.POST_FINISH, now, result.message, result.outcome), None
        case PodState.POST_WAIT, Accepted():
            return msgspec.structs.replace(state, status=PodState.POST_SUBMITTED), _next_poll(0, left)
        case PodState.POST_WAIT, Refused(reason):
            return _done(state, PodState.POST_FAILED, now, reason), None
        case PodState.POST_WAIT, answer:
            if left <= 0:
                return _done(state, PodState.POST_FAILED, now), None
            if answer is None and snapshot.server is Availability.AVAILABLE:
                return state, Ask(Call.SUBMIT_POST)
            return state, _next_poll(passed_time, left)
        case _, answer:
            return _polled(
                state, answer, (Call.POLL_POST, Call.END_POST), PodState.POST_TIMEOUT, passed_time, left, now
            )


def _polled(
    state: ChangePodStatus,
    answer: Answer | None,
    calls: tuple[Call, Call],
    timeout: PodState,
    passed_time: float,
    left: float,
    now: float,
) -> tuple[ChangePodStatus, Next]:
    """Poll for the result, poll again later, or end the batch: a batch without a result counts as passed."""
    poll, last_poll = calls
    if left <= 0:
        return (state, Ask(last_poll)) if answer is None else (_done(state, timeout, now), None)
    due = answer is None and passed_time >= POLL_INTERVAL  # an event of the object may come earlier
    return state, Ask(poll) if due else _next_poll(passed_time, left)


def _next_poll(passed_time: float, left: float) -> Later:
    interval = min(_LONGEST_INTERVAL, max(POLL_INTERVAL, passed_time * _POLL_SHARE))
    return Later(min(interval, max(left, 0.0)))


def _with_late_result(state: ChangePodStatus, snapshot: BatchSnapshot, now: float) -> ChangePodStatus:
    """The result of a check that came after the batch had ended without one. The message, which says how the batch
    ended, stays."""
    answer = snapshot.answer
    if not isinstance(answer, Checked) or not _undecided(state, snapshot.change_pod):
        return state
    phase = _last_phase(state)
    if answer.passed and phase is Phase.PRE:
        return state  # the check after the batch never began, so nothing is proven
    state = _with_results(state, snapshot.change_pod, answer)
    checks = ended(state.checks, SERVER_CHECK, phase, answer.outcome, answer.message, now)
    return msgspec.structs.replace(state, checks=checks)


def awaits(status: ChangePodStatus, phase: Phase) -> bool:
    """Whether a result of this phase is still of use: the phase is under way, or the batch ended in it without a
    result. A server also sends results of a phase that is over (its callback comes late)."""
    return _last_phase(status) is phase and status.status in (
        PodState.PRE_SUBMITTED,
        PodState.POST_WAIT,
        PodState.POST_SUBMITTED,
        PodState.EXECUTE_DONE,
    )


def _last_phase(status: ChangePodStatus) -> Phase:
    """The phase that began last."""
    return Phase.POST if status.post_submit_time_unix else Phase.PRE


def failed_by(change_pod: ChangePod) -> Giver:
    """Whose verdict fails the batch. The value has no meaning for a batch that has not failed."""
    return _failed_by(change_pod.status, change_pod, by_server=False)


def needs_work(change_pod: ChangePod) -> bool:
    """Whether the batch has not reached ExecuteDone, or its condition does not match its results."""
    status = change_pod.status
    if status.status != PodState.EXECUTE_DONE:
        return True
    known = find_condition(status.conditions, ConditionType.VERIFIED)
    wanted = _verified(status, change_pod, failed_by(change_pod))
    return known is None or (known.status, known.reason, known.message) != (
        wanted.status,
        wanted.reason,
        wanted.message,
    )


def _with_initial_verdicts(state: ChangePodStatus, change_pod: ChangePod) -> ChangePodStatus:
    """Takes over the verdicts in the spec: a batch of pods that were not up in time is created with its verdicts."""
    known = {result.pod for result in state.pod_results if result.verdict}
    born = [pod for pod in change_pod.spec.pod_infos if pod.verdict and pod.pod not in known]
    return msgspec.structs.replace(state, pod_results=(*state.pod_results, *born)) if born else state


def _done(
    state: ChangePodStatus, last: str, now: float, reason: str = "", outcome: CheckState = CheckState.UNKNOWN
) -> ChangePodStatus:
    """The end state. A message that a person wrote stays. A check that has not ended has this outcome."""
    phase = Phase.POST if state.status in (PodState.POST_WAIT, PodState.POST_SUBMITTED) else Phase.PRE
    return msgspec.structs.replace(
        state,
        status=PodState.EXECUTE_DONE,
        message=state.message or last,
        checks=ended(state.checks, SERVER_CHECK, phase, outcome, reason or last, now),
    )


def _undecided(state: ChangePodStatus, change_pod: ChangePod) -> set[str]:
    """The names of the pods in the batch that have no explicit verdict."""
    decided = {result.pod for result in state.pod_results if result.verdict}
    return {pod.pod for pod in change_pod.spec.pod_infos} - decided


def _with_results(state: ChangePodStatus, change_pod: ChangePod, result: Checked) -> ChangePodStatus:
    """The server's verdict on every pod that has no explicit verdict yet."""
    undecided = _undecided(state, change_pod)
    verdict = Verdict.PASS if result.passed else Verdict.UNPASS
    results: list[PodInfo] = [known for known in state.pod_results if known.pod not in undecided]
    results += [
        msgspec.structs.replace(pod, verdict=verdict, message=result.message)
        for pod in change_pod.spec.pod_infos
        if pod.pod in undecided
    ]
    return msgspec.structs.replace(state, pod_results=tuple(results))


def _failed_by(state: ChangePodStatus, change_pod: ChangePod, *, by_server: bool) -> Giver:
    """The `Giver` of the verdict that failed the batch first. The condition Verified stores it.

    A person may write conditions too. The reason FailedByHealth is not valid for a batch that was created without
    verdicts, because AlterShield's own health checks write their verdicts into the spec.

    Without such a condition, the following applies. A batch that was created with verdicts has the verdicts of
    AlterShield's own health checks, or `spec.failedBy` says whose they are. The server's verdict is stored together
    with its condition (`by_server`). Every other verdict was written by a person.
    """
    known = find_condition(state.conditions, ConditionType.VERIFIED)
    has_verdicts = any(pod.verdict for pod in change_pod.spec.pod_infos)
    if known is not None and known.status == "False":
        for giver in Giver:
            if known.reason == giver and (has_verdicts or giver is not Giver.HEALTH):
                return giver
    if has_verdicts:
        return next((each for each in Giver if each == change_pod.spec.failed_by), Giver.HEALTH)
    return Giver.SERVER if by_server else Giver.PERSON


def _verified(state: ChangePodStatus, change_pod: ChangePod, by: Giver) -> Condition:
    pods = {pod.pod for pod in change_pod.spec.pod_infos}
    results = {result.pod: result for result in state.pod_results if result.verdict}
    failed = [result for name, result in results.items() if name in pods and result.verdict != Verdict.PASS]
    strangers = [name for name in results if name not in pods]
    if failed:
        named = "; ".join(f"{pod.pod} ({pod.message or pod.verdict})" for pod in failed[:_NAMED])
        status, reason, message = "False", str(by), f"{len(failed)} of {len(pods)} pods failed: {named}"
    elif state.status != PodState.EXECUTE_DONE:
        status, reason, message = "Unknown", "InProgress", "the pods of this batch are being verified"
    elif pods <= results.keys():
        status, reason, message = "True", "PodsPassed", "all pods passed"
    else:
        status, reason, message = (
            "True",
            "NotChecked",
            "not all pods got a verdict; a pod without a verdict counts as passed",
        )
    if strangers:
        message += f"; these pods are not in this batch, and their results are ignored: {', '.join(strangers[:_NAMED])}"
    return Condition(
        ConditionType.VERIFIED, status, reason, message, observed_generation=change_pod.metadata.generation
    )
