"""The AlterShield server of `altershield sandbox`."""

import contextlib
import ipaddress
import os
import secrets
import shlex
import urllib.parse
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from command.backend import open_altershield_server
from kube_base.errors import UsageError

CALLBACK = "http://127.0.0.1:8090/openapi/altershield/callback"

_TOKEN_BYTES = 24  # 32 characters, which is the limit of an AlterShield server


@contextlib.asynccontextmanager
async def running_server(token_file: Path, callback: str) -> AsyncIterator[str]:
    """Run a server with a new token, which is in `token_file` while the server runs. Yields a text that explains its
    use.

    UsageError: `callback` is not a URL, or the sandbox is not installed.
    """
    port = _port_on_this_machine(callback)
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    async with open_altershield_server(token, callback) as server:
        with private_file(token_file, token):
            yield _usage(server.url, server.platform, token, token_file, port)


def _usage(url: str, platform: str, token: str, token_file: Path, port: int | None) -> str:
    options = [
        f"--server-url {url}",
        f"--server-platform {platform}",
        f"--server-token-file {shlex.quote(str(token_file.absolute()))}",
    ]
    if port is not None:
        options.append(f"--callback-port {port}")
    return (
        f"The AlterShield server listens at {url}. Its platform is {platform}, with the token {token}. "
        "Options for altershield dev:\n"
        f"  {' '.join(options)}\n"
        f"Checks pass at once. To change this, PUT a script: {url}/sandbox/script"
    )


@contextlib.contextmanager
def private_file(path: Path, text: str) -> Iterator[None]:
    """A file that only this user can read. It is deleted at the end. UsageError: it cannot be written."""
    try:
        with path.open("a") as file:  # fails for a directory, whose mode must not change
            os.fchmod(file.fileno(), 0o600)  # before the secrets are written
            file.truncate(0)
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _port_on_this_machine(url: str) -> int | None:
    """The port of a URL on loopback, None for other URLs. UsageError: it is not a URL."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"--server-callback {url!r} is not a URL: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"--server-callback {url!r} is not a URL such as {CALLBACK}")
    with contextlib.suppress(ValueError):
        return port if ipaddress.ip_address(host).is_loopback else None
    return port if host == "localhost" else None
