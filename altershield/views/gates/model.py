"""The gates of a namespace, as they are now. Pure functions."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from altershield.api.condition_types import ConditionType
from altershield.api.gates.field_guards import FieldGuard
from altershield.api.gates.freezes import ReleaseFreeze
from altershield.api.gates.limits import ReleaseLimit
from altershield.api.gates.rules import GateMode
from altershield.api.gates.windows import ReleaseWindow
from altershield.api.meta import Condition, find_condition
from altershield.gates import freezes, limits, windows
from altershield.gates.release import changes_at
from kube_base.times import rfc3339


class Gate(NamedTuple):
    """A ReleaseWindow, a ReleaseFreeze, a ReleaseLimit or a FieldGuard."""

    kind: str
    namespace: str
    name: str
    mode: str
    effect: str
    """`Allow` or `Deny` of a window, `Freeze`, `Limit`, `Guard`."""
    open: bool | None
    """None: it depends on what the release changes."""
    since: str
    """Since when it is closed, in the format of Kubernetes; empty: it is open, or that is not known."""
    changes: str
    """When it opens or closes next, in the format of Kubernetes; empty: that is not known, or a person decides."""
    reason: str
    problem: str
    """Why it is not in force as it is written; empty: it is."""
    times: tuple[tuple[float, float], ...]
    """When releases may begin by a window of the type Allow; else when the gate is closed. Unix seconds."""
    time_zone: str = ""

    @property
    def refuses(self) -> bool:
        """Whether it denies releases that it judges now."""
        return self.open is False and self.mode == GateMode.ENFORCE


def gates(
    found_windows: Sequence[ReleaseWindow],
    found_freezes: Sequence[ReleaseFreeze],
    found_limits: Sequence[ReleaseLimit],
    found_guards: Sequence[FieldGuard],
    now: float,
) -> list[Gate]:
    """The gates at `now`, Unix seconds: those that are closed first."""
    found = [
        *_windows(found_windows, now),
        *_freezes(found_freezes, now),
        *_limits(found_limits, now),
        *_guards(found_guards),
    ]
    return sorted(found, key=_order)


def _order(gate: Gate) -> tuple[bool, bool, str, str]:
    return gate.open is not False, gate.mode != GateMode.ENFORCE, gate.namespace, gate.name


def _windows(found: Sequence[ReleaseWindow], now: float) -> Iterator[Gate]:
    for window in found:
        placed, metadata = windows.in_force(window), window.metadata
        rules = placed.rules if placed is not None else window.spec
        is_open = placed is None or placed.is_open(now)
        yield Gate(
            kind=window.kind,
            namespace=metadata.namespace,
            name=metadata.name,
            mode=str(rules.mode),
            effect=str(rules.type),
            open=is_open,
            since=_time(placed.closed_since(now)) if placed is not None and not is_open else "",
            changes=_time(changes_at(placed, now)) if placed is not None else "",
            reason=rules.reason,
            problem=_not_accepted(window.status.conditions),
            times=_spans(placed) if placed is not None else (),
            time_zone=rules.time_zone,
        )


def _spans(window: windows.Window) -> tuple[tuple[float, float], ...]:
    """The times in which releases may begin, or may not. The last part of an Allow is too short for a release."""
    least = window.rules.min_remaining_seconds if window.allows else 0
    return tuple((from_, to - least) for from_, to in window.intervals if to - from_ > least)


def _freezes(found: Sequence[ReleaseFreeze], now: float) -> Iterator[Gate]:
    for freeze in found:
        placed, metadata = freezes.in_force(freeze), freeze.metadata
        if placed is None:
            continue
        is_open = placed.is_open(now)
        yield Gate(
            kind=freeze.kind,
            namespace=metadata.namespace,
            name=metadata.name,
            mode=str(freeze.spec.mode),
            effect="Freeze",
            open=is_open,
            since="" if is_open else _time(placed.closed_since(now)),
            changes=_time(changes_at(placed, now)),
            reason=freeze.spec.reason,
            problem="",
            times=((placed.begins, placed.ends),),
        )


def _limits(found: Sequence[ReleaseLimit], now: float) -> Iterator[Gate]:
    for limit in found:
        placed, metadata = limits.in_force(limit), limit.metadata
        if placed is None:
            continue
        parts = list(placed.closed_parts(limits.ANY, now))
        since, opens_at = limits.times(parts)
        yield Gate(
            kind=limit.kind,
            namespace=metadata.namespace,
            name=metadata.name,
            mode=str(limit.spec.mode),
            effect="Limit",
            open=not parts,
            since=_time(since),
            changes=_time(opens_at),
            reason="; ".join(limits.counts(limit, now)),
            problem="",
            times=(),
        )


def _guards(found: Sequence[FieldGuard]) -> Iterator[Gate]:
    for guard in found:
        accepted = guard.status.accepted
        spec = accepted or guard.spec
        yield Gate(
            kind=guard.kind,
            namespace=guard.metadata.namespace,
            name=guard.metadata.name,
            mode=str(spec.mode),
            effect="Guard",
            open=None,
            since="",
            changes="",
            reason=f"rules: {', '.join(each.name for each in spec.rules)}",
            problem=_not_accepted(guard.status.conditions),
            times=(),
        )


def _not_accepted(conditions: Sequence[Condition]) -> str:
    """Why the spec is not in force as it is written; empty: it is."""
    accepted = find_condition(conditions, ConditionType.ACCEPTED)
    return accepted.message if accepted is not None and not accepted.is_true else ""


def _time(at: float) -> str:
    return rfc3339(at) if at else ""
