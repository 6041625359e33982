"""The state machine of a ChangePod: one batch of pods under verification. Pure functions.

Without an AlterShield server, one step leads from Init to ExecuteDone. With a server, each state names the last step
that was done, and the next step follows from it. Every wait has a deadline, which the status contains.
"""

from dataclasses import dataclass
from enum import Enum, auto

import msgspec

from altershield.api.kinds import ChangePod, ChangePodStatus, ConditionType, Giver, PodInfo, PodState, Verdict
from altershield.api.meta import Condition, find_condition, plain_time, set_condition

POLL_INTERVAL = 3.0
"""Seconds between two polls for a result, and before a request without an answer is repeated."""

_NAMED = 3  # pods that a message names


class Call(Enum):
    """The requests to an AlterShield server about a batch."""

    SUBMIT_PRE = auto()
    POLL_PRE = auto()
    SUBMIT_POST = auto()
    POLL_POST = auto()


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
class Refused:
    """The server rejects the batch. A retry is of no use."""

    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The server's verdict on the batch."""

    passed: bool
    message: str


@dataclass(frozen=True, slots=True)
class NoResult:
    """The server has no result yet, or did not answer."""


Answer = Accepted | Refused | Checked | NoResult


@dataclass(frozen=True, slots=True)
class BatchSnapshot:
    """The input of a decision."""

    change_pod: ChangePod
    server: bool
    """Whether an AlterShield server is configured."""
    answer: Answer | None
    """The server's answer to the `Ask` of the last decision; None for the first decision."""
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
    answer = snapshot.answer
    if state.status == PodState.EXECUTE_DONE:
        return state, None
    state = _with_initial_verdicts(state, snapshot.change_pod)
    if not _undecided(state, snapshot.change_pod):
        return _done(state, PodState.POST_FINISH), None
    if not snapshot.server:
        posting = state.status in (PodState.POST_WAIT, PodState.POST_SUBMITTED)
        return _done(state, PodState.POST_FAILED if posting else PodState.PRE_FAILED), None
    if state.status in ("", PodState.INIT):
        state = msgspec.structs.replace(
            state,
            status=PodState.PRE_WAIT,
            pre_submit_time=plain_time(now),
            pre_submit_time_unix=int(now),
            pre_timeout_threshold=snapshot.pre_timeout,
            post_timeout_threshold=snapshot.post_timeout,
        )
        return state, Ask(Call.SUBMIT_PRE)
    pre_left = state.pre_submit_time_unix + state.pre_timeout_threshold - now
    post_left = state.post_submit_time_unix + state.post_timeout_threshold - now
    match state.status, answer:
        case PodState.PRE_WAIT, Accepted(node):
            state = msgspec.structs.replace(state, status=PodState.PRE_SUBMITTED, change_pod_id=node)
            return state, Later(min(POLL_INTERVAL, max(pre_left, 0)))
        case PodState.PRE_WAIT, _:
            return _waiting(state, answer, Call.SUBMIT_PRE, PodState.PRE_FAILED, pre_left)
        case PodState.PRE_SUBMITTED, Checked(passed=False, message=message):
            return _done(_with_results(state, snapshot.change_pod, Verdict.UNPASS, message), PodState.PRE_FAILED), None
        case PodState.PRE_SUBMITTED, Checked():
            state = msgspec.structs.replace(
                state,
                status=PodState.POST_WAIT,
                post_submit_time=plain_time(now),
                post_submit_time_unix=int(now),
            )
            return state, Ask(Call.SUBMIT_POST)
        case PodState.PRE_SUBMITTED, _:
            return _waiting(state, answer, Call.POLL_PRE, PodState.PRE_TIMEOUT, pre_left)
        case PodState.POST_WAIT, Accepted():
            state = msgspec.structs.replace(state, status=PodState.POST_SUBMITTED)
            return state, Later(min(POLL_INTERVAL, max(post_left, 0)))
        case PodState.POST_WAIT, _:
            return _waiting(state, answer, Call.SUBMIT_POST, PodState.POST_FAILED, post_left)
        case PodState.POST_SUBMITTED, Checked(passed=passed, message=message):
            verdict = Verdict.PASS if passed else Verdict.UNPASS
            return _done(_with_results(state, snapshot.change_pod, verdict, message), PodState.POST_FINISH), None
        case PodState.POST_SUBMITTED, _:
            return _waiting(state, answer, Call.POLL_POST, PodState.POST_TIMEOUT, post_left)
        case last, _:  # a state that the controller never stores: a person wrote it
            return _done(state, last), None


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


def _waiting(
    state: ChangePodStatus, answer: Answer | None, call: Call, given_up: str, left: float
) -> tuple[ChangePodStatus, Next]:
    """Send the request, repeat it later, or end the batch: a batch without an answer counts as passed."""
    if isinstance(answer, Refused) or left <= 0:
        return _done(state, given_up), None
    if answer is None:
        return state, Ask(call)
    return state, Later(min(POLL_INTERVAL, left))


def _done(state: ChangePodStatus, last: str) -> ChangePodStatus:
    """The end state. A message that a person wrote stays."""
    return msgspec.structs.replace(state, status=PodState.EXECUTE_DONE, message=state.message or last)


def _undecided(state: ChangePodStatus, change_pod: ChangePod) -> set[str]:
    """The names of the pods in the batch that have no explicit verdict."""
    decided = {result.pod for result in state.pod_results if result.verdict}
    return {pod.pod for pod in change_pod.spec.pod_infos} - decided


def _with_results(state: ChangePodStatus, change_pod: ChangePod, verdict: str, message: str) -> ChangePodStatus:
    """The server's verdict on every pod that has no explicit verdict yet."""
    undecided = _undecided(state, change_pod)
    results: list[PodInfo] = [result for result in state.pod_results if result.pod not in undecided]
    results += [
        msgspec.structs.replace(pod, verdict=verdict, message=message)
        for pod in change_pod.spec.pod_infos
        if pod.pod in undecided
    ]
    return msgspec.structs.replace(state, pod_results=tuple(results))


def _failed_by(state: ChangePodStatus, change_pod: ChangePod, *, by_server: bool) -> Giver:
    """Whose verdict fails the batch. That is whoever failed it first, whom the condition Verified names.

    Without such a condition, the following applies. A batch that was created with verdicts has the verdicts of
    AlterShield's own health checks, or `spec.failedBy` says whose they are. The server's verdict is stored together
    with its condition (`by_server`). Every other verdict was written by a person.
    """
    known = find_condition(state.conditions, ConditionType.VERIFIED)
    if known is not None and known.status == "False":
        for giver in Giver:
            if known.reason == giver:
                return giver
    if any(pod.verdict for pod in change_pod.spec.pod_infos):
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
