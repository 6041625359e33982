"""Repeats checks of a batch that is done, while the step of its release soaks. Pure functions.

The entry of the check is stored before each run, as for the first run, so a reconciler continues a run that another one
began. It has the time of the run before, from which a check knows which Events and logs are new. A check that failed is
not repeated: its verdict stands, or a person has overruled it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from altershield.api.change_pod import ChangePod, ChangePodStatus
from altershield.api.check_results import CheckResult, CheckState
from altershield.api.check_specs import Phase
from altershield.api.condition_types import Giver
from altershield.api.pod_verdicts import Verdict
from reconciler.batches.check_run import Answer, Ask, Later, Planned, Run, advance, ended, with_entry
from reconciler.batches.conclusion import Answers, failed
from reconciler.checks.check import NotStarted, entry_of
from reconciler.cluster.verdicts import with_results

OVER = "the soak was over before the check had a result"


@dataclass(frozen=True, slots=True)
class Soak:
    """Whether checks are repeated."""

    lasts: bool = False
    begins: bool = True
    """Whether a run may begin: only the leader sends requests."""


NO_SOAK = Soak()


def repeated(
    state: ChangePodStatus, change_pod: ChangePod, plan: Sequence[Planned], soak: Soak, answers: Answers, now: float
) -> tuple[ChangePodStatus, Giver | None, Sequence[Ask | Later]]:
    """The status of a batch that is done after each repeated check went one step further, the `Giver` of the verdict
    that fails the batch now (or None), and what follows. `now`: Unix seconds."""
    if not soak.lasts or any(each.verdict not in ("", Verdict.PASS) for each in state.pod_results):
        return _without_runs(state, now), None, ()
    waits: list[Ask | Later] = []
    runs = []
    for planned in plan:
        entry = entry_of(state.checks, planned.spec.name, Phase.POST)
        if entry is None or not planned.spec.every_seconds:
            continue
        run = Run(planned, Phase.POST, planned.spec.timeout_seconds or state.post_timeout_threshold, now)
        runs.append(run)
        entry, following = _step(run, entry, soak, answers.get((run.name, Phase.POST)), now)
        state = msgspec.structs.replace(state, checks=with_entry(state.checks, run, entry))
        if following is not None:
            waits.append(following)
    failure = failed(state.checks, [run for run in runs if _is_new(run, state, change_pod)])
    if failure is not None:
        by, message = failure
        kept = tuple(each for each in state.pod_results if each.verdict not in ("", Verdict.PASS))
        state = with_results(msgspec.structs.replace(state, pod_results=kept), change_pod, Verdict.UNPASS, message)
        return _without_runs(state, now), by, ()
    return state, None, waits


def _step(
    run: Run, entry: CheckResult, soak: Soak, answer: Answer | None, now: float
) -> tuple[CheckResult, Ask | Later | None]:
    if entry.state == CheckState.RUNNING:
        found, following = advance(run, entry, answer, now)
        if found is None:  # the start had no effect
            why = answer.reason if isinstance(answer, NotStarted) else ""
            return ended(entry, CheckState.UNKNOWN, why or "the check could not be started", now), _next(run, now, now)
        found = msgspec.structs.replace(found, previous_time_unix=entry.previous_time_unix)
        return found, following or (
            _next(run, found.start_time_unix, now) if found.state != CheckState.FAILED else None
        )
    if not soak.begins or entry.state == CheckState.FAILED:
        return entry, None
    if now < entry.start_time_unix + (run.planned.spec.every_seconds or 0):
        return entry, _next(run, entry.start_time_unix, now)
    found, following = advance(run, None, None, now)
    if found is None:  # nothing is written while its server cannot be reached
        return entry, following
    found = msgspec.structs.replace(found, previous_time_unix=entry.start_time_unix)
    return found, following or _next(run, now, now)


def _next(run: Run, began: float, now: float) -> Later:
    """The time of the run after one that began then."""
    return Later(max(1.0, began + (run.planned.spec.every_seconds or 0) - now))


def _is_new(run: Run, state: ChangePodStatus, change_pod: ChangePod) -> bool:
    """Whether the entry differs from the stored one. The verdict that follows from a stored one was given: what a
    person decided since then stands."""
    name = run.name
    return entry_of(state.checks, name, Phase.POST) != entry_of(change_pod.status.checks, name, Phase.POST)


def _without_runs(state: ChangePodStatus, now: float) -> ChangePodStatus:
    """The status in which no check runs any more."""
    checks = tuple(
        ended(each, CheckState.UNKNOWN, OVER, now) if each.state == CheckState.RUNNING else each
        for each in state.checks
    )
    return msgspec.structs.replace(state, checks=checks) if checks != state.checks else state
