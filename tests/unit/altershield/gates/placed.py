"""Windows, freezes and limits in force, as tests write them. Times are hours, so that a test reads as a day."""

from collections.abc import Sequence
from typing import Any

from altershield.api.gates.field_guards import FieldChange, FieldGuard, FieldGuardSpec, FieldGuardStatus, FieldRule
from altershield.api.gates.freezes import ReleaseFreezeSpec
from altershield.api.gates.limits import ReleaseLimitSpec
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.gates.windows import ReleaseWindowSpec, WindowType
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.selectors import Selector
from altershield.gates.admissions import Judging, RecentAdmissions
from altershield.gates.field_guards import GUARDS, Guard, in_force
from altershield.gates.freezes import FREEZES, Freeze
from altershield.gates.gate import Gate
from altershield.gates.limits import LIMITS, Counted, Limit
from altershield.gates.release import Placed, Release
from altershield.gates.windows import WINDOWS, Window
from kube_base.meta import ObjectMeta

HOUR = 3600.0
KNOWN = 1000 * HOUR


def window(
    type_: str, *hours: tuple[float, float], name: str = "w", namespace: str = SYSTEM_NAMESPACE, **rules: Any
) -> Window:
    """A window with these times, known for a long time."""
    until = rules.pop("computed_until", KNOWN)
    spec = ReleaseWindowSpec(type=WindowType(type_), schedules=(), **rules)
    return Window(namespace, name, spec, tuple((a * HOUR, b * HOUR) for a, b in hours), until)


def freeze(
    begins: float = 0, ends: float = float("inf"), *, name: str = "f", namespace: str = SYSTEM_NAMESPACE, **rules: Any
) -> Freeze:
    spec = ReleaseFreezeSpec(reason=rules.pop("reason", "an incident"), **rules)
    return Freeze(namespace, name, spec, begins * HOUR, ends * HOUR)


def workload(name: str = "web", namespace: str = "shop") -> NamedWorkload:
    return NamedWorkload(namespace, "apps/v1", "Deployment", name)


def counted(name: str, hour: float, version: str = "v1") -> Counted:
    return Counted(workload(name), version, hour * HOUR)


def limit(
    *,
    releases: Sequence[Counted] = (),
    under_way: Sequence[Counted] = (),
    name: str = "l",
    namespace: str = SYSTEM_NAMESPACE,
    **rules: Any,
) -> Limit:
    return Limit(namespace, name, ReleaseLimitSpec(**rules), tuple(releases), tuple(under_way))


def guard(*rules: FieldRule, name: str = "g", namespace: str = SYSTEM_NAMESPACE, **fields: Any) -> Guard:
    """A guard whose spec was accepted."""
    spec = FieldGuardSpec(rules=rules, **fields)
    metadata = ObjectMeta(name, namespace)
    found = in_force(FieldGuard(metadata, spec, FieldGuardStatus(accepted=spec)))
    assert found is not None
    return found


def rule(path: str, *on: FieldChange, name: str = "r", **fields: Any) -> FieldRule:
    return FieldRule(name, (path,), on or FieldRule(name, ()).changes, **fields)


class Objects:
    """The gates of a cluster."""

    def __init__(self, *placed: Placed) -> None:
        self._placed = placed

    def __call__(self, gate: Gate[Any, Any], namespace: str) -> Sequence[Placed]:
        type_ = {WINDOWS: Window, FREEZES: Freeze, LIMITS: Limit, GUARDS: Guard}[gate]
        return [each for each in self._placed if isinstance(each, type_) and each.namespace == namespace]


def release(*labels: dict[str, str], **fields: Any) -> Release:
    return Release("shop", fields.pop("namespace_labels", {}), labels or ({},), **fields)


def labelled(**labels: str) -> Selector:
    return Selector(match_labels=labels)


def recent_admissions(gates: Judging) -> RecentAdmissions:
    """The admissions of a process whose cache of limits does not change."""
    return RecentAdmissions(gates, _Unchanged())


class _Unchanged:
    def add_handler(self, handler: object) -> None:
        """No handler is called."""
