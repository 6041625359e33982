"""`python -m gatekeeper`: the admission webhook's process."""

import sys
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


def main(
    tls_cert_file: options.TlsCertFile,
    tls_private_key_file: options.TlsPrivateKeyFile,
    kubeconfig: options.Kubeconfig = None,
    host: Host = "",
    port: Port = 9443,
    metrics_port: options.MetricsPort = 8080,
    shutdown_delay: options.ShutdownDelay = 10,
    service_account: options.ServiceAccountUser = options.SERVICE_ACCOUNT_USER,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    log_level: options.LogLevel = options.LOG_LEVEL,
) -> None:
    """Judge Deployments before the API server stores them."""
    settings = app.Settings(
        kubeconfig=kubeconfig,
        host=host,
        port=port,
        metrics_port=metrics_port,
        tls_cert_file=tls_cert_file,
        tls_private_key_file=tls_private_key_file,
        shutdown_delay=shutdown_delay,
        user=service_account,
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
