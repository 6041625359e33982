"""Whether a release may begin: levels, selectors, modes, and when it may."""

import dataclasses
import zoneinfo

from hypothesis import given
from hypothesis import strategies as st

from altershield.api.gates.rules import GateMode, Judged
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.gates.judge import judge, opens_at
from altershield.gates.release import Closed, Release
from altershield.gates.texts import sentence
from tests.unit.altershield.gates.placed import HOUR, Objects, freeze, labelled, release, window


def closed(found: Release, objects: Objects, hour: float) -> list[str]:
    return [each.name for each in judge(found, objects, SYSTEM_NAMESPACE, hour * HOUR) if each.enforced]


def test_deny_is_closed_in_its_times_and_allow_outside_of_them() -> None:
    deny, allow = Objects(window("Deny", (10, 20))), Objects(window("Allow", (10, 20)))
    for hour, inside in ((9.99, False), (10, True), (19.99, True), (20, False)):
        assert bool(closed(release(), deny, hour)) is inside
        assert bool(closed(release(), allow, hour)) is not inside


def test_one_of_the_allows_of_a_level_has_to_be_open_and_deny_wins() -> None:
    night, day = window("Allow", (0, 6), name="night"), window("Allow", (8, 18), name="day")
    lunch = window("Deny", (12, 13), name="lunch")
    found = Objects(night, day, lunch)
    assert closed(release(), found, 5) == closed(release(), found, 9) == []
    assert closed(release(), found, 7) == ["day"], "the one that opens first"
    assert closed(release(), found, 12.5) == ["lunch"]


def test_an_allow_of_the_own_namespace_does_not_open_that_of_the_administrator() -> None:
    found = Objects(window("Allow", (10, 20), name="admin"), window("Allow", (0, 24), name="own", namespace="shop"))
    assert closed(release(), found, 5) == ["admin"]
    assert closed(release(), Objects(window("Allow", (0, 1), namespace="other")), 5) == []


def test_no_label_evades_a_deny_and_none_opens_an_allow() -> None:
    before, after = {"team": "shop"}, {"team": "hotfix"}
    deny = Objects(freeze(selector=labelled(team="shop")))
    for labels in ((before, after), (after, before), (before,)):
        assert closed(release(*labels), deny, 1) == ["f"]
    assert closed(release(after), deny, 1) == []
    narrow = window("Allow", (10, 20), name="all")
    wide = window("Allow", (0, 24), name="hotfixes", selector=labelled(team="hotfix"))
    assert closed(release(before, after), Objects(narrow, wide), 5) == ["all"]
    assert closed(release(after, after), Objects(narrow, wide), 5) == []


def test_namespaces_are_selected_from_the_namespace_of_altershield_only() -> None:
    of_system = Objects(freeze(namespace_selector=labelled(stage="prod")))
    assert closed(release(namespace_labels={"stage": "prod"}), of_system, 1) == ["f"]
    assert closed(release(namespace_labels={"stage": "test"}), of_system, 1) == []
    own = Objects(freeze(namespace="shop", namespace_selector=labelled(stage="prod")))
    assert closed(release(), own, 1) == ["f"]
    assert closed(release(), Objects(freeze(namespace="other")), 1) == []


def test_creations_and_restarts_are_judged_if_the_object_says_so() -> None:
    both = (Judged.UPDATE, Judged.CREATE)
    for judges, judged, expected in (
        ((Judged.UPDATE,), Judged.CREATE, []),
        ((Judged.UPDATE,), Judged.RESTART, []),
        (both, Judged.CREATE, ["f"]),
        (both, Judged.UPDATE, ["f"]),
    ):
        assert closed(release(judged=judged), Objects(freeze(judges=judges)), 1) == expected


def test_mode_warn_denies_nothing_and_opens_nothing() -> None:
    warns = GateMode.WARN
    found = judge(release(), Objects(freeze(mode=warns)), SYSTEM_NAMESPACE, HOUR)
    assert [(each.name, each.enforced) for each in found] == [("f", False)]
    trial = window("Allow", (0, 24), name="trial", mode=warns)
    assert closed(release(), Objects(window("Allow", (10, 20)), trial), 5) == ["w"]
    alone = judge(release(), Objects(window("Allow", (10, 20), mode=warns)), SYSTEM_NAMESPACE, 5 * HOUR)
    assert [each.enforced for each in alone] == [False]


def test_an_allow_that_closes_soon_is_closed_already() -> None:
    found = Objects(window("Allow", (10, 20), (30, 31), (40, 50), min_remaining_seconds=2 * 3600))
    assert closed(release(), found, 17.99) == []
    assert closed(release(), found, 18) == ["w"]
    assert opens_at(release(), found, SYSTEM_NAMESPACE, 18 * HOUR) == 40 * HOUR


def test_times_that_are_not_known_are_closed_for_allow_and_as_before_for_deny() -> None:
    allow = window("Allow", (0, 24), computed_until=10 * HOUR)
    assert closed(release(), Objects(allow), 9) == []
    assert closed(release(), Objects(allow), 10) == ["w"]
    deny = window("Deny", (8, 24), computed_until=10 * HOUR)
    assert closed(release(), Objects(deny), 12) == ["w"]
    assert closed(release(), Objects(deny), 25) == []
    (found,) = judge(release(), Objects(window("Allow", computed_until=0)), SYSTEM_NAMESPACE, HOUR)
    assert "no spec of it was accepted yet" in found.what


def test_what_a_closed_gate_says() -> None:
    (found,) = judge(release(), Objects(window("Deny", (1, 3), reason="sale")), SYSTEM_NAMESPACE, 2 * HOUR)
    assert isinstance(found, Closed)
    assert (found.since, found.opens_at, found.reason) == ("1970-01-01T01:00:00Z", "1970-01-01T03:00:00Z", "sale")
    (frozen,) = judge(release(), Objects(freeze(1)), SYSTEM_NAMESPACE, 2 * HOUR)
    assert (frozen.since, frozen.opens_at) == ("1970-01-01T01:00:00Z", "")


def test_a_release_may_begin_when_all_gates_are_open() -> None:
    found = Objects(window("Deny", (1, 3)), window("Deny", (3, 5), name="v"), freeze(4, 6))
    assert opens_at(release(), found, SYSTEM_NAMESPACE, 2 * HOUR) == 6 * HOUR
    assert opens_at(release(), found, SYSTEM_NAMESPACE, 0) == 0
    assert opens_at(release(), Objects(freeze()), SYSTEM_NAMESPACE, HOUR) == 0


_hours = st.integers(0, 30)
_spans = st.lists(_hours, min_size=0, max_size=6, unique=True).map(
    lambda each: tuple((a, b) for a, b in zip(sorted(each)[::2], sorted(each)[1::2], strict=False))
)
_windows = st.builds(
    lambda type_, spans, name, mode: window(type_, *spans, name=name, mode=mode),
    st.sampled_from(["Allow", "Deny"]),
    _spans,
    st.sampled_from("abc"),
    st.sampled_from(list(GateMode)),
)


@given(st.lists(_windows, max_size=4), st.integers(0, 30))
def test_judgement_is_that_of_a_slow_and_obvious_one(windows: list[object], hour: int) -> None:
    now = hour * HOUR + 1
    found = closed(release(), Objects(*windows), hour + 1 / 3600)  # type: ignore[arg-type]
    enforced = [each for each in windows if each.rules.mode is GateMode.ENFORCE]  # type: ignore[attr-defined]
    inside = [any(a <= now < b for a, b in each.intervals) for each in enforced]  # type: ignore[attr-defined]
    denied = any(here for each, here in zip(enforced, inside, strict=True) if not each.allows)  # type: ignore[attr-defined]
    allows = [here for each, here in zip(enforced, inside, strict=True) if each.allows]  # type: ignore[attr-defined]
    assert bool(found) is (denied or (bool(allows) and not any(allows)))


@given(st.lists(_windows, max_size=4), st.integers(0, 30))
def test_a_release_may_begin_at_the_time_that_it_is_told(windows: list[object], hour: int) -> None:
    objects = Objects(*windows)  # type: ignore[arg-type]
    at = opens_at(release(), objects, SYSTEM_NAMESPACE, hour * HOUR)
    if at:
        assert not closed(release(), objects, at / HOUR)


def test_people_read_times_in_the_zone_of_the_window_and_in_utc() -> None:
    found = dataclasses.replace(window("Deny", (1, 3)), zone=zoneinfo.ZoneInfo("Asia/Shanghai"))
    (closed_,) = judge(release(), Objects(found), SYSTEM_NAMESPACE, 2 * HOUR)
    assert sentence(closed_) == (
        "ReleaseWindow altershieldoperator-system/w: no release may begin in these times; since "
        "1970-01-01T09:00:00+08:00 (1970-01-01T01:00:00Z); it opens at 1970-01-01T11:00:00+08:00 (1970-01-01T03:00:00Z)"
    )
