"""`altershield dev`: the gate on the current cluster, in the foreground."""

import asyncio
import contextlib
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from altershield.commands.confirm import confirm
from altershield.commands.installation import LOOPBACK, running_installation
from altershield.process import options
from altershield.process.parameters import with_options
from altershield.process.signals import cancel_on
from altershield.process.thresholds import Thresholds

Host = Annotated[
    str,
    typer.Option("--host", envvar="ALTERSHIELD_HOST", help="Address at which the API server reaches this machine."),
]
Port = Annotated[
    int,
    typer.Option(
        "--port", envvar="ALTERSHIELD_PORT", min=0, max=65535, help="Port of the webhook; 0 takes a free one."
    ),
]


@dataclass(frozen=True, kw_only=True)
class Options(Thresholds):
    context: options.Context = None
    kubeconfig: options.Kubeconfig = None
    host: Host = LOOPBACK
    port: Port = 0
    log_level: options.LogLevel = options.LOG_LEVEL
    yes: options.Yes = False


@with_options(Options)
def dev(chosen: Options) -> None:
    """Run the gate against a cluster from this machine, as in production, until Ctrl-C.

    Installs the CRDs, the service account and its permissions, and webhook configurations that point here; these
    are removed at the end (and, after a crash, at the next start). Asks first if the API server is not on loopback,
    because these webhooks have the failurePolicy Fail; without a terminal it takes --yes.
    """
    confirm(chosen.kubeconfig, chosen.context, chosen.host, yes=chosen.yes)
    with contextlib.suppress(asyncio.CancelledError):  # a signal ends it, after everything is removed
        asyncio.run(_dev(chosen))


async def _dev(chosen: Options) -> None:
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    cancel_on(signal.SIGINT, signal.SIGTERM)
    with tempfile.TemporaryDirectory(prefix="altershield-") as directory:
        async with running_installation(
            chosen.kubeconfig,
            Path(directory),
            chosen,
            context=chosen.context,
            host=chosen.host,
            port=chosen.port,
            log_level=chosen.log_level,
        ) as gate:
            console.print(
                f"The gate is up at {gate.url}. Govern a namespace with\n"
                "  kubectl label namespace NAME admission-webhook-altershield=enabled\n"
                "Ctrl-C ends it and takes its webhooks away."
            )
            await gate.failed()
