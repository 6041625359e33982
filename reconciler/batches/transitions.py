"""The state machine of a ChangePod: one batch of pods under verification. Pure functions.

Without checks, one step leads from Init to ExecuteDone. With checks, those of the phase Pre run first, at the same
time, then those of the phase Post. The state of the batch follows from the entries of the checks (`check_run`). Every
wait has a deadline, which follows from the object. One exception waits for a person: a check without a result whose
policy says `hold`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from altershield.api.kinds import (
    ChangePod,
    ChangePodStatus,
    CheckResult,
    CheckState,
    Giver,
    PodState,
    Verdict,
)
from altershield.api.meta import plain_time, set_condition
from altershield.api.policy import OnUnknown, Phase
from altershield.workloads.pods import clip
from reconciler.batches.check_run import (
    Answer,
    Ask,
    Later,
    Planned,
    Run,
    Step,
    advance,
    ended,
    entry_of,
    with_entry,
    with_result,
)
from reconciler.batches.verdicts import failed_by, undecided, verified, with_initial_verdicts, with_results
from reconciler.checks.check import Fail, Pass

SERVER_CHECK = "server"
"""The name of the check of an AlterShield server that no DefensePolicy names."""

Answers = Mapping[tuple[str, Phase], Answer]


@dataclass(frozen=True, slots=True)
class BatchSnapshot:
    """The input of a decision."""

    change_pod: ChangePod
    plan: Sequence[Planned] = ()
    """The checks that the batch needs."""
    answers: Answers = field(default_factory=dict)
    """By name and phase: the checks' answers to the `Ask`s of this reconcile, or a callback."""
    pre_timeout: int = 120
    """Seconds, for checks that have none of their own; so is `post_timeout`."""
    post_timeout: int = 120


@dataclass(frozen=True, slots=True)
class Next:
    """What to do after the status is stored: send the requests `asks` at the same time and decide again with the
    answers, else decide again after `after` seconds (None: when something happens)."""

    asks: tuple[Ask, ...] = ()
    after: float | None = None


DONE = Next()


def decide(state: ChangePodStatus, snapshot: BatchSnapshot, now: float) -> tuple[ChangePodStatus, Next]:
    """Returns the status to store (`state` itself if nothing changes), and what to do after it is stored.

    `now` is in Unix seconds.
    """
    wanted, by, held, following = _step(state, snapshot, now)
    change_pod = snapshot.change_pod
    giver = failed_by(state, change_pod, by)
    wanted = msgspec.structs.replace(
        wanted,
        conditions=set_condition(wanted.conditions, verified(wanted, change_pod, giver, held), now),
        observed_generation=change_pod.metadata.generation,
    )
    if wanted == state:
        return state, following
    return msgspec.structs.replace(wanted, update_time=plain_time(now), update_time_unix=int(now)), following


def received(state: ChangePodStatus, snapshot: BatchSnapshot, now: float) -> ChangePodStatus:
    """The status to store after a callback, which any replica receives. Only the leader sends requests, so a check that
    must not be started twice does not begin here."""
    status, following = decide(state, snapshot, now)
    repeatable = {(each.spec.name, phase) for each in snapshot.plan for phase in each.repeatable}
    if all(each.step is Step.START and each.key in repeatable for each in following.asks):
        return status
    checks = tuple(
        with_result(each, snapshot.answers.get((each.name, Phase(each.phase))), now) for each in state.checks
    )
    return msgspec.structs.replace(state, checks=checks)


def _step(
    state: ChangePodStatus, snapshot: BatchSnapshot, now: float
) -> tuple[ChangePodStatus, Giver | None, str, Next]:
    """Status, whose verdict fails the batch now (or None), why it is held (or empty), and what to do next."""
    if state.status == PodState.EXECUTE_DONE:
        return *_with_late_results(state, snapshot, now), "", DONE
    state = with_initial_verdicts(state, snapshot.change_pod)
    if not undecided(state, snapshot.change_pod):
        return _done(state, PodState.POST_FINISH, now, "every pod has a verdict already"), None, "", DONE
    match state.status:
        case "" | PodState.INIT | PodState.PRE_WAIT | PodState.PRE_SUBMITTED:
            nothing = PodState.PRE_FAILED
        case PodState.POST_WAIT | PodState.POST_SUBMITTED:
            nothing = PodState.POST_FAILED
        case last:  # a state that the controller never stores: a person wrote it
            return _done(state, last, now), None, "", DONE
    if not snapshot.plan:
        return _done(state, nothing, now), None, "", DONE
    for phase in Phase:
        state, runs, waits = _advance_phase(state, snapshot, phase, now)
        failed = _failed(state, runs)
        if failed is not None:
            by, message = failed
            state = with_results(state, snapshot.change_pod, Verdict.UNPASS, message)
            last = PodState.PRE_FAILED if phase is Phase.PRE else PodState.POST_FINISH
            return _done(state, last, now, "another check failed"), by, "", DONE
        if waits:
            return state, None, "", _following(waits)
        held = _held(state, runs)
        if held:
            return state, None, held, DONE
    return _concluded(state, snapshot, now), None, "", DONE


def _advance_phase(
    state: ChangePodStatus, snapshot: BatchSnapshot, phase: Phase, now: float
) -> tuple[ChangePodStatus, Sequence[Run], Sequence[Ask | Later]]:
    """All checks of a phase, one step further."""
    runs = [_run(state, snapshot, each, phase, now) for each in snapshot.plan if _runs_in(each, phase, state.checks)]
    waits: list[Ask | Later] = []
    before = state
    for run in runs:
        entry, following = advance(
            run, entry_of(state.checks, run.name, phase), snapshot.answers.get((run.name, phase)), now
        )
        state = msgspec.structs.replace(state, checks=with_entry(state.checks, run, entry))
        if run.planned.spec.server is not None and phase is Phase.PRE and entry is not None and entry.handle:
            state = msgspec.structs.replace(state, change_pod_id=entry.handle)
        if following is not None:
            waits.append(following)
    if not runs or (not waits and state == before):
        return state, runs, ()
    return _with_phase(state, before, snapshot, runs, phase, now), runs, waits


def _with_phase(
    state: ChangePodStatus,
    before: ChangePodStatus,
    snapshot: BatchSnapshot,
    runs: Sequence[Run],
    phase: Phase,
    now: float,
) -> ChangePodStatus:
    """The state of the batch, and the times of its phase, which follow from the entries of the checks."""
    begun = [entry for run in runs if (entry := entry_of(state.checks, run.name, phase)) is not None]
    if not begun:
        taken_back = phase is Phase.PRE and before.checks
        return msgspec.structs.replace(state, status=PodState.INIT) if taken_back else state
    if not any(each.phase == phase for each in before.checks):
        state = _with_times(state, snapshot, phase, now)
    started = len(begun) == len(runs) and all(each.handle or each.state != CheckState.RUNNING for each in begun)
    if phase is Phase.PRE:
        reached = PodState.PRE_SUBMITTED if started else PodState.PRE_WAIT
    else:
        reached = PodState.POST_SUBMITTED if started else PodState.POST_WAIT
    return msgspec.structs.replace(state, status=reached)


def _with_times(state: ChangePodStatus, snapshot: BatchSnapshot, phase: Phase, now: float) -> ChangePodStatus:
    """The begin of a phase. Post begins once, because the deadline of checks that have not begun follows from it."""
    state = msgspec.structs.replace(
        state,
        pre_timeout_threshold=state.pre_timeout_threshold or snapshot.pre_timeout,
        post_timeout_threshold=state.post_timeout_threshold or snapshot.post_timeout,
    )
    if phase is Phase.PRE:
        return msgspec.structs.replace(state, pre_submit_time=plain_time(now), pre_submit_time_unix=int(now))
    if state.post_submit_time_unix:
        return state
    return msgspec.structs.replace(state, post_submit_time=plain_time(now), post_submit_time_unix=int(now))


def _following(waits: Sequence[Ask | Later]) -> Next:
    asks = tuple(each for each in waits if isinstance(each, Ask))
    return Next(asks, None if asks else min(each.seconds for each in waits if isinstance(each, Later)))


def _runs_in(planned: Planned, phase: Phase, checks: Sequence[CheckResult]) -> bool:
    """Whether the check runs in this phase. That of an AlterShield server runs in both, and in Post only after it
    passed in Pre: the server does not begin the second check before."""
    spec = planned.spec
    if spec.server is None:
        return phase in spec.phases
    first = entry_of(checks, spec.name, Phase.PRE)
    return phase is Phase.PRE or (first is not None and first.state == CheckState.PASSED)


def _run(state: ChangePodStatus, snapshot: BatchSnapshot, planned: Planned, phase: Phase, now: float) -> Run:
    if phase is Phase.PRE:
        timeout = state.pre_timeout_threshold or snapshot.pre_timeout
        began = float(snapshot.change_pod.spec.create_time_unix)
    else:
        timeout = state.post_timeout_threshold or snapshot.post_timeout
        began = state.post_submit_time_unix or now
    return Run(planned, phase, planned.spec.timeout_seconds or timeout, began)


def _failed(state: ChangePodStatus, runs: Sequence[Run]) -> tuple[Giver, str] | None:
    """Whose verdict fails the batch, and the message; None if no check fails it."""
    for run in runs:
        entry, spec = entry_of(state.checks, run.name, run.phase), run.planned.spec
        if entry is None:
            continue
        by = Giver.SERVER if spec.server is not None else Giver.CHECK
        if entry.state == CheckState.FAILED:
            return by, said(entry)
        if entry.state == CheckState.UNKNOWN and spec.on_unknown is OnUnknown.FAIL:
            return by, f"{spec.name}: no result: {entry.reason}"
    return None


def _held(state: ChangePodStatus, runs: Sequence[Run]) -> str:
    """Why the batch waits for a person; empty if it does not."""
    for run in runs:
        entry, spec = entry_of(state.checks, run.name, run.phase), run.planned.spec
        if entry is not None and entry.state == CheckState.UNKNOWN and spec.on_unknown is OnUnknown.HOLD:
            return f"the check {spec.name} has no result: {entry.reason}"
    return ""


def _concluded(state: ChangePodStatus, snapshot: BatchSnapshot, now: float) -> ChangePodStatus:
    """The end of a batch that no check fails. The pods get an explicit verdict only if every check passed. The message
    tells of the first check without a result."""
    ends = {
        Phase.PRE: (PodState.PRE_FAILED, PodState.PRE_TIMEOUT),
        Phase.POST: (PodState.POST_FAILED, PodState.POST_TIMEOUT),
    }
    for phase, (not_started, timeout) in ends.items():
        unknown = [each for each in state.checks if (each.phase, each.state) == (phase, CheckState.UNKNOWN)]
        if unknown:
            return _done(state, timeout if all(each.handle for each in unknown) else not_started, now)
    return _done(_all_pass(state, snapshot), PodState.POST_FINISH, now)


def _all_pass(state: ChangePodStatus, snapshot: BatchSnapshot) -> ChangePodStatus:
    last = Phase.POST if any(each.phase == Phase.POST for each in state.checks) else Phase.PRE
    message = "; ".join(said(each) for each in state.checks if each.phase == last and each.reason)
    return with_results(state, snapshot.change_pod, Verdict.PASS, clip(message))


def said(entry: CheckResult) -> str:
    """What a check says, with its name."""
    return entry.reason if entry.name == SERVER_CHECK else f"{entry.name}: {entry.reason}"


def _with_late_results(
    state: ChangePodStatus, snapshot: BatchSnapshot, now: float
) -> tuple[ChangePodStatus, Giver | None]:
    """The results of checks that came after the batch had ended without them, and whose verdict fails it now.

    The message, which says how the batch ended, stays. A late pass of a check in Pre proves nothing: the batch ended
    before the checks in Post began.
    """
    if not undecided(state, snapshot.change_pod):
        return state, None
    for planned in snapshot.plan:
        for phase in Phase:
            answer, entry = (
                snapshot.answers.get((planned.spec.name, phase)),
                entry_of(state.checks, planned.spec.name, phase),
            )
            if entry is None or entry.state != CheckState.UNKNOWN:
                continue
            run = _run(state, snapshot, planned, phase, now)
            if isinstance(answer, Fail) or (isinstance(answer, Pass) and phase is Phase.POST):
                state = msgspec.structs.replace(
                    state, checks=with_entry(state.checks, run, with_result(entry, answer, now))
                )
            if isinstance(answer, Fail):
                by = Giver.SERVER if planned.spec.server is not None else Giver.CHECK
                message = said(with_result(entry, answer, now))
                return with_results(state, snapshot.change_pod, Verdict.UNPASS, message), by
    if state.checks and all(each.state == CheckState.PASSED for each in state.checks):
        return _all_pass(state, snapshot), None
    return state, None


def awaits_node(status: ChangePodStatus, name: str) -> bool:
    """Whether it is not known if the first check of an AlterShield server was started: the server may have a node for
    the batch whose id it has not told."""
    entry = entry_of(status.checks, name, Phase.PRE)
    return entry is not None and not entry.handle and entry.state in (CheckState.RUNNING, CheckState.UNKNOWN)


def with_node(status: ChangePodStatus, name: str, node: str) -> ChangePodStatus:
    """The status with the id that a callback has told."""
    checks = tuple(
        msgspec.structs.replace(each, handle=node) if (each.name, each.phase) == (name, Phase.PRE) else each
        for each in status.checks
    )
    return msgspec.structs.replace(status, checks=checks, change_pod_id=node)


def awaits(status: ChangePodStatus, name: str, phase: Phase) -> bool:
    """Whether a result of this check in this phase is still of use: the check runs, or it ended without a result. A
    server also sends results of a phase that is over (its callback comes late)."""
    entry = entry_of(status.checks, name, phase)
    if entry is None or entry.state not in (CheckState.RUNNING, CheckState.UNKNOWN):
        return False
    return phase is Phase.POST or (bool(entry.handle) and entry_of(status.checks, name, Phase.POST) is None)


def _done(state: ChangePodStatus, last: str, now: float, reason: str = "") -> ChangePodStatus:
    """The end state. A message that a person wrote stays. A check that still runs has no result; `reason` says why."""
    checks = tuple(
        ended(each, CheckState.UNKNOWN, reason or last, now) if each.state == CheckState.RUNNING else each
        for each in state.checks
    )
    return msgspec.structs.replace(state, status=PodState.EXECUTE_DONE, message=state.message or last, checks=checks)
