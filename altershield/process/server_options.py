"""The options for an AlterShield server and for the callback port, of the commands that run a reconciler."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from altershield.process.parameters import arguments

PLATFORM = "kubernetes"
TENANT = "default"
SCENE = "com.alipay.altershield.kubernetes.rollingupdate"
PHASE = "prod_phase"
PHASES = ("dev_phase", "sim_phase", "pre_phase", "gray_phase", "prod_beta_phase", "prod_phase")
"""The phases that the server's code knows."""

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


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """`reconciler.server.server_options` checks the values."""

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
