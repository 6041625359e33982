"""Questions to the user; and the question before `altershield dev` or `demo` installs webhooks in a cluster that others
may use."""

import asyncio
import ipaddress
import signal
import sys
from urllib.parse import urlsplit

import typer

from altershield.workloads import ADAPTERS
from kube_base.access.client import Client
from kube_base.errors import UsageError


def can_ask() -> bool:
    """Whether stdin is a terminal. `<&-` closes it."""
    return sys.stdin is not None and sys.stdin.isatty()


def ask(question: str, *, err: bool = False) -> None:
    """Ask whether to continue. typer.Abort: the answer is no, or stdin ended. KeyboardInterrupt: Ctrl-C."""
    # in an event loop, the first Ctrl-C would only cancel the task, which waits for the answer
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        typer.confirm(question, abort=True, err=err)
    except typer.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, handler)


def is_loopback(server: str) -> bool:
    """Whether the URL of an API server is on the loopback interface."""
    host = urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def warning(server: str, host: str) -> str:
    """The effects of the webhooks in the cluster of this API server. `host` is the address in their URLs."""
    kinds = [adapter.resource.kind for adapter in ADAPTERS]
    lines = [
        f"The API server {server} is not on this machine.",
        "This command installs webhooks there with failurePolicy Fail. While they are installed and this machine does",
        f"not answer, no {', '.join(kinds[:-1])} or {kinds[-1]} of a governed namespace can be released.",
    ]
    if is_loopback(f"https://{host}"):
        lines.append(f"Their URLs have the host {host}, which is the machine of the API server, not this machine.")
    return "\n".join(lines)


def confirm(kubeconfig: str | None, context: str | None, host: str, *, yes: bool) -> None:
    """Ask whether webhooks may be installed in the cluster, unless `yes` is set or its API server is on loopback.

    typer.Abort: the answer is no. UsageError: stdin is not a terminal.
    """
    if yes:
        return
    server = asyncio.run(_server(kubeconfig, context))
    if is_loopback(server):
        return
    if not can_ask():
        raise UsageError(
            f"the API server {server} is not on this machine, and without a terminal this command cannot ask whether "
            "it may install webhooks with failurePolicy Fail there; to install them, add --yes"
        )
    typer.echo(warning(server, host), err=True)
    ask("Continue?", err=True)


async def _server(kubeconfig: str | None, context: str | None) -> str:
    async with await Client.connect(kubeconfig, context=context) as client:
        return client.server
