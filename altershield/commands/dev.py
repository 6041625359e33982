"""`altershield dev`: the gate on the current cluster, in the foreground."""

import asyncio
import contextlib
import signal
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from altershield import options
from altershield.commands.confirm import confirm
from altershield.commands.gate import LOOPBACK, Thresholds, running_gate


def dev(
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    host: Annotated[
        str,
        typer.Option("--host", envvar="ALTERSHIELD_HOST", help="Address at which the API server reaches this machine."),
    ] = LOOPBACK,
    port: Annotated[
        int,
        typer.Option(
            "--port", envvar="ALTERSHIELD_PORT", min=0, max=65535, help="Port of the webhook; 0 takes a free one."
        ),
    ] = 0,
    start_timeout: options.StartTimeout = options.START_TIMEOUT,
    observe_seconds: options.ObserveSeconds = options.OBSERVE_SECONDS,
    batch_wait: options.BatchWait = options.BATCH_WAIT,
    pre_timeout: options.PreTimeout = options.PRE_TIMEOUT,
    post_timeout: options.PostTimeout = options.POST_TIMEOUT,
    lease_duration: options.LeaseDuration = options.LEASE_DURATION,
    log_level: options.LogLevel = options.LOG_LEVEL,
    yes: options.Yes = False,
) -> None:
    """Run the gate against a cluster from this machine, as in production, until Ctrl-C.

    Installs the CRDs, the service account and its permissions, and webhook configurations that point here; these
    are removed at the end (and, after a crash, at the next start). Asks first if the API server is not on loopback,
    because these webhooks have the failurePolicy Fail; without a terminal it takes --yes.
    """
    confirm(kubeconfig, context, host, yes=yes)
    thresholds = Thresholds(start_timeout, observe_seconds, batch_wait, pre_timeout, post_timeout, lease_duration)
    with contextlib.suppress(asyncio.CancelledError):  # how a signal ends it, everything put back
        asyncio.run(_dev(kubeconfig, context, host, port, thresholds, log_level))


async def _dev(
    kubeconfig: str | None, context: str | None, host: str, port: int, thresholds: Thresholds, log_level: str
) -> None:
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    if (this := asyncio.current_task()) is not None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, this.cancel)
    with tempfile.TemporaryDirectory(prefix="altershield-") as directory:
        async with running_gate(
            kubeconfig, Path(directory), thresholds, context=context, host=host, port=port, log_level=log_level
        ) as gate:
            console.print(
                f"The gate is up at {gate.url}. Govern a namespace with\n"
                "  kubectl label namespace NAME admission-webhook-altershield=enabled\n"
                "Ctrl-C ends it and takes its webhooks away."
            )
            await gate.failed()
