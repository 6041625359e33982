"""The metrics of release windows and freezes."""

from typing import Any

import msgspec

from altershield.api.condition_types import ConditionType
from altershield.api.gates.freezes import ReleaseFreeze, ReleaseFreezeSpec
from altershield.api.gates.rules import GateMode
from altershield.api.gates.windows import ReleaseWindow, ReleaseWindowStatus, WindowType
from altershield.api.meta import Condition
from kube_base.meta import ObjectMeta
from kube_base.times import rfc3339
from reconciler import freezes
from reconciler.gates import metrics
from reconciler.gates.metrics import MAX_GATES
from reconciler.gates.terms import DAY

from .specs import spec
from .world import NOW, SYSTEM

WEEKEND = spec({"weekly": {"days": ["Sat", "Sun"]}})
ACCEPTED = Condition(ConditionType.ACCEPTED, "True", "Valid")
REJECTED = Condition(ConditionType.ACCEPTED, "False", "ScheduleInvalid")


def window(name: str = "own", *conditions: Condition, generation: int = 1, **status: Any) -> ReleaseWindow:
    """A window whose status describes its first generation."""
    known = ReleaseWindowStatus(**{"conditions": conditions, "observed_generation": 1, **status})
    return ReleaseWindow(ObjectMeta(name, "shop", generation=generation), WEEKEND, known)


def freeze(name: str, begins: float, ends: float | None = None, mode: GateMode = GateMode.ENFORCE) -> ReleaseFreeze:
    until = rfc3339(ends) if ends is not None else None
    rules = ReleaseFreezeSpec(reason="incident", from_=rfc3339(begins), until=until, mode=mode)
    return ReleaseFreeze(ObjectMeta(name, "shop"), rules)


def of_windows(name: str, *windows: ReleaseWindow) -> list[tuple[dict[str, str], float]]:
    found = metrics.families(windows, SYSTEM, NOW)
    return [(sample.labels, sample.value) for each in found if each.name == name for sample in each.samples]


def of_freezes(name: str, *known: ReleaseFreeze) -> list[tuple[dict[str, str], float]]:
    found = freezes.families(known, NOW)
    return [(sample.labels, sample.value) for each in found if each.name == name for sample in each.samples]


def test_window_is_open_as_its_status_says_by_the_rules_that_are_in_force() -> None:
    allow = msgspec.structs.replace(WEEKEND, type=WindowType.ALLOW, mode=GateMode.WARN)
    new = window("new", observed_generation=0)
    known = (window("b", ACCEPTED, open=True), window("a", REJECTED, accepted=allow), new)
    assert of_windows("altershield_release_window_open", *known) == [
        ({"namespace": "shop", "window": "a", "type": "Allow", "mode": "warn"}, 0),
        ({"namespace": "shop", "window": "b", "type": "Deny", "mode": "enforce"}, 1),
    ]


def test_first_windows_by_name_have_a_series_and_before_them_those_for_all_namespaces() -> None:
    own = [window(f"w{number:03}", ACCEPTED) for number in range(MAX_GATES + 20)]
    for_all = msgspec.structs.replace(own[0], metadata=ObjectMeta("weekend", SYSTEM, generation=1))
    known = [for_all, *own]
    found = [labels["window"] for labels, _ in of_windows("altershield_release_window_open", *reversed(known))]
    assert found == [each.metadata.name for each in known[:MAX_GATES]]


def test_seconds_until_times_run_out_are_of_the_window_that_runs_out_first() -> None:
    def left(*windows: ReleaseWindow) -> list[float]:
        return [value for _, value in of_windows("altershield_release_windows_computed_seconds", *windows)]

    assert left(window()) == []
    ends = (NOW + 2 * DAY, NOW + DAY)
    assert left(window(), *(window(accepted=WEEKEND, computed_until=rfc3339(end)) for end in ends)) == [DAY]


def test_freeze_has_a_series_while_it_is_in_force() -> None:
    known = (
        freeze("over", NOW - 20, NOW),
        freeze("later", NOW + 1),
        freeze("ends", NOW - 10, NOW + 1),
        freeze("trial", NOW - 30, mode=GateMode.WARN),
    )
    assert of_freezes("altershield_release_freeze_in_force", *known) == [
        ({"namespace": "shop", "freeze": "trial", "mode": "warn"}, 1),
        ({"namespace": "shop", "freeze": "ends", "mode": "enforce"}, 1),
    ]
    assert of_freezes("altershield_release_freezes", *known) == [({"mode": "enforce"}, 1), ({"mode": "warn"}, 1)]
    assert of_freezes("altershield_release_freeze_without_end_seconds", *known) == [({}, 30)]


def test_freezes_that_began_first_have_a_series() -> None:
    known = [freeze(f"f{number}", NOW - number) for number in range(MAX_GATES + 20)]
    found = [labels["freeze"] for labels, _ in of_freezes("altershield_release_freeze_in_force", *known)]
    assert found == [each.metadata.name for each in known[:19:-1]]
