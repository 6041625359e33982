"""The ConfigMaps with calendars, and the texts that a ReleaseWindow needs of them.

AlterShield reads ConfigMaps only in its own namespace: RBAC cannot select objects by their label, so calendars
elsewhere would need the permission to read all ConfigMaps of these namespaces.
"""

from collections.abc import Iterator

import msgspec

from altershield.api import labels
from altershield.api.gates.windows import Calendar, ReleaseWindowSpec
from kube_base.meta import PartialObjectMeta
from kube_base.resources import CONFIG_MAPS
from reconciler.cluster.caches import Caches
from reconciler.cluster.watch import Scope, Watch
from reconciler.gates.problems import Problem, Reason
from reconciler.gates.terms import calendar_key


class CalendarFile(msgspec.Struct, frozen=True, gc=False):
    """A ConfigMap with calendars, by key."""

    metadata: PartialObjectMeta
    data: dict[str, str] = {}


CALENDARS = Watch(CONFIG_MAPS, CalendarFile, Scope.SYSTEM, labels.CALENDAR, "calendars")


def calendars_of(spec: ReleaseWindowSpec | None) -> Iterator[Calendar]:
    """The calendars that a spec names."""
    for schedule in spec.schedules if spec is not None else ():
        if schedule.calendar is not None:
            yield schedule.calendar


def texts(caches: Caches, namespace: str, spec: ReleaseWindowSpec) -> dict[str, str] | Problem:
    """The texts of the calendars of a window in this namespace, by `calendar_key`; or the first one that is missing."""
    found: dict[str, str] = {}
    for calendar in calendars_of(spec):
        file = caches[CALENDARS].get(namespace, calendar.config_map)
        text = file.data.get(calendar.key) if file is not None else None
        if text is None:
            return _missing(caches.system_namespace, namespace, calendar, exists=file is not None)
        found[calendar_key(calendar)] = text
    return found


def _missing(system_namespace: str, namespace: str, calendar: Calendar, *, exists: bool) -> Problem:
    if namespace != system_namespace:
        message = (
            f"AlterShield may read calendars only in its own namespace, {system_namespace}; use dates, or let an "
            "administrator create the window there"
        )
    elif exists:
        message = f"the ConfigMap {calendar.config_map} has no key {calendar.key}; add the calendar, or correct the key"
    else:
        message = (
            f"the namespace has no ConfigMap {calendar.config_map} with the label {labels.CALENDAR}; create it, or "
            f"add the label (any value)"
        )
    return Problem(Reason.CALENDAR_NOT_FOUND, message)
