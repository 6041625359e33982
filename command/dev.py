"""`altershield dev`: AlterShield for the current cluster, as processes on this machine."""

import asyncio
import contextlib
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from altershield.api import labels
from altershield.process import options
from altershield.process.parameters import with_options
from altershield.process.signals import cancel_on
from command.confirm import confirm
from command.installation import LOOPBACK, running_installation
from reconciler.outbound.check_options import CheckOptions
from reconciler.receivers.notification_options import NotificationOptions
from reconciler.server.server_options import ServerOptions
from reconciler.thresholds import Thresholds

Host = Annotated[
    str,
    typer.Option("--host", envvar="ALTERSHIELD_HOST", help="Address of this machine, as the API server reaches it."),
]
Port = Annotated[
    int,
    typer.Option("--port", envvar="ALTERSHIELD_PORT", min=0, max=65535, help="Port of the webhook. 0: any free port."),
]


@dataclass(frozen=True, kw_only=True)
class Options(Thresholds, ServerOptions, CheckOptions, NotificationOptions):
    context: options.Context = None
    kubeconfig: options.Kubeconfig = None
    host: Host = LOOPBACK
    port: Port = 0
    log_level: options.LogLevel = options.LOG_LEVEL
    yes: options.Yes = False


@with_options(Options)
def dev(chosen: Options) -> None:
    """Run the gatekeeper and the reconciler on this machine for a cluster, until Ctrl-C.

    Installs the CRDs, the service account with its permissions, admission policies, and webhook configurations with the
    address of this machine. At the end, it deletes all of them except for the CRDs and the namespace, which have your
    data, and says so. After a crash, the next start deletes the webhook configurations. If the API server does not
    answer at the end, the command says how to delete the objects. It needs the ClusterRole cluster-admin. If the API
    server is not on loopback, the command asks first, because the webhooks have failurePolicy Fail. Without a terminal,
    it needs --yes.
    """
    confirm(chosen.kubeconfig, chosen.context, chosen.host, yes=chosen.yes)
    with contextlib.suppress(asyncio.CancelledError):  # a signal stops the command after its objects are deleted
        asyncio.run(_dev(chosen))


async def _dev(chosen: Options) -> None:
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    cancel_on(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    with tempfile.TemporaryDirectory(prefix="altershield-") as directory:
        async with running_installation(
            chosen.kubeconfig,
            Path(directory),
            chosen,
            context=chosen.context,
            host=chosen.host,
            port=chosen.port,
            server=chosen,
            checks=chosen,
            notifications=chosen,
            log_level=chosen.log_level,
        ) as installation:
            console.print(
                f"The gatekeeper is ready at {installation.url}. To govern a namespace, label it:\n"
                f"  kubectl label namespace NAME {labels.GOVERNED_SELECTOR}\n"
                "Ctrl-C stops AlterShield and deletes its objects, except for the CustomResourceDefinitions."
            )
            await installation.failed()
