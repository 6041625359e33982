"""ReleaseLimits: how many releases may begin and be under way, and the quiet period."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from altershield.api.gates.freezes import BlownFuse
from altershield.api.gates.limits import (
    CountedFailure,
    CountedRelease,
    Fuse,
    Rate,
    ReleaseLimit,
    ReleaseLimitSpec,
    ReleaseLimitStatus,
    Trip,
)
from altershield.api.gates.rules import Judged
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.gates import limits
from altershield.gates.judge import judge, opens_at
from altershield.gates.limits import CLOCKS, Counted
from altershield.gates.release import Admitted, Closed, Release
from altershield.gates.texts import sentence
from kube_base.meta import ObjectMeta
from kube_base.times import rfc3339
from tests.unit.altershield.gates.placed import HOUR, Objects, counted, freeze, labelled, limit, release, workload

PLACE = SYSTEM_NAMESPACE, "l"
IN_A_DAY = Rate(2, 24 * 3600)


def judged(objects: Objects, hour: float, **fields: Any) -> list[Closed]:
    return list(judge(_own(**fields), objects, SYSTEM_NAMESPACE, hour * HOUR))


def _own(**fields: Any) -> Release:
    return release(**{"workload": workload("own"), "version": "new", **fields})


def admitted(name: str, hour: float, version: str = "v1") -> Admitted:
    return Admitted(workload(name), version, hour * HOUR)


def test_so_many_releases_may_begin_in_a_period() -> None:
    one = Objects(limit(rate=IN_A_DAY, releases=[counted("a", 10)]))
    two = Objects(limit(rate=IN_A_DAY, releases=[counted("a", 10), counted("b", 12)]))
    assert judged(one, 13) == []
    (closed,) = judged(two, 13)
    assert sentence(closed) == (
        "ReleaseLimit altershieldoperator-system/l: 2 releases began within 86400 seconds (at most 2); since "
        "1970-01-01T12:00:00Z; it opens at 1970-01-02T10:00:00Z"
    )
    assert judged(two, 33.9)
    assert judged(two, 34) == []
    assert opens_at(_own(), two, SYSTEM_NAMESPACE, 13 * HOUR) == 34 * HOUR


def test_releases_under_way_take_places_and_a_release_takes_the_place_of_its_own_workload() -> None:
    found = Objects(limit(concurrent=2, under_way=[counted("a", 1), counted("b", 2)]))
    (closed,) = judged(found, 3)
    assert closed.what == "2 releases are under way (at most 2): deployment shop/a, deployment shop/b"
    assert (closed.since, closed.opens_at) == ("", "")
    assert opens_at(_own(), found, SYSTEM_NAMESPACE, 3 * HOUR) == 0
    assert judged(found, 3, workload=workload("a")) == []
    many = Objects(limit(concurrent=2, under_way=[counted(name, 1) for name in "abcde"]))
    assert "5 releases are under way (at most 2): deployment shop/a" in judged(many, 3)[0].what
    assert judged(many, 3)[0].what.endswith(" and 2 more")
    assert judged(many, 3, workload=workload("a")), "more than may be are under way"


def test_a_workload_rests_after_its_success() -> None:
    found = Objects(limit(quiet_seconds=3600))
    (closed,) = judged(found, 10.5, succeeded=10 * HOUR)
    assert (closed.since, closed.opens_at) == ("1970-01-01T10:00:00Z", "1970-01-01T11:00:00Z")
    assert judged(found, 11, succeeded=10 * HOUR) == judged(found, 10.5) == []


def test_all_closed_parts_are_named_and_the_last_one_decides_when_it_opens() -> None:
    found = limit(rate=Rate(1, 3600), quiet_seconds=7200, releases=[counted("a", 10)])
    (closed,) = judged(Objects(found), 10.5, succeeded=10 * HOUR)
    assert "; the last release of the workload succeeded less than 7200 seconds ago" in closed.what
    assert closed.opens_at == "1970-01-01T12:00:00Z"
    both = limit(rate=Rate(1, 3600), concurrent=1, releases=[counted("a", 10)], under_way=[counted("a", 10)])
    (closed,) = judged(Objects(both), 10.5)
    assert closed.opens_at == "", "nobody knows when the release under way ends"


def test_the_own_admissions_count_until_the_status_does() -> None:
    found = limit(rate=Rate(1, 3600), concurrent=1)
    fields = {"admitted": {PLACE: (admitted("a", 10),)}}
    assert "1 release began" in judged(Objects(found), 10, **fields)[0].what
    assert judged(Objects(limit(name="other", rate=Rate(1, 3600))), 10, **fields) == [], "it does not count there"
    own = {"admitted": {PLACE: (admitted("own", 10, "new"),)}}
    assert judged(Objects(found), 10, **own) == [], "a client repeats its request"
    shown = limit(rate=Rate(2, 3600), releases=[counted("a", 10.001)])
    assert judged(Objects(shown), 10.01, **fields) == [], "the status counts it"
    earlier = limit(rate=Rate(2, 3600), releases=[counted("a", 9.9)])
    assert judged(Objects(earlier), 10.01, **fields), "the status counts an earlier release of this version"


def test_limits_judge_by_selector_namespace_and_kind_of_change() -> None:
    full = {"concurrent": 1, "under_way": [counted("a", 1)]}
    assert judged(Objects(limit(**full, selector=labelled(team="x"))), 2) == []
    assert judged(Objects(limit(**full, namespace="other")), 2) == []
    assert judged(Objects(limit(**full, namespace="shop")), 2)
    assert judged(Objects(limit(**full)), 2, judged=Judged.CREATE) == []
    assert not judged(Objects(limit(**full)), 2)[0].stops_running
    assert not judged(Objects(limit(**full)), 2)[0].holds


def test_a_fuse_closes_nothing_by_itself_and_a_repair_passes_its_freeze() -> None:
    assert judged(Objects(limit(fuse=Fuse(1, 3600))), 1) == []
    blown = freeze(fuse=BlownFuse("l", (workload("failed"),)))
    for name, repairs, expected in (("failed", True, 0), ("failed", False, 1), ("own", True, 1)):
        assert len(judged(Objects(blown), 1, workload=workload(name), repairs=repairs)) == expected
    assert judged(Objects(blown, freeze(name="other")), 1, workload=workload("failed"), repairs=True)
    namesake = workload("failed", "elsewhere")
    assert judged(Objects(blown), 1, workload=namesake, repairs=True)


def test_what_the_status_counts_is_in_force() -> None:
    entry = CountedRelease("shop", "apps/v1", "Deployment", "a", version="v1", time="1970-01-01T10:00:00Z")
    later = CountedRelease("shop", "apps/v1", "Deployment", "b", version="v1", time="1970-01-01T11:00:00Z")
    status = ReleaseLimitStatus(releases=(later, entry), under_way=(entry,))
    spec = ReleaseLimitSpec(rate=IN_A_DAY, concurrent=3, quiet_seconds=60, fuse=Fuse(3, 3600))
    found = ReleaseLimit(ObjectMeta("l", SYSTEM_NAMESPACE), spec, status)
    placed = limits.in_force(found)
    assert placed is not None
    assert placed.releases == (counted("a", 10), counted("b", 11))
    assert placed.under_way == (counted("a", 10),)
    assert list(limits.counts(found, 12 * HOUR)) == [
        "2 of 2 releases in 86400 s",
        "1 of 3 releases under way",
        "quiet for 60 s after a success",
        "0 of 3 failures in 3600 s",
    ]
    failed = CountedFailure("shop", "apps/v1", "Deployment", "a", uid="1", time="1970-01-01T11:30:00Z")
    tripped = ReleaseLimitStatus(failures=(failed,), trip=Trip("", "fuse-l-1"))
    assert list(limits.counts(ReleaseLimit(ObjectMeta("l"), spec, tripped), 12 * HOUR))[-1] == (
        "the fuse tripped: ReleaseFreeze fuse-l-1"
    )
    deleted = ReleaseLimit(ObjectMeta("l", deletion_timestamp="1970-01-01T10:00:00Z"), spec)
    assert limits.in_force(deleted) is None


_names = st.sampled_from("abcd")
_versions = st.sampled_from(["v1", "v2"])
_times = st.integers(0, 200)
_counted = st.lists(st.builds(lambda n, v, t: Counted(workload(n), v, float(t)), _names, _versions, _times), max_size=8)
_admitted = st.lists(
    st.builds(lambda n, v, t: Admitted(workload(n), v, float(t)), _names, _versions, _times),
    max_size=4,
    unique_by=lambda each: (each.workload, each.version),
)


@given(_counted, _admitted, st.integers(1, 4), st.integers(1, 200), _times)
def test_a_rate_is_closed_as_a_slow_and_obvious_count_says(
    begun: list[Counted], own: list[Admitted], most: int, period: int, now: int
) -> None:
    found = limit(rate=Rate(most, period), releases=sorted(begun, key=lambda each: each.time))
    shown = _without_counted(own, begun)
    at = now + 0.5
    times = [each.time for each in begun if each.time > at - period]
    times += [each.time for each in shown if each.time > at - period]
    closed = list(judge(_own(admitted={PLACE: own}), Objects(found), SYSTEM_NAMESPACE, at))
    assert bool(closed) is (len(times) >= most)
    if closed:
        later = _own(admitted={PLACE: own})
        opens = opens_at(later, Objects(found), SYSTEM_NAMESPACE, at)
        assert not judge(later, Objects(found), SYSTEM_NAMESPACE, opens)
        assert judge(later, Objects(found), SYSTEM_NAMESPACE, opens - 1.5), "not earlier"
        assert rfc3339(opens) == closed[0].opens_at


@given(_counted, _admitted, st.integers(1, 4), _names)
def test_places_are_taken_as_a_slow_and_obvious_count_says(
    under_way: list[Counted], own: list[Admitted], most: int, name: str
) -> None:
    found = limit(concurrent=most, under_way=under_way)
    shown = _without_counted(own, under_way)
    others = {each.workload.name for each in under_way} | {each.workload.name for each in shown}
    closed = judge(_own(workload=workload(name), admitted={PLACE: own}), Objects(found), SYSTEM_NAMESPACE, 0.0)
    assert bool(closed) is (len(others - {name}) >= most)


def _without_counted(own: list[Admitted], counted: list[Counted]) -> list[Admitted]:
    """Those that the status does not show."""
    return [
        each
        for each in own
        if not any(
            one.workload == each.workload and one.version == each.version and one.time >= each.time - CLOCKS
            for one in counted
        )
    ]
