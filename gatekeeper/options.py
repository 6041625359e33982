"""The gatekeeper's options."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from altershield.process import options
from altershield.process.startup import ProcessOptions

Host = Annotated[
    str,
    typer.Option("--host", envvar="ALTERSHIELD_HOST", help="The address to listen on. Default: all."),
]
Port = Annotated[
    int,
    typer.Option("--port", envvar="ALTERSHIELD_PORT", min=0, max=65535, help="The TLS port for admission reviews."),
]
TlsCertFile = Annotated[
    Path,
    typer.Option(
        "--tls-cert-file",
        envvar="ALTERSHIELD_TLS_CERT_FILE",
        help="PEM file with the serving certificate and its chain.",
    ),
]
TlsPrivateKeyFile = Annotated[
    Path,
    typer.Option(
        "--tls-private-key-file",
        envvar="ALTERSHIELD_TLS_PRIVATE_KEY_FILE",
        help="PEM file with the private key.",
    ),
]
ClientCaFile = Annotated[
    Path | None,
    typer.Option(
        "--client-ca-file",
        envvar="ALTERSHIELD_CLIENT_CA_FILE",
        help="PEM file of CAs. Only clients with a certificate of one of them get an answer. Default: all clients.",
    ),
]
ClientName = Annotated[
    str,
    typer.Option(
        "--client-name",
        envvar="ALTERSHIELD_CLIENT_NAME",
        help="The common name that the client's certificate must have. Default: any.",
    ),
]
ShutdownDelay = Annotated[
    float,
    typer.Option(
        "--shutdown-delay",
        envvar="ALTERSHIELD_SHUTDOWN_DELAY",
        min=0,
        max=300,
        help="Seconds to serve requests after SIGTERM while not ready, until the API server sends no new ones.",
    ),
]
ServiceAccountUser = Annotated[
    str,
    typer.Option(
        "--service-account",
        envvar="ALTERSHIELD_SERVICE_ACCOUNT",
        help="The user name of the reconciler in requests.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Options(ProcessOptions):
    tls_cert_file: TlsCertFile
    tls_private_key_file: TlsPrivateKeyFile
    host: Host = ""
    port: Port = 9443
    client_ca_file: ClientCaFile = None
    client_name: ClientName = ""
    metrics_port: options.MetricsPort = 8080
    shutdown_delay: ShutdownDelay = 10
    service_account: ServiceAccountUser = options.SERVICE_ACCOUNT_USER

    def __post_init__(self) -> None:
        if self.client_name and self.client_ca_file is None:
            raise typer.BadParameter(
                "requires --client-ca-file, because only a CA proves the name", param_hint="--client-name"
            )
