"""Mutants of the states and the status of a release."""

from tests.mutants.mutant import Source
from tests.mutants.release_tests import DIRECTORY, ONE_KIND, RELEASE_TESTS

SOURCES = (
    Source(
        "reconciler/releases/findings/verification.py",
        (
            *RELEASE_TESTS,
            f"{DIRECTORY}/test_policy_effects.py",
            "tests/unit/altershield/workloads/test_hold.py",
        ),
        (
            ("groups.reached >= groups.wanted", "True"),
            ("not groups.scales_down", "True"),
            ("    if workload.held:\n        return False\n", ""),
            ("reached > max(0, known.reached + added)", "reached > known.reached"),
            ("reached > max(0, known.reached + added)", "reached > known.reached + added"),
            ("added = max(0, added)", "pass"),
            ("if workload.reach is None or workload.partition_is_share:", "if True:"),
            ("workload.reach is None or workload.partition_is_share", "snapshot.workload.in_force.reach is None"),
            ("workload.reach is None or workload.partition_is_share", "snapshot.workload.in_force.partition_is_share"),
            ("return known.reached, min(known.replicas, replicas)", "return reached, replicas"),
            ("scaled = replicas != known.replicas and reached != replicas", "scaled = False"),
            (
                "groups.memberships.lacks_failing_batch(info.uid, by_health=by_health)",
                "not groups.memberships.newest(info.uid)",
            ),
            ("by_health = known is not None and known.reason == Giver.HEALTH", "by_health = True"),
            ("groups.count(Group.PASSED) == existing", "groups.count(Group.PASSED) > 0"),
            ("        and workload.up_to_date\n", ""),
            ("    if groups.count(Group.FAILED):\n        return WorkloadState.SUSPEND\n", ""),
            ("if present is WorkloadState.SUSPEND and not (len(groups) and snapshot.workload.replicas):", "if False:"),
            ("if present is WorkloadState.SUSPEND and unreplaced(snapshot):", "if False:"),
            (
                "if present is WorkloadState.SUCCESS and not _reaches_further(snapshot, groups):",
                "if present is WorkloadState.SUCCESS:",
            ),
            ("if present is WorkloadState.SUCCESS and not _reaches_further(snapshot, groups):", "if False:"),
            ("    full = waiting // size * size\n", "    full = 0\n"),
            ("+ snapshot.release.spec.wait_time_threshold - now", "- now"),
            (" <= at <= now + CLOCK_SKEW", " <= at"),
            ("max(pod.metadata.created, began) - _MARK_ROUNDING <= at <=", "0 < at <="),
            ("    return gone[:-KEPT_BATCHES]", "    return gone"),
            ("start=1)", "start=2)"),
        ),
        chosen=ONE_KIND,
    ),
    Source(
        "reconciler/releases/decisions/suspension.py",
        RELEASE_TESTS,
        (
            (
                "snapshot.workload.suspended and next_state is WorkloadState.SUCCESS else ()",
                "snapshot.workload.suspended else ()",
            ),
            (
                "wanted = next_state is WorkloadState.SUSPEND and snapshot.settings.blocking",
                "wanted = next_state is WorkloadState.SUSPEND",
            ),
            ("    if not wanted or snapshot.workload.suspended:\n", "    if not wanted:\n"),
            ("if each.metadata.controller is None]", "]"),
            ("(Suspend(min(since)),)", "(Suspend(0),)"),
            (
                "if next_state is WorkloadState.SUSPEND and before is not next_state:",
                "if next_state is WorkloadState.SUSPEND:",
            ),
        ),
        chosen=ONE_KIND,
    ),
    Source(
        "reconciler/releases/decisions/requests.py",
        (f"{DIRECTORY}/test_requests.py",),
        (
            ("    if present is WorkloadState.ROLLBACK and snapshot.targets is None:\n", "    if False:\n"),
            ("    missing = _missing_batch(snapshot, now)\n", "    missing = None\n"),
            (
                "skip=(batch, pods) in failed) for batch, pods in failing",
                "skip=(batch, pods) in failed) for batch, pods in []",
            ),
            ("    if snapshot.workload.suspended:\n        before.append(Resume())\n", ""),
            (
                "defense_check_fail_pods=(), down_pods=(), resumption=Resumption(), pause=PauseEnd())",
                "resumption=Resumption())",
            ),
            (
                '        draft = draft.replace(rollback_to="", rollback_target=SourceRef(), rollback_requested=False)\n',
                "",
            ),
            ("    if _label_follows(snapshot):\n", "    if False:\n"),
            (" and not any(rolled_back(each) for each in snapshot.others):", ":"),
            ("[AllowRepair()]", "[]"),
            (
                "    if not label or snapshot.release.status.resumption.since_unix <= suspended_at:\n",
                "    if not label:\n",
            ),
            ("        if failure.is_resumed(snapshot):\n", "        if False:\n"),
            ("        if groups is not None:\n            failed |=", "        if False:\n            failed |="),
            ("[Resume()] if label else []", "[]"),
            ("    if not to and back is not None:\n", "    if False:\n"),
            ("    if to and to in (version_of(release)", "    if False and to in (version_of(release)"),
            ("status=status.status, entry_time", "entry_time"),
            (".without(ConditionType.REPORTED)", ""),
            (
                "retried_batches=max(groups.memberships.highest_batch, release.status.retried_batches)",
                "retried_batches=0",
            ),
            (" and not request.begun:", ":"),
            ("Repeat(batch) if batch.repeatable else Remove(batch)", "Remove(batch)"),
            ("(*_failing(groups), *_waiting_batches(groups))]", "_failing(groups)]"),
            ("retry_time_unix=int(now)", "retry_time_unix=0"),
        ),
    ),
    Source(
        "reconciler/releases/decisions/answers.py",
        (f"{DIRECTORY}/test_requests.py",),
        (
            ("[-MAX_ACTIONS:]", ""),
            ("draft.replace(request=None)", "draft"),
        ),
    ),
    Source(
        "reconciler/releases/terms/draft.py",
        RELEASE_TESTS,
        (
            ("        if tracked.was_up\n", ""),
            ("        if self.status.status == state:\n            return self\n", ""),
            ("    if not are_short(passed):", "    if False:"),
            ("    due = changed_at + LISTS_INTERVAL\n", "    due = now\n"),
            ("    return left if 0 < left <= interval else 0.0", "    return 0.0"),
            ("lists.append(tuple(pods[:space]))", "lists.append(tuple(pods))"),
        ),
        chosen=ONE_KIND,
    ),
    Source(
        "reconciler/releases/writes/creation.py",
        (*RELEASE_TESTS, f"{DIRECTORY}/test_requests.py"),
        (
            ("    if request is None:\n        return known\n", "    if True:\n        return known\n"),
            ("rfc3339(now), Result.REFUSED, outcome)", "rfc3339(now), Result.DONE, outcome)"),
            ("other.status.source.uid and (passed(other) or passed_before):", "other.status.source.uid:"),
            ("(passed(other) or passed_before)", "passed(other)"),
            ("in previous_uids and version_of(other) not in failed", "in previous_uids"),
            ("if other.status.previous.uid and other.status.previous.version not in failed:", "if False:"),
            ("known.is_true or known.reason == RollbackReason.RELEASED_AGAIN", "False"),
        ),
        chosen=ONE_KIND,
    ),
    Source(
        "reconciler/releases/findings/ungated.py",
        (f"{DIRECTORY}/findings/test_ungated.py",),
        (
            ("    if not workload.fingerprint:\n        return False\n", ""),
            ("max(named or found,", "max(found,"),
            ("reused = known is not None or (", "reused = ("),
            (" or workload.version == workload.fingerprint:", ":"),
            (
                "if released_at is None or not governed_since < min(released_at, current.created):",
                "if released_at is None:",
            ),
            (
                "governed_since < min(released_at, current.created)",
                "governed_since <= min(released_at, current.created)",
            ),
            ("    if known is not None:\n        return Restore(version_of(known))\n", ""),
            ("version_of(known) if known is not None else workload.fingerprint", "workload.fingerprint"),
            ("return Refresh(fresh) if named.status.source != fresh else None", "return Refresh(fresh)"),
        ),
    ),
)
