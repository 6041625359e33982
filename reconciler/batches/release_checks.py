"""The state machine of a ChangePod without pods: checks before a step, or after the release. Pure functions.

Before a step, a check that does not pass is tried again until the release does not wait for it any more. What it said
stays in the condition Verified meanwhile. After the release, each check runs once.
"""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from altershield.api.change_pod import ChangePod, ChangePodStatus, PodState
from altershield.api.check_results import CheckResult, CheckState
from altershield.api.check_specs import TRY_AGAIN_SECONDS, CheckPhase, OnUnknown, Phase
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition, find_condition, plain_time, set_condition
from altershield.workloads.pods import clip
from reconciler.batches.check_run import Answer, Ask, Later, Planned, Run, advance, with_entry
from reconciler.batches.conclusion import Answers, done, failed, text_of, why_waiting
from reconciler.checks.check import entry_of
from reconciler.cluster.verdicts import HELD, IN_PROGRESS, waiting_for_person

PASSED = "ChecksPassed"
"""The reason of the condition Verified if all checks passed."""

UNCHECKED = "NotChecked"
"""The reason if checks without a result count as passed."""

UNCHECKED_TEXT = "a check has no result, which counts as passed"

TRIED_AGAIN = "TriedAgain"
"""The reason while a check that did not pass is tried again."""

APPROVED = "Approved"
"""The reason if a person let the release go on without the checks."""

NOT_NEEDED = "NotNeeded"
"""The reason if the ChangePod ended without a verdict."""

VOID = "the release does not wait for these checks any more"
"""Its message."""

Waits = Sequence[Ask | Later]


def phase_of(change_pod: ChangePod) -> Phase:
    """The phase of a check's run, as its requests name it."""
    return Phase.POST if change_pod.spec.phase == CheckPhase.POST_RELEASE else Phase.PRE


def step(
    state: ChangePodStatus,
    change_pod: ChangePod,
    plan: Sequence[Planned],
    answers: Answers,
    timeouts: tuple[int, int],
    now: float,
    *,
    asked: bool,
) -> tuple[ChangePodStatus, Waits]:
    """The status with its condition, and what follows. `timeouts`: seconds, of a check without a timeout of its own
    before a step and after the release. `asked`: whether the release waits for the checks."""
    if state.status == PodState.EXECUTE_DONE:
        return state, ()
    if not asked:
        return _verified(done(state, VOID, now, VOID), change_pod, None, NOT_NEEDED, VOID, now), ()
    phase = phase_of(change_pod)
    state = _begun(state, timeouts, phase, now)
    runs: list[Run] = []
    waits: list[Ask | Later] = []
    for planned in plan:
        timeout = planned.spec.timeout_seconds or (timeouts[0] if phase is Phase.PRE else timeouts[1])
        run = Run(planned, phase, timeout, float(change_pod.spec.create_time_unix))
        entry, following = _advance(run, entry_of(state.checks, run.name, phase), answers.get((run.name, phase)), now)
        state = msgspec.structs.replace(state, checks=with_entry(state.checks, run, entry))
        if planned.spec.server is not None:
            state = msgspec.structs.replace(state, change_pod_id=entry.handle if entry is not None else "")
        runs.append(run)
        if following is not None:
            waits.append(following)
    return _concluded(state, change_pod, runs, waits, now)


def _begun(state: ChangePodStatus, timeouts: tuple[int, int], phase: Phase, now: float) -> ChangePodStatus:
    before, after = timeouts
    if state.pre_timeout_threshold or state.post_timeout_threshold:
        return state
    state = msgspec.structs.replace(state, pre_timeout_threshold=before, post_timeout_threshold=after)
    if phase is Phase.PRE:
        return msgspec.structs.replace(
            state, status=PodState.PRE_SUBMITTED, pre_submit_time=plain_time(now), pre_submit_time_unix=int(now)
        )
    return msgspec.structs.replace(
        state, status=PodState.POST_SUBMITTED, post_submit_time=plain_time(now), post_submit_time_unix=int(now)
    )


def _advance(
    run: Run, entry: CheckResult | None, answer: Answer | None, now: float
) -> tuple[CheckResult | None, Ask | Later | None]:
    """The check, one step further."""
    if entry is None or entry.state == CheckState.RUNNING:
        found, following = advance(run, entry, answer, now)
        if entry is None or found is None:
            return found, following
        entry = msgspec.structs.replace(found, previous_time_unix=entry.previous_time_unix)
        if following is not None:
            return entry, following
    if run.phase is not Phase.PRE or passes(run, entry):
        return entry, None
    again = entry.start_time_unix + (run.planned.spec.every_seconds or TRY_AGAIN_SECONDS)
    if now < again:
        return entry, Later(again - now)
    found, following = advance(replace(run, phase_began=now), None, None, now)
    if found is None:  # nothing is written while its server cannot be reached
        return entry, following
    return msgspec.structs.replace(found, previous_time_unix=entry.start_time_unix), following


def passes(run: Run, entry: CheckResult) -> bool:
    """Whether a check that has ended lets the release go on."""
    unknown = entry.state == CheckState.UNKNOWN and run.planned.spec.if_unknown is OnUnknown.PASS
    return entry.state == CheckState.PASSED or unknown


def _concluded(
    state: ChangePodStatus, change_pod: ChangePod, runs: Sequence[Run], waits: Waits, now: float
) -> tuple[ChangePodStatus, Waits]:
    """The status with its end, if the checks have come to one, and its condition."""
    failure = failed(state.checks, runs) if phase_of(change_pod) is Phase.POST else None
    if failure is not None:
        by, message = failure
        state = done(state, PodState.POST_FINISH, now, "another check failed")
        return _verified(state, change_pod, False, by, message, now), ()
    if waits:
        reason, message = _progress(state, runs)
        return _verified(state, change_pod, None, reason, message, now), waits
    if why := why_waiting(state.checks, runs):
        return _verified(state, change_pod, None, HELD, waiting_for_person(why), now), ()
    ended = [text_of(each) for each in state.checks if each.reason]
    unknown = any(each.state == CheckState.UNKNOWN for each in state.checks)
    reason, message = (UNCHECKED, UNCHECKED_TEXT) if unknown else (PASSED, "all checks passed")
    state = done(state, PodState.POST_FINISH, now)
    return _verified(state, change_pod, True, reason, "; ".join([message, *ended]), now), ()


def _progress(state: ChangePodStatus, runs: Sequence[Run]) -> tuple[str, str]:
    """The reason and the message of the condition while a check runs, or is to be tried again. What a check said stays
    until it has another result."""
    entries = [entry for run in runs if (entry := entry_of(state.checks, run.name, run.phase)) is not None]
    ended = [entry for entry in entries if entry.state != CheckState.RUNNING]
    names = {run.name: run for run in runs}
    texts = [_said(each) for each in ended if not passes(names[each.name], each)]
    if texts:
        return TRIED_AGAIN, "; ".join(texts)
    known = find_condition(state.conditions, ConditionType.VERIFIED)
    if known is not None and known.reason == TRIED_AGAIN and any(each.previous_time_unix for each in entries):
        return known.reason, known.message
    return IN_PROGRESS, "the checks have no result yet"


def _said(entry: CheckResult) -> str:
    text = text_of(entry)
    return f"no result of {text}" if entry.state == CheckState.UNKNOWN else text


def _verified(
    state: ChangePodStatus, change_pod: ChangePod, status: bool | None, reason: str, message: str, now: float
) -> ChangePodStatus:
    text = "Unknown" if status is None else str(status)
    generation = change_pod.metadata.generation
    condition = Condition(ConditionType.VERIFIED, text, reason, clip(message), observed_generation=generation)
    return msgspec.structs.replace(
        state, conditions=set_condition(state.conditions, condition, now), observed_generation=generation
    )


def approved(state: ChangePodStatus, change_pod: ChangePod, message: str, now: float) -> ChangePodStatus:
    """The status after a person let the release go on without the checks."""
    state = done(state, PodState.POST_FINISH, now, message)
    return _verified(state, change_pod, True, APPROVED, message, now)
