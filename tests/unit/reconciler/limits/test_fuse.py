"""When a fuse trips, and the freeze that it makes."""

from hypothesis import given
from hypothesis import strategies as st

from altershield.api.gates.freezes import BlownFuse
from altershield.api.gates.limits import CountedFailure, Fuse, ReleaseLimit, ReleaseLimitSpec, ReleaseLimitStatus, Trip
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.gates.rules import MAX_GATE_REASON, GateMode, Judged
from altershield.api.names import is_name
from altershield.api.selectors import Selector
from kube_base.meta import ObjectMeta
from kube_base.times import rfc3339, unix
from reconciler.limits.fuse import freeze, freeze_name, reason, trip

HOUR = Fuse(3, 3600)


def failure(name: str, at: float, namespace: str = "shop") -> CountedFailure:
    return CountedFailure(namespace, "apps/v1", "Deployment", name, uid=f"{name}-{at}", time=rfc3339(at))


def three(*at: float) -> list[CountedFailure]:
    return [failure(name, time) for name, time in zip("abcdefgh", at, strict=False)]


def test_a_fuse_trips_when_so_many_workloads_failed_in_its_period() -> None:
    found = trip("l", three(1000, 2000, 4599), HOUR, 0.0, 4600)
    assert found == Trip(rfc3339(4599), "fuse-l-19700101011639")
    assert trip("l", three(1000, 2000, 4600), HOUR, 0.0, 4600) is None, "the first one left the period"
    assert trip("l", three(1000, 2000), HOUR, 0.0, 2000) is None
    assert trip("l", three(1000, 2000, 3000), None, 0.0, 3000) is None
    assert trip("l", [], HOUR, 0.0, 3000) is None


def test_earlier_failures_do_not_count_after_a_person_ended_the_freeze() -> None:
    assert trip("l", three(1000, 2000, 3000, 3100), HOUR, 3000.0, 3100) is None
    assert trip("l", three(1000, 3001, 3002, 3100), HOUR, 3000.0, 3100) is not None


def test_failures_of_a_time_in_which_no_reconciler_ran_trip_if_the_last_one_is_in_the_period() -> None:
    assert trip("l", three(1000, 2000, 3000), HOUR, 0.0, 6599) is not None
    assert trip("l", three(1000, 2000, 3000), HOUR, 0.0, 6600) is None


def test_the_freeze_follows_from_the_status() -> None:
    selector = Selector(match_labels={"tier": "core"})
    spec = ReleaseLimitSpec(
        fuse=HOUR, selector=selector, mode=GateMode.WARN, judges=(Judged.CREATE,), namespace_selector=selector
    )
    failures = (failure("old", 100), failure("a", 5000), failure("b", 5001, "bank"), failure("later", 6000))
    status = ReleaseLimitStatus(failures=failures, trip=Trip(rfc3339(5001), "fuse-l-1"), counted_since=rfc3339(200))
    assert status.trip is not None
    made = freeze(ReleaseLimit(ObjectMeta("l", "system"), spec, status), status.trip, "altershield")
    assert (made.metadata.name, made.metadata.namespace) == ("fuse-l-1", "system")
    listed = tuple(
        NamedWorkload(space, "apps/v1", "Deployment", name) for space, name in (("shop", "a"), ("bank", "b"))
    )
    assert made.spec.fuse == BlownFuse("l", listed)
    assert made.spec.reason == (
        "the fuse of the ReleaseLimit l tripped: releases of 2 workloads failed: deployment shop/a, deployment bank/b"
    )
    assert made.spec.requested_by == "altershield"
    assert (made.spec.until, made.spec.mode, made.spec.judges) == (None, GateMode.WARN, (Judged.CREATE,))
    assert made.spec.selector == made.spec.namespace_selector == selector


def test_names_and_reasons_are_bounded() -> None:
    time = "2026-11-28T10:00:00Z"
    assert freeze_name("fleet", time) == "fuse-fleet-20261128100000"
    long = [freeze_name(f"{'a' * 240}.{end}", time) for end in "bc"]
    assert long[0] != long[1]
    assert all(len(each) <= 253 and is_name(each) for each in long)
    many = tuple(NamedWorkload("n" * 63, "apps/v1", "Deployment", f"{number}-{'w' * 200}") for number in range(100))
    text = reason("l" * 253, many)
    assert len(text) <= MAX_GATE_REASON
    assert text.endswith(" more")
    few = reason("l", many[:2])
    assert few.endswith(many[1].text)


_events = st.lists(st.tuples(st.integers(1, 60), st.sampled_from("abcde")), max_size=15)


@given(_events, st.integers(1, 4), st.integers(1, 30), st.integers(0, 60))
def test_a_fuse_trips_exactly_when_a_slow_and_obvious_count_reaches_the_number(
    events: list[tuple[int, str]], most: int, period: int, since: int
) -> None:
    """At each failure: look at all failures so far, one by one."""
    fuse = Fuse(most, period)
    last: dict[str, CountedFailure] = {}
    for at, name in sorted(events):
        last[name] = failure(name, at)
        failures = sorted(last.values(), key=lambda each: each.time)
        found = trip("l", failures, fuse, float(since), float(at))
        recent = {
            other
            for time, other in events
            if time <= at and (time, other) <= (at, name) and time > at - period and time > since
        }
        assert (found is not None) is (len(recent) >= most)
        if found is not None:
            assert unix(found.time) == at
