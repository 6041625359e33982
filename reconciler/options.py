"""The command-line options of the reconciler."""

from dataclasses import dataclass
from typing import Annotated

import typer

from altershield.process import options
from altershield.process.startup import ProcessOptions
from reconciler.outbound.check_options import CheckOptions
from reconciler.receivers.notification_options import NotificationOptions
from reconciler.server.server_options import ServerOptions
from reconciler.thresholds import Thresholds

Identity = Annotated[
    str,
    typer.Option(
        "--identity",
        envvar="ALTERSHIELD_IDENTITY",
        help="This reconciler's name in the Lease. Default: the host's name and a random part.",
    ),
]

NamespaceSelector = Annotated[
    str,
    typer.Option(
        "--namespace-selector",
        envvar="ALTERSHIELD_NAMESPACE_SELECTOR",
        help="A label selector that governed namespaces must match in addition to their label. Default: all.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Options(Thresholds, ServerOptions, CheckOptions, NotificationOptions, ProcessOptions):
    """The options of `python -m reconciler`."""

    identity: Identity = ""
    metrics_port: options.MetricsPort = 8081
    namespace_selector: NamespaceSelector = ""
