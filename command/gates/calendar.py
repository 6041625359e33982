"""The command line of `altershield calendar`."""

import asyncio
import datetime
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from altershield.process import options
from altershield.views.gates.documents import NEVER, Entry, time_list
from altershield.views.gates.model import Gate
from altershield.views.gates.reading import read
from altershield.views.names import printable
from command.columns import Columns
from command.gates.command import warn_of
from command.namespace_option import Namespace, require_namespace
from command.output import Printed, write
from kube_base.access.client import Client
from kube_base.access.server_clock import ServerClock

_MAX_DAYS = 35  # so far the times of windows reach
_DAY = 86_400
_EFFECTS = {"Allow": "releases may begin", "Deny": "closed", "Freeze": "closed"}


def calendar(
    namespace: Namespace = "",
    days: Annotated[int, typer.Option("--days", min=1, max=_MAX_DAYS, help="How many days to show.")] = 31,
    output: Printed = None,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Show the times of the release windows and freezes in the next days, in your time zone and in UTC.

    They are those of the namespace and of AlterShield's namespace. Which of them judge a workload, its labels decide:
    `altershield gates TYPE/NAME` tells.
    """
    require_namespace(namespace)

    async def run() -> tuple[list[Gate], Sequence[str], float]:
        clock = ServerClock()
        async with await Client.connect(kubeconfig, context=context) as client:
            client.on_date(clock.update)
            found = await read(client, (namespace or client.namespace, system_namespace), clock())
            return found.gates, found.unread, clock()

    shown, unread, now = asyncio.run(run())
    times = entries(shown, now, now + days * _DAY)
    if output is not None:
        write(time_list(times, unread), output)
    else:
        sys.stdout.writelines(f"{line}\n" for line in table(times, now))
    warn_of(unread)


def entries(shown: Sequence[Gate], since: float, until: float) -> list[Entry]:
    """The times of the gates in a span, Unix seconds, in their order."""
    found = [(from_, to, gate) for gate in shown for from_, to in gate.times if from_ < to > since and from_ < until]
    return sorted(found, key=lambda each: (each[0], each[1], each[2].namespace, each[2].name))


def table(times: Sequence[Entry], now: float) -> list[str]:
    """A line for each time, and the header. Times that have begun have a `*`. Where clocks show UTC, the times stand
    there once."""
    if not times:
        return ["No gate closes, and none opens, in these days."]
    edges = [_local(at) for from_, to, _ in times for at in (from_, to) if at != NEVER]
    zone = "/".join(dict.fromkeys(each.tzname() or "local" for each in edges))
    has_utc = any(each.utcoffset() for each in edges)
    header = [f"FROM ({zone})", f"TO ({zone})", *(("FROM (UTC)", "TO (UTC)") if has_utc else ())]
    rows = [
        [
            ("*" if from_ <= now else "") + _shown(from_),
            _shown(to),
            *((_utc(from_), _utc(to)) if has_utc else ()),
            _EFFECTS[gate.effect] + (" (mode warn)" if gate.mode == "warn" else ""),
            f"{gate.kind} {gate.namespace}/{gate.name}",
            printable(gate.reason),
        ]
        for from_, to, gate in times
    ]
    return Columns(len(rows[0])).lines([[*header, "EFFECT", "GATE", "REASON"], *rows])


def _local(at: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(at).astimezone()


def _shown(at: float) -> str:
    return "a person ends it" if at == NEVER else _local(at).strftime("%a %Y-%m-%d %H:%M")


def _utc(at: float) -> str:
    return "" if at == NEVER else datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%m-%d %H:%M")
