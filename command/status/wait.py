"""`altershield wait`: waits for the end of a release, as `altershield status --wait` does."""

import asyncio
from typing import Annotated

import typer

from altershield.process import options
from altershield.views.durations import seconds
from altershield.views.selection import parse, types
from command.namespace_option import Namespace, require_namespace
from command.status.command import Mode, show
from kube_base.access.client import Client


def wait(
    workload: Annotated[
        list[str],
        typer.Argument(
            metavar="TYPE/NAME...", autocompletion=types, help="The workloads: deploy/web, sts/db.", show_default=False
        ),
    ],
    namespace: Namespace = "",
    timeout: Annotated[
        str,
        typer.Option("--timeout", help="Stop after this time with the exit code 4, as 90s or 5m. 0: no timeout."),
    ] = "0",
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Wait until no release of these workloads is under way, then show them. It is `altershield status --wait`.

    The exit code is 3 if a release is suspended, else 4 after the timeout, else 5 if one was rolled back, else 0. The
    wait continues while the present pod template is not verified. The exit code is 1 if there is no such release.
    """
    require_namespace(namespace)
    limit, selections = seconds(timeout, "--timeout"), parse(workload)

    async def run() -> int:
        async with await Client.connect(kubeconfig, context=context) as client:
            mode = Mode(watch=False, wait=True, timeout=limit or None)
            return await show(client, namespace or client.namespace, selections, None, mode)

    raise typer.Exit(asyncio.run(run()))
