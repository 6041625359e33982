"""Asks before `altershield dev` or `demo` can stop the releases of a cluster that others use."""

import asyncio
import ipaddress
import sys
from urllib.parse import urlsplit

import typer

from altershield.errors import UsageError
from altershield.kube.client import Client
from altershield.workloads import ADAPTERS


def is_loopback(server: str) -> bool:
    """Whether an API server's URL is one of this machine."""
    host = urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def warning(server: str, host: str) -> str:
    """What a gate can do to the cluster of this API server. `host` is where the API server looks for the gate."""
    kinds = [adapter.resource.kind for adapter in ADAPTERS]
    lines = [
        f"The API server {server} is not on this machine.",
        "This command installs webhooks there with failurePolicy Fail: while they are installed and this gate does not",
        f"answer, no {', '.join(kinds[:-1])} or {kinds[-1]} of a governed namespace can be released.",
    ]
    if is_loopback(f"https://{host}"):
        lines.append(f"They point to {host}, which is the API server's own machine there, not this one.")
    return "\n".join(lines)


def confirm(kubeconfig: str | None, context: str | None, host: str, *, yes: bool) -> None:
    """Ask whether webhooks may be installed on the cluster, unless its API server is on loopback or `yes` was said.

    typer.Abort where the answer is no. UsageError where there is no terminal to ask on.
    """
    if yes:
        return
    server = asyncio.run(_server(kubeconfig, context))
    if is_loopback(server):
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"the API server {server} is not on this machine, and there is no terminal to ask whether webhooks with "
            "failurePolicy Fail may be installed there; confirm it with --yes"
        )
    typer.echo(warning(server, host), err=True)
    typer.confirm("Continue?", abort=True, err=True)


async def _server(kubeconfig: str | None, context: str | None) -> str:
    async with await Client.connect(kubeconfig, context=context) as client:
        return client.server
