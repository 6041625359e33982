"""The command-line options for an AlterShield server."""

import re
import urllib.parse
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

from altershield.errors import UsageError
from reconciler.server import settings
from reconciler.server.settings import Settings
from reconciler.server.token_file import read_token

ServerUrl = Annotated[
    str,
    typer.Option(
        "--server-url",
        envvar="ALTERSHIELD_SERVER_URL",
        help="The URL of an AlterShield server, such as http://altershield:8080. Default: no server.",
        show_default=False,
    ),
]
ServerPlatform = Annotated[
    str,
    typer.Option(
        "--server-platform",
        envvar="ALTERSHIELD_SERVER_PLATFORM",
        help="The platform that is registered at the server for this cluster. The token belongs to it.",
    ),
]
ServerTenant = Annotated[
    str,
    typer.Option("--server-tenant", envvar="ALTERSHIELD_SERVER_TENANT", help="The tenant at the server."),
]
ServerScene = Annotated[
    str,
    typer.Option(
        "--server-scene",
        envvar="ALTERSHIELD_SERVER_SCENE",
        help="The key of the change scene that is registered at the server for releases.",
    ),
]
ServerPhase = Annotated[
    str,
    typer.Option(
        "--server-phase",
        envvar="ALTERSHIELD_SERVER_PHASE",
        help=f"The phase of all releases: {', '.join(settings.PHASES)}.",
    ),
]
ServerTokenFile = Annotated[
    Path | None,
    typer.Option(
        "--server-token-file",
        envvar="ALTERSHIELD_SERVER_TOKEN_FILE",
        help="The file with the platform's token. It is read again when it changes. Default: no request is signed.",
        show_default=False,
    ),
]
CallbackPort = Annotated[
    int,
    typer.Option(
        "--callback-port",
        envvar="ALTERSHIELD_CALLBACK_PORT",
        min=0,
        max=65535,
        help="The port for the server's callbacks. 0: no such port, verdicts are only polled.",
    ),
]

_MAX_TENANT = 64  # bytes, as in the server's database
_PLATFORM = re.compile(r"[!-~]{1,32}")  # the value of a header
_SCENE = re.compile(r"[!-+\--~]{1,256}")  # no comma: the heartbeat lists scenes with commas


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """The options for an AlterShield server."""

    server_url: ServerUrl = ""
    server_platform: ServerPlatform = settings.PLATFORM
    server_tenant: ServerTenant = settings.TENANT
    server_scene: ServerScene = settings.SCENE
    server_phase: ServerPhase = settings.PHASE
    server_token_file: ServerTokenFile = None
    callback_port: CallbackPort = 0

    def server_settings(self) -> Settings | None:
        """The settings of the client, or None without a server. UsageError: an option is invalid, or the token file
        contains no token."""
        if (phase := self.server_phase.lower()) not in settings.PHASES:
            raise UsageError(f"--server-phase {self.server_phase!r} is not one of {', '.join(settings.PHASES)}")
        if not self.server_url.strip():
            if self.callback_port:
                raise UsageError("--callback-port is for the callbacks of a server; set --server-url, too")
            return None
        if not self.server_tenant.strip() or len(self.server_tenant.encode(errors="replace")) > _MAX_TENANT:
            raise UsageError(f"--server-tenant must have 1 to {_MAX_TENANT} bytes: the server requires a tenant")
        if not _PLATFORM.fullmatch(self.server_platform):
            raise UsageError("--server-platform must have 1 to 32 ASCII characters and no space")
        if not _SCENE.fullmatch(self.server_scene):
            raise UsageError(f"--server-scene {self.server_scene!r} is no key of a scene, such as {settings.SCENE}")
        if self.server_token_file is not None:
            read_token(self.server_token_file)
        return Settings(
            url=_base_url(self.server_url),
            platform=self.server_platform,
            tenant=self.server_tenant.strip(),
            scene=self.server_scene,
            phase=phase,
            token_file=self.server_token_file,
        )

    @property
    def server_arguments(self) -> list[str]:
        """The command-line arguments for `python -m reconciler`."""
        return [
            argument
            for field in fields(ServerOptions)
            if (value := getattr(self, field.name)) is not None
            for argument in (f"--{field.name.replace('_', '-')}", str(value))
        ]


def _base_url(text: str) -> str:
    """The URL without a slash at its end. UsageError if no path can be appended to it. No message contains the user
    information of a URL, because this may be a password."""
    try:
        url = urllib.parse.urlsplit(text.strip())
        host, _ = url.hostname, url.port
    except ValueError as error:
        raise UsageError("--server-url is no URL; it must look like http://altershield:8080") from error
    if "@" in url.netloc:
        raise UsageError("--server-url must not contain a user or a password; use --server-token-file for the token")
    if url.scheme not in ("http", "https") or not host or not re.fullmatch(r"[!-~]+", text.strip()):
        raise UsageError("--server-url must look like http://altershield:8080 or https://altershield.example/path")
    if url.query or url.fragment:
        raise UsageError("--server-url must not contain a query or a fragment")
    return f"{url.scheme}://{url.netloc}{url.path}".rstrip("/")
