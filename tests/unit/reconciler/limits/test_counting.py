"""What counts for a ReleaseLimit: begun releases, releases under way, first failures."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.change_workload import ChangeWorkloadSpec, ChangeWorkloadStatus, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.gates.limits import (
    MAX_FAILURES,
    CountedFailure,
    CountedRelease,
    Fuse,
    Rate,
    ReleaseLimitSpec,
)
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.meta import Condition
from altershield.api.policy import AppliedPolicy, Mode
from altershield.api.rollout import PassedStep, Phase, RolloutStatus
from kube_base.meta import ObjectMeta
from kube_base.times import rfc3339
from reconciler.cluster.release import Release
from reconciler.limits.counting import (
    Found,
    began,
    first_failures,
    has_failed_first,
    hour_of,
    hours,
    is_under_way,
    releases_begun,
    releases_under_way,
)

RATE = ReleaseLimitSpec(rate=Rate(3, 3600))
FUSE = ReleaseLimitSpec(fuse=Fuse(3, 3600))


def release(
    name: str = "web",
    version: str = "1" * 32,
    state: WorkloadState = WorkloadState.RUNNING,
    *,
    created: int = 1000,
    mode: Mode = Mode.ENFORCE,
    **status: Any,
) -> Release:
    own = f"{name}--x--{version}"
    spec = ChangeWorkloadSpec(own, name, name, version, 1, 60, "", created, policy=AppliedPolicy(mode=mode))
    return Release(ObjectMeta(own, "shop", uid=own), spec, ChangeWorkloadStatus(status=state, **status))


def found(each: Release, *, present: bool = True, judged: bool = True) -> Found:
    return Found(each, NamedWorkload("shop", "apps/v1", "Deployment", each.spec.service_name), present, judged)


def entry(name: str, time: float, version: str = "1" * 32) -> CountedRelease:
    return CountedRelease("shop", "apps/v1", "Deployment", name, version=version, time=rfc3339(time))


def failed(name: str = "web", version: str = "1" * 32, at: int = 2000, **fields: Any) -> Release:
    return release(name, version, WorkloadState.SUSPEND, entry_time_unix=at, **fields)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"state": WorkloadState.INIT}, True),
        ({"state": WorkloadState.TIME_OUT_PRE_THRESHOLD}, True),
        ({"state": WorkloadState.SUCCESS}, False),
        ({"state": WorkloadState.ROLLBACK}, False),
        *(
            (
                {"rollout": RolloutStatus(phase=phase)},
                phase in (Phase.ROLLING, Phase.VERIFYING, Phase.SOAKING, "Finishing"),
            )
            for phase in Phase
        ),
        ({"rollout": RolloutStatus(phase=Phase.ROLLING, waiting_for=("quota",))}, False),
        ({"conditions": (Condition(ConditionType.STALLED, "True", "Paused"),)}, False),
        ({"conditions": (Condition(ConditionType.STALLED, "False", "GoesOn"),)}, True),
        ({"conditions": (Condition(ConditionType.NO_REPLICAS, "True", "NoPods"),)}, False),
    ],
)
def test_a_release_is_under_way_while_it_rolls_is_verified_or_soaks(fields: dict[str, Any], expected: bool) -> None:
    assert is_under_way(release(**fields)) is expected


def test_a_release_begins_when_pods_get_its_version() -> None:
    assert began(release()) == 1000
    assert began(release(rollout=RolloutStatus(phase=Phase.HELD, step=1, step_time_unix=1001))) == 0
    assert began(release(rollout=RolloutStatus(phase=Phase.ROLLING, step=1, step_time_unix=1500))) == 1500
    begins = RolloutStatus(phase=Phase.FINISHING, step=1, step_time_unix=1500, phase_time_unix=1600)
    assert began(release(rollout=begins)) == 1600, "its first step waited"
    passed = (PassedStep(1, begin_time_unix=1500),)
    later = RolloutStatus(phase=Phase.HELD, step=2, step_time_unix=1900, passed_steps=passed)
    assert began(release(rollout=later)) == 1500


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"state": WorkloadState.SUSPEND}, True),
        ({"state": WorkloadState.SUSPEND, "reached": 2}, False),
        ({"state": WorkloadState.SUSPEND, "mode": Mode.OBSERVE}, False),
        ({"state": WorkloadState.SUSPEND, "mode": Mode.WARN}, False),
        ({"state": WorkloadState.ROLLBACK, "rollback_reason": "PodNotUp"}, True),
        ({"state": WorkloadState.FAILED, "rollback_reason": "VerificationFailed"}, True),
        ({"state": WorkloadState.FAILED, "rollback_reason": "VerificationFailed", "reached": 1}, False),
        ({"state": WorkloadState.ROLLBACK, "rollback_reason": "Requested"}, False),
        ({"state": WorkloadState.FAILED}, False),
        ({"state": WorkloadState.RUNNING}, False),
    ],
)
def test_a_first_failure_is_one_before_success_with_a_policy_that_enforces(
    fields: dict[str, Any], expected: bool
) -> None:
    assert has_failed_first(release(**fields)) is expected


def test_a_begun_release_counts_once_and_after_its_changeworkload_is_gone() -> None:
    first = releases_begun((), [found(release())], RATE, 1001)
    assert first == (entry("web", 1000),)
    assert releases_begun(first, [found(release())], RATE, 1002) == first
    assert releases_begun(first, [], RATE, 4599) == first
    assert releases_begun(first, [], RATE, 4600) == ()
    again = releases_begun(first, [found(release(created=1500))], RATE, 1600)
    assert again == (entry("web", 1000), entry("web", 1500)), "the version was released again"
    held = release(rollout=RolloutStatus(phase=Phase.ROLLING, step=1, step_time_unix=1200))
    assert releases_begun((), [found(held)], RATE, 1600) == (entry("web", 1200),)
    resumed = msgspec.structs.replace(held.status, rollout=RolloutStatus(phase=Phase.ROLLING, step_time_unix=1400))
    counted = (entry("web", 1200),)
    assert releases_begun(counted, [found(msgspec.structs.replace(held, status=resumed))], RATE, 1600) == counted


def test_what_is_not_judged_or_not_present_takes_no_place_and_lists_are_bounded() -> None:
    spec = ReleaseLimitSpec(rate=Rate(2, 3600), concurrent=2)
    many = [found(release(f"w{number}", created=1000 + number)) for number in range(9)]
    assert [each.name for each in releases_begun((), many, spec, 1100)] == ["w7", "w8"]
    assert [each.name for each in releases_under_way(many, spec)] == ["w6", "w7", "w8"], "one more than may be"
    for fields in ({"present": False}, {"judged": False}):
        assert releases_under_way([found(release(), **fields)], spec) == ()
    assert releases_begun((), [found(release(), judged=False)], spec, 1100) == ()
    assert releases_begun((), many, FUSE, 1100) == releases_under_way(many, FUSE) == ()


def test_releases_of_one_second_that_are_more_than_may_begin_come_to_rest() -> None:
    many = [found(release(version=number * 32)) for number in "1234"]
    spec = ReleaseLimitSpec(rate=Rate(2, 3600))
    first = releases_begun((), many, spec, 1001)
    assert releases_begun(first, many, spec, 1002) == first
    assert [each.version[0] for each in first] == ["3", "4"]


def test_a_changeworkload_fails_once_and_a_workload_is_listed_once() -> None:
    first = first_failures((), [found(failed(at=2000), judged=False)], FUSE, 2100)
    assert [(each.name, each.time) for each in first] == [("web", rfc3339(2000))]
    ended = release(state=WorkloadState.FAILED, rollback_reason="PodNotUp", entry_time_unix=2050)
    assert first_failures(first, [found(ended)], FUSE, 2100) == first
    repaired = first_failures(first, [found(ended), found(failed(version="2" * 32, at=2200))], FUSE, 2300)
    assert [(each.uid[-1], each.time) for each in repaired] == [("2", rfc3339(2200))]
    assert first_failures(first, [], FUSE, 5600) == ()
    assert first_failures(first, [], RATE, 2100) == ()
    many = [found(failed(f"w{number}", at=2000 + number)) for number in range(MAX_FAILURES + 5)]
    kept = first_failures((), many, FUSE, 2200)
    assert (len(kept), kept[0].name) == (MAX_FAILURES, "w5")


def test_the_index_by_hours_covers_the_period() -> None:
    for created in (0, 3599, 3600, 7200, 7201):
        for period in (1, 60, 3600, 10_000):
            if 7201 - period < created <= 7201:
                assert hour_of(release(created=created)) in set(hours(period, 7201))


_stories = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("12"), st.integers(1, 400)), max_size=12)


@given(_stories, st.integers(1, 5), st.integers(10, 300))
def test_counts_after_each_event_are_those_of_all_events_at_once(
    story: list[tuple[str, str, int]], most: int, period: int
) -> None:
    """A version that is released again replaces its ChangeWorkload; the status remembers the earlier release."""
    spec = ReleaseLimitSpec(rate=Rate(most, period))
    events = sorted({(time, name, version) for name, version, time in story})
    stored: dict[tuple[str, str], Release] = {}
    known: tuple[CountedRelease, ...] = ()
    for number, (time, name, version) in enumerate(events, 1):
        stored[name, version] = release(name, version * 32, created=time)
        known = releases_begun(known, map(found, stored.values()), spec, time)
        inside = [at for at, _, _ in events[:number] if at > time - period]
        assert [each.time for each in known] == [rfc3339(at) for at in inside[-most:]]


def test_a_failure_is_as_the_status_has_it() -> None:
    (found_,) = first_failures((), [found(failed())], FUSE, 2100)
    uid = f"web--x--{'1' * 32}"
    assert found_ == CountedFailure("shop", "apps/v1", "Deployment", "web", uid=uid, time=rfc3339(2000))
