"""`altershield status`: the releases, what became of them, and why."""

import asyncio
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from altershield import options
from altershield.api import labels
from altershield.api.kinds import ChangeWorkload, ConditionType, WorkloadState
from altershield.api.meta import find_condition
from altershield.api.resources import CHANGE_WORKLOADS, DEPLOYMENTS
from altershield.api.views import Deployment
from altershield.errors import UsageError
from altershield.kube.client import Client
from altershield.kube.errors import NotFoundError

EXIT_SUSPENDED = 3
EXIT_ROLLED_BACK = 5

_HEADER = ("NAMESPACE", "DEPLOYMENT", "VERSION", "STATE", "PASSED", "FAILED", "WAITING", "SINCE (UTC)")
_STYLES = {
    WorkloadState.SUCCESS: "green",
    WorkloadState.SUSPEND: "bold red",
    WorkloadState.FAILED: "red",
    WorkloadState.ROLLBACK: "yellow",
}


def status(
    deployment: Annotated[str, typer.Argument(help="One Deployment; all without.", show_default=False)] = "",
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", envvar="ALTERSHIELD_NAMESPACE", help="One namespace; all without."),
    ] = "",
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Show releases: state, pods passed, failed and waiting, and why. The version with a * is the present one.

    Exit code 3 when a release shown is suspended, 5 when one was rolled back, else 0.
    """
    if deployment and not namespace:
        namespace = "default"
    code = asyncio.run(_status(kubeconfig, namespace, deployment))
    raise typer.Exit(code)


async def _status(kubeconfig: str | None, namespace: str, name: str) -> int:
    async with await Client.connect(kubeconfig) as client:
        try:
            workloads = await client.list(CHANGE_WORKLOADS, namespace, as_=ChangeWorkload)
        except NotFoundError:
            raise UsageError(
                f"AlterShield is not installed in the cluster at {client.server}: it has no ChangeWorkloads"
            ) from None
        deployments = await client.list(DEPLOYMENTS, namespace, as_=Deployment, label_selector=labels.VERSION)
    current = {(d.metadata.namespace, d.metadata.name): d for d in deployments.items if name in ("", d.metadata.name)}
    shown = [w for w in workloads.items if (w.metadata.namespace, w.spec.service_name) in current]
    if name and not shown:
        raise UsageError(
            f"deployment {namespace}/{name} has no release yet; is the namespace labelled "
            f"{labels.GOVERNED}={labels.GOVERNED_VALUE}?"
        )
    shown.sort(key=lambda w: (w.metadata.namespace, w.spec.service_name, w.spec.create_time_unix))
    console = Console(highlight=False, soft_wrap=True)
    if not shown:
        console.print("No releases yet.")
    rows = [_row(workload, current[workload.metadata.namespace, workload.spec.service_name]) for workload in shown]
    widths = [max(map(len, column)) for column in zip(_HEADER, *(row.cells for row in rows), strict=True)]
    if rows:
        console.print(_line(_HEADER, widths), style="bold")
    for row in rows:
        console.print(_line(row.cells, widths), style=row.style, markup=False)
        if row.why:
            console.print(f"  {row.why}", markup=False)
    return exit_code(shown, list(current.values()))


def exit_code(workloads: list[ChangeWorkload], deployments: list[Deployment]) -> int:
    """3 when one is suspended, else 5 when one was rolled back, else 0."""
    if any(labels.SUSPEND in d.metadata.labels for d in deployments):
        return EXIT_SUSPENDED
    if any(w.status.status == WorkloadState.SUSPEND for w in workloads):
        return EXIT_SUSPENDED
    rolled_back = (find_condition(w.status.conditions, ConditionType.ROLLED_BACK) for w in workloads)
    return EXIT_ROLLED_BACK if any(c is not None and c.is_true for c in rolled_back) else 0


class _Row(NamedTuple):
    cells: tuple[str, ...]
    style: str
    why: str


def _row(workload: ChangeWorkload, deployment: Deployment) -> _Row:
    status = workload.status
    version = workload.metadata.labels.get(labels.VERSION, "")
    state = status.status or WorkloadState.INIT
    is_current = version == deployment.version
    cells = (
        workload.metadata.namespace,
        workload.spec.service_name,
        version[:12] + ("*" if is_current else ""),
        state,
        str(len(status.defense_check_pass_pods)),
        str(len(status.defense_check_fail_pods)),
        str(len(status.defense_preparing_pods) + len(status.defense_checking_pods)),
        status.entry_time or workload.spec.create_time,
    )
    # what people wrote into a verdict goes to a terminal
    slipped = find_condition(status.conditions, ConditionType.SLIPPED)
    past = f"slipped past the gate ({slipped.reason}); " if slipped is not None and slipped.is_true else ""
    why = "".join(c if c.isprintable() else " " for c in past + _why(workload, current=is_current))
    return _Row(cells, _STYLES.get(state, ""), why)


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    return "   ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _why(workload: ChangeWorkload, *, current: bool) -> str:
    rolled_back = find_condition(workload.status.conditions, ConditionType.ROLLED_BACK)
    if rolled_back is not None:
        return rolled_back.message
    failed = [f"{pod.pod}: {pod.message or pod.verdict}" for pod in workload.status.defense_check_fail_pods]
    if failed:
        return "; ".join(failed[:3]) + (f" and {len(failed) - 3} more" if len(failed) > 3 else "")
    verified = find_condition(workload.status.conditions, ConditionType.VERIFIED)
    if verified is not None and verified.message:
        return verified.message
    return "" if current else "superseded"
