"""`altershield console`: the console in a browser, with the rights of the user."""

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from altershield.process import options
from altershield.process.signals import stop_event
from command.confirm import can_ask
from console.local import open_browser, serving
from kube_base.access.client import Client


def console(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1. 0: any free port.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Start no browser.")] = False,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Show releases in a browser: what needs somebody, and why, with the commands that help. Until Ctrl-C.

    The pages show what you may read with kubectl, and change nothing. The command prints an address that signs in one
    browser, once, within two minutes. Enter prints a new one.

    Do not run it on a host that you share with people whom you distrust: browsers send cookies to all ports of a host.
    """
    asyncio.run(_console(port, context, kubeconfig, system_namespace, browser=not no_open))


async def _console(
    port: int, context: str | None, kubeconfig: str | None, system_namespace: str, *, browser: bool
) -> None:
    stop = stop_event()
    async with (
        await Client.connect(kubeconfig, context=context) as client,
        serving(client, port, system_namespace) as new_address,
    ):

        def tell() -> None:
            print(f"This address signs in once, within two minutes:\n  {new_address()}", flush=True)

        tell()
        with tempfile.TemporaryDirectory(prefix="altershield-") as directory, _lines(tell):
            if browser and not await asyncio.to_thread(open_browser, new_address(), Path(directory)):
                print("No browser could be started.", file=sys.stderr)
            await stop.wait()


@contextlib.contextmanager
def _lines(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` for each line that is typed, if stdin is a terminal."""
    if not can_ask():
        yield
        return
    loop, stdin = asyncio.get_running_loop(), sys.stdin

    def typed() -> None:
        if stdin.readline():
            act()
        else:
            loop.remove_reader(stdin)

    loop.add_reader(stdin, typed)
    try:
        yield
    finally:
        loop.remove_reader(stdin)
