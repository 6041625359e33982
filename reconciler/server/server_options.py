"""The options for an AlterShield server and for the callback port, and their checks."""

import re
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from altershield.process.parameters import arguments
from kube_base.errors import UsageError
from reconciler.server.server_settings import PHASE, PHASES, PLATFORM, SCENE, TENANT, Settings
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
        help=f"The phase of all releases: {', '.join(PHASES)}.",
    ),
]
ServerTokenFile = Annotated[
    Path | None,
    typer.Option(
        "--server-token-file",
        envvar="ALTERSHIELD_SERVER_TOKEN_FILE",
        help="The file with the platform's token. It is read again when it changes. Without it, only a server that "
        "checks no signatures accepts requests.",
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
        help="The port for callbacks of the server and of the receivers of http checks. 0: no such port, verdicts are "
        "only polled.",
    ),
]
CallbackUrl = Annotated[
    str,
    typer.Option(
        "--callback-url",
        envvar="ALTERSHIELD_CALLBACK_URL",
        help="The URL at which receivers of http checks reach this port, such as https://releases.example.com. It is "
        "sent in the requests of these checks. Default: the requests name the path only.",
        show_default=False,
    ),
]
CallbackHost = Annotated[
    str,
    typer.Option(
        "--callback-host",
        envvar="ALTERSHIELD_CALLBACK_HOST",
        help="The address on which callbacks are taken. Default: all addresses.",
        show_default=False,
    ),
]
CallbackCertFile = Annotated[
    Path | None,
    typer.Option(
        "--callback-tls-cert-file",
        envvar="ALTERSHIELD_CALLBACK_TLS_CERT_FILE",
        help="The certificate of the callback port (PEM). It is read again when it changes. Default: plain HTTP.",
        show_default=False,
    ),
]
CallbackKeyFile = Annotated[
    Path | None,
    typer.Option(
        "--callback-tls-private-key-file",
        envvar="ALTERSHIELD_CALLBACK_TLS_PRIVATE_KEY_FILE",
        help="The private key of this certificate (PEM).",
        show_default=False,
    ),
]


_MAX_TENANT = 64  # bytes, as in the server's database
_PLATFORM = re.compile(r"[!-~]{1,32}")  # the value of a header
_SCENE = re.compile(r"[!-+\--~]{1,256}")  # no comma: the heartbeat lists scenes with commas


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """The options. `server_settings` checks the values."""

    server_url: ServerUrl = ""
    server_platform: ServerPlatform = PLATFORM
    server_tenant: ServerTenant = TENANT
    server_scene: ServerScene = SCENE
    server_phase: ServerPhase = PHASE
    server_token_file: ServerTokenFile = None
    callback_port: CallbackPort = 0
    callback_url: CallbackUrl = ""
    callback_host: CallbackHost = ""
    callback_tls_cert_file: CallbackCertFile = None
    callback_tls_private_key_file: CallbackKeyFile = None

    @property
    def server_arguments(self) -> list[str]:
        """The command-line arguments for `python -m reconciler`."""
        return arguments(self, ServerOptions)


def server_settings(options: ServerOptions) -> Settings | None:
    """The settings of the client, or None without a server. UsageError: an option is invalid, also one of the callback
    port, or the token file contains no token."""
    if (phase := options.server_phase.lower()) not in PHASES:
        raise UsageError(f"--server-phase {options.server_phase!r} is not one of {', '.join(PHASES)}")
    if (options.callback_tls_cert_file is None) != (options.callback_tls_private_key_file is None):
        raise UsageError("--callback-tls-cert-file and --callback-tls-private-key-file need each other")
    callback_url(options)
    if not options.server_url.strip():
        return None
    if not options.server_tenant.strip() or len(options.server_tenant.encode(errors="replace")) > _MAX_TENANT:
        raise UsageError(f"--server-tenant must have 1 to {_MAX_TENANT} bytes: the server requires a tenant")
    if not _PLATFORM.fullmatch(options.server_platform):
        raise UsageError("--server-platform must have 1 to 32 ASCII characters and no space")
    if not _SCENE.fullmatch(options.server_scene):
        raise UsageError(f"--server-scene {options.server_scene!r} is no key of a scene, such as {SCENE}")
    if options.server_token_file is not None:
        read_token(options.server_token_file)
    return Settings(
        url=_base_url(options.server_url, "--server-url", "http://altershield:8080"),
        platform=options.server_platform,
        tenant=options.server_tenant.strip(),
        scene=options.server_scene,
        phase=phase,
        token_file=options.server_token_file,
    )


def callback_url(options: ServerOptions) -> str:
    """The URL of the callback port without a slash at its end; empty if it is not known. UsageError: it is invalid."""
    if not options.callback_url.strip():
        return ""
    return _base_url(options.callback_url, "--callback-url", "https://releases.example.com")


def _base_url(text: str, option: str, example: str) -> str:
    """The URL without a slash at its end. UsageError if no path can be appended to it. No message contains the user
    information of a URL, because this may be a password."""
    try:
        url = urllib.parse.urlsplit(text.strip())
        host, _ = url.hostname, url.port
    except ValueError as error:
        raise UsageError(f"{option} is no URL; it must look like {example}") from error
    if "@" in url.netloc:
        raise UsageError(f"{option} must not contain a user or a password; use --server-token-file for the token")
    if url.scheme not in ("http", "https") or not host or not re.fullmatch(r"[!-~]+", text.strip()):
        raise UsageError(f"{option} must look like {example} or https://altershield.example/path")
    if url.query or url.fragment:
        raise UsageError(f"{option} must not contain a query or a fragment")
    return f"{url.scheme}://{url.netloc}{url.path}".rstrip("/")
