"""Reports releases to an AlterShield server: creates the order of each release, and closes it when the release ends.

`order_reconciler` closes the orders of releases that are deleted, or are not followed any more.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import msgspec

from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition, find_condition, set_condition
from altershield.releases import rolled_back, state, version_of
from altershield.workloads.workload import Workload
from reconciler.cluster.orders import CLOSED
from reconciler.cluster.release import Release
from reconciler.cluster.writer import Writer
from reconciler.server.answers import DENIED
from reconciler.server.messages import FinishState
from reconciler.server.server_errors import AlterShieldServerError, RejectedError, UnavailableError

RETRY_SECONDS = 10.0
"""Seconds until a release is reported again after the server could not be reached."""


class ReportReason(StrEnum):
    """Reasons of the condition Reported."""

    CREATED = "OrderCreated"
    REFUSED = "OrderRefused"
    DENIED = "AccessDenied"
    UNREACHABLE = "ServerUnreachable"
    CLOSED = CLOSED


_UNDER_WAY = (WorkloadState.INIT, WorkloadState.RUNNING, WorkloadState.TIME_OUT_PRE_THRESHOLD)
_MAX_MESSAGE = 512


class OrderServer(Protocol):
    """The part of an AlterShield server's client that is about orders."""

    @property
    def enabled(self) -> bool:
        """Whether releases are reported at all."""
        ...

    async def report(self, release: ChangeWorkload) -> None:
        """Create the order. AlterShieldServerError."""
        ...

    async def close(self, release: ChangeWorkload, state: FinishState, message: str) -> None:
        """Close the order of the release. AlterShieldServerError."""
        ...

    async def close_order(self, order: str, state: FinishState, message: str) -> None:
        """Close the order with this id. AlterShieldServerError."""
        ...


class Reporter:
    """`server` is None if none is configured. `clock` returns Unix seconds."""

    def __init__(self, server: OrderServer | None, writer: Writer, clock: Callable[[], float]) -> None:
        self._server = server
        self._writer = writer
        self._clock = clock

    async def report(self, release: Release) -> Condition | None:
        """Create the order of a release that is under way. Returns the condition Reported; None if the release is not
        to be reported, or was reported before."""
        if self._server is None or not self._server.enabled or state(release) not in _UNDER_WAY:
            return None
        known = find_condition(release.status.conditions, ConditionType.REPORTED)
        if known is not None and known.status != "Unknown":
            return None
        try:
            await self._server.report(release)
        except UnavailableError as error:
            return _condition(release, "Unknown", ReportReason.UNREACHABLE, str(error))
        except AlterShieldServerError as error:
            # a wrong token is no problem of the release, and somebody may be replacing the token
            if isinstance(error, RejectedError) and error.code == DENIED:
                return _condition(release, "Unknown", ReportReason.DENIED, str(error))
            return _condition(release, "False", ReportReason.REFUSED, str(error))
        return _condition(release, "True", ReportReason.CREATED, "the AlterShield server has the order of this release")

    async def close(self, release: Release, workload: Workload) -> float | None:
        """Close the order of a release that has ended, once. Returns the seconds until the next attempt if the server
        cannot be reached, else None."""
        if self._server is None:
            return None
        known = find_condition(release.status.conditions, ConditionType.REPORTED)
        ending = finish_state(release, workload)
        if ending is None or known is None or known.reason != ReportReason.CREATED:
            return None
        message = f"the order of this release is closed as {ending}"
        try:
            await self._server.close(release, ending, f"the release is in the state {state(release)}")
        except UnavailableError:
            return RETRY_SECONDS
        except AlterShieldServerError as error:  # it would be refused again
            message = f"the server did not close the order: {error}"
        closed = _condition(release, "True", ReportReason.CLOSED, message)
        conditions = set_condition(release.status.conditions, closed, self._clock())
        status = msgspec.structs.replace(release.status, conditions=conditions)
        await self._writer.save_release(release, status, lists=False)
        return None


def finish_state(release: Release, workload: Workload) -> FinishState | None:
    """The end of the release, as an end state of the server. None: the release is under way, or waits for a person."""
    superseded = version_of(release) != workload.version
    if rolled_back(release):
        return FinishState.ROLLBACK if state(release) is WorkloadState.FAILED else None
    if state(release) is WorkloadState.SUCCESS:
        settled = find_condition(release.status.conditions, ConditionType.SETTLED)
        return FinishState.SUCCESS if superseded or (settled is not None and settled.is_true) else None
    return FinishState.CANCEL if superseded else None


def is_refused(release: Release) -> bool:
    """Whether the release failed because the server refused its order."""
    known = find_condition(release.status.conditions, ConditionType.REPORTED)
    return state(release) is WorkloadState.FAILED and known is not None and known.reason == ReportReason.REFUSED


def _condition(release: Release, status: str, reason: ReportReason, message: str) -> Condition:
    generation = release.metadata.generation
    return Condition(ConditionType.REPORTED, status, reason, message[:_MAX_MESSAGE], observed_generation=generation)
