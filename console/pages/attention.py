"""The first page: which workloads need somebody, and which releases are under way."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from altershield import releases
from altershield.api.change_workload import WorkloadState
from altershield.views.durations import age
from altershield.views.names import short_version
from altershield.views.releases.attention import Attention, Triage, triage
from altershield.views.releases.images import ImagesReader
from altershield.views.releases.model import Release, shown, waits
from altershield.views.releases.nothing import why_nothing
from altershield.views.releases.reading import Reader
from altershield.views.releases.words import with_words
from altershield.views.selection import EVERYTHING
from kube_base.access.client import Client

MAX_ROWS = 500

_WORDS = {
    Attention.SUSPENDED: "suspended",
    Attention.FAILED: "failed",
    Attention.APPROVAL: "waits for approval",
    Attention.HELD: "held",
    Attention.UNDER_WAY: "under way",
    Attention.NONE: "",
}


class Row(NamedTuple):
    """A release that says why its workload is listed."""

    namespace: str
    kind: str
    name: str
    version: str
    images: str
    need: str
    """In words."""
    bad: bool
    """Whether the workload needs somebody."""
    passed: int
    failed: int
    waiting: int
    since: str
    """How long it has its state; empty: not known."""
    message: str


async def page(client: Client, namespace: str) -> dict[str, Any]:
    """What the template gets. An empty namespace means all namespaces. StatusError: the reader may not list them."""
    snapshot = await Reader(client, namespace, [EVERYTHING]).read()
    found, now = shown(snapshot), time.time()
    urgent = triage(found)
    listed = urgent.releases[:MAX_ROWS]
    listed = await with_words(client, await ImagesReader(client).added(listed, found), now)
    return {
        "namespace": namespace,
        "rows": [_row(each, urgent.needs[each.key], now) for each in listed],
        "more": len(urgent.releases) - len(listed),
        "summary": _summary(urgent),
        "nothing": "" if found else await why_nothing(client, namespace, [EVERYTHING]),
    }


def _summary(urgent: Triage) -> Sequence[tuple[str, int, str]]:
    """The counts of workloads: what, how many, and how they look."""
    return (
        ("need somebody", urgent.needing, "bad" if urgent.needing else "good"),
        ("under way", urgent.under_way, "plain"),
        ("others", urgent.others, "plain"),
    )


def _row(release: Release, need: Attention, now: float) -> Row:
    metadata, stored = release.workload.metadata, release.stored
    began = releases.since(stored.release) if stored is not None and not release.pending else 0
    return Row(
        metadata.namespace,
        release.workload.kind,
        metadata.name,
        short_version(release.version),
        release.images,
        _state(release) if not release.present else _WORDS[need],
        need.needs_somebody,
        *release.counts,
        age(now - began) if began else "",
        waits(release) if release.pending else release.message,
    )


def _state(release: Release) -> str:
    """The state of a release of an earlier version, in words."""
    state = releases.state(release.stored.release) if release.stored is not None else WorkloadState.INIT
    return str(state.value).lower()
