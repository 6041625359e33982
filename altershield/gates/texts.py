"""What people read about a closed gate."""

import datetime
from collections.abc import Sequence

from altershield.gates.release import Closed

_NAMED = 3  # further gates that a text names


def sentence(closed: Closed) -> str:
    """`ReleaseWindow NAMESPACE/NAME: no release may begin in these times: REASON; since TIME; it opens at TIME`."""
    reason = f": {closed.reason}" if closed.reason else ""
    since = f"; since {_time(closed, closed.since)}" if closed.since else ""
    opens = f"; it opens at {_time(closed, closed.opens_at)}" if closed.opens_at else ""
    return f"{named(closed)}: {closed.what}{reason}{since}{opens}"


def named(closed: Closed) -> str:
    """The object, as people find it: `ReleaseWindow NAMESPACE/NAME`, or `FieldGuard NAMESPACE/NAME, rule NAME`."""
    rule = f", rule {closed.rule}" if closed.rule else ""
    return f"{closed.kind} {closed.namespace}/{closed.name}{rule}"


def others(closed: Sequence[Closed]) -> str:
    """The gates after the first one: ` and 2 more: …`. Empty if there are none."""
    rest = closed[1:]
    if not rest:
        return ""
    more = f" and {len(rest) - _NAMED} more" if len(rest) > _NAMED else ""
    return f"also closed: {', '.join(map(named, rest[:_NAMED]))}{more}"


def _time(closed: Closed, time: str) -> str:
    """A time in the zone of the gate, and in UTC: `2026-11-28T00:00:00+08:00 (2026-11-27T16:00:00Z)`."""
    local = datetime.datetime.fromisoformat(time).astimezone(closed.zone)
    return time if not local.utcoffset() else f"{local.isoformat(timespec='seconds')} ({time})"
