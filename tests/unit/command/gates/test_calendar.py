"""The table of `altershield calendar`."""

import time
from collections.abc import Callable, Iterator

import pytest

from altershield.api.gates.freezes import ReleaseFreeze, ReleaseFreezeSpec
from altershield.api.gates.windows import Interval, ReleaseWindow, ReleaseWindowStatus
from altershield.views.gates.model import Gate, gates
from command.gates.calendar import entries, table
from kube_base.meta import ObjectMeta
from kube_base.times import rfc3339
from tests.unit.reconciler.gates.specs import DAY, at, spec

NOW = at("2026-10-23 12:00")


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the time zone of this process."""

    def change(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield change
    monkeypatch.undo()
    time.tzset()


def shown(*, least: int = 0) -> list[Gate]:
    """An Allow from nine to five on two Mondays, and a freeze without an end."""
    own = spec({"weekly": {"days": ["Mon"]}}, type="Allow", minRemainingSeconds=least, reason="office hours")
    days = ("2026-10-19", "2026-10-26")
    times = tuple(Interval(rfc3339(at(f"{day} 09:00")), rfc3339(at(f"{day} 17:00"))) for day in days)
    status = ReleaseWindowStatus(accepted=own, intervals=times, computed_until=rfc3339(NOW + 35 * DAY))
    freeze = ReleaseFreeze(ObjectMeta("f", "shop", creation_timestamp=rfc3339(NOW - 60)), ReleaseFreezeSpec(reason="x"))
    over = ReleaseFreezeSpec(reason="x", from_=rfc3339(NOW + 60), until=rfc3339(NOW + 60))
    return gates(
        [ReleaseWindow(ObjectMeta("w", "shop"), own, status)],
        [freeze, ReleaseFreeze(ObjectMeta("o"), over)],
        [],
        [],
        NOW,
    )


def rows(found: list[Gate]) -> list[list[str]]:
    lines = table(entries(found, NOW, NOW + 31 * DAY), NOW)
    return [[cell for cell in line.split("  ") if cell] for line in lines]


def test_times_are_in_the_zone_of_the_user_and_in_utc(zone: Callable[[str], None]) -> None:
    zone("Europe/Berlin")
    header, freeze, window = rows(shown())
    names = [cell.strip() for cell in header]
    assert names == [
        *("FROM (CEST/CET)", "TO (CEST/CET)", "FROM (UTC)", "TO (UTC)", "EFFECT", "GATE", "REASON"),
    ], "clocks go back on the 25th"
    assert [cell.strip() for cell in freeze][:2] == ["*Fri 2026-10-23 13:59", "a person ends it"]
    assert [cell.strip() for cell in window][:4] == [
        *("Mon 2026-10-26 10:00", "Mon 2026-10-26 18:00", "10-26 09:00", "10-26 17:00"),
    ]


def test_times_stand_there_once_where_clocks_show_utc(zone: Callable[[str], None]) -> None:
    zone("UTC")
    header, _, window = rows(shown())
    assert [cell.strip() for cell in header] == ["FROM (UTC)", "TO (UTC)", "EFFECT", "GATE", "REASON"]
    assert [cell.strip() for cell in window][1:3] == ["Mon 2026-10-26 17:00", "releases may begin"]


def test_an_allow_ends_when_too_little_of_it_is_left_for_a_release(zone: Callable[[str], None]) -> None:
    zone("UTC")
    assert rows(shown(least=3600))[2][1].strip() == "Mon 2026-10-26 16:00"
    assert len(rows(shown(least=8 * 3600))) == 2, "no release may begin at any time"
