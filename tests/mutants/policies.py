"""Mutants of DefensePolicies: their acceptance and selection, and their effects on releases."""

from tests.mutants.mutant import Source

_T = "tests/unit/reconciler/policies/"
_R = "tests/unit/reconciler/releases/"

SOURCES = (
    Source(
        "altershield/api/label_selectors.py",
        (_T + "test_selection.py",),
        (
            ("return value is not None and value in expression.values", "return True"),
            ("return value is None or value not in expression.values", "return value is not None"),
            ("return expression.key in labels", "return bool(labels.get(expression.key))"),
            ("return expression.key not in labels", "return not labels.get(expression.key)"),
            ("_is_met(each, labels) for each in expressions", "True for each in expressions"),
            ("labels.get(key) == value for key, value in required.items()", "True for key in required"),
        ),
    ),
    Source(
        "reconciler/policies/selection.py",
        (_T + "test_selection.py",),
        (
            ("return -self.spec.priority, self.name", "return self.spec.priority, self.name"),
            ("return -self.spec.priority, self.name", "return -self.spec.priority, ''"),
            ("if other.rank < policy.rank and", "if"),
            ("_requirements(other.spec.selector) <= own", "_requirements(other.spec.selector) & own"),
        ),
    ),
    Source(
        "reconciler/policies/acceptance.py",
        (_T + "test_acceptance.py",),
        (
            ("    if metadata.deletion_timestamp is not None:\n        return None\n", ""),
            ("status.accepted_generation, status.accepted)", "metadata.generation, status.accepted)"),
            ("    if status.accepted is None:\n        return None\n", ""),
            ('        yield "baselineQuery", check.prometheus.baseline_query\n', ""),
            ('            if key == "env" and isinstance(below, list):', "            if False:"),
            ("        if _KEY.fullmatch(key) is None:", "        if _KEY.match(key) is None:"),
        ),
    ),
    Source(
        "reconciler/policies/policy_reconciler.py",
        (_T + "test_policy_reconciler.py",),
        (
            (' if wrong is None else ""\n', "\n"),
            ("        if unknown:\n", "        if False:\n"),
            ("known is not None and known.message == wanted.message", "known is not None"),
            ("known is not None and known.message == wanted.message", "False"),
            ("        if not wanted.is_true:\n", "        if False:\n"),
            ('if wanted.reason == "UnknownReceiver":', "if True:"),
        ),
    ),
    Source(
        "reconciler/releases/terms/rules.py",
        (_R + "test_policy_effects.py",),
        (
            ("    if only and settings.blocking:", "    if only:"),
            ("    if only and settings.rollback:", "    if only:"),
            ('changed |= {"blocking": False, "blocking_off": only}', 'changed |= {"blocking_off": only}'),
            ('changed |= {"rollback": False, "rollback_off": only}', 'changed |= {"rollback_off": only}'),
            ('{"on_failure": policy.on_failure}', "{}"),
            ("if value is not None}", "if value}"),
        ),
        chosen="not (StatefulSet or DaemonSet or CloneSet)",
    ),
    Source(
        "reconciler/releases/findings/failure.py",
        (_R + "test_policy_effects.py", _R + "test_pause_end.py"),
        (
            ("        and not _was_tried(snapshot)\n", ""),
            ("RollbackReason.NOT_UNDONE):\n        return True", "RollbackReason.NOT_UNDONE):\n        return False"),
            ("return withdrawn and status.rollback_reason ==", "return False and status.rollback_reason =="),
            ("    if not snapshot.settings.rollback:\n", "    if False:\n"),
            ('        return "the rollout is paused"\n', '        return ""\n'),
            (
                '        return "this version was rolled back once before and then released again"\n',
                '        return ""\n',
            ),
            ("return pause_ends or verification.giver(groups) is not Giver.HEALTH", "return True"),
            ("if pause_ends and snapshot.workload.held and not snapshot.own_pause:", "if False:"),
            (
                "if snapshot.workload.in_force.paused and not snapshot.own_pause:",
                "if snapshot.workload.in_force.paused:",
            ),
            ("return pause_ends and failed and not replaced", "return False"),
            (" and not verification.unreplaced(snapshot)\n", "\n"),
        ),
        chosen="not (DaemonSet or CloneSet)",
    ),
    Source(
        "reconciler/releases/decisions/pause.py",
        (_R + "test_policy_effects.py", _R + "test_pause_end.py"),
        (
            (
                "    if snapshot.workload.held and _is_verified_while_paused(snapshot, next_state):\n        return Step(draft)\n",
                "",
            ),
            ("        and not workload.in_force.paused\n", ""),
            ("        and workload.in_force.strategy is not Strategy.ON_DELETE\n", ""),
            (
                "        and failure.has_failed(snapshot)\n        and not workload.in_force.paused\n",
                "        and not workload.in_force.paused\n",
            ),
            ("        and not known.ended\n", ""),
            ("        and not failure.is_resumed(snapshot)\n", ""),
            ("0 < known.end_time_unix <= now", "0 < known.end_time_unix"),
            ("if continues and draft.status.pause.ended:", "if continues:"),
            ("((Unpause(), *effects) if workload.held else tuple(effects))", "tuple(effects)"),
            ("    if wanted or workload.held:\n        draft", "    if False:\n        draft"),
            (
                "if not continued or next_state is WorkloadState.SUCCESS",
                "if True or next_state is WorkloadState.SUCCESS",
            ),
            (
                " or failure.is_resumed(snapshot):\n        draft = draft.replace(pause=PauseEnd())",
                ":\n        pass",
            ),
            ("if known.end_time_unix and (known.ended or", "if (known.ended or"),
            (" <= end + _CLOCK_SKEW):", " <= end + 10**10):"),
            (" <= end + _CLOCK_SKEW):", " <= end):"),
            ("end.end_time_unix if waits else None", "None"),
            ("        and groups.count(Group.PASSED) < len(groups)\n", ""),
        ),
        chosen="not (DaemonSet or CloneSet)",
    ),
    Source(
        "altershield/workloads/hold.py",
        ("tests/unit/altershield/workloads/test_hold.py",),
        (
            ("    if not held and not changed:\n        return []\n", ""),
            ("        if _get(raw, parent) is None:\n", "        if False:\n"),
            ("        if before is None:\n", "        if False:\n"),
            ("        and _covers(current, value)\n", ""),
            ("not known.causes or any(each.by == cause.by", "any(each.by == cause.by"),
            (" or any(each.by == cause.by for each in known.causes)", ""),
            ("known.causes if known is not None and held else ()", "known.causes if known is not None else ()"),
            ("{**held, **changed}", "changed"),
            ("(*causes, cause)", "(cause,)"),
            ("    if len(left) == len(known.causes):\n        return []\n", ""),
            ("reason=cause.reason[:_MAX_REASON]", "reason=cause.reason"),
            ("return min((each.pods", "return max((each.pods"),
            ("return depth > 0 and", "return"),
            ("return not isinstance(value, float) and", "return"),
            (' "value": text}, *old]', ' "value": text}]'),
            ("_owns(each, path) for each in entries for path in written)", "False for each in entries)"),
            ("        if value != before:\n            yield ()", "        yield ()"),
            ("return bool(own) and any(", "return any("),
            (
                "return all(_covers(value.get(key), below) for key, below in wanted.items())",
                "return bool(value == wanted)",
            ),
        ),
    ),
)
