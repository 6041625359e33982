"""The order of a release on an AlterShield server: when it is created, and how it is closed."""

from typing import Any

import msgspec
import pytest

from altershield.api.change_workload import ChangeWorkload, ChangeWorkloadStatus, WorkloadState
from altershield.api.meta import Condition
from reconciler.cluster.orders import order_id, order_of
from reconciler.cluster.release import Release, read
from reconciler.releases.writes.reports import RETRY_SECONDS, Reporter, finish_state, is_refused
from reconciler.server.messages import FinishState
from reconciler.server.server_errors import RejectedError, UnavailableError
from tests.unit.altershield.releases.builders import NOW, V1, V2, release, workload


def with_status(state: str, **conditions: tuple[str, str]) -> Release:
    """A release of V1 in this state, with conditions as type=(status, reason)."""
    found = tuple(Condition(type_, status, reason, "") for type_, (status, reason) in conditions.items())
    return read(msgspec.json.encode(release(V1, ChangeWorkloadStatus(status=state, conditions=found))))


class Server:
    """Records what it is asked for, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.enabled = True
        self.calls: list[object] = []

    async def report(self, release: ChangeWorkload) -> None:
        self.calls.append("report")
        if self.error is not None:
            raise self.error

    async def close(self, release: ChangeWorkload, state: FinishState, message: str) -> None:
        self.calls.append(state)
        if self.error is not None:
            raise self.error


class Writer:
    def __init__(self) -> None:
        self.saved: list[ChangeWorkloadStatus] = []

    async def save_release(self, release: Release, status: ChangeWorkloadStatus, *, lists: bool) -> Release:
        self.saved.append(status)
        return release


def reporter(server: Server, writer: Any = None) -> Reporter:
    return Reporter(server, writer or Writer(), lambda: NOW)


def unavailable() -> UnavailableError:
    return UnavailableError("no answer", delivered=False)


def refused() -> RejectedError:
    return RejectedError("no such scene", code="101", text="no such scene")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, ("True", "OrderCreated")),
        (unavailable(), ("Unknown", "ServerUnreachable")),
        (refused(), ("False", "OrderRefused")),
        (RejectedError("bad signature", code="102", text=""), ("Unknown", "AccessDenied")),
    ],
)
async def test_condition_says_what_the_server_answered(error: Exception | None, expected: tuple[str, str]) -> None:
    found = await reporter(Server(error)).report(with_status("Init"))
    assert found is not None
    assert (found.status, found.reason) == expected


@pytest.mark.parametrize("state", ["Success", "Suspend", "Failed", "Rollback"])
async def test_release_that_is_not_under_way_is_not_reported(state: str) -> None:
    server = Server()
    assert await reporter(server).report(with_status(state)) is None
    assert server.calls == []


async def test_nothing_is_reported_while_the_server_is_switched_off() -> None:
    server = Server()
    server.enabled = False
    assert await reporter(server).report(with_status("Init")) is None
    assert server.calls == []


async def test_release_is_reported_again_only_while_the_server_cannot_be_reached() -> None:
    server = Server()
    assert await reporter(server).report(with_status("Running", Reported=("True", "OrderCreated"))) is None
    assert server.calls == []
    assert await reporter(server).report(with_status("Running", Reported=("Unknown", "ServerUnreachable"))) is not None


@pytest.mark.parametrize(
    ("found", "version", "expected"),
    [
        (with_status("Running"), V1, None),
        (with_status("Suspend"), V1, None),
        (with_status("Success"), V1, None),
        (with_status("Success", Settled=("False", "Observing")), V1, None),
        (with_status("Success", Settled=("True", "StayedUp")), V1, FinishState.SUCCESS),
        (with_status("Success", Settled=("False", "Observing")), V2, FinishState.SUCCESS),
        (with_status("Running"), V2, FinishState.CANCEL),
        (with_status("Suspend"), V2, FinishState.CANCEL),
        (with_status("Rollback"), V1, None),
        (with_status("Failed", RolledBack=("True", "PodNotUp")), V2, FinishState.ROLLBACK),
    ],
)
def test_order_is_closed_as_the_release_ended(found: Release, version: str, expected: FinishState | None) -> None:
    assert finish_state(found, workload(version)) == expected


async def test_order_is_closed_once() -> None:
    settled = {"Settled": ("True", "StayedUp")}
    server, writer = Server(), Writer()
    created = with_status("Success", Reported=("True", "OrderCreated"), **settled)
    assert await reporter(server, writer).close(created, workload(V1)) is None
    assert server.calls == [FinishState.SUCCESS]
    assert [each.reason for each in writer.saved[0].conditions if each.type == "Reported"] == ["OrderClosed"]
    for reason in (("True", "OrderClosed"), ("False", "OrderRefused")):
        await reporter(server, writer).close(with_status("Success", Reported=reason, **settled), workload(V1))
    await reporter(server, writer).close(with_status("Success", **settled), workload(V1))
    assert server.calls == [FinishState.SUCCESS]


async def test_close_is_repeated_later_if_the_server_cannot_be_reached_but_not_if_it_refuses() -> None:
    created = with_status("Success", Reported=("True", "OrderCreated"), Settled=("True", "StayedUp"))
    writer = Writer()
    assert await reporter(Server(unavailable()), writer).close(created, workload(V1)) == RETRY_SECONDS
    assert writer.saved == []
    assert await reporter(Server(refused()), writer).close(created, workload(V1)) is None
    assert len(writer.saved) == 1


def test_only_a_refused_order_makes_a_failed_release_final() -> None:
    assert is_refused(with_status("Failed", Reported=("False", "OrderRefused")))
    assert not is_refused(with_status("Failed", Reported=("True", "OrderCreated")))
    assert not is_refused(with_status(WorkloadState.RUNNING, Reported=("False", "OrderRefused")))


def test_each_release_of_a_version_has_another_order() -> None:
    first = release(V1)
    again = msgspec.structs.replace(first, spec=msgspec.structs.replace(first.spec, workload_generation=9))
    assert order_id(first) != order_id(again)
    long = msgspec.structs.replace(first, spec=msgspec.structs.replace(first.spec, service_name="a" * 253))
    assert len(order_id(long)) == 128
    assert order_id(long).startswith(first.metadata.uid)
    assert order_of(first).title == f"Deployment default/sleep: version {V1}"
