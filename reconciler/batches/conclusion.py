"""Decides how a batch ends: a result of a check fails the batch, lets it pass, or makes it wait for a person. Pure
functions."""

from collections.abc import Mapping, Sequence

import msgspec

from altershield.api.change_pod import ChangePod, ChangePodStatus, PodState
from altershield.api.check_results import CheckResult, CheckState
from altershield.api.check_specs import OnUnknown, Phase
from altershield.api.condition_types import Giver
from altershield.api.pod_verdicts import Verdict
from altershield.workloads.pods import clip
from reconciler.batches.check_run import Answer, Checks, Planned, Run, ended, with_result
from reconciler.checks.check import Fail, Pass, entry_of
from reconciler.cluster.verdicts import undecided, with_results

SERVER_CHECK = "server"
"""The name of the check of an AlterShield server that no DefensePolicy names."""

Answers = Mapping[tuple[str, Phase], Answer]
"""By name and phase of a check."""


def failed(checks: Checks, runs: Sequence[Run]) -> tuple[Giver, str] | None:
    """The `Giver` of the verdict that fails the batch, and the message; None if no check fails the batch."""
    for run in runs:
        entry, spec = entry_of(checks, run.name, run.phase), run.planned.spec
        if entry is None:
            continue
        by = Giver.SERVER if spec.server is not None else Giver.CHECK
        if entry.state == CheckState.FAILED:
            return by, text_of(entry)
        if entry.state == CheckState.UNKNOWN and spec.if_unknown is OnUnknown.FAIL:
            return by, f"{spec.name}: no result: {entry.reason}"
    return None


def why_waiting(checks: Checks, runs: Sequence[Run]) -> str:
    """Why the batch waits for a person; empty if it does not."""
    for run in runs:
        entry, spec = entry_of(checks, run.name, run.phase), run.planned.spec
        if entry is not None and entry.state == CheckState.UNKNOWN and spec.if_unknown is OnUnknown.HOLD:
            return f"the check {spec.name} has no result: {entry.reason}"
    return ""


def concluded(state: ChangePodStatus, change_pod: ChangePod, now: float) -> ChangePodStatus:
    """The end of a batch that no check fails. The pods get an explicit verdict only if every check passed. Otherwise
    the message says how the first phase with a check without a result ended."""
    ends = {
        Phase.PRE: (PodState.PRE_FAILED, PodState.PRE_TIMEOUT),
        Phase.POST: (PodState.POST_FAILED, PodState.POST_TIMEOUT),
    }
    for phase, (not_started, timeout) in ends.items():
        unknown = [each for each in state.checks if (each.phase, each.state) == (phase, CheckState.UNKNOWN)]
        if unknown:
            return done(state, timeout if all(each.handle for each in unknown) else not_started, now)
    return done(_all_pass(state, change_pod), PodState.POST_FINISH, now)


def _all_pass(state: ChangePodStatus, change_pod: ChangePod) -> ChangePodStatus:
    last = Phase.POST if any(each.phase == Phase.POST for each in state.checks) else Phase.PRE
    message = "; ".join(text_of(each) for each in state.checks if each.phase == last and each.reason)
    return with_results(state, change_pod, Verdict.PASS, clip(message))


def text_of(entry: CheckResult) -> str:
    """The reason in the entry, with the name of the check."""
    return entry.reason if entry.name == SERVER_CHECK else f"{entry.name}: {entry.reason}"


def with_late_results(
    state: ChangePodStatus, change_pod: ChangePod, plan: Sequence[Planned], answers: Answers, now: float
) -> tuple[ChangePodStatus, Giver | None]:
    """The status with the results that came after the batch had ended without them, and the `Giver` of the verdict that
    fails the batch now, or None.

    The message says how the batch ended, and stays. A late pass of a check in Pre proves nothing: the batch ended
    before the checks in Post began.
    """
    if not undecided(state, change_pod):
        return state, None
    for planned in plan:
        for phase in Phase:
            answer, entry = (
                answers.get((planned.spec.name, phase)),
                entry_of(state.checks, planned.spec.name, phase),
            )
            if entry is None or entry.state != CheckState.UNKNOWN:
                continue
            if isinstance(answer, Fail) or (isinstance(answer, Pass) and phase is Phase.POST):
                late = with_result(entry, answer, now)
                checks = tuple(late if each is entry else each for each in state.checks)
                state = msgspec.structs.replace(state, checks=checks)
            if isinstance(answer, Fail):
                by = Giver.SERVER if planned.spec.server is not None else Giver.CHECK
                message = text_of(with_result(entry, answer, now))
                return with_results(state, change_pod, Verdict.UNPASS, message), by
    if state.checks and all(each.state == CheckState.PASSED for each in state.checks):
        return _all_pass(state, change_pod), None
    return state, None


def done(state: ChangePodStatus, last: str, now: float, reason: str = "") -> ChangePodStatus:
    """The end state `last`, at `now` (Unix seconds). A message that a person wrote stays. A check that still runs ends
    without a result, for this `reason`."""
    checks = tuple(
        ended(each, CheckState.UNKNOWN, reason or last, now) if each.state == CheckState.RUNNING else each
        for each in state.checks
    )
    message = state.message if state.message not in ("", PodState.INIT) else last  # Init: the default of the CRD
    return msgspec.structs.replace(state, status=PodState.EXECUTE_DONE, message=message, checks=checks)
