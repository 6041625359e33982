"""The options that several commands share, each with its environment variable and its limits.

The environment variable of `--start-timeout` is `ALTERSHIELD_START_TIMEOUT`, and so on. The options are annotations of
the parameters of a typer command or of the fields of an options class: `start_timeout: StartTimeout = START_TIMEOUT`.
"""

from typing import Annotated

import typer

from altershield.api import names

START_TIMEOUT = 120.0
OBSERVE_SECONDS = 10.0
BATCH_WAIT = 60
PRE_TIMEOUT = 120
POST_TIMEOUT = 120
HISTORY_LIMIT = 10
LEASE_DURATION = 15.0

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
        help="The namespace of the settings `blocking`, `branch` and `rollback` and of the Lease.",
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

StartTimeout = Annotated[
    float,
    typer.Option(
        "--start-timeout",
        envvar="ALTERSHIELD_START_TIMEOUT",
        min=1,
        max=86_400,
        help="Seconds after which a release is rolled back if a pod is not up, or is down again.",
    ),
]
ObserveSeconds = Annotated[
    float,
    typer.Option(
        "--observe-seconds",
        envvar="ALTERSHIELD_OBSERVE_SECONDS",
        min=0,
        max=3600,
        help="Seconds that a pod must be ready without a restart before it counts as up.",
    ),
]
BatchWait = Annotated[
    int,
    typer.Option(
        "--batch-wait",
        envvar="ALTERSHIELD_BATCH_WAIT",
        min=0,
        max=86_400,
        help="Seconds after which a batch is verified even if it is not full.",
    ),
]
PreTimeout = Annotated[
    int,
    typer.Option(
        "--pre-timeout",
        envvar="ALTERSHIELD_PRE_TIMEOUT",
        min=1,
        max=86_400,
        help="Seconds to wait for the check of an AlterShield server before a batch; after them, it counts as passed.",
    ),
]
PostTimeout = Annotated[
    int,
    typer.Option(
        "--post-timeout",
        envvar="ALTERSHIELD_POST_TIMEOUT",
        min=1,
        max=86_400,
        help="Seconds to wait for the check of an AlterShield server after a batch; after them, it counts as passed.",
    ),
]
HistoryLimit = Annotated[
    int,
    typer.Option(
        "--history-limit",
        envvar="ALTERSHIELD_HISTORY_LIMIT",
        min=0,
        max=1000,
        help="Versions that passed, and as many others, that are kept for each workload. 0: no history.",
    ),
]
LeaseDuration = Annotated[
    float,
    typer.Option(
        "--lease-duration",
        envvar="ALTERSHIELD_LEASE_DURATION",
        min=2,
        max=300,
        help="Seconds after which another reconciler may replace a leader that does not renew its Lease.",
    ),
]
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
