"""A circuit breaker: calls to a server that does not answer fail at once, and one log line reports it."""

import contextlib
import logging
from collections.abc import Callable, Iterator

from reconciler.server.server_errors import NotAllowedError, RejectedError, UnavailableError

logger = logging.getLogger(__name__)

_FAILURES = 5  # in a row, until it opens
_FIRST = 10.0  # seconds that it is open at first
_LAST = 120.0
_TRIAL_RETRY = 1.0  # seconds until a call is worth another attempt while a trial call is running


class Breaker:
    """The breaker opens after five failures in a row, for 10 seconds. Then it lets one call through. If that call fails
    too, it is open for twice as long, up to 120 seconds. Any answer of the server closes it, even a refusal.
    """

    def __init__(self, server: str, clock: Callable[[], float]) -> None:
        """`server` is for messages. `clock` returns monotonic seconds."""
        self._server = server
        self._clock = clock
        self._failures = 0  # in a row
        self._period = 0.0  # seconds that it is open; 0: closed
        self._open_until = 0.0
        self._trial_runs = False
        self._cause = ""

    @property
    def available(self) -> bool:
        """False from the time at which the breaker opens until the server answers."""
        return not self._period

    @property
    def cause(self) -> str:
        """Why the last call failed, or empty."""
        return self._cause

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Make a call in this block, which raises UnavailableError if the call fails. UnavailableError before the block
        begins: the breaker is open."""
        trial = bool(self._period)
        if trial:
            self._begin_trial()
        try:
            yield
        except UnavailableError as error:
            self._fail(str(error), trial)
            raise
        except (RejectedError, NotAllowedError):
            self._close()
            raise
        else:
            self._close()
        finally:
            if trial:
                self._trial_runs = False

    def _begin_trial(self) -> None:
        wait = self._open_until - self._clock()
        if self._trial_runs or wait > 0:
            raise UnavailableError(
                f"the AlterShield server at {self._server} is not called, because its last calls failed: {self._cause}",
                delivered=False,
                retry_after=max(wait, _TRIAL_RETRY),
            )
        self._trial_runs = True

    def _fail(self, cause: str, trial: bool) -> None:
        """Calls that began before it opened change nothing when they fail later."""
        self._cause = cause
        self._failures += 1
        if self._period and trial:
            self._period = min(2 * self._period, _LAST)
        elif not self._period and self._failures >= _FAILURES:
            self._period = _FIRST
            logger.warning(
                "the AlterShield server is unavailable; calls fail at once until it answers again",
                extra={"server": self._server, "cause": cause},
            )
        else:
            return
        self._open_until = self._clock() + self._period

    def _close(self) -> None:
        if self._period:
            logger.info("the AlterShield server is available again", extra={"server": self._server})
        self._failures = 0
        self._period = 0.0
        self._cause = ""
