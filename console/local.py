"""The console of one person: on loopback, with the credentials of a kubeconfig."""

import contextlib
import html
import logging
import os
import socket
import time
import webbrowser
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from aiohttp import web
from aiohttp.http import HttpProcessingError

from console.app import SIGN_IN, Console, application
from console.sign_ins import SignIns
from kube_base.access.client import Client
from kube_base.errors import UsageError

_LOOPBACK = "127.0.0.1"

_logger = logging.getLogger("console.http")


@contextlib.asynccontextmanager
async def serving(client: Client, port: int, system_namespace: str) -> AsyncIterator[Callable[[], str]]:
    """Serve the console. Yields a function that makes an address which signs in once. `port`: 0: any free port.
    UsageError: the port cannot be used."""
    try:
        listening = socket.create_server((_LOOPBACK, port))
    except OSError as error:
        raise UsageError(f"cannot listen on port {port}: {error.strerror}; choose another one with --port") from error
    host = f"{_LOOPBACK}:{listening.getsockname()[1]}"
    sign_ins = SignIns(time.monotonic)
    app = application(Console(client, sign_ins, host, system_namespace))
    _logger.addFilter(_is_well_formed)
    runner = web.AppRunner(app, access_log=None, logger=_logger)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        yield lambda: f"http://{host}{SIGN_IN}{sign_ins.new_secret()}"
    finally:
        await runner.cleanup()


def _is_well_formed(record: logging.LogRecord) -> bool:
    """False for the message about a request that is no HTTP: it quotes the request, with its secret or its cookie."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


def open_browser(address: str, directory: Path) -> bool:
    """Whether a browser was started. It gets the address from a file that only this user can read: the command line of
    a process is visible to all users of the machine."""
    page = directory / "console.html"
    target = html.escape(address, quote=True)
    with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={target}"><title>AlterShield</title>')
    return webbrowser.open(page.as_uri())
