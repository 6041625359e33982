"""What people read about a closed gate."""

from collections.abc import Sequence

from altershield.gates.release import Closed

_NAMED = 3  # further gates that a text names


def sentence(closed: Closed) -> str:
    """`ReleaseWindow NAMESPACE/NAME: no release may begin in these times: REASON; since TIME; opens at TIME`."""
    reason = f": {closed.reason}" if closed.reason else ""
    since = f"; since {closed.since}" if closed.since else ""
    opens = f"; it opens at {closed.opens_at}" if closed.opens_at else ""
    return f"{named(closed)}: {closed.what}{reason}{since}{opens}"


def named(closed: Closed) -> str:
    """The object, as people find it: `ReleaseWindow NAMESPACE/NAME`."""
    return f"{closed.kind} {closed.namespace}/{closed.name}"


def others(closed: Sequence[Closed]) -> str:
    """The gates after the first one: ` and 2 more: …`. Empty if there are none."""
    rest = closed[1:]
    if not rest:
        return ""
    more = f" and {len(rest) - _NAMED} more" if len(rest) > _NAMED else ""
    return f"also closed: {', '.join(map(named, rest[:_NAMED]))}{more}"
