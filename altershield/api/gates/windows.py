"""The kind ReleaseWindow: the times in which releases may begin, or may not. The CRD is generated from these types.

The reconciler works the schedules out, and writes the times into the status. Gatekeepers and the reconciler only
compare times.
"""

import enum
from typing import Annotated

import msgspec

from altershield.api.announcements import Announcements
from altershield.api.fields import Conditions, Generation, Name
from altershield.api.gates.rules import MAX_GATE_REASON, GateRules
from altershield.api.kinds import AGE, NOT_PROCESSED, Column, Kind
from altershield.api.labels import CALENDAR
from altershield.api.resources import API_VERSION, RELEASE_WINDOWS
from altershield.api.schema import doc, extra, pattern, rules
from kube_base.meta import ObjectMeta

MAX_SCHEDULES = 16
"""The maximum number of schedules of a ReleaseWindow."""

MAX_INTERVALS = 200
"""The maximum number of intervals in the status."""

MAX_CALENDAR_BYTES = 256 * 1024
"""The maximum size of an iCalendar file."""

MAX_CALENDAR_EVENTS = 1000
"""The maximum number of events in an iCalendar file."""

MAX_DURATION = 31 * 86_400
"""The maximum of `durationSeconds`."""


class Day(enum.StrEnum):
    """The days of a week, from Monday as in ISO 8601."""

    MON = "Mon"
    TUE = "Tue"
    WED = "Wed"
    THU = "Thu"
    FRI = "Fri"
    SAT = "Sat"
    SUN = "Sun"


_Begin = Annotated[str, msgspec.Meta(max_length=5), pattern("^([01][0-9]|2[0-3]):[0-5][0-9]$")]
_End = Annotated[str, msgspec.Meta(max_length=5), pattern("^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$")]
_Date = Annotated[str, msgspec.Meta(max_length=10), pattern("^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$")]


class WindowType(enum.StrEnum):
    """`ReleaseWindow.spec.type`."""

    ALLOW = "Allow"
    """Releases may begin in the times of the schedules only."""
    DENY = "Deny"
    """No release may begin in the times of the schedules."""


class Weekly(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The same time on some days of every week."""

    days: Annotated[
        tuple[Day, ...],
        msgspec.Meta(min_length=1, max_length=7, description="The days: `Mon`, `Tue`, …, `Sun`."),
        extra(x_kubernetes_list_type="set"),
    ]
    from_: Annotated[_Begin, doc("When it begins on each of the days, as `HH:MM`.")] = msgspec.field(
        name="from", default="00:00"
    )
    to: Annotated[
        _End,
        doc("When it ends, as `HH:MM`; `24:00` is the end of the day. Not later than `from`: on the next day."),
    ] = "24:00"


class Cron(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A time that begins by a cron schedule."""

    schedule: Annotated[
        Annotated[str, msgspec.Meta(min_length=9, max_length=100)],
        doc("When it begins: minute, hour, day of the month, month, day of the week, as `0 18 * * 5`."),
    ]
    duration_seconds: Annotated[int, msgspec.Meta(ge=60, le=MAX_DURATION, description="How long it lasts, in seconds.")]


class Dates(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Whole days."""

    from_: Annotated[_Date, doc("The first day, as `YYYY-MM-DD`.")] = msgspec.field(name="from")
    to: Annotated[_Date, doc("The last day, as `YYYY-MM-DD`; it is included.")]


class Calendar(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The events of an iCalendar file (RFC 5545) in a ConfigMap of the same namespace, AlterShield's."""

    config_map: Annotated[
        Annotated[str, msgspec.Meta(min_length=1, max_length=253)],
        doc(
            f"The name of the ConfigMap. It has the label `{CALENDAR}`, with any value. AlterShield reads calendars "
            "only in its own namespace."
        ),
    ]
    key: Annotated[
        Annotated[str, msgspec.Meta(min_length=1, max_length=253)],
        doc("The key of the file: at most 256 KiB, 1,000 events, and no event that recurs more often than daily."),
    ]


class Schedule(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Times that recur, or that are named. One field is set."""

    weekly: Annotated[Weekly | None, doc("The same time on some days of every week.")] = None
    cron: Annotated[Cron | None, doc("A time that begins by a cron schedule.")] = None
    dates: Annotated[Dates | None, doc("Whole days, from the first one to the last one.")] = None
    calendar: Annotated[Calendar | None, doc("The events of an iCalendar file in a ConfigMap.")] = None


class ReleaseWindowSpec(GateRules, frozen=True, omit_defaults=True, rename="camel", gc=False, kw_only=True):
    """The times in which releases may begin, or may not."""

    type: Annotated[
        WindowType,
        doc(
            "`Deny`: no release may begin in these times. `Allow`: releases may begin in these times only. Of several "
            "`Allow` of a namespace, or of AlterShield's namespace, that select a workload, one has to be open. `Deny` "
            "wins."
        ),
    ]
    time_zone: Annotated[
        Annotated[
            str,
            msgspec.Meta(min_length=1, max_length=64),
            pattern("^[A-Z][A-Za-z]*([_/+-][A-Za-z0-9]+)*$"),
            rules(
                (
                    "self != 'Local' && timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",
                    "timeZone is a name of the IANA time zone database, for example Europe/Berlin",
                )
            ),
        ],
        doc("The time zone of the schedules, by its IANA name, as `Asia/Shanghai`."),
    ] = "UTC"
    schedules: Annotated[
        tuple[
            Annotated[
                Schedule,
                rules(
                    (
                        "[has(self.weekly), has(self.cron), has(self.dates), has(self.calendar)]"
                        ".filter(each, each).size() == 1",
                        "a schedule has exactly one of weekly, cron, dates and calendar",
                    ),
                    ("!has(self.dates) || self.dates.from <= self.dates.to", "dates.to is not before dates.from"),
                ),
            ],
            ...,
        ],
        msgspec.Meta(min_length=1, max_length=MAX_SCHEDULES, description="The times. A time of any schedule counts."),
        extra(x_kubernetes_list_type="atomic"),
    ]
    min_remaining_seconds: Annotated[
        int,
        msgspec.Meta(
            ge=0,
            le=86_400,
            description="With `Allow`: a release begins only if the window stays open for so many seconds.",
        ),
    ] = 0
    reason: Annotated[
        Annotated[str, msgspec.Meta(max_length=MAX_GATE_REASON)],
        doc("Why releases may not begin now. Developers whose release is denied read it."),
    ] = ""


class Interval(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A time from the schedules, UTC."""

    from_: Annotated[Name, doc("When it begins, UTC.")] = msgspec.field(name="from", default="")
    to: Annotated[Name, doc("When it ends, UTC. At this time, it is over.")] = ""


class ReleaseWindowStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The times that follow from the schedules."""

    open: Annotated[bool, doc("Whether releases may begin, when this status was written.")] = False
    next_transition_time: Annotated[Name, doc("When this changes, UTC; empty: not as far as the times reach.")] = ""
    computed_until: Annotated[Name, doc("How far the times reach, UTC.")] = ""
    intervals: Annotated[
        tuple[Interval, ...],
        msgspec.Meta(max_length=MAX_INTERVALS, description="The times of the schedules, in their order."),
    ] = ()
    accepted: Annotated[ReleaseWindowSpec | None, doc("The spec in force: the one that was accepted last.")] = None
    accepted_generation: Annotated[Generation, doc("The generation of that spec.")] = 0
    announcements: Announcements = ()
    conditions: Conditions = ()
    observed_generation: Annotated[Generation, doc("The generation of the spec that this status describes.")] = 0


class ReleaseWindow(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The times in which releases may begin, or may not."""

    metadata: ObjectMeta
    spec: ReleaseWindowSpec
    status: ReleaseWindowStatus = ReleaseWindowStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: RELEASE_WINDOWS.kind)


KIND = Kind(
    resource=RELEASE_WINDOWS,
    type=ReleaseWindow,
    short_name="rw",
    title="Release window",
    summary="The times in which releases may begin, or may not",
    columns=(
        Column("TYPE", "string", ".spec.type"),
        Column("OPEN", "boolean", ".status.open"),
        Column("MODE", "string", ".spec.mode"),
        Column("ACCEPTED", "string", '.status.conditions[?(@.type=="Accepted")].status'),
        AGE,
        Column("CHANGES", "string", ".status.nextTransitionTime", wide=True),
        Column("TIMEZONE", "string", ".spec.timeZone", wide=True),
        Column("REASON", "string", ".spec.reason", wide=True),
    ),
    status={"open": False, "conditions": NOT_PROCESSED},
)
