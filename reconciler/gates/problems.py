"""Why a ReleaseWindow is not accepted."""

import enum

import msgspec


class Reason(enum.StrEnum):
    """The reasons of the condition Accepted with the status False."""

    SCHEDULE_INVALID = "ScheduleInvalid"
    CALENDAR_INVALID = "CalendarInvalid"
    CALENDAR_NOT_FOUND = "CalendarNotFound"
    TOO_MANY_INTERVALS = "TooManyIntervals"
    NAMESPACE_SELECTOR_NOT_ALLOWED = "NamespaceSelectorNotAllowed"


class Problem(msgspec.Struct, frozen=True):
    """Reason and message of the condition."""

    reason: Reason
    message: str


class ScheduleError(Exception):
    """A schedule cannot be worked out. The message says what is wrong and what to correct."""

    reason = Reason.SCHEDULE_INVALID

    def at(self, place: str) -> "ScheduleError":
        """The same error with the place in front of the message."""
        return type(self)(f"{place}: {self}")

    @property
    def problem(self) -> Problem:
        return Problem(self.reason, str(self))


class CalendarError(ScheduleError):
    """A calendar cannot be worked out."""

    reason = Reason.CALENDAR_INVALID


class OutOfTimeError(BaseException):
    """The limit of CPU time is reached. No handler of Exception may catch it."""
