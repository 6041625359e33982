"""Mutants of the decisions about a batch of pods."""

from tests.mutants.mutant import Source
from tests.mutants.release_tests import ONE_KIND, RELEASE_TESTS

SOURCES = (
    Source(
        "reconciler/batches/transitions.py",
        ("tests/unit/reconciler/test_batches.py",),
        (
            ("if snapshot.server is Availability.NOT_CONFIGURED:", "if False:"),
            ("snapshot.server is Availability.SWITCHED_OFF or left <= 0", "left <= 0"),
            (
                "snapshot.server is Availability.SWITCHED_OFF or left <= 0",
                "snapshot.server is Availability.SWITCHED_OFF",
            ),
            ("    if snapshot.server is Availability.UNREACHABLE:\n", "    if False:\n"),
            (
                "status=PodState.INIT, checks=()), Later(POLL_INTERVAL)",
                "status=PodState.PRE_WAIT), Later(POLL_INTERVAL)",
            ),
            ("return (state, Later(left)) if left > 0 else", "return (state, Ask(Call.SUBMIT_PRE)) if left > 0 else"),
            (
                "    if left <= 0:\n        return (state, Ask(last_poll))",
                "    if left <= 1:\n        return (state, Ask(last_poll))",
            ),
            ("(state, Ask(last_poll)) if answer is None else", "(state, Ask(last_poll)) if False else"),
            ("    if answer.passed and phase is Phase.PRE:\n", "    if False:\n"),
            ("    return _last_phase(status) is phase and status.status in (", "    return status.status in ("),
            ("    if not _undecided(state, snapshot.change_pod):\n", "    if False:\n"),
            ("message=state.message or last", "message=last"),
            ("result.verdict != Verdict.PASS]", "result.verdict == Verdict.UNPASS]"),
            ("if name in pods and result", "if result"),
            ("return Giver.SERVER if by_server else Giver.PERSON", "return Giver.PERSON"),
            (
                "if each == change_pod.spec.failed_by), Giver.HEALTH)",
                "if each == change_pod.spec.failed_by), Giver.PERSON)",
            ),
            ("    state = _with_initial_verdicts(state, snapshot.change_pod)\n", ""),
            ("if pod.verdict and pod.pod not in known]", "if pod.verdict]"),
            (
                "        case _, Checked(passed=False) as result:",
                "        case PodState.PRE_FAILED, Checked(passed=False) as result:",
            ),
            ("Verdict.PASS if result.passed else Verdict.UNPASS", "Verdict.PASS"),
            ("return Later(min(interval, max(left, 0.0)))", "return Later(interval)"),
            ("elif pods <= results.keys():", "elif results:"),
        ),
    ),
    Source(
        "reconciler/batches/batch.py",
        ("tests/unit/reconciler/test_batches.py", *RELEASE_TESTS),
        (
            ("bool(info.verdict) and result.verdict == Verdict.PASS", "bool(info.verdict)"),
            ("change_pod if needs_work(change_pod) else None", "change_pod"),
            (
                "for result in change_pod.status.pod_results if result.verdict}",
                "for result in change_pod.status.pod_results}",
            ),
            ("clip(result.message, MAX_MESSAGE)", "result.message"),
        ),
        chosen=ONE_KIND,
    ),
)
