"""Checks that are repeated while a step soaks: when they run, what a failure does, and what a restart changes."""

import msgspec
import pytest

from altershield.api.check_results import CheckState
from altershield.api.check_specs import CheckSpec, OnUnknown, Phase
from altershield.api.pod_verdicts import PodInfo, Verdict
from altershield.api.rollout import Phase as StepPhase
from altershield.api.rollout import RolloutStatus
from reconciler.batches.check_run import Answer, Planned, Step
from reconciler.batches.repetition import OVER, Soak
from reconciler.checks.check import Fail, NotStarted, Pass, Pending, Started, Unknown, entry_of
from reconciler.cluster import batch as projection
from reconciler.cluster.soaks import repeats, why_soaking
from reconciler.cluster.verdicts import needs_work
from tests.unit.altershield.releases.builders import NOW, change_pod, release
from tests.unit.reconciler.batches.several_checks import Batch, batch, http, prometheus

EVERY = 60
POST = Phase.POST
SOAKS = Soak(lasts=True)
OK: list[Answer] = [Started("1"), Pass("fine")]


def every(planned: Planned, seconds: int = EVERY) -> Planned:
    spec = msgspec.structs.replace(planned.spec, every_seconds=seconds)
    return Planned(spec, planned.availability, planned.repeatable, planned.why_not)


def passed(planned: Planned, *later: Answer, soak: Soak = SOAKS) -> Batch:
    """A batch that has passed its first run; the answers of later runs."""
    made = batch((planned, list(OK))).run()
    assert made.outcome == ("ExecuteDone", "PostFinish", "pass")
    made.soak, made.asked = soak, []
    made.said[planned.spec.name, POST] = [*later]
    return made


def runs(made: Batch) -> int:
    """How many runs began."""
    return sum(step is Step.START for *_, step in made.asked)


def test_check_runs_again_after_its_interval_and_stores_when_it_ran() -> None:
    made = passed(every(prometheus()), *OK)
    first = entry_of(made.status.checks, "errors", POST)
    assert first is not None
    following = made.reconcile()
    assert following is not None
    assert following.after == pytest.approx(first.start_time_unix + EVERY - made.now)
    assert runs(made) == 0
    made.run(5 * EVERY)
    assert runs(made) in range(4, 12), "a quick start is asked for twice"
    last = entry_of(made.status.checks, "errors", POST)
    assert last is not None
    assert last.start_time_unix - last.previous_time_unix == pytest.approx(EVERY, abs=4)
    assert (last.state, made.outcome) == (CheckState.PASSED, ("ExecuteDone", "PostFinish", "pass"))


@pytest.mark.parametrize("seconds", [10, 60, 3600])
def test_writes_of_a_run_are_bounded(seconds: int) -> None:
    made = passed(every(prometheus(), seconds), Started("1"), Pass())
    before = made.writes
    made.run(20 * seconds)
    assert made.writes - before <= 3 * 21


def test_check_without_an_interval_and_release_that_does_not_soak_repeat_nothing() -> None:
    for made in (passed(prometheus(), *OK), passed(every(prometheus()), *OK, soak=Soak())):
        made.run(5 * EVERY)
        assert made.asked == []


def test_failing_run_fails_the_pods_of_the_batch_at_once_and_is_the_last_one() -> None:
    made = passed(every(prometheus()), Started("1"), Fail("3 of 9 requests failed"))
    made.run(5 * EVERY)
    assert made.outcome == ("ExecuteDone", "PostFinish", "unpass")
    assert made.verified[:2] == ("False", "FailedByCheck")
    assert "errors: 3 of 9 requests failed" in made.verified[2]
    assert made.now < NOW + 3 * EVERY
    assert [each.state for each in made.status.checks] == [CheckState.FAILED]


def test_verdict_of_a_person_after_a_failing_run_stands_and_other_checks_go_on() -> None:
    made = passed(every(prometheus()), Started("1"), Fail("bad"))
    made.run(2 * EVERY)
    results = tuple(msgspec.structs.replace(each, verdict=Verdict.PASS, by="mia") for each in made.status.pod_results)
    made.status = msgspec.structs.replace(made.status, pod_results=results)
    made.run(5 * EVERY)
    assert made.outcome[2] == "pass"


def test_batch_that_failed_before_is_not_checked_again() -> None:
    made = passed(every(prometheus()), *OK)
    failing = tuple(PodInfo(pod=pod, uid=f"{pod}-uid", verdict=Verdict.UNPASS) for pod in "ab")
    made.status = msgspec.structs.replace(made.status, pod_results=failing)
    made.run(5 * EVERY)
    assert made.asked == []


@pytest.mark.parametrize("on_unknown", OnUnknown)
def test_run_without_a_result_is_repeated_unless_it_fails_the_batch(on_unknown: OnUnknown) -> None:
    made = passed(every(prometheus(on_unknown=on_unknown)), Started("1"), Unknown("no data"), Started("1"), Pass())
    made.run(5 * EVERY)
    assert made.outcome[2] == ("unpass" if on_unknown is OnUnknown.FAIL else "pass")
    assert (runs(made) > 2) == (on_unknown is not OnUnknown.FAIL)


def test_run_ends_without_a_result_when_the_soak_is_over() -> None:
    made = passed(every(prometheus(on_unknown=OnUnknown.FAIL)), Started("1"), Pending("no data"))
    made.run(EVERY + 10)
    assert needs_work(change_pod(1, *"ab", status=made.status))
    made.soak = Soak()
    made.run()
    assert [(each.state, each.reason) for each in made.status.checks] == [(CheckState.UNKNOWN, OVER)]
    assert made.outcome[2] == "pass"
    assert not needs_work(change_pod(1, *"ab", status=made.status))


def test_start_without_an_effect_is_repeated_only_after_the_interval() -> None:
    made = passed(every(http()), NotStarted("503"))
    before = made.writes
    made.run(5 * EVERY)
    assert runs(made) <= 6
    assert made.writes - before <= 12
    assert [each.reason for each in made.status.checks] == ["503"]


def test_callback_about_a_repeated_run_fails_the_batch_without_a_new_start() -> None:
    made = passed(every(http(timeout=50)), Started("1"), Pending())
    made.run(EVERY + 5)
    asked = len(made.asked)
    made.now += EVERY
    assert made.receive("smoke", POST, Fail("late"))
    assert made.outcome[2] == "unpass"
    assert len(made.asked) == asked


@pytest.mark.parametrize("crash", range(8))
@pytest.mark.parametrize("last", [Pass("fine"), Fail("bad"), Unknown("none")], ids=str)
def test_reconciler_that_dies_before_any_write_comes_to_the_same_end(crash: int, last: Answer) -> None:
    made = passed(every(prometheus()), Started("1"), last)
    made.crash_before = made.writes + crash
    made.run(2 * EVERY)
    whole = passed(every(prometheus()), Started("1"), last)
    whole.run(2 * EVERY)
    assert made.outcome == whole.outcome
    assert [each.state for each in made.status.checks] == [each.state for each in whole.status.checks]


def projected(made: Batch) -> projection.Batch:
    return projection.read(msgspec.json.encode(change_pod(1, *"ab", status=made.status)))


def specs(made: Batch) -> list[CheckSpec]:
    return [each.spec for each in made.plan]


def test_soak_ends_only_when_the_last_run_of_each_repeated_check_has_a_result() -> None:
    running = passed(every(prometheus()), Started("1"), Pending())
    assert why_soaking(specs(running), [projected(running)]) == ""
    running.run(EVERY + 5)
    assert "runs" in why_soaking(specs(running), [projected(running)])
    for on_unknown in OnUnknown:
        made = passed(every(prometheus(on_unknown=on_unknown)), Started("1"), Unknown("no data"))
        made.run(EVERY + 20)
        assert bool(why_soaking(specs(made), [projected(made)])) == (on_unknown is OnUnknown.HOLD)
        assert why_soaking([prometheus(on_unknown=on_unknown).spec], [projected(made)]) == ""


@pytest.mark.parametrize("phase", StepPhase)
def test_checks_are_repeated_in_the_phase_soaking_only(phase: StepPhase) -> None:
    found = release()
    checks = (every(prometheus()).spec,)
    policy = msgspec.structs.replace(found.spec.policy, checks=checks)
    status = msgspec.structs.replace(found.status, rollout=RolloutStatus(phase=phase))
    soaking = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, policy=policy), status=status)
    assert repeats(soaking) == (phase is StepPhase.SOAKING)
    assert not repeats(msgspec.structs.replace(soaking, spec=found.spec))
