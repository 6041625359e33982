"""`altershield wait`: waits for the end of a release, as `altershield status --wait` does."""

import asyncio
from typing import Annotated

import typer

from altershield.process import options
from altershield.views.durations import seconds
from altershield.views.releases.goals import What, parse_goal
from altershield.views.selection import parse
from command.gates.opening import OPEN, wait_until_open
from command.namespace_option import Namespace, require_namespace
from command.output import Format
from command.shell import candidates
from command.status.command import Mode, show
from command.status.printers import Output
from kube_base.access.client import Client

_SHOWN_STEPS = 5  # that the completion names


def _goals(incomplete: str) -> list[str]:
    """The values of --for that begin with `incomplete`, for shell completion."""
    known = (What.DONE.value, What.VERIFIED.value, OPEN, *(f"step={number}" for number in range(1, _SHOWN_STEPS + 1)))
    return [each for each in known if each.startswith(incomplete)]


def wait(
    workload: Annotated[
        list[str],
        typer.Argument(
            metavar="TYPE/NAME...",
            autocompletion=candidates.workloads,
            help="The workloads: deploy/web, sts/db.",
            show_default=False,
        ),
    ],
    namespace: Namespace = "",
    until: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="done|verified|step=N|open",
            autocompletion=_goals,
            help="What to wait for: `done`; `verified`, all pods of the present step are verified; `step=2`, this step "
            "or a later one has passed; or `open`, the workload may be released. A release without steps has to be "
            "done.",
        ),
    ] = What.DONE.value,
    timeout: Annotated[
        str,
        typer.Option("--timeout", help="Stop after this time with the exit code 4, as 90s or 5m. 0: no timeout."),
    ] = "0",
    output: Annotated[
        Format | None,
        typer.Option(
            "--output",
            "-o",
            help="The format: json or yaml (as of `altershield status`; with --for=open: of `altershield gates`).",
            show_default=False,
        ),
    ] = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Wait until no release of these workloads is under way, then show them. It is `altershield status --wait`.

    With --for, wait until each of these releases has come so far, or has ended. The exit code is 3 if a release is
    suspended, else 4 after the timeout, else 5 if one was rolled back, else 0. The wait continues while the present pod
    template is not verified. The exit code is 1 if there is no such release.
    """
    require_namespace(namespace)
    limit, selections = seconds(timeout, "--timeout"), parse(workload)
    if until == OPEN:
        waits = wait_until_open(context, kubeconfig, namespace, selections, limit or None, output)
        raise typer.Exit(asyncio.run(waits))
    goal = parse_goal(until)

    async def run() -> int:
        async with await Client.connect(kubeconfig, context=context) as client:
            mode = Mode(watch=False, wait=True, timeout=limit or None, goal=goal)
            printed = Output(output) if output is not None else None
            return await show(client, namespace or client.namespace, selections, printed, mode)

    raise typer.Exit(asyncio.run(run()))
