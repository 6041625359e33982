"""Mutants of the decisions about a batch of pods."""

from tests.mutants.mutant import Source
from tests.mutants.release_tests import ONE_KIND, RELEASE_TESTS

BATCH_TESTS = ("tests/unit/reconciler/batches/test_batches.py", "tests/unit/reconciler/batches/test_several_checks.py")

SOURCES = (
    Source(
        "reconciler/batches/check_run.py",
        BATCH_TESTS,
        (
            ("case Availability.UNREACHABLE if left > 0 and not run.repeatable:", "case Availability.LOST if False:"),
            ("        case Availability.SWITCHED_OFF:\n", "        case Availability.SWITCHED_OFF if False:\n"),
            (
                "        case NotStarted() if not repeatable:\n            return None,",
                "        case NotStarted() if not repeatable:\n            return entry,",
            ),
            ("        case NotStarted() if left < -_AWAY:\n            return _begin(run, now)\n", ""),
            ("        case NotStarted() if left < -_AWAY:", "        case NotStarted() if left <= 0:"),
            ("        case None if repeatable and", "        case None if"),
            ("next_poll(elapsed, left) if repeatable else Later(left)", "Later(left)"),
            ("    if left <= 0:\n        if answer is None:", "    if left <= 1:\n        if answer is None:"),
            (
                "        if answer is None:\n            return entry, run.ask(Step.LAST_POLL)",
                "        if False:\n            return entry, run.ask(Step.LAST_POLL)",
            ),
            ("return Later(min(interval, max(left, 0.0)))", "return Later(interval)"),
            ("case availability if left <= 0 and not (", "case availability if False and not ("),
            ("(run.repeatable and availability is Availability.AVAILABLE)", "(availability is Availability.AVAILABLE)"),
            ("(run.repeatable and availability is Availability.AVAILABLE)", "False"),
            ("case _ if left <= 0:\n            reason", "case _ if False:\n            reason"),
            ("(entry.state == CheckState.UNKNOWN and isinstance(answer, Pass | Fail))", "False"),
            ("entry.state == CheckState.RUNNING or (", "True or ("),
            ("ended(entry, CheckState.FAILED, reason, now)", "ended(entry, CheckState.UNKNOWN, reason, now)"),
            ("answer is None and elapsed >= POLL_INTERVAL", "answer is None"),
            ("    if isinstance(answer, Pending) and answer.handle:\n", "    if False:\n"),
        ),
    ),
    Source(
        "reconciler/batches/transitions.py",
        BATCH_TESTS,
        (
            ("    state = _without_earlier_plans(state, snapshot.plan)\n", ""),
            ("    if not snapshot.plan:\n", "    if False:\n"),
            ("        if failure is not None:\n", "        if False:\n"),
            ("        if waits:\n", "        if False:\n"),
            ("        if why:\n", "        if False:\n"),
            ("PodState.PRE_FAILED if phase is Phase.PRE else PodState.POST_FINISH", "PodState.POST_FINISH"),
            ("taken_back = phase is Phase.PRE and before.checks", "taken_back = False"),
            ("each.step is Step.START and each.key in repeatable", "True"),
            (
                "    return msgspec.structs.replace(state, checks=checks)\n\n\ndef _step(",
                "    return state\n\n\ndef _step(",
            ),
            ("phase is Phase.PRE or (first is not None and first.state == CheckState.PASSED)", "True"),
            ("began = state.post_submit_time_unix or now", "began = now"),
            (
                "    if not undecided(state, snapshot.change_pod):\n        return done",
                "    if False:\n        return done",
            ),
            ("    state = with_initial_verdicts(state, snapshot.change_pod)\n", ""),
        ),
    ),
    Source(
        "reconciler/batches/conclusion.py",
        BATCH_TESTS,
        (
            ("spec.on_unknown is OnUnknown.FAIL:", "False:"),
            ("spec.on_unknown is OnUnknown.HOLD:", "False:"),
            ("if (each.phase, each.state) == (phase, CheckState.UNKNOWN)]", "if False]"),
            ("timeout if all(each.handle for each in unknown) else not_started", "timeout"),
            ("(isinstance(answer, Pass) and phase is Phase.POST)", "isinstance(answer, Pass)"),
            ("if state.checks and all(each.state == CheckState.PASSED for each in state.checks):", "if state.checks:"),
            ('message = state.message if state.message not in ("", PodState.INIT) else last', "message = last"),
            ('not in ("", PodState.INIT)', 'not in ("",)'),
            ("if each.state == CheckState.RUNNING else each", "if False else each"),
        ),
    ),
    Source(
        "reconciler/batches/nodes.py",
        (
            *BATCH_TESTS,
            "tests/unit/reconciler/batches/test_server_model.py",
            "tests/unit/reconciler/batches/test_callback_receiver.py",
        ),
        (
            ("entry_of(status.checks, name, Phase.POST) is None)", "True)"),
            ("release is None or order_id(release) != order:", "release is None:"),
            ("    if status.change_pod_id != node and not", "    if not"),
            ("    if is_closed(release):\n", "    if False:\n"),
            ("    return None if awaits(state, name, phase) else Reception.LATE", "    return None"),
            ("bool(entry.handle) and", "True and"),
            ("if entry is None or status.change_pod_id or ", "if entry is None or "),
            (" or entry.start_time_unix > begun_by:", ":"),
            ("not entry.repeated or result.newest_rule > entry.newest_rule > 0", "True"),
            ("> entry.newest_rule > 0", ">= entry.newest_rule"),
        ),
    ),
    Source(
        "reconciler/batches/skipping.py",
        ("tests/unit/reconciler/batches/test_server_model.py",),
        (
            ("            if not error.delivered:\n", "            if True:\n"),
            ("            if not error.delivered:\n", "            if False:\n"),
            ("        if skip.state == SkipState.SENT:", "        if False:"),
            ("any(each.message != text_of(entry) for each in failed)", "False"),
            ("        and all(rule.ignorable and rule.id for rule in each.rules)\n", ""),
            ("self._clock() > skip.time_unix + _LIMIT_SECONDS", "False"),
        ),
    ),
    Source(
        "reconciler/batches/callback_receiver.py",
        ("tests/unit/reconciler/batches/test_callback_receiver.py",),
        (
            ("return self._reconciler.awaits_node(batch.unfinished, begun_by)", "return True"),
            ("any((phase, state) == _WITHOUT_RESULT for _, phase, state in batch.checks)", "True"),
            ("                if callback.node in self._gone:\n", "                if False:\n"),
            ("with self._changes(callback.node) as changed:", "with self._changes('') as changed:"),
            ("_ATTEMPTS = 8", "_ATTEMPTS = 5"),
            ("        if callback.check_type is not CheckType.BATCH:", "        if False:"),
            ("if seconds == _WAITS[-1] and not self._is_awaited(callback, begun_by):", "if False:"),
            ("        if release is None or order_id(release) != order:\n", "        if release is None:\n"),
            ("or not awaits_repetition(found.status):", "or True:"),
            ("key=lambda rule: rule.skippable)", "key=lambda rule: True)"),
            ("tuple(rules[:MAX_FAILED_RULES])", "tuple(rules)"),
            (' if rule.verdict not in ("", "NONE")', ""),
        ),
    ),
    Source(
        "reconciler/batches/repeating.py",
        ("tests/unit/reconciler/batches/test_server_model.py",),
        (
            ("repeated=True", "repeated=False"),
            ("        newest_rule=first.newest_rule,\n", ""),
        ),
    ),
    Source(
        "reconciler/cluster/verdicts.py",
        BATCH_TESTS,
        (
            ("result.verdict != Verdict.PASS]", "result.verdict == Verdict.UNPASS]"),
            ("if name in pods and result", "if result"),
            ("return by or Giver.PERSON", "return Giver.PERSON"),
            (
                "if each == change_pod.spec.failed_by), Giver.HEALTH)",
                "if each == change_pod.spec.failed_by), Giver.PERSON)",
            ),
            ("if pod.verdict and pod.pod not in known]", "if pod.verdict]"),
            ("elif pods <= results.keys():", "elif results:"),
            ("    elif waiting:\n", "    elif False:\n"),
        ),
    ),
    Source(
        "reconciler/cluster/batch.py",
        ("tests/unit/reconciler/batches/test_batches.py", *RELEASE_TESTS),
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
