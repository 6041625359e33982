"""`altershield status`: the releases, what became of them, and why."""

import asyncio
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich.console import Console

from altershield import options, releases
from altershield.api import labels
from altershield.api.kinds import ChangeWorkload, WorkloadRef, WorkloadState
from altershield.api.meta import plain_time
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.errors import UsageError
from altershield.kube.client import Client
from altershield.kube.errors import ForbiddenError, NotFoundError
from altershield.workloads import ADAPTERS, BY_KIND, Adapter
from altershield.workloads.workload import Workload

EXIT_SUSPENDED = 3
EXIT_ROLLED_BACK = 5

_HEADER = ("NAMESPACE", "WORKLOAD", "VERSION", "STATE", "PASSED", "FAILED", "WAITING", "SINCE (UTC)")
_STYLES = {
    WorkloadState.SUCCESS: "green",
    WorkloadState.SUSPEND: "bold red",
    WorkloadState.FAILED: "red",
    WorkloadState.ROLLBACK: "yellow",
}


class Release(NamedTuple):
    """The record of a version, and its workload as it is now."""

    record: ChangeWorkload
    workload: Workload


def status(
    workload: Annotated[
        str,
        typer.Argument(
            metavar="[KIND/]NAME", help="One workload; without its kind, all of that name.", show_default=False
        ),
    ] = "",
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", envvar="ALTERSHIELD_NAMESPACE", help="One namespace; all without."),
    ] = "",
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Show releases: state, pods passed, failed and waiting, and why. The version with a * is the present one.

    Exit code 3 when a release shown is suspended, 5 when one was rolled back, else 0.
    """
    adapters, name = wanted(workload)
    if name and not namespace:
        namespace = "default"
    code = asyncio.run(_status(kubeconfig, namespace, adapters, name))
    raise typer.Exit(code)


def wanted(argument: str) -> tuple[Sequence[Adapter], str]:
    """The kinds that are asked for, and the name. UsageError for a kind that nobody looks after."""
    kind, slash, name = argument.rpartition("/")
    if not slash:
        return ADAPTERS, name
    of_kind = [each for each in ADAPTERS if kind.lower() in (each.resource.kind.lower(), each.resource.plural)]
    if not of_kind or not name:
        known = ", ".join(each.resource.kind.lower() for each in ADAPTERS)
        raise UsageError(f"{argument!r} is no [KIND/]NAME; the kinds are {known}")
    return of_kind, name


async def _status(kubeconfig: str | None, namespace: str, adapters: Sequence[Adapter], name: str) -> int:
    async with await Client.connect(kubeconfig) as client:
        try:
            records = (await client.list(CHANGE_WORKLOADS, namespace, as_=ChangeWorkload)).items
        except NotFoundError:
            raise UsageError(
                f"AlterShield is not installed in the cluster at {client.server}: it has no ChangeWorkloads"
            ) from None
        lists = [await _listed(client, adapter, namespace, records) for adapter in adapters]
    workloads = [each for found in lists for each in found if name in ("", each.metadata.name)]
    shown = matched(records, workloads)
    if name and not shown:
        kind = adapters[0].resource.kind.lower() if len(adapters) == 1 else "workload"
        raise UsageError(
            f"{kind} {namespace}/{name} has no release yet; is the namespace labelled "
            f"{labels.GOVERNED}={labels.GOVERNED_VALUE}?"
        )
    console = Console(highlight=False, soft_wrap=True)
    if not shown:
        console.print("No releases yet.")
    rows = [_row(release) for release in shown]
    widths = [max(map(len, column)) for column in zip(_HEADER, *(row.cells for row in rows), strict=True)]
    if rows:
        console.print(_line(_HEADER, widths), style="bold")
    for row in rows:
        console.print(_line(row.cells, widths), style=row.style, markup=False)
        if row.why:
            console.print(f"  {row.why}", markup=False)
    return exit_code([release.record for release in shown], workloads)


async def _listed(
    client: Client, adapter: Adapter, namespace: str, records: Sequence[ChangeWorkload]
) -> Sequence[Workload]:
    """The workloads of a kind that have a version; none where the cluster does not have the kind."""
    resource = adapter.resource
    try:
        found = await client.list(resource, namespace, as_=msgspec.Raw, label_selector=labels.VERSION)
    except NotFoundError:
        return ()
    except ForbiddenError as error:  # an API server says so also of a kind that it does not have
        if not adapter.crd:
            raise
        if any(record.spec.workload_ref.kind == resource.kind for record in records):
            print(f"altershield: releases of {resource.plural} are not shown: {error}", file=sys.stderr)
        return ()
    return [adapter.read(item) for item in found.items]


def matched(records: Iterable[ChangeWorkload], workloads: Iterable[Workload]) -> list[Release]:
    """The records of these workloads, in the order in which they are shown."""
    by_family = {releases.family(each.metadata.namespace, _ref(each)): each for each in workloads}
    found = []
    for record in records:
        workload = by_family.get(releases.family_of(record))
        if workload is not None and releases.belongs(record, _ref(workload)):
            found.append(Release(record, workload))
    return sorted(found, key=_place)


def _place(release: Release) -> tuple[str, str, str, int, int]:
    record, workload = release
    spec = record.spec
    return (
        workload.metadata.namespace,
        workload.metadata.name,
        workload.kind,
        spec.create_time_unix,
        spec.workload_generation,
    )


def _ref(workload: Workload) -> WorkloadRef:
    metadata = workload.metadata
    return WorkloadRef(BY_KIND[workload.kind].resource.api_version, workload.kind, metadata.name, metadata.uid)


def exit_code(records: Iterable[ChangeWorkload], workloads: Iterable[Workload]) -> int:
    """3 when one is suspended, else 5 when one was rolled back, else 0."""
    records = list(records)
    if any(each.suspended for each in workloads) or any(
        releases.state(record) == WorkloadState.SUSPEND for record in records
    ):
        return EXIT_SUSPENDED
    return EXIT_ROLLED_BACK if any(map(releases.rolled_back, records)) else 0


class _Row(NamedTuple):
    cells: tuple[str, ...]
    style: str
    why: str


def _row(release: Release) -> _Row:
    record, workload = release
    status, state, since = record.status, releases.state(record), releases.since(record)
    is_current = releases.is_current(record, workload)
    cells = (
        workload.metadata.namespace,
        f"{workload.kind.lower()}/{workload.metadata.name}",
        releases.version(record)[:12] + ("*" if is_current else ""),
        state,
        str(len(status.defense_check_pass_pods)),
        str(len(status.defense_check_fail_pods)),
        str(len(status.defense_preparing_pods) + len(status.defense_checking_pods)),
        plain_time(since) if since else "",
    )
    # what people wrote into a verdict goes to a terminal
    why = "".join(c if c.isprintable() else " " for c in releases.why(record, current=is_current))
    return _Row(cells, _STYLES.get(state, ""), why)


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    return "   ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
