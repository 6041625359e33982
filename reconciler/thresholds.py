"""The thresholds, limits and rules of the reconciler, as options of the commands that run a reconciler."""

from dataclasses import dataclass
from typing import Annotated

import typer

from altershield.process.parameters import arguments

START_TIMEOUT = 120.0
OBSERVE_SECONDS = 10.0
BATCH_WAIT = 60
PRE_TIMEOUT = 120
POST_TIMEOUT = 120
HISTORY_LIMIT = 10
LEASE_DURATION = 15.0

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
SeparationOfDuties = Annotated[
    bool,
    typer.Option(
        "--separation-of-duties",
        envvar="ALTERSHIELD_SEPARATION_OF_DUTIES",
        help="The user who releases a version may not approve, repair, resume or retry it if it fails.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """All thresholds are in seconds, except for `history_limit`."""

    start_timeout: StartTimeout = START_TIMEOUT
    observe_seconds: ObserveSeconds = OBSERVE_SECONDS
    batch_wait: BatchWait = BATCH_WAIT
    pre_timeout: PreTimeout = PRE_TIMEOUT
    post_timeout: PostTimeout = POST_TIMEOUT
    history_limit: HistoryLimit = HISTORY_LIMIT
    lease_duration: LeaseDuration = LEASE_DURATION
    separation_of_duties: SeparationOfDuties = False

    @property
    def arguments(self) -> list[str]:
        """The command-line arguments for `python -m reconciler`."""
        return arguments(self, Thresholds)
