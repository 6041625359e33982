"""What happens in the stories: gates that people write, and releases."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from altershield.api.gates.freezes import ReleaseFreeze, ReleaseFreezeSpec
from altershield.api.gates.limits import Fuse, Rate, ReleaseLimit, ReleaseLimitSpec
from altershield.api.gates.overrides import GateName, ReleaseOverride, ReleaseOverrideSpec, Target
from altershield.api.gates.rules import GateMode, Judged
from altershield.api.gates.windows import ReleaseWindow, ReleaseWindowSpec
from altershield.api.names import SYSTEM_NAMESPACE as SYSTEM
from altershield.api.policy import Mode
from altershield.api.resources import RELEASE_FREEZES, RELEASE_LIMITS, RELEASE_OVERRIDES, RELEASE_WINDOWS
from altershield.api.selectors import Operator, Requirement, Selector
from kube_base.meta import ObjectMeta
from kube_base.resources import Resource
from kube_base.times import rfc3339

HOUR, DAY = 3600, 86_400
STARTS = (
    1_790_290_800,  # 2026-09-24T23:00Z: before Chatham and Lord Howe put their clocks forward
    1_792_796_400,  # 2026-10-23T23:00Z: before Berlin and St. John's put them back
    1_806_100_200,  # 2027-03-26T20:30Z: before Berlin puts them forward, and Lord Howe back
)
ZONES = ("UTC", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Chatham", "Asia/Kathmandu", "America/St_Johns")
PLACES = (("shop", "web"), ("shop", "web"), ("shop", "api"), ("bank", "web"))
TEAMS: tuple[dict[str, str], ...] = ({}, {"team": "a"}, {"team": "b"}, {"team": "a", "tier": "core"})

Gate = Callable[[float], tuple[Resource, Any]]
"""The object, as it is written at a time."""

_namespaces = st.sampled_from((SYSTEM, SYSTEM, SYSTEM, "shop", "shop", "bank"))
_names = st.sampled_from(["one", "two"])
_selectors = st.sampled_from([
    Selector(), Selector(), Selector(), Selector(match_labels={"team": "a"}), Selector(match_labels={"tier": "core"}),
    Selector(match_expressions=(Requirement("team", Operator.DOES_NOT_EXIST),)),
    Selector(match_expressions=(Requirement("team", Operator.NOT_IN, ("b",)),)),
])  # fmt: skip
_prod = Selector(match_labels={"stage": "prod"})
_of_namespaces = st.sampled_from([None, None, None, None, _prod, _prod, Selector()])
_judges = st.sampled_from([
    (Judged.UPDATE,), (Judged.UPDATE, Judged.CREATE), (Judged.RESTART,), *[tuple(Judged)] * 4,
])  # fmt: skip
_scopes = st.fixed_dictionaries({
    "selector": _selectors, "namespace_selector": _of_namespaces, "judges": _judges,
    "mode": st.sampled_from([GateMode.ENFORCE] * 4 + [GateMode.WARN]),
})  # fmt: skip

_weekly = st.fixed_dictionaries({
    "days": st.lists(st.sampled_from(["Mon", "Wed", "Thu", "Fri", "Sat", "Sun"]), min_size=1, max_size=5, unique=True),
    "from": st.sampled_from(["00:00", "02:15", "02:30", "03:00", "09:00", "17:45"]),
    "to": st.sampled_from(["02:30", "03:00", "17:45", "24:00"]),
})  # fmt: skip
_cron = st.fixed_dictionaries({
    "schedule": st.sampled_from(["30 2 * * *", "0 */6 * * *", "*/30 2 * * *", "15 3 * * 0", "0 18 25,26,27 * *"]),
    "durationSeconds": st.sampled_from([90, 1800, 6 * HOUR, 30 * HOUR]),
})  # fmt: skip
_dates = st.tuples(st.integers(-1, 3), st.integers(0, 3))
_schedules = st.one_of(
    st.builds(lambda each: {"weekly": each}, _weekly),
    st.builds(lambda each: {"cron": each}, _cron),
    st.builds(lambda each: {"dates": each}, _dates),
    st.builds(lambda each: {"dates": each}, _dates),
)
_TOO_MANY = {"cron": {"schedule": "*/20 * * * *", "durationSeconds": 60}}
_wrong = st.sampled_from([
    {"cron": {"schedule": "61 * * * *", "durationSeconds": 60}},
    {"dates": {"from": "2026-02-30", "to": "2026-03-01"}},
    _TOO_MANY,
])  # fmt: skip


def is_wrong(spec: ReleaseWindowSpec) -> bool:
    """Whether it has one of the wrong schedules."""
    crons = [each.cron.schedule for each in spec.schedules if each.cron is not None]
    dates = [each.dates.from_ for each in spec.schedules if each.dates is not None]
    return any(each.startswith(("61", "*/20")) for each in crons) or "2026-02-30" in dates


def _window(
    place: tuple[str, str], type_: str, zone: str, schedules: list[Any], wrong: Any, least: int, scope: dict[str, Any]
) -> Gate:
    def made(now: float) -> tuple[Resource, Any]:
        found = [{"dates": _days(now, *each["dates"])} if "dates" in each else each for each in schedules]
        found = [wrong] if wrong == _TOO_MANY else [*found, *([wrong] if wrong else [])]  # others could join them
        spec = {"type": type_, "timeZone": zone, "schedules": found, "minRemainingSeconds": least}
        whole = msgspec.structs.replace(msgspec.convert(spec, ReleaseWindowSpec), **scope)
        return RELEASE_WINDOWS, ReleaseWindow(_metadata(place), whole)

    return made


def _days(now: float, first: int, more: int) -> dict[str, str]:
    begin, end = (rfc3339(now + (first + each) * DAY)[:10] for each in (0, more))
    return {"from": begin, "to": end}


def _freeze(place: tuple[str, str], begins: int | None, lasts: int | None, scope: dict[str, Any]) -> Gate:
    def made(now: float) -> tuple[Resource, Any]:
        from_ = rfc3339(now + begins) if begins is not None else None
        until = rfc3339(now + (begins or 0) + lasts) if lasts is not None else None
        spec = ReleaseFreezeSpec(reason="an incident", from_=from_, until=until, **scope)
        return RELEASE_FREEZES, ReleaseFreeze(_metadata(place), spec)

    return made


def _limit(place: tuple[str, str], parts: dict[str, Any], scope: dict[str, Any]) -> Gate:
    spec = ReleaseLimitSpec(**parts, **scope)
    return lambda now: (RELEASE_LIMITS, ReleaseLimit(_metadata(place), spec))


def _override(place: tuple[str, str], target: tuple[str, str], gates: set[GateName], uses: int, ttl: int) -> Gate:
    named = Target("Deployment", target[1], target[0] if place[0] == SYSTEM else "")
    spec = ReleaseOverrideSpec(reason="the fix of it", target=named, gates=tuple(gates), uses=uses, ttl_seconds=ttl)
    return lambda now: (RELEASE_OVERRIDES, ReleaseOverride(_metadata(place), spec))


def _metadata(place: tuple[str, str]) -> ObjectMeta:
    return ObjectMeta(place[1], place[0])


_places = st.tuples(_namespaces, _names)
_parts = st.fixed_dictionaries({}, optional={
    "rate": st.builds(Rate, st.integers(1, 3), st.sampled_from([300, 2 * HOUR])),
    "concurrent": st.integers(1, 2),
    "quiet_seconds": st.sampled_from([100, HOUR]),
    "fuse": st.builds(Fuse, st.integers(1, 2), st.sampled_from([600, 3 * HOUR])),
}).filter(bool)  # fmt: skip
_kinds_of_gates = st.sets(st.sampled_from([GateName.WINDOW, GateName.FREEZE, GateName.LIMIT]), min_size=1)
windows = st.builds(
    _window, _places, st.sampled_from(["Allow", "Deny"]), st.sampled_from(ZONES),
    st.lists(_schedules, min_size=1, max_size=2), st.sampled_from([None] * 3) | _wrong,
    st.sampled_from([0, 0, 60, 2 * HOUR]), _scopes,
)  # fmt: skip
_plain: dict[str, Any] = {"judges": tuple(Judged)}
allows = st.builds(
    _window, st.tuples(st.sampled_from((SYSTEM, "shop")), _names), st.just("Allow"), st.sampled_from(ZONES),
    st.lists(_schedules, min_size=1, max_size=1), st.none(), st.sampled_from([0, 60]), st.just(_plain),
)  # fmt: skip
"""Several of them are for the same releases."""
freezes = st.builds(
    _freeze, _places, st.sampled_from([None, None, -HOUR, 60, 5 * HOUR]),
    st.sampled_from([None, 90, 6 * HOUR, 3 * DAY]), _scopes,
)  # fmt: skip
limits = st.builds(_limit, _places, _parts, _scopes)
overrides = st.builds(
    _override, st.tuples(st.sampled_from((SYSTEM, "shop")), _names), st.sampled_from(PLACES), _kinds_of_gates,
    st.integers(1, 2), st.sampled_from([60, HOUR, DAY]),
)  # fmt: skip
gates = st.one_of(windows, windows, allows, freezes, limits, limits, overrides)


class Release(NamedTuple):
    """A release that somebody tries. `then`: what becomes of it, if it is admitted."""

    place: tuple[str, str]
    gatekeeper: int
    what: str
    own: dict[str, str] | None
    """The labels of the workload; None: as they are."""
    repairs: bool
    mode: Mode
    then: str
    quiet: bool
    """Whether all that is on its way arrives before."""


releases = st.builds(
    Release, st.sampled_from(PLACES), st.integers(0, 1),
    st.sampled_from(["new", "new", "new", "back", "back", "left", "restart"]),
    st.sampled_from([None, None, None, *TEAMS]), st.booleans(),
    st.sampled_from([Mode.ENFORCE, Mode.ENFORCE, Mode.OBSERVE]),
    st.sampled_from(["", "process", "succeed", "succeed", "fail"]), st.sampled_from([True, True, True, False]),
)  # fmt: skip
