"""`python -m reconciler`: the controllers' process."""

import asyncio
import secrets
import signal
import socket
import sys
from typing import Annotated

import typer
import uvloop

from altershield import logs, options
from altershield.errors import AlterShieldError
from altershield.kube.client import Client
from reconciler.manager import Manager, Options

Identity = Annotated[
    str,
    typer.Option(
        "--identity",
        envvar="ALTERSHIELD_IDENTITY",
        help="This reconciler's name in the Lease. Default: the host's name and a random part.",
    ),
]


def main(
    kubeconfig: options.Kubeconfig = None,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    start_timeout: options.StartTimeout = options.START_TIMEOUT,
    observe_seconds: options.ObserveSeconds = options.OBSERVE_SECONDS,
    batch_wait: options.BatchWait = options.BATCH_WAIT,
    pre_timeout: options.PreTimeout = options.PRE_TIMEOUT,
    post_timeout: options.PostTimeout = options.POST_TIMEOUT,
    lease_duration: options.LeaseDuration = options.LEASE_DURATION,
    identity: Identity = "",
    metrics_port: options.MetricsPort = 8081,
    log_level: options.LogLevel = options.LOG_LEVEL,
) -> None:
    """Verify releases, suspend what failed and roll back what never came up."""
    settings = Options(
        system_namespace=system_namespace,
        identity=identity or f"{socket.gethostname()}_{secrets.token_hex(4)}",
        start_timeout=start_timeout,
        observe_seconds=observe_seconds,
        batch_wait=batch_wait,
        pre_timeout=pre_timeout,
        post_timeout=post_timeout,
        lease_duration=lease_duration,
        metrics_port=metrics_port,
    )
    try:
        logs.configure(log_level)
        uvloop.run(_run(kubeconfig, settings))
    except AlterShieldError as error:
        print(f"Error: {error}", file=sys.stderr)
        raise typer.Exit(error.exit_code) from error


async def _run(kubeconfig: str | None, settings: Options) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with await Client.connect(kubeconfig) as client:
        await Manager(client, settings).run(stop)


if __name__ == "__main__":
    typer.run(main)
