"""The option for notifications, of the commands that run a reconciler."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from altershield.process.parameters import arguments

NotificationsFile = Annotated[
    Path | None,
    typer.Option(
        "--notifications-file",
        envvar="ALTERSHIELD_NOTIFICATIONS_FILE",
        help="The file with the receivers of notifications (YAML). It is read again when it changes. Default: no "
        "notifications.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class NotificationOptions:
    """`reconciler.receivers.file` reads the file."""

    notifications_file: NotificationsFile = None

    @property
    def notification_arguments(self) -> list[str]:
        """The command-line arguments for `python -m reconciler`."""
        return arguments(self, NotificationOptions)
