"""`python -m gatekeeper`: the admission webhook's process."""

import sys
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from altershield import logs, options
from altershield.errors import AlterShieldError
from gatekeeper import app

Host = Annotated[
    str,
    typer.Option("--host", envvar="ALTERSHIELD_HOST", help="The address to listen on. Default: all."),
]
Port = Annotated[
    int,
    typer.Option("--port", envvar="ALTERSHIELD_PORT", min=0, max=65535, help="The TLS port for admission reviews."),
]
ClientCaFile = Annotated[
    Path | None,
    typer.Option(
        "--client-ca-file",
        envvar="ALTERSHIELD_CLIENT_CA_FILE",
        help="PEM file of CAs: only clients with a certificate of one of them get an answer. Default: anybody.",
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


def main(
    tls_cert_file: options.TlsCertFile,
    tls_private_key_file: options.TlsPrivateKeyFile,
    kubeconfig: options.Kubeconfig = None,
    host: Host = "",
    port: Port = 9443,
    client_ca_file: ClientCaFile = None,
    client_name: ClientName = "",
    metrics_port: options.MetricsPort = 8080,
    shutdown_delay: options.ShutdownDelay = 10,
    service_account: options.ServiceAccountUser = options.SERVICE_ACCOUNT_USER,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    log_level: options.LogLevel = options.LOG_LEVEL,
) -> None:
    """Judge workloads before the API server stores them."""
    if client_name and client_ca_file is None:
        raise typer.BadParameter("needs --client-ca-file, or nobody vouches for the name", param_hint="--client-name")
    settings = app.Settings(
        kubeconfig=kubeconfig,
        host=host,
        port=port,
        metrics_port=metrics_port,
        tls_cert_file=tls_cert_file,
        tls_private_key_file=tls_private_key_file,
        client_ca_file=client_ca_file,
        client_name=client_name,
        shutdown_delay=shutdown_delay,
        service_account=service_account,
        system_namespace=system_namespace,
    )
    try:
        logs.configure(log_level)
        uvloop.run(app.run(settings))
    except AlterShieldError as error:
        print(f"Error: {error}", file=sys.stderr)
        raise typer.Exit(error.exit_code) from error


if __name__ == "__main__":
    typer.run(main)
