"""The page of a workload's history: who released which version, and how it ended."""

from typing import Any, NamedTuple

from altershield.images import images_of, named
from altershield.views.finding import only
from altershield.views.history import Line, lines, read, state_of
from altershield.views.names import short_version
from altershield.views.selection import parse
from kube_base.access.client import Client

MAX_RELEASES = 200


class Row(NamedTuple):
    """One release of a version. Texts are empty if they are not known."""

    number: int
    version: str
    present: bool
    images: str
    way: str
    released: str
    by: str
    state: str
    message: str


async def page(client: Client, namespace: str, kind: str, name: str) -> dict[str, Any]:
    """What the template gets: the newest release first. StatusError: the workload does not exist, or has no history."""
    found = await read(client, namespace, only(parse([f"{kind}/{name}"])))
    releases = lines(found)
    return {
        "namespace": namespace,
        "kind": found.workload.kind,
        "name": found.workload.metadata.name,
        "rows": [_row(each) for each in releases[:MAX_RELEASES]],
        "more": max(0, len(releases) - MAX_RELEASES),
    }


def _row(line: Line) -> Row:
    entry, record = line.entry, line.record
    return Row(
        record.number,
        short_version(entry.version),
        line.present,
        named(images_of(entry.template), line.before),
        record.way,
        record.released,
        record.released_by,
        state_of(record, present=line.present),
        record.message,
    )
