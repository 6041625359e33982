"""The thresholds and limits of the reconciler, as options of the commands that run a reconciler."""

from dataclasses import dataclass

from altershield.process import options
from altershield.process.parameters import arguments


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """All thresholds are in seconds, except for `history_limit`."""

    start_timeout: options.StartTimeout = options.START_TIMEOUT
    observe_seconds: options.ObserveSeconds = options.OBSERVE_SECONDS
    batch_wait: options.BatchWait = options.BATCH_WAIT
    pre_timeout: options.PreTimeout = options.PRE_TIMEOUT
    post_timeout: options.PostTimeout = options.POST_TIMEOUT
    history_limit: options.HistoryLimit = options.HISTORY_LIMIT
    lease_duration: options.LeaseDuration = options.LEASE_DURATION

    @property
    def arguments(self) -> list[str]:
        """The command-line arguments for `python -m reconciler`."""
        return arguments(self, Thresholds)
