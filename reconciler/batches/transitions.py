"""The state machine of a ChangePod: one batch of pods under verification. Pure functions.

Without checks, one step leads from Init to ExecuteDone. With checks, the checks of the phase Pre run first, at the same
time. Then the checks of the phase Post run. The state of the batch follows from the entries of the checks
(`check_run`). Every wait has a deadline, which follows from the object. There is one exception: if a check has no
result and its policy says `hold`, the batch waits for a person.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec

from altershield.api.change_pod import ChangePod, ChangePodStatus, PodState
from altershield.api.check_results import CheckResult, CheckState
from altershield.api.check_specs import Phase
from altershield.api.condition_types import Giver
from altershield.api.meta import plain_time, set_condition
from altershield.api.pod_verdicts import Verdict
from reconciler.batches import release_checks
from reconciler.batches.check_run import (
    Ask,
    Later,
    Planned,
    Run,
    Step,
    advance,
    with_entry,
    with_result,
)
from reconciler.batches.conclusion import Answers, concluded, done, failed, why_waiting, with_late_results
from reconciler.batches.repetition import NO_SOAK, Soak, repeated
from reconciler.checks.check import entry_of
from reconciler.cluster.verdicts import failed_by, undecided, verified, with_initial_verdicts, with_results


@dataclass(frozen=True, slots=True)
class BatchSnapshot:
    """The input of a decision."""

    change_pod: ChangePod
    plan: Sequence[Planned] = ()
    """The checks that the batch needs."""
    answers: Answers = field(default_factory=dict)
    """By name and phase: the checks' answers to the `Ask`s of this reconcile, or a callback."""
    pre_timeout: int = 120
    """Seconds, for checks without a timeout of their own. The same holds for `post_timeout`."""
    post_timeout: int = 120
    soak: Soak = NO_SOAK
    """Whether checks of a batch that is done are repeated."""
    asked: bool = False
    """Of checks of a release: whether the release waits for them."""
    release_began: float = 0.0
    """Unix seconds. A batch of an earlier release of the same version has checks of this release."""


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
    change_pod = snapshot.change_pod
    if change_pod.spec.phase:
        timeouts = snapshot.pre_timeout, snapshot.post_timeout
        wanted, waits = release_checks.step(
            state, change_pod, snapshot.plan, snapshot.answers, timeouts, now, asked=snapshot.asked
        )
        following = _following(waits) if waits else DONE
    else:
        wanted, by, waiting, following = _step(state, snapshot, now)
        giver = failed_by(state, change_pod, by)
        wanted = msgspec.structs.replace(
            wanted,
            conditions=set_condition(wanted.conditions, verified(wanted, change_pod, giver, waiting), now),
            observed_generation=change_pod.metadata.generation,
        )
    if wanted == state:
        return state, following
    return msgspec.structs.replace(wanted, update_time=plain_time(now), update_time_unix=int(now)), following


def received(state: ChangePodStatus, snapshot: BatchSnapshot, now: float) -> ChangePodStatus:
    """The status to store after a callback. Any replica may receive a callback, but only the leader sends requests. So
    a check that must not be started twice does not begin here."""
    snapshot = replace(snapshot, soak=replace(snapshot.soak, begins=False))
    status, following = decide(state, snapshot, now)
    if state.status == PodState.EXECUTE_DONE:
        return status
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
    """Returns the status, the `Giver` of the verdict that fails the batch now (or None), the reason why the batch waits
    for a person (or empty), and the next step."""
    if state.status == PodState.EXECUTE_DONE:
        change_pod, answers = snapshot.change_pod, snapshot.answers
        state, by = with_late_results(state, change_pod, snapshot.plan, answers, now)
        if by is None:
            state, by, waits = repeated(state, change_pod, snapshot.plan, snapshot.soak, answers, now)
        return state, by, "", _following(waits) if by is None and waits else DONE
    state = with_initial_verdicts(state, snapshot.change_pod)
    if not undecided(state, snapshot.change_pod):
        return done(state, PodState.POST_FINISH, now, "every pod has a verdict already"), None, "", DONE
    match state.status:
        case "" | PodState.INIT | PodState.PRE_WAIT | PodState.PRE_SUBMITTED:
            unchecked = PodState.PRE_FAILED
        case PodState.POST_WAIT | PodState.POST_SUBMITTED:
            unchecked = PodState.POST_FAILED
        case last:  # a state that the controller never stores: a person wrote it
            return done(state, last, now), None, "", DONE
    if not snapshot.plan:
        return done(state, unchecked, now), None, "", DONE
    state = _without_earlier_plans(state, snapshot.plan)
    for phase in Phase:
        state, runs, waits = _advance_phase(state, snapshot, phase, now)
        failure = failed(state.checks, runs)
        if failure is not None:
            by, message = failure
            state = with_results(state, snapshot.change_pod, Verdict.UNPASS, message)
            last = PodState.PRE_FAILED if phase is Phase.PRE else PodState.POST_FINISH
            return done(state, last, now, "another check failed"), by, "", DONE
        if waits:
            return state, None, "", _following(waits)
        why = why_waiting(state.checks, runs)
        if why:
            return state, None, why, DONE
    return concluded(state, snapshot.change_pod, now), None, "", DONE


def _without_earlier_plans(state: ChangePodStatus, plan: Sequence[Planned]) -> ChangePodStatus:
    """The status without the checks of an earlier release of this version, which had another DefensePolicy. These
    checks must not decide how the batch ends, and the list in the status is bounded. The phase Post begins again with
    the new checks."""
    names = {each.spec.name for each in plan}
    kept = tuple(each for each in state.checks if each.name in names)
    if kept == state.checks:
        return state
    state = msgspec.structs.replace(state, checks=kept)
    if any(each.phase == Phase.POST for each in kept):
        return state
    return msgspec.structs.replace(state, post_submit_time="", post_submit_time_unix=0)


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
    """Sets the begin of a phase. The begin of Post is set once, because it decides the deadline of checks that have not
    begun."""
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
    """Whether the check runs in this phase. The check of an AlterShield server runs in both phases. It runs in Post
    only after it passed in Pre, because the server does not begin the second check earlier."""
    spec = planned.spec
    if spec.server is None:
        return phase in spec.phases
    first = entry_of(checks, spec.name, Phase.PRE)
    return phase is Phase.PRE or (first is not None and first.state == CheckState.PASSED)


def _run(state: ChangePodStatus, snapshot: BatchSnapshot, planned: Planned, phase: Phase, now: float) -> Run:
    if phase is Phase.PRE:
        timeout = state.pre_timeout_threshold or snapshot.pre_timeout
        began = float(max(snapshot.change_pod.spec.create_time_unix, state.retry_time_unix))
    else:
        timeout = state.post_timeout_threshold or snapshot.post_timeout
        began = state.post_submit_time_unix or now
    return Run(planned, phase, planned.spec.timeout_seconds or timeout, max(began, snapshot.release_began))
