"""The options that several commands share, each with its environment variable and its limits.

The environment variable of `--log-level` is `ALTERSHIELD_LOG_LEVEL`, and so on. The options are annotations of the
parameters of a typer command or of the fields of an options class: `log_level: LogLevel = LOG_LEVEL`.
"""

from typing import Annotated

import typer

from altershield.api import names

Kubeconfig = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig",
        envvar="ALTERSHIELD_KUBECONFIG",
        help="The kubeconfig file. Default: the pod's service account, else $KUBECONFIG or ~/.kube/config.",
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        envvar="ALTERSHIELD_CONTEXT",
        help="The context of the kubeconfig. Default: the current one.",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
SystemNamespace = Annotated[
    str,
    typer.Option(
        "--system-namespace",
        envvar="ALTERSHIELD_SYSTEM_NAMESPACE",
        help="The namespace of the settings `blocking`, `branch`, `rollback` and `rollout` and of the Lease.",
    ),
]
SYSTEM_NAMESPACE = names.SYSTEM_NAMESPACE
LogLevel = Annotated[
    str,
    typer.Option(
        "--log-level",
        envvar="ALTERSHIELD_LOG_LEVEL",
        help="Lowest level to log: debug, info, warning or error.",
    ),
]
LOG_LEVEL = "info"

SERVICE_ACCOUNT_USER = names.service_account_user()
MetricsPort = Annotated[
    int,
    typer.Option(
        "--metrics-port",
        envvar="ALTERSHIELD_METRICS_PORT",
        min=0,
        max=65535,
        help="The HTTP port for /metrics, /healthz and /readyz.",
    ),
]
