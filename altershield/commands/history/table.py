"""The table of versions, in the layout of kubectl, and the difference between two versions."""

import difflib
from collections.abc import Iterable, Sequence

from altershield.api.change_workload import WorkloadState
from altershield.commands.history.reading import Found
from altershield.commands.status import objects
from altershield.commands.status.table import Columns, printable
from altershield.releases.history import CheckOutcome, Entry, Record

_DIGITS = 12  # of a version, unless the table is wide
_UNKNOWN = "<unknown>"
_HEADER = ("VERSION", "RELEASED", "BY", "STATE", "SINCE")


def table(found: Found, *, wide: bool) -> list[str]:
    """The lines of the table. The version with a * is the present one."""
    header = (*_HEADER, *(("REASON", "CHECKS") if wide else ()), "MESSAGE")
    present = found.workload.version
    rows = [_row(each.entry, present=each.entry.version == present, wide=wide) for each in found.versions]
    return Columns(len(header)).lines([header, *rows])


def difference(old: Entry, new: Entry) -> str:
    """The unified difference between the pod templates of two versions, as YAML; empty if they are equal."""
    before, after = (objects.to_yaml(each.template).splitlines(keepends=True) for each in (old, new))
    return "".join(difflib.unified_diff(before, after, old.version, new.version))


def about(entry: Entry) -> list[str]:
    """What the history says about a version: its newest release, and what people decided."""
    record = entry.record
    lines = [f"version {entry.version}, released {record.released or _UNKNOWN} by {record.released_by or _UNKNOWN}"]
    lines.append(
        f"{_state(record)} since {record.since or _UNKNOWN}" + (f": {record.message}" if record.message else "")
    )
    for each in record.actions:
        reason = f" ({each.reason})" if each.reason else ""
        lines.append(
            f"{each.time} {each.verb} by {each.by or 'an unnamed user'}{reason}: {each.result}: {each.outcome}"
        )
    return [printable(line) for line in lines]


def _row(entry: Entry, *, present: bool, wide: bool) -> Sequence[str]:
    record = entry.record
    version = entry.version if wide else entry.version[:_DIGITS]
    more = (record.reason or _UNKNOWN, _checks(record.checks)) if wide else ()
    cells = (
        *(version + ("*" if present else ""), record.released or _UNKNOWN, record.released_by or _UNKNOWN),
        *(_state(record), record.since or _UNKNOWN),
        *(*more, record.message),
    )
    return [printable(cell) for cell in cells]


def _state(record: Record) -> str:
    return ("RollingBack" if record.state == WorkloadState.ROLLBACK else record.state) or _UNKNOWN


def _checks(checks: Iterable[CheckOutcome]) -> str:
    return ",".join(f"{each.name}/{each.phase}={each.state}" for each in checks) or "<none>"
