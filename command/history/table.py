"""The table of versions, in the layout of kubectl, and the difference between two versions."""

import difflib
from collections.abc import Iterable, Sequence

from altershield.api.rollout import PassedStep
from altershield.images import images_of, named
from altershield.releases.history import CheckOutcome, Entry
from altershield.views.durations import age
from altershield.views.history import Found, Line, lines, state_of
from altershield.views.names import printable, short_version
from altershield.views.releases import objects
from command.columns import Columns, room
from kube_base.times import rfc3339

_UNKNOWN = "<unknown>"
_SERVICE_ACCOUNT = "system:serviceaccount:"
_HEADER = ("NUMBER", "VERSION", "IMAGES", "WAY", "RELEASED", "BY", "STATE")


def table(found: Found, *, wide: bool) -> list[str]:
    """The lines of the table: one for each release, the newest first. The version with a * is the present one."""
    header = (*_HEADER, *(("SINCE", "REASON", "CHECKS", "STEPS") if wide else ()), "MESSAGE")
    return Columns(len(header)).lines([header, *(_row(each, wide=wide) for each in lines(found))], room(wide=wide))


def difference(old: Entry, new: Entry) -> str:
    """The unified difference between the pod templates of two versions, as YAML; empty if they are equal."""
    before, after = (objects.to_yaml(each.template).splitlines(keepends=True) for each in (old, new))
    return "".join(difflib.unified_diff(before, after, old.version, new.version))


def about(entry: Entry) -> list[str]:
    """What the history says about a version: its releases, the newest first, and what people decided."""
    lines = []
    for record in reversed(entry.releases):
        number = f"release {record.number} ({record.way})" if record.number else "released"
        by = f"{record.released or _UNKNOWN} by {record.released_by or _UNKNOWN}"
        end = f"{state_of(record, present=True) or _UNKNOWN} since {record.since or _UNKNOWN}"
        lines.append(
            f"version {entry.version}, {number} {by}: {end}" + (f": {record.message}" if record.message else "")
        )
        lines += [_passed(each) for each in record.steps]
        lines += [f"  {record.observed}"] if record.observed else []
    for each in entry.record.actions:
        reason = f" ({each.reason})" if each.reason else ""
        lines.append(
            f"{each.time} {each.verb} by {each.by or 'an unnamed user'}{reason}: {each.result}: {each.outcome}"
        )
    return [printable(line) for line in lines]


def _row(line: Line, *, wide: bool) -> Sequence[str]:
    record, entry = line.record, line.entry
    version = entry.version if wide else short_version(entry.version)
    images = ",".join(entry.images) if wide else named(images_of(entry.template), line.before)
    more = (
        (record.since or _UNKNOWN, record.reason or _UNKNOWN, _checks(record.checks), _steps(record.steps))
        if wide
        else ()
    )
    cells = (
        *(str(record.number or _UNKNOWN), version + ("*" if line.present else ""), images or _UNKNOWN),
        *(
            record.way or _UNKNOWN,
            record.released or _UNKNOWN,
            (record.released_by if wide else _short(record.released_by)) or _UNKNOWN,
        ),
        *(state_of(record, present=line.present) or _UNKNOWN, *more, record.message),
    )
    return [printable(cell) for cell in cells]


def _short(user: str) -> str:
    """The user; of a service account, only its namespace and name."""
    return user.removeprefix(_SERVICE_ACCOUNT).replace(":", "/") if user.startswith(_SERVICE_ACCOUNT) else user


def _passed(step: PassedStep) -> str:
    """A step that is over."""
    pods = "1 pod" if step.pods == 1 else f"{step.pods} pods"
    times = f"{rfc3339(step.begin_time_unix)} to {rfc3339(step.end_time_unix)}"
    return f"  step {step.step}, {pods}: {times}" + (f", promoted by {step.promoted_by}" if step.promoted_by else "")


def _steps(steps: Iterable[PassedStep]) -> str:
    """How long each step took: `1=12m,2=5m`."""
    return ",".join(f"{each.step}={age(each.end_time_unix - each.begin_time_unix)}" for each in steps) or "<none>"


def _checks(checks: Iterable[CheckOutcome]) -> str:
    return ",".join(f"{each.name}/{each.phase}={each.state}" for each in checks) or "<none>"
