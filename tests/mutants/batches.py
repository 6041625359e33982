"""Mutants of the decisions about a batch of pods."""

from tests.mutants.mutant import Source
from tests.mutants.release_tests import ONE_KIND, RELEASE_TESTS

SOURCES = (
    Source(
        "reconciler/batches/transitions.py",
        ("tests/unit/reconciler/test_batches.py",),
        (
            ("    if not snapshot.server:\n", "    if False:\n"),
            ("isinstance(answer, Refused) or left <= 0", "left <= 0"),
            ("isinstance(answer, Refused) or left <= 0", "isinstance(answer, Refused)"),
            ("isinstance(answer, Refused) or left <= 0", "isinstance(answer, Refused) or left <= 1"),
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
                "        case PodState.PRE_SUBMITTED, Checked(passed=False, message=message):",
                "        case PodState.PRE_FAILED, Checked(passed=False, message=message):",
            ),
            ("Verdict.PASS if passed else Verdict.UNPASS", "Verdict.PASS"),
            ("return state, Later(min(POLL_INTERVAL, left))", "return state, Later(POLL_INTERVAL)"),
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
