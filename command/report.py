"""`altershield report`: how releases ended in the last days, and what the mode `enforce` of their policies would have
done."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

import msgspec
import typer

from altershield.api import labels
from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.api.schema import doc
from altershield.process import options
from altershield.releases import history, rolled_back
from altershield.releases.enforcement import Would, would
from altershield.views import permission
from altershield.views.document import Document, Part, Time
from command.namespace_option import require_namespace
from command.output import Printed, write
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError, NotFoundError
from kube_base.errors import ReportedError
from kube_base.times import rfc3339, unix

_DAY = 86_400
_WEEK = 7
_GAP = "   "


class ReportError(ReportedError):
    """The report cannot be made."""


class Ended(NamedTuple):
    """A release in the report."""

    namespace: str
    released: float
    """Unix seconds."""
    state: str
    rolled_back: bool
    enforced: bool
    """Whether its policy enforces, or none applied."""
    would: str


class Line(Part, frozen=True):
    """How the releases of a namespace ended."""

    namespace: Annotated[str, doc("The namespace.")]
    releases: Annotated[int, doc("How many releases there were.")]
    observed: Annotated[int, doc("How many were under a policy that only observes or warns.")]
    would_suspend: Annotated[int, doc("How many of these `enforce` would have suspended.")]
    would_roll_back: Annotated[int, doc("How many of these `enforce` would have rolled back.")]
    suspended: Annotated[int, doc("How many others were suspended.")]
    rolled_back: Annotated[int, doc("How many others were rolled back.")]


class OutcomeReport(Document, frozen=True):
    """How releases ended, and what the mode `enforce` of their policies would have done."""

    since: Annotated[Time, doc("How far the report goes back.")]
    namespaces: Annotated[tuple[Line, ...], doc("The namespaces, by name.")]


def report(
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            envvar="ALTERSHIELD_NAMESPACE",
            help="Only this namespace. Default: all namespaces.",
            show_default=False,
        ),
    ] = "",
    days: Annotated[int, typer.Option("--days", min=1, max=3650, help="How many days the report goes back.")] = _WEEK,
    output: Printed = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Report how the releases of the last week ended, and what `enforce` would have done where a DefensePolicy only
    observes or warns.

    It counts the releases of which the cluster still has a ChangeWorkload or an entry in the history.
    """
    require_namespace(namespace)
    since = time.time() - days * _DAY
    releases = asyncio.run(_releases(context, kubeconfig, namespace))
    lines = count([each for each in releases if each.released >= since])
    if output is not None:
        write(OutcomeReport(rfc3339(since), tuple(lines)), output)
        return
    for text in table(lines, since, days):
        print(text)


async def _releases(context: str | None, kubeconfig: str | None, namespace: str) -> list[Ended]:
    async with await Client.connect(kubeconfig, context=context) as client:
        try:
            stored = await client.list(CHANGE_WORKLOADS, namespace, as_=ChangeWorkload)
            kept = await client.list(history.RESOURCE, namespace, as_=msgspec.Raw, label_selector=labels.HISTORY)
        except NotFoundError:
            raise ReportError(f"AlterShield is not installed in the cluster at {client.server}") from None
        except ForbiddenError as error:
            attempt = f"read the releases {permission.place(namespace)}"
            other = "" if namespace else ", or choose a namespace with -n"
            asked = f"{permission.role('view', namespace)}{other}"
            raise ReportError(permission.refused(attempt, error, asked)) from error
    entries = [history.read(each) for each in kept.items]
    found = {(each.metadata.namespace, each.metadata.name): _of_record(each, each.record) for each in entries}
    # the ChangeWorkload is newer than the entry
    found |= {(each.metadata.namespace, each.metadata.name): _of_release(each) for each in stored.items}
    earlier = [_of_record(entry, record) for entry in entries for record in entry.record.earlier]
    return [*earlier, *found.values()]


def _of_record(entry: history.Entry, record: history.Record) -> Ended:
    enforced = record.mode in ("", "enforce")
    return Ended(
        entry.metadata.namespace, unix(record.released), record.state, record.rolled_back, enforced, record.would
    )


def _of_release(release: ChangeWorkload) -> Ended:
    policy, status = release.spec.policy, release.status
    enforced = not policy.name or policy.mode == "enforce"
    return Ended(
        release.metadata.namespace,
        float(release.spec.create_time_unix),
        status.status,
        rolled_back(release),
        enforced,
        would(policy, status),
    )


def count(releases: Iterable[Ended]) -> list[Line]:
    """The numbers of each namespace, by name."""
    namespaces: dict[str, list[Ended]] = {}
    for each in releases:
        namespaces.setdefault(each.namespace, []).append(each)
    return [_line(name, namespaces[name]) for name in sorted(namespaces)]


def _line(namespace: str, ended: Sequence[Ended]) -> Line:
    return Line(
        namespace=namespace,
        releases=len(ended),
        observed=sum(not each.enforced for each in ended),
        would_suspend=sum(each.would == Would.SUSPEND for each in ended),
        would_roll_back=sum(each.would == Would.ROLLBACK for each in ended),
        suspended=sum(each.enforced and each.state == WorkloadState.SUSPEND for each in ended),
        rolled_back=sum(each.rolled_back for each in ended),
    )


def table(lines: Sequence[Line], since: float, days: int) -> list[str]:
    """The lines of the table, and the explanation of its period and of its columns."""
    covers = (
        f"Releases since {rfc3339(since)} ({days} {'day' if days == 1 else 'days'}) of which the cluster has a "
        "ChangeWorkload or an entry in the history. The history keeps a limited number of versions of each workload "
        "(--history-limit), so older releases of workloads with many releases may be missing."
    )
    if not lines:
        return ["No releases found.", "", covers]
    header = ("NAMESPACE", "RELEASES", "OBSERVED", "WOULD-SUSPEND", "WOULD-ROLL-BACK", "SUSPENDED", "ROLLED-BACK")
    total = Line("TOTAL", *(sum(getattr(line, name) for line in lines) for name in Line.__struct_fields__[1:]))
    rows = [header, *(tuple(str(value) for value in msgspec.structs.astuple(line)) for line in (*lines, total))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    shown = [_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    meaning = (
        "OBSERVED: releases under a DefensePolicy with the mode observe or warn. WOULD-SUSPEND and WOULD-ROLL-BACK: "
        "the consequences that these would have had in the mode enforce. A release without an older version to go back "
        "to would have been suspended. SUSPENDED and ROLLED-BACK: other releases that were suspended or rolled back."
    )
    return [*shown, "", covers, meaning]
